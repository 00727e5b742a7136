// A service that says 429 to everybody, over real sockets and under manual time.
#include "wrap_world.hpp"

#include <reagent/providers/retry.hpp>

namespace {
namespace always_limited_test {

using namespace wrap_world_detail;

class limited_service {
public:
    limited_service(world& w, std::uint64_t times) : server(w.io.get_executor(), options(times, w.clock)), http(w.io.get_executor(), client(w.clock)) {}
    provider_ptr provider() { return openai_chat(http, openai_options("m").base_url(url::parse_or_throw(server.base_url(), "test")).key(secret("k"))); }
    ~limited_service()
    {
        http.close_idle();
        server.stop();
    }
    rt::mock_server server;
    http_client http;

private:
    static rt::mock_options options(std::uint64_t times, clock_ptr clock)
    {
        rt::mock_fixtures fixtures = rt::default_mock_fixtures();
        fixtures[0].fault = rt::mock_fault(rt::mock_fault_kind::status, 429);
        fixtures[0].fault.retry_after_s = 1;
        fixtures[0].fault.times = times;
        return std::move(rt::mock_options().fixtures(std::move(fixtures)).clock(std::move(clock)));
    }
    static http_client_options client(clock_ptr clock)
    {
        http_client_options o;
        o.clock = std::move(clock);
        return o;
    }
};

TEST(AlwaysLimited, Case_C6_TheServerSeesExactlyTheAttempts)
{
    world w;
    limited_service service(w, UINT64_MAX);
    const retry_options o = retry_options().attempts(4).clock(w.clock);
    // A second layer, as a framework around the program might add one.
    const provider_ptr p = with_retry(with_retry(service.provider(), o), o);
    EXPECT_EQ(provider_error_to_json(w.failure(p))["attempts"].get_int64(), 4);
    EXPECT_EQ(service.server.stats().requests, 4U);
}

TEST(AlwaysLimited, Case_C7_TwoHundredCallersComeBackSpreadAndNotEarly)
{
    world w;
    limited_service service(w, 200);
    const provider_ptr p = with_retry(service.provider(), retry_options().clock(w.clock).random(seeded()));
    std::vector<std::shared_ptr<attempt_log>> logs;
    std::vector<std::unique_ptr<rt::started<generate_result>>> calls;
    for (int i = 0; i < 200; ++i) {
        generate_request request = asking("hi");
        request.log = logs.emplace_back(std::make_shared<attempt_log>(w.clock));
        calls.push_back(std::make_unique<rt::started<generate_result>>(w.io, p->generate(request)));
    }
    ASSERT_TRUE(rt::run_until(w.io, *w.clock, [&] { return std::ranges::all_of(calls, [](const auto& c) { return c->done(); }); }));
    std::vector<std::int64_t> waits;
    for (const auto& log : logs) {
        ASSERT_EQ(log->attempts(), 2U);
        waits.push_back(waits_of(log->records())[1]);
    }
    std::ranges::sort(waits);
    EXPECT_GE(waits.front(), 1000);
    EXPECT_GE(waits.back() - waits.front(), 500);
    // Spread, and not in a few heaps: no hundred milliseconds hold more than a fifth of them.
    for (const std::int64_t from : waits) EXPECT_LE(std::ranges::count_if(waits, [from](std::int64_t t) { return t >= from && t < from + 100; }), 40);
    EXPECT_EQ(service.server.stats().requests, 400U);
}

}  // namespace always_limited_test
}  // namespace

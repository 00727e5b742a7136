// Limits and caches that several threads share, each thread with a context of its own.
#include <reagent/model/provider.hpp>
#include <reagent/providers/circuit_breaker.hpp>
#include <reagent/providers/concurrency_limit.hpp>
#include <reagent/providers/rate_limiter.hpp>
#include <reagent/providers/response_cache.hpp>
#include <reagent/testing/run.hpp>

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/post.hpp>

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <memory>
#include <thread>
#include <vector>

namespace {
namespace limits_threads_test {

using namespace reagent;
namespace rt = reagent::testing;

/// Answers after some turns of its context, and counts who is in it at once. One context each; the counters are shared.
class counters {
public:
    std::atomic<int> inside = 0, most = 0, answered = 0;
};

class busy_provider final : public provider {
public:
    explicit busy_provider(counters& c) : counters_(c) {}
    bool admits_attempts() const noexcept override { return true; }
    awaitable<generate_result> generate(generate_request) override
    {
        const int now = ++counters_.inside;
        int seen = counters_.most;
        while (now > seen && !counters_.most.compare_exchange_weak(seen, now)) {}
        for (int i = 0; i < 5; ++i) co_await asio::post(asio::use_awaitable);
        --counters_.inside;
        ++counters_.answered;
        generate_result r;
        r.text = "ok";
        r.stop_reason = "end_turn";
        co_return r;
    }

private:
    counters& counters_;
};

generate_request question()
{
    generate_request r(transcript{message::user("hi")});
    r.options.temperature = 0;
    return r;
}

awaitable<void> ask(provider_ptr p, std::atomic<int>* ok)
{
    generate_result r = co_await p->generate(question());
    if (r.text == "ok") ++*ok;
}

/// `calls` calls on each of four threads, all begun at once; how many were answered.
template <class Wrap>
int on_four_threads(counters& c, int calls, Wrap wrap)
{
    std::atomic<int> ok = 0;
    std::vector<std::thread> threads;
    for (int t = 0; t < 4; ++t)
        threads.emplace_back([&] {
            asio::io_context io{1};
            const provider_ptr p = wrap(std::make_shared<busy_provider>(c));
            std::vector<std::unique_ptr<rt::started<void>>> all;
            for (int i = 0; i < calls; ++i) all.push_back(std::make_unique<rt::started<void>>(io, ask(p, &ok)));
            rt::run_until(io, [&] { return std::ranges::all_of(all, [](const auto& one) { return one->done(); }); });
        });
    for (std::thread& t : threads) t.join();
    return ok;
}

TEST(LimitsThreads, SoManyAtOnceOverAllThreads)
{
    counters c;
    const concurrency_limit three(3);
    EXPECT_EQ(on_four_threads(c, 50, [&](provider_ptr p) { return with_concurrency_limit(std::move(p), three); }), 200);
    EXPECT_LE(c.most, 3);
    EXPECT_EQ(three.active(), 0U);
    EXPECT_EQ(three.waiting(), 0U);
}

TEST(LimitsThreads, ALimiterAndABreakerServeAllThreads)
{
    counters c;
    const rate_limiter wide(rate_options().requests_per_minute(1000));
    const circuit_breaker breaker;
    EXPECT_EQ(on_four_threads(c, 50, [&](provider_ptr p) { return with_rate_limit(with_circuit_breaker(std::move(p), breaker), wide); }), 200);
    EXPECT_EQ(wide.waiting(), 0U);
}

TEST(LimitsThreads, CallsOfSeveralThreadsShareOneRequest)
{
    counters c;
    const response_cache cache;
    EXPECT_EQ(on_four_threads(c, 50, [&](provider_ptr p) { return with_response_cache(std::move(p), cache, "all"); }), 200);
    EXPECT_EQ(c.answered, 1);
    EXPECT_EQ(cache.stats().in_flight, 0U);
}

TEST(LimitsThreads, AContextThatGoesLeavesTheLine)
{
    counters c;
    std::atomic<int> ok = 0;
    const concurrency_limit one(1);
    const auto wrapped = [&] { return with_concurrency_limit(std::make_shared<busy_provider>(c), one); };
    asio::io_context first{1}, last{1};
    rt::started<void> holder(first, ask(wrapped(), &ok));
    while (one.active() == 0) first.poll_one();
    {
        asio::io_context gone{1};
        rt::started<void> waiting(gone, ask(wrapped(), &ok)), another(gone, ask(wrapped(), &ok));
        gone.poll();
        EXPECT_EQ(one.waiting(), 2U);
    }
    EXPECT_EQ(one.waiting(), 0U);
    rt::started<void> next(last, ask(wrapped(), &ok));
    last.poll();
    std::thread other([&] { rt::run_until(first, [&] { return holder.done(); }); });
    EXPECT_TRUE(rt::run_until(last, [&] { return next.done(); }));
    other.join();
    EXPECT_EQ(ok, 2);
}

}  // namespace limits_threads_test
}  // namespace

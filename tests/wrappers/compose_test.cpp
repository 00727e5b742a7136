// Any wrapper over any other: the attempts are admitted, counted and answered the same.
#include "wrap_world.hpp"

#include <reagent/providers/circuit_breaker.hpp>
#include <reagent/providers/concurrency_limit.hpp>
#include <reagent/providers/fallback.hpp>
#include <reagent/providers/hedge.hpp>
#include <reagent/providers/rate_limiter.hpp>
#include <reagent/providers/response_cache.hpp>
#include <reagent/providers/retry.hpp>

namespace {
namespace compose_test {

using namespace wrap_world_detail;

struct wrapper {
    const char* name;
    std::function<provider_ptr(provider_ptr, clock_ptr)> wrap;
};

const std::vector<wrapper>& wrappers()
{
    static const std::vector<wrapper> all = {
        {"retry", [](provider_ptr p, clock_ptr c) { return with_retry(p, retry_options().clock(c)); }},
        {"fallback",
         [](provider_ptr p, clock_ptr c) {
             return with_fallback({p, p}, fallback_options().clock(c));
         }},
        {"breaker", [](provider_ptr p, clock_ptr c) { return with_circuit_breaker(p, circuit_breaker(circuit_options().clock(c))); }},
        {"rate", [](provider_ptr p, clock_ptr c) { return with_rate_limit(p, rate_limiter(rate_options().clock(c))); }},
        {"concurrency", [](provider_ptr p, clock_ptr c) { return with_concurrency_limit(p, concurrency_limit(concurrency_options(2).clock(c))); }},
        {"hedge", [](provider_ptr p, clock_ptr c) { return with_hedge(p, hedge_options().clock(c).delay(5s)); }},
        {"cache", [](provider_ptr p, clock_ptr c) { return with_response_cache(p, response_cache(cache_options().clock(c))); }},
    };
    return all;
}

TEST(Compose, AnyOfThemOverAnyOther)
{
    for (const wrapper& outer : wrappers())
        for (const wrapper& inner : wrappers())
            for (const bool stream : {false, true}) {
                world w;
                const bool mends = std::string_view("retry fallback").find(outer.name) != std::string_view::npos ||
                    std::string_view("retry fallback").find(inner.name) != std::string_view::npos;
                std::vector<scripted_round> rounds;
                if (mends) rounds.push_back(failing(refusal(503)));
                rounds.push_back(scripted_round("abc").deltas(3).usage(10, 5));
                const auto p = scripted_provider::make(std::move(rounds));
                recording_gate gate;
                generate_request request = asking("hi", stream);
                request.options.temperature = 0;
                request.gate = &gate;
                const observed_call seen = w.call(outer.wrap(inner.wrap(p, w.clock), w.clock), request);
                const std::string which = std::string(outer.name) + " over " + inner.name + (stream ? ", streamed" : "");
                ASSERT_TRUE(seen.result) << which << ": " << message_of(seen.failure);
                EXPECT_EQ(seen.text, "abc") << which;
                EXPECT_EQ(seen.result->text, "abc") << which;
                EXPECT_EQ(seen.result->usage->total(), 15U) << which;
                EXPECT_EQ(seen.result->attempts, mends ? 2U : 1U) << which;
                EXPECT_EQ(seen.result->records.size(), seen.result->attempts) << which;
                EXPECT_EQ(gate.attempts.size(), seen.result->attempts) << which;
                EXPECT_EQ(gate.outcomes.size(), seen.result->attempts) << which;
                EXPECT_EQ(p->open_calls(), 0U) << which;
                EXPECT_EQ(w.clock->armed(), 0U) << which;
            }
}

}  // namespace compose_test
}  // namespace

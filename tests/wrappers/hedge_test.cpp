#include "latency_window.hpp"
#include "paying_gate.hpp"
#include "wrap_world.hpp"

#include <reagent/providers/hedge.hpp>
#include <reagent/providers/retry.hpp>

namespace {
namespace hedge_test {

using namespace wrap_world_detail;
using paying_gate_detail::paying_gate;
using providers_detail::latency_window;
using ::testing::ElementsAre;

TEST(LatencyWindow, NearestRankOfTheLatest)
{
    latency_window w(100);
    EXPECT_EQ(w.percentile(0.95), 0s);
    for (int i = 1; i <= 20; ++i) w.add(i * 1s);
    EXPECT_EQ(w.percentile(0.95), 19s);
    EXPECT_EQ(w.percentile(0.96), 20s);
    EXPECT_EQ(w.percentile(0.5), 10s);
    EXPECT_EQ(w.percentile(0), 1s);
    EXPECT_EQ(w.percentile(1), 20s);
    for (int i = 0; i < 100; ++i) w.add(1ms);
    EXPECT_EQ(w.size(), 100U);
    EXPECT_EQ(w.percentile(1), 1ms);
}

class Hedge : public ::testing::Test {
protected:
    hedge_options options() { return hedge_options().clock(w.clock).delay(100ms); }
    scripted_round slow(const char* text, milliseconds t, std::size_t times = 1)
    {
        scripted_round r(text);
        r.delay(w.slow(t)).times(times);
        return r;
    }
    world w;
};

TEST_F(Hedge, TheSecondAttemptWinsAndBothCount)
{
    const auto p = scripted_provider::make({slow("first", 10s), slow("second", 50ms)});
    const generate_result r = w.generate(with_hedge(p, options()), asking("hi"));
    EXPECT_EQ(r.text, "second");
    EXPECT_EQ(w.elapsed(), 150ms);
    EXPECT_EQ(r.attempts, 2U);
    EXPECT_THAT(ends_of(r.records), ElementsAre("cancelled:scripted", "answered:scripted"));
    EXPECT_EQ(p->open_calls(), 0U);
    EXPECT_EQ(w.clock->armed(), 0U);
}

TEST_F(Hedge, TheFirstMayStillWin)
{
    const auto p = scripted_provider::make({slow("first", 150ms), slow("second", 10s)});
    const generate_result r = w.generate(with_hedge(p, options()), asking("hi"));
    EXPECT_EQ(r.text, "first");
    EXPECT_EQ(w.elapsed(), 150ms);
    EXPECT_THAT(ends_of(r.records), ElementsAre("answered:scripted", "cancelled:scripted"));
}

TEST_F(Hedge, AFastCallIsLeftAlone)
{
    const auto p = scripted_provider::make({slow("first", 99ms)});
    EXPECT_EQ(w.generate(with_hedge(p, options()), asking("hi")).attempts, 1U);
}

TEST_F(Hedge, OfAStreamTheFirstDeltaWins)
{
    const auto p = scripted_provider::make({slow("slow to begin", 10s).deltas(3), slow("abc", 50ms).deltas(3)});
    const observed_call seen = w.call(with_hedge(p, options()), asking("hi"));
    ASSERT_TRUE(seen.result);
    EXPECT_EQ(seen.text, "abc");
    EXPECT_EQ(seen.result->text, "abc");
    EXPECT_EQ(seen.batches, 3U);
    EXPECT_EQ(std::ranges::count(seen.kinds, event_kind::start), 1);
}

TEST_F(Hedge, TheLoserHasEndedBeforeTheWinnerIsReadOn)
{
    const auto p = scripted_provider::make({slow("first", 10s).deltas(3), slow("abc", 50ms).deltas(3)});
    const model_call_ptr call = with_hedge(p, options())->start(asking("hi"));
    event_batch batch;
    EXPECT_TRUE(rt::complete(w.io, *w.clock, call->read(batch)));
    EXPECT_EQ(p->open_calls(), 1U);
    EXPECT_EQ(call->partial_text(), "a");
}

TEST_F(Hedge, AFailureWaitsForTheOtherAttempt)
{
    const auto late = scripted_provider::make({failing(refusal(503)).delay(w.slow(200ms)), slow("second", 1s)});
    EXPECT_EQ(w.generate(with_hedge(late, options()), asking("hi")).text, "second");
    const auto second_fails = scripted_provider::make({slow("first", 1s), failing(refusal(503))});
    EXPECT_EQ(w.generate(with_hedge(second_fails, options()), asking("hi")).text, "first");
    const auto both = scripted_provider::make({failing(refusal(500)).delay(w.slow(200ms)), failing(refusal(503)).delay(w.slow(200ms))});
    const json e = provider_error_to_json(w.failure(with_hedge(both, options())));
    EXPECT_EQ(e["status"].get_int64(), 500);
    EXPECT_EQ(e["attempts"].get_int64(), 2);
}

TEST_F(Hedge, AnEarlyFailureIsNotHedged)
{
    const auto p = scripted_provider::make({failing(refusal(503)).delay(w.slow(50ms)), slow("second", 1s)});
    EXPECT_TRUE(w.failure(with_hedge(p, options())));
    EXPECT_EQ(w.elapsed(), 50ms);
    EXPECT_EQ(p->requests().size(), 1U);
}

TEST_F(Hedge, AHaltOfTheFirstEndsBoth)
{
    const auto p = scripted_provider::make({scripted_round().error(halt_error("r")).delay(w.slow(200ms)), slow("second", 10s)});
    EXPECT_EQ(provider_error_to_json(w.failure(with_hedge(p, options())))["kind"].as_string(), "halt");
    EXPECT_EQ(w.elapsed(), 200ms);
    EXPECT_EQ(p->open_calls(), 0U);
}

TEST_F(Hedge, LearnsWhatIsSlow)
{
    const auto p = scripted_provider::make({slow("quick", 1s, 20), slow("slow", 10s), slow("second", 1ms)});
    const provider_ptr hedged = with_hedge(p, hedge_options().clock(w.clock));
    for (int i = 0; i < 20; ++i) static_cast<void>(w.generate(hedged, asking("hi")));
    const milliseconds before = w.elapsed();
    const generate_result r = w.generate(hedged, asking("hi"));
    EXPECT_EQ(r.text, "second");
    EXPECT_EQ(w.elapsed() - before, 1001ms);
    // A stream knows nothing of that yet.
    EXPECT_EQ(hedge_options().min_samples(), 20U);
    EXPECT_EQ(hedge_options().max_samples(), 200U);
    EXPECT_EQ(hedge_options().min_delay(), 10ms);
    EXPECT_THROW(hedge_options().percentile(2), validation_error);
}

TEST_F(Hedge, TooFewLatenciesHedgeNothing)
{
    const auto p = scripted_provider::make({slow("quick", 1s, 19), slow("slow", 10s), slow("second", 1ms)});
    const provider_ptr hedged = with_hedge(p, hedge_options().clock(w.clock));
    for (int i = 0; i < 20; ++i) EXPECT_EQ(w.generate(hedged, asking("hi")).attempts, 1U);
}

budget tokens(std::uint64_t cap)
{
    return budget("run", budget_caps(std::nullopt, cap));
}

/// The worst case of one attempt at `asking("hi")` with 50 tokens of answer.
std::uint64_t worst_case(world& w)
{
    recording_gate gate;
    generate_request request = asking("hi");
    request.options.max_tokens = 50;
    request.gate = &gate;
    static_cast<void>(w.generate(with_retry(scripted_provider::make({scripted_round("ok")}), retry_options().clock(w.clock)), request));
    return gate.attempts.at(0).input_bound + *gate.attempts.at(0).output_bound;
}

TEST_F(Hedge, UnderABudgetTheSecondWaitsForMoneyAndSpendsNone)
{
    const std::uint64_t one = worst_case(w);
    const auto p = scripted_provider::make({slow("first", 1s).usage(10, 5), slow("second", 1ms)});
    paying_gate gate(tokens(2 * one - 1));
    generate_request request = asking("hi");
    request.options.max_tokens = 50;
    request.gate = &gate;
    const generate_result r = w.generate(with_hedge(p, options()), request);
    EXPECT_EQ(r.text, "first");
    EXPECT_EQ(r.attempts, 1U);
    EXPECT_EQ(gate.asked, 2U);
    EXPECT_LE(gate.most, 2 * one - 1);
    EXPECT_EQ(gate.money.state().spent.tokens, 15U);
    EXPECT_EQ(gate.money.state().reserved.tokens, 0U);
    EXPECT_EQ(gate.money.state().waiting, 0U);
}

TEST_F(Hedge, UnderABudgetForTwoTheLoserIsSettled)
{
    const std::uint64_t one = worst_case(w);
    const auto p = scripted_provider::make({slow("first", 10s), slow("second", 1ms).usage(10, 5)});
    paying_gate gate(tokens(2 * one));
    generate_request request = asking("hi");
    request.options.max_tokens = 50;
    request.gate = &gate;
    EXPECT_EQ(w.generate(with_hedge(p, options()), request).text, "second");
    EXPECT_EQ(gate.most, 2 * one);
    EXPECT_EQ(gate.money.state().reserved.tokens, 0U);
    EXPECT_EQ(gate.money.state().spent.tokens, one + 15);  // nobody knows what the loser used
}

TEST_F(Hedge, WhoWaitsForMoneyIsNotHedged)
{
    const std::uint64_t one = worst_case(w);
    paying_gate gate(tokens(one));
    std::optional<admission> other = gate.money.try_reserve(budget_amount(usd(), one));
    const auto p = scripted_provider::make({slow("first", 1ms).usage(1, 1)});
    generate_request request = asking("hi");
    request.options.max_tokens = 50;
    request.gate = &gate;
    const provider_ptr hedged = with_hedge(p, options());
    rt::started<generate_result> call(w.io, hedged->generate(request));
    rt::run_until_idle(w.io);
    for (int i = 0; i < 5; ++i) {
        w.clock->advance(100ms);
        rt::run_until_idle(w.io);
    }
    EXPECT_EQ(gate.asked, 1U);
    other.reset();
    ASSERT_TRUE(rt::run_until(w.io, *w.clock, [&] { return call.done(); }));
    EXPECT_EQ(call.get().text, "first");
}

}  // namespace hedge_test
}  // namespace

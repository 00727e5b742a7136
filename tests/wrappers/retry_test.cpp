#include "wrap_world.hpp"

#include <reagent/providers/retry.hpp>

namespace {
namespace retry_test {

using namespace wrap_world_detail;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

class Retry : public ::testing::Test {
protected:
    retry_options options() { return retry_options().clock(w.clock).random(always(0.5)); }
    world w;
};

TEST_F(Retry, AnswersAfterFailuresAndTellsOfEach)
{
    const auto p = scripted_provider::make({failing(refusal(503)), failing(refusal(429, true, 2s)), scripted_round("ok")});
    const generate_result r = w.generate(with_retry(p, options()), asking("hi"));
    EXPECT_EQ(r.text, "ok");
    EXPECT_EQ(r.attempts, 3U);
    EXPECT_THAT(ends_of(r.records), ElementsAre("failed:scripted", "failed:scripted", "answered:scripted"));
    EXPECT_THAT(waits_of(r.records), ElementsAre(0, 500, 3000));  // half of a second; two seconds of floor and half of two
    EXPECT_EQ(r.records[1].status, 429);
    EXPECT_EQ(r.records[1].error, make_error_code(errc::rate_limited));
    EXPECT_EQ(r.to_json()["attemptRecords"][1]["error"].as_string(), "the model service asks to slow down");
}

TEST_F(Retry, TheLastErrorComesBackWithItsAttempts)
{
    const auto p = scripted_provider::make({failing(refusal(503), 0)});
    const std::exception_ptr failure = w.failure(with_retry(p, options().attempts(4)));
    const json e = provider_error_to_json(failure);
    EXPECT_EQ(e["status"].get_int64(), 503);
    EXPECT_EQ(e["attempts"].get_int64(), 4);
    EXPECT_EQ(e["attemptRecords"].size(), 4U);
    EXPECT_EQ(e["message"].as_string(), "[Test] HTTP 503");
    EXPECT_EQ(p->requests().size(), 4U);
    EXPECT_EQ(w.elapsed(), 500ms + 1s + 2s);
}

TEST_F(Retry, WhatMustNotBeRetriedIsNot)
{
    for (const int status : {400, 401, 429}) {
        const auto p = scripted_provider::make({failing(refusal(status, false), 0)});
        EXPECT_TRUE(w.failure(with_retry(p, options())));
        EXPECT_EQ(p->requests().size(), 1U) << status;
    }
    const auto halting = scripted_provider::make({scripted_round().error(halt_error("budget.maxTokens")).times(0)});
    EXPECT_EQ(provider_error_to_json(w.failure(with_retry(halting, options())))["rule"].as_string(), "budget.maxTokens");
    EXPECT_EQ(halting->requests().size(), 1U);
}

TEST_F(Retry, L06_ADeadlineIsFinal)
{
    const auto p = scripted_provider::make({scripted_round().error(timeout_error(errc::deadline, "late")).times(0)});
    EXPECT_EQ(provider_error_to_json(w.failure(with_retry(p, options())))["bound"].as_string(), "deadline");
    EXPECT_EQ(p->requests().size(), 1U);
}

TEST_F(Retry, NobodySleepsPastTheDeadline)
{
    const auto p = scripted_provider::make({failing(refusal(429, true, 5s), 0)});
    generate_request request = asking("hi");
    request.options.total = 5s;
    EXPECT_EQ(provider_error_to_json(w.failure(with_retry(p, options()), request))["status"].get_int64(), 429);
    EXPECT_EQ(w.elapsed(), 0ms);
}

TEST_F(Retry, TheCallsTotalTimeSpansAllAttempts)
{
    const auto p = scripted_provider::make({failing(refusal(503), 0).delay(w.slow(1s))});
    generate_request request = asking("hi");
    request.options.total = 6s;
    EXPECT_TRUE(w.failure(with_retry(p, options().attempts(100)), request));
    // At 4.5 s the next wait, of two seconds, would pass it.
    EXPECT_EQ(p->requests().size(), 3U);
    EXPECT_EQ(p->requests()[2].options.deadline, p->requests()[0].options.deadline);
    EXPECT_EQ(w.elapsed(), 1s + 500ms + 1s + 1s + 1s);
}

TEST_F(Retry, L05_AnAttemptThatOutlivesItsLimitIsRetried)
{
    const auto p = scripted_provider::make({scripted_round("late").delay(w.slow(1h)).times(0)});
    const std::exception_ptr failure = w.failure(with_retry(p, options().attempts(2).attempt_limit(50ms)));
    EXPECT_EQ(message_of(failure), "[Retry] Timeout");
    EXPECT_EQ(provider_error_to_json(failure)["bound"].as_string(), "attempt");
    EXPECT_TRUE(provider_error_to_json(failure)["retryable"].as_bool());
    EXPECT_EQ(p->requests().size(), 2U);
    EXPECT_EQ(w.elapsed(), 50ms + 500ms + 50ms);
}

TEST_F(Retry, L07_TheTimedOutAttemptIsGoneBeforeTheNextStarts)
{
    std::size_t open_at_second = 99;
    std::shared_ptr<scripted_provider> p;
    p = scripted_provider::make({scripted_round("late").delay(w.slow(1h)), scripted_round("ok").when([&](const generate_request&) {
                                     open_at_second = p->requests().empty() ? 99 : p->open_calls();
                                     return true;
                                 })});
    EXPECT_EQ(w.generate(with_retry(p, options().attempt_limit(50ms)), asking("hi")).text, "ok");
    EXPECT_EQ(open_at_second, 0U);
}

TEST_F(Retry, TheCallsDeadlineWinsOverTheAttemptsLimit)
{
    const auto p = scripted_provider::make({scripted_round("late").delay(w.slow(1h)).times(0)});
    generate_request request = asking("hi");
    request.options.total = 50ms;
    const std::exception_ptr failure = w.failure(with_retry(p, options().attempt_limit(50ms)), request);
    EXPECT_EQ(provider_error_to_json(failure)["bound"].as_string(), "deadline");
}

TEST_F(Retry, Case_C8_NoRetryAfterTheFirstDelta)
{
    const auto p = scripted_provider::make({failing_after(3, refusal(503)), scripted_round("again")});
    const observed_call seen = w.call(with_retry(p, options()), asking("hi"));
    EXPECT_EQ(seen.error()["status"].get_int64(), 503);
    EXPECT_EQ(seen.text, "xxx");
    EXPECT_EQ(seen.partial, "xxx");
    EXPECT_EQ(p->requests().size(), 1U);
}

TEST_F(Retry, Case_C8_AReaderThatTakesResetsIsToldToStartAnew)
{
    const auto p = scripted_provider::make({failing_after(3, refusal(503)), scripted_round("again")});
    generate_request request = asking("hi");
    request.options.accept_resets = true;
    const observed_call seen = w.call(with_retry(p, options()), request);
    ASSERT_TRUE(seen.result);
    EXPECT_EQ(seen.result->text, "again");
    EXPECT_EQ(seen.result->attempts, 2U);
    const auto reset = std::ranges::find(seen.kinds, event_kind::reset);
    ASSERT_NE(reset, seen.kinds.end());
    EXPECT_EQ(std::count(seen.kinds.begin(), reset, event_kind::text), 3);
    EXPECT_EQ(std::count(seen.kinds.begin(), seen.kinds.end(), event_kind::reset), 1);
}

TEST_F(Retry, GenerateSeesNoDeltasAndRetriesAfterThem)
{
    const auto p = scripted_provider::make({failing_after(3, refusal(503)), scripted_round("again")});
    EXPECT_EQ(w.generate(with_retry(p, options()), asking("hi")).text, "again");
}

TEST_F(Retry, Case_C6_TwoLayersDoNotMultiply)
{
    const auto p = scripted_provider::make({failing(refusal(429), 0)});
    const provider_ptr both = with_retry(with_retry(p, options().attempts(5)), options().attempts(3));
    EXPECT_EQ(provider_error_to_json(w.failure(both))["attempts"].get_int64(), 3);
    EXPECT_EQ(p->requests().size(), 3U);
}

TEST_F(Retry, EveryAttemptPassesTheGate)
{
    const auto p = scripted_provider::make({failing(refusal(503)), scripted_round("ok").usage(10, 5)});
    recording_gate gate;
    generate_request request = asking("hi");
    request.gate = &gate;
    static_cast<void>(w.generate(with_retry(p, options()), request));
    ASSERT_EQ(gate.attempts.size(), 2U);
    EXPECT_EQ(gate.attempts[1].number, 2U);
    EXPECT_EQ(gate.attempts[1].model, "scripted-model");
    ASSERT_EQ(gate.outcomes.size(), 2U);
    EXPECT_EQ(gate.outcomes[0].status, 503);
    EXPECT_FALSE(gate.outcomes[0].usage);
    EXPECT_EQ(gate.outcomes[1].usage->total(), 15U);
}

TEST_F(Retry, AGateThatHaltsEndsTheCall)
{
    const auto p = scripted_provider::make({failing(refusal(503), 0)});
    recording_gate gate;
    gate.most_attempts = 1;
    generate_request request = asking("hi");
    request.gate = &gate;
    EXPECT_EQ(provider_error_to_json(w.failure(with_retry(p, options()), request))["kind"].as_string(), "halt");
    EXPECT_EQ(gate.outcomes.size(), 1U);
}

TEST_F(Retry, TheCallersLogHasTheAttemptsOfACallThatFails)
{
    const auto p = scripted_provider::make({scripted_round("late").delay(w.slow(1h)).times(0)});
    generate_request request = asking("hi");
    request.log = std::make_shared<attempt_log>(w.clock);
    EXPECT_TRUE(w.failure(with_retry(p, options().attempts(2).attempt_limit(50ms)), request));
    EXPECT_THAT(ends_of(request.log->records()), ElementsAre("cancelled:scripted", "cancelled:scripted"));
}

TEST_F(Retry, AnswersForWhatItWraps)
{
    const auto p = scripted_provider::make({scripted_round("ok")}, "model-x");
    const provider_ptr wrapped = with_retry(p, options());
    EXPECT_EQ(wrapped->name(), "scripted");
    EXPECT_EQ(wrapped->model(), "model-x");
    EXPECT_TRUE(wrapped->admits_attempts());
    EXPECT_THROW(static_cast<void>(with_retry(nullptr)), validation_error);
    EXPECT_THROW(static_cast<void>(with_retry(p, retry_options().attempts(0))), validation_error);
}

TEST_F(Retry, TheLogSaysWhenTheNextAttemptIs)
{
    std::string said;
    const log_sink log([&said](log_level, std::string_view line) { said = line; });
    const auto p = scripted_provider::make({failing(refusal(503)), scripted_round("ok")});
    static_cast<void>(w.generate(with_retry(p, options().log(log)), asking("hi")));
    EXPECT_EQ(said, "[Retry] attempt 2 of 3 in 500 ms: [Test] HTTP 503");
}

}  // namespace retry_test
}  // namespace

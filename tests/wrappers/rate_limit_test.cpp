#include "rate_window.hpp"
#include "wrap_world.hpp"

#include <reagent/providers/rate_limiter.hpp>
#include <reagent/providers/retry.hpp>

namespace {
namespace rate_limit_test {

using namespace wrap_world_detail;
using providers_detail::rate_amounts;
using providers_detail::rate_dimension;
using providers_detail::rate_window;
using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::Ge;
using ::testing::Lt;

const steady_time start(1h);

milliseconds after_start(steady_time t)
{
    return std::chrono::duration_cast<milliseconds>(t - start);
}

/// When each of `n` callers of now may leave.
std::vector<std::int64_t> leave(rate_window& window, steady_time now, int n, rate_amounts each = {})
{
    std::vector<std::int64_t> out;
    for (int i = 0; i < n; ++i) {
        const steady_time when = window.earliest(now, each, 1, 0);
        window.take(when, each);
        now = std::max(now, when);
        out.push_back(after_start(when).count());
    }
    return out;
}

rate_limit_window told(std::uint64_t limit, std::uint64_t remaining, milliseconds reset)
{
    rate_limit_window w;
    w.limit = limit;
    w.remaining = remaining;
    w.reset = system_time(1h) + reset;
    return w;
}

TEST(RateWindow, NeverMoreThanTheCapInAnyMinute)
{
    rate_window w(3, std::nullopt, 0s);
    EXPECT_THAT(leave(w, start, 2), ElementsAre(0, 0));
    EXPECT_THAT(leave(w, start + 30s, 4), ElementsAre(30'000, 60'000, 60'000, 90'000));
}

TEST(RateWindow, TokensCountByWhatWasUsed)
{
    rate_window w(std::nullopt, 1000, 0s);
    const std::uint64_t first = w.take(start, rate_amounts(300, 500));
    EXPECT_EQ(after_start(w.earliest(start, rate_amounts(300, 0), 1, 0)), 60s);
    w.correct(first, rate_amounts(300, 10));
    EXPECT_EQ(after_start(w.earliest(start, rate_amounts(300, 0), 1, 0)), 0s);
    // More than all of it leaves when nothing else counts.
    EXPECT_EQ(after_start(w.earliest(start, rate_amounts(5000, 0), 1, 0)), 60s);
    EXPECT_EQ(after_start(w.earliest(start + 60s, rate_amounts(5000, 0), 1, 0)), 60s);
}

TEST(RateWindow, LearnsFromWhatTheServiceTells)
{
    rate_window w(std::nullopt, std::nullopt, 0s);
    const std::uint64_t mine = w.take(start, {});
    rate_limit_info info;
    info.requests = told(60, 2, 58s);
    w.learn(start, system_time(1h), mine, info);
    // Two are left, then one comes back each second.
    EXPECT_THAT(leave(w, start, 4), ElementsAre(0, 0, 1000, 2000));
    // Once it is full nothing is known.
    EXPECT_THAT(leave(w, start + 58s, 1), ElementsAre(58'000));
}

TEST(RateWindow, WhoLeftAfterTheRequestIsNotInWhatItsAnswerTells)
{
    rate_window w(std::nullopt, std::nullopt, 0s);
    const std::uint64_t first = w.take(start, {});
    w.take(start, {});
    const std::uint64_t third = w.take(start, {});
    rate_limit_info info;
    info.requests = told(60, 2, 58s);
    w.learn(start, system_time(1h), first, info);
    EXPECT_EQ(after_start(w.earliest(start, {}, 1, 0)), 1s);  // the two that left since have what was left
    info.requests = told(60, 5, 55s);
    w.learn(start, system_time(1h), third, info);
    EXPECT_EQ(after_start(w.earliest(start, {}, 1, 0)), 0s);
    // An answer that comes late does not take the newer one back.
    info.requests = told(60, 0, 55s);
    w.learn(start, system_time(1h), first, info);
    EXPECT_EQ(after_start(w.earliest(start, {}, 1, 0)), 0s);
    // Without a limit nothing is known of how it fills.
    info.requests = told(60, 0, 55s);
    info.requests.limit.reset();
    w.learn(start, system_time(1h), third, info);
    EXPECT_EQ(after_start(w.earliest(start, {}, 1, 0)), 55s);
}

TEST(RateWindow, TokensOfAKindAreLearnedApart)
{
    rate_window w(std::nullopt, std::nullopt, 0s);
    EXPECT_FALSE(w.counts_tokens());
    rate_limit_info info;
    info.output_tokens = told(1000, 100, 90s);
    w.learn(start, system_time(1h), w.take(start, {}), info);
    EXPECT_TRUE(w.counts_tokens());
    EXPECT_EQ(after_start(w.earliest(start, rate_amounts(5000, 100), 1, 0)), 0s);
    EXPECT_EQ(after_start(w.earliest(start, rate_amounts(0, 110), 1, 0)), 1s);
}

TEST(RateWindow, ARefusalHoldsAllBackAndSpreadsTheReturns)
{
    rate_window w(std::nullopt, std::nullopt, 1s);
    w.refused(start, 2s);
    w.refused(start, 1s);  // an earlier end shortens nothing
    random_source random = seeded(7);
    std::vector<std::int64_t> returns;
    for (std::size_t waiting = 200; waiting > 0; --waiting) {
        const double unit = static_cast<double>(random() >> 11U) * 0x1p-53;
        const steady_time when = w.earliest(start, {}, waiting, unit);
        w.take(when, {});
        returns.push_back(after_start(when).count());
    }
    EXPECT_THAT(returns, Each(Ge(2000)));
    EXPECT_THAT(returns, Each(Lt(3001)));
    EXPECT_TRUE(std::ranges::is_sorted(returns));
    for (const int quarter : {0, 1, 2, 3})
        EXPECT_NEAR(static_cast<double>(std::ranges::count_if(returns, [&](std::int64_t t) { return (t - 2000) * 4 / 1000 == quarter; })), 50, 25);
    EXPECT_EQ(after_start(w.earliest(start + 4s, {}, 1, 0.9)), 4s);
}

class RateLimit : public ::testing::Test {
protected:
    rate_options options() { return rate_options().clock(w.clock).random(seeded()); }
    /// Starts `n` calls and runs all to their end; when each left for the last time, in order of their start, counted from now.
    std::vector<std::int64_t> leave(const provider_ptr& p, int n, milliseconds total = 0ms)
    {
        std::vector<std::shared_ptr<attempt_log>> logs;
        calls.clear();
        w.io.restart();
        for (int i = 0; i < n; ++i) {
            generate_request request = asking("hi");
            if (total.count() != 0) request.options.total = total;
            request.log = logs.emplace_back(std::make_shared<attempt_log>(w.clock));
            calls.push_back(std::make_unique<rt::started<generate_result>>(w.io, p->generate(request)));
        }
        EXPECT_TRUE(rt::run_until(w.io, *w.clock, [&] { return std::ranges::all_of(calls, [](const auto& c) { return c->done(); }); }));
        std::vector<std::int64_t> out;
        for (const auto& log : logs) {
            std::int64_t at = 0;
            for (const attempt_record& r : log->records()) at += std::chrono::duration_cast<milliseconds>(r.waited).count();
            out.push_back(log->records().empty() ? -1 : at);
        }
        return out;
    }
    world w;
    std::vector<std::unique_ptr<rt::started<generate_result>>> calls;
    std::shared_ptr<scripted_provider> good = scripted_provider::make({scripted_round("ok").times(0)});
};

TEST_F(RateLimit, CallersWaitInOrderAndShareTheLimit)
{
    const rate_limiter three(options().requests_per_minute(3));
    EXPECT_THAT(leave(with_rate_limit(good, three), 7), ElementsAre(0, 0, 0, 60'000, 60'000, 60'000, 120'000));
    EXPECT_THAT(leave(with_rate_limit(scripted_provider::make({scripted_round("ok").times(0)}), three), 3), ElementsAre(0, 0, 60'000));
}

TEST_F(RateLimit, OneRefusalHoldsBackEveryCaller)
{
    const rate_limiter shared(options());
    const auto refused = scripted_provider::make({failing(refusal(429, true, 5s))});
    EXPECT_TRUE(w.failure(with_rate_limit(refused, shared)));
    const std::vector<std::int64_t> left = leave(with_rate_limit(good, shared), 20);
    EXPECT_THAT(left, Each(Ge(5000)));
    EXPECT_THAT(left, Each(Lt(6001)));
    EXPECT_TRUE(std::ranges::is_sorted(left));
}

TEST_F(RateLimit, AnExhaustedQuotaAndOtherErrorsHoldNobodyBack)
{
    const rate_limiter shared(options());
    EXPECT_TRUE(w.failure(with_rate_limit(scripted_provider::make({failing(refusal(429, false))}), shared)));
    EXPECT_TRUE(w.failure(with_rate_limit(scripted_provider::make({failing(refusal(500))}), shared)));
    EXPECT_THAT(leave(with_rate_limit(good, shared), 2), ElementsAre(0, 0));
    EXPECT_TRUE(w.failure(with_rate_limit(scripted_provider::make({failing(refusal(503, true, 2s))}), shared)));
    EXPECT_THAT(leave(with_rate_limit(good, shared), 2), Each(Ge(2000)));
}

TEST_F(RateLimit, ARefusalThatDoesNotSayHowLongIsTakenForASecond)
{
    const rate_limiter shared(options().default_wait(3s).spread(0ms));
    EXPECT_TRUE(w.failure(with_rate_limit(scripted_provider::make({failing(refusal(429))}), shared)));
    EXPECT_THAT(leave(with_rate_limit(good, shared), 2), ElementsAre(3000, 3000));
    EXPECT_EQ(rate_options().default_wait(), 1s);
}

TEST_F(RateLimit, WhoCannotLeaveInTimeFailsAtOnce)
{
    const rate_limiter shared(options().spread(0ms));
    EXPECT_TRUE(w.failure(with_rate_limit(scripted_provider::make({failing(refusal(429, true, 30s))}), shared)));
    const milliseconds before = w.elapsed();
    EXPECT_THAT(leave(with_rate_limit(good, shared), 2, 20s), ElementsAre(-1, -1));
    EXPECT_EQ(w.elapsed(), before);
    for (const auto& c : calls) EXPECT_EQ(code_of(c->failure()), errc::deadline);
    EXPECT_EQ(shared.waiting(), 0U);
}

TEST_F(RateLimit, TheLineIsBounded)
{
    const rate_limiter shared(options().requests_per_minute(1).max_waiting(2));
    EXPECT_THAT(leave(with_rate_limit(good, shared), 4), ElementsAre(0, 60'000, 120'000, -1));
    EXPECT_EQ(code_of(calls[3]->failure()), errc::limit_exceeded);
    EXPECT_EQ(rate_options().max_waiting(), 10'000U);
}

TEST_F(RateLimit, KeepsToTheHeadersOfAnswers)
{
    scripted_round answer("ok");
    answer.result().rate_limit.emplace();
    rate_limit_window& window = answer.result().rate_limit->requests;
    window.limit = 10;
    window.remaining = 0;
    window.reset = w.clock->wall() + 20s;
    const rate_limiter learning(options()), heedless(options().learn(false));
    EXPECT_THAT(leave(with_rate_limit(scripted_provider::make({answer}), learning), 1), ElementsAre(0));
    EXPECT_THAT(leave(with_rate_limit(good, learning), 2), ElementsAre(2000, 4000));
    EXPECT_THAT(leave(with_rate_limit(scripted_provider::make({answer}), heedless), 1), ElementsAre(0));
    EXPECT_THAT(leave(with_rate_limit(good, heedless), 2), ElementsAre(0, 0));
}

TEST_F(RateLimit, TokensOfAPromptAreTakenAndCorrected)
{
    const rate_limiter shared(options().tokens_per_minute(100));
    const auto p = scripted_provider::make({scripted_round("ok").usage(5, 5).times(0)});
    // Alone each is reckoned to use all of it; ten were used.
    w.generate(with_rate_limit(p, shared), [] {
        generate_request r = asking("hi");
        r.options.max_tokens = 80;
        return r;
    }());
    EXPECT_THAT(leave(with_rate_limit(p, shared), 1), ElementsAre(0));
}

TEST_F(RateLimit, Case_C7_CallersBehindALimiterComeBackSpreadAndNotEarly)
{
    const rate_limiter shared(options());
    const auto p = scripted_provider::make({failing(refusal(429, true, 1s), 60), scripted_round("ok").times(0)});
    const provider_ptr both = with_retry(with_rate_limit(p, shared), retry_options().clock(w.clock).random(seeded()));
    std::vector<std::int64_t> left = leave(both, 60);
    for (const auto& c : calls) EXPECT_EQ(c->get().attempts, 2U);
    std::ranges::sort(left);
    EXPECT_GE(left.front(), 1000);
    EXPECT_GE(left.back() - left.front(), 500);
    EXPECT_EQ(p->requests().size(), 120U);
}

TEST_F(RateLimit, OneLimiterForEachServiceAndKey)
{
    rate_limiters all{rate_options()};
    const rate_limiter a = all.of("openai", secret("k1"));
    EXPECT_EQ(a.shared(), all.of("openai", secret("k1")).shared());
    EXPECT_NE(a.shared(), all.of("openai", secret("k2")).shared());
    EXPECT_NE(a.shared(), all.of("anthropic", secret("k1")).shared());
}

}  // namespace rate_limit_test
}  // namespace

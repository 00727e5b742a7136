#include "retry_schedule.hpp"
#include "wrap_world.hpp"

#include <reagent/providers/retry.hpp>

namespace {
namespace backoff_test {

using namespace wrap_world_detail;
using providers_detail::failure_view;
using providers_detail::retry_schedule;
using ::testing::ElementsAre;

std::vector<std::int64_t> series(const backoff& b, unsigned n)
{
    std::vector<std::int64_t> out;
    for (unsigned k = 1; k <= n; ++k) out.push_back(b.after(k).count());
    return out;
}

TEST(Backoff, L01_Exponential)
{
    EXPECT_THAT(series(backoff::exponential(), 7), ElementsAre(1000, 2000, 4000, 8000, 16000, 30000, 30000));
    EXPECT_EQ(backoff::exponential().after(4'000'000'000U), 30s);
    EXPECT_EQ(backoff::exponential(0ms).after(9), 0ms);
    EXPECT_EQ(backoff::exponential(-5ms).after(1), 0ms);
}

TEST(Backoff, L02_LinearAndFixed)
{
    EXPECT_EQ(backoff::linear().after(3), 3s);
    EXPECT_EQ(backoff::fixed(250ms).after(1), 250ms);
    EXPECT_EQ(backoff::fixed(250ms).after(50), 250ms);
}

TEST(Backoff, L03_Jitter)
{
    EXPECT_EQ(jitter::full().apply(1000ms, 0.5), 500ms);
    EXPECT_EQ(jitter::equal().apply(1000ms, 0.5), 750ms);
    EXPECT_EQ(jitter::share(0.2).apply(1000ms, 0.5), 900ms);
    EXPECT_EQ(jitter::none().apply(1000ms, 0.5), 1000ms);
    EXPECT_EQ(jitter::full().apply(999ms, 0.5), 499ms);
    EXPECT_THROW(static_cast<void>(jitter::share(1.5)), validation_error);
    EXPECT_THROW(static_cast<void>(jitter::share(std::nan(""))), validation_error);
}

template <class E>
std::exception_ptr failure_of(E e)
{
    return std::make_exception_ptr(std::move(e));
}

TEST(RetrySchedule, L04_WhatIsRetried)
{
    const retry_options o;
    const retry_schedule rules(o);
    const std::vector<std::pair<std::exception_ptr, bool>> rows = {
        {failure_of(refusal(400, true)), true},
        {failure_of(refusal(503, false)), false},
        {failure_of(refusal(429, false)), false},  // an exhausted quota
        {failure_of(boost::system::system_error(asio::error::connection_reset)), true},
        {failure_of(boost::system::system_error(asio::error::host_not_found)), true},
        {failure_of(boost::system::system_error(asio::error::access_denied)), false},
        {failure_of(timeout_error(errc::idle_timeout, "idle")), true},
        {failure_of(timeout_error(errc::attempt_timeout, "attempt")), true},
        {failure_of(timeout_error(errc::deadline, "deadline")), false},
        {failure_of(halt_error("budget.maxTokens")), false},
        {failure_of(boost::system::system_error(asio::error::operation_aborted)), false},
        {failure_of(validation_error("no")), false},
        {failure_of(config_error("no")), false},
        {failure_of(error(errc::circuit_open, "open", true)), true},
        {failure_of(std::runtime_error("no")), false},
    };
    for (const auto& [failure, again] : rows) EXPECT_EQ(rules.retryable(failure_view(failure), failure), again) << message_of(failure);
}

TEST(RetrySchedule, APredicateDecidesExceptOverOrders)
{
    const retry_options o = retry_options().when([](const std::exception_ptr&) { return true; });
    const retry_schedule rules(o);
    const std::exception_ptr final = failure_of(refusal(400, false)), halt = failure_of(halt_error("x")), stop = failure_of(cancelled_error());
    EXPECT_TRUE(rules.retryable(failure_view(final), final));
    EXPECT_FALSE(rules.retryable(failure_view(halt), halt));
    EXPECT_FALSE(rules.retryable(failure_view(stop), stop));
}

/// In milliseconds from now; -1 for no further attempt.
std::int64_t due(unsigned made, std::optional<milliseconds> retry_after, milliseconds deadline, double unit)
{
    const retry_options o = retry_options().attempts(4);
    const steady_time now(1h);
    const std::exception_ptr failure = failure_of(refusal(429, true, retry_after));
    const steady_time end = deadline.count() < 0 ? steady_time::max() : now + deadline;
    const auto at = retry_schedule(o).next(made, failure_view(failure), now, end, unit);
    return at ? std::chrono::duration_cast<milliseconds>(*at - now).count() : -1;
}

TEST(RetrySchedule, RetryAfterIsAFloorAndTheDeadlineACeiling)
{
    EXPECT_EQ(due(1, std::nullopt, -1ms, 0.25), 250);
    EXPECT_EQ(due(3, std::nullopt, -1ms, 0.25), 1000);
    EXPECT_EQ(due(4, std::nullopt, -1ms, 0.25), -1);
    EXPECT_EQ(due(1, 1000ms, -1ms, 0), 1000);
    EXPECT_EQ(due(1, 1000ms, -1ms, 0.5), 1500);
    EXPECT_EQ(due(1, 60'000ms, -1ms, 0), 60'000);
    EXPECT_EQ(due(1, 60'001ms, -1ms, 0), -1);
    EXPECT_EQ(due(1, 1000ms, 1501ms, 0.5), 1500);
    EXPECT_EQ(due(1, 1000ms, 1500ms, 0.5), -1);
}

}  // namespace backoff_test
}  // namespace

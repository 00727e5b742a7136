#include "async_support.hpp"

#include <reagent/base/with_deadline.hpp>

#include <gtest/gtest.h>

namespace {
namespace with_deadline_test {
using namespace base_tests;
using reagent::errc;

awaitable<int> guarded(stage* s, awaitable<int> operation, reagent::duration limit)
{
    const int v = co_await reagent::with_deadline<int>(s->clock, s->in(limit), std::move(operation), "the look-up");
    co_return v;
}

std::string ending(const hosted<int>& h)
{
    if (!h.done) return "running";
    if (!h.failure) return "value " + std::to_string(*h.value);
    if (reagent::is_cancellation(h.failure)) return "cancelled";
    if (reagent::code_of(h.failure) == errc::deadline) return "deadline";
    return reagent::message_of(h.failure);
}

TEST(WithDeadline, ValueFailureAndDeadlineAreToldApart)
{
    struct row {
        int operation_ms, limit_ms;
        bool fails;
        const char* wanted;
        int ends_at_ms;
    };
    for (const row& r :
         {row{10, 20, false, "value 7", 10}, row{10, 20, true, "boom", 10}, row{30, 20, false, "deadline", 20}, row{30, 20, true, "deadline", 20}}) {
        stage s;
        hosted<int> host;
        const reagent::duration d = std::chrono::milliseconds(r.operation_ms);
        const auto from = s.clock->now();
        host.start(s, guarded(&s, r.fails ? failure_after(&s, d, "boom") : value_after(&s, d, 7), std::chrono::milliseconds(r.limit_ms)));
        s.run_out();
        EXPECT_EQ(ending(host), r.wanted);
        EXPECT_EQ(s.clock->now() - from, std::chrono::milliseconds(r.ends_at_ms));
        EXPECT_EQ(s.live, 0);
        EXPECT_EQ(s.clock->armed(), 0u) << "the loser's timer is gone";
    }
}

TEST(WithDeadline, TheErrorNamesWhatAndIsFinal)
{
    stage s;
    hosted<int> host;
    host.start(s, guarded(&s, value_after(&s, 1h, 0), 1ms));
    s.run_out();
    try {
        std::rethrow_exception(host.failure);
    } catch (const reagent::timeout_error& e) {
        EXPECT_EQ(e.message(), "the look-up passed its deadline");
        EXPECT_EQ(e.bound(), "deadline");
        EXPECT_FALSE(e.retryable());
    }
}

TEST(WithDeadline, JoinsTheLoser)
{
    stage s;
    hosted<int> host;
    host.start(s, guarded(&s, slow_to_stop(&s, 1h, 3), 10ms));
    s.poll();
    s.clock->advance(10ms);
    s.poll();
    EXPECT_EQ(ending(host), "running");
    s.run_out();
    EXPECT_EQ(ending(host), "deadline");
    EXPECT_EQ(s.log.back(), "cleaned 3");
}

awaitable<int> answers_anyway(stage* s)
{
    try {
        co_await reagent::sleep_until(s->clock, s->in(1h));
    } catch (const boost::system::system_error&) {
        co_return 5;  // what was gathered so far
    }
    co_return 0;
}

TEST(WithDeadline, AValueCountsHoweverLate)
{
    stage s;
    hosted<int> host;
    host.start(s, guarded(&s, answers_anyway(&s), 10ms));
    s.run_out();
    EXPECT_EQ(ending(host), "value 5");
}

TEST(WithDeadline, CancellationWinsOverTheDeadline)
{
    for (const bool expired_too : {false, true}) {
        stage s;
        hosted<int> host;
        host.start(s, guarded(&s, slow_to_stop(&s, 1h, 0), 10ms));
        s.poll();
        if (expired_too) {
            s.clock->advance(10ms);
            s.poll();
        }
        host.cancel();
        s.run_out();
        EXPECT_EQ(ending(host), "cancelled");
        EXPECT_EQ(s.live, 0);
    }
}

TEST(WithDeadline, APassedDeadlineStartsNothing)
{
    stage s;
    hosted<int> host;
    host.start(s, guarded(&s, value_after(&s, 0ms, 1), 0ms));
    s.run_out();
    EXPECT_EQ(ending(host), "deadline");
    EXPECT_EQ(s.started, 0);
}

awaitable<int> own_cancellation()
{
    co_await asio::post(asio::use_awaitable);
    throw boost::system::system_error(asio::error::operation_aborted);
}

TEST(WithDeadline, AnOperationThatAbortsItselfIsPassedOn)
{
    stage s;
    hosted<int> host;
    host.start(s, guarded(&s, own_cancellation(), 10ms));
    s.run_out();
    EXPECT_EQ(ending(host), "cancelled");
}

awaitable<int> then_waits(stage* s, bool* reached)
{
    const int v = co_await reagent::with_deadline<int>(s->clock, s->in(10ms), value_after(s, 1ms, 2));
    *reached = true;
    co_await reagent::sleep_until(s->clock, s->in(1h));
    co_return v;
}

TEST(WithDeadline, TheHostCanBeCancelledAfterItReturned)
{
    stage s;
    hosted<int> host;
    bool reached = false;
    host.start(s, then_waits(&s, &reached));
    s.poll();
    s.clock->advance(1ms);
    s.poll();
    ASSERT_TRUE(reached);
    host.cancel();
    s.poll();
    EXPECT_EQ(ending(host), "cancelled");
}

TEST(WithDeadline, CancelledAtEveryStepItEndsJoined)
{
    for (std::size_t steps = 0;; ++steps) {
        stage s;
        hosted<int> host;
        host.start(s, guarded(&s, value_after(&s, 5ms, 1), 10ms));
        std::size_t ran = 0;
        while (ran < steps && s.context.poll_one() == 1) ++ran;
        host.cancel();
        s.run_out();
        EXPECT_EQ(ending(host), "cancelled");
        EXPECT_EQ(s.live, 0);
        EXPECT_EQ(s.clock->armed(), 0u);
        if (ran < steps) break;
    }
}

awaitable<void> rests(stage* s)
{
    co_await reagent::sleep_until(s->clock, s->in(5ms));
}

awaitable<int> guards_nothing(stage* s)
{
    co_await reagent::with_deadline<void>(s->clock, s->in(10ms), rests(s));
    co_return 1;
}

TEST(WithDeadline, OperationsWithoutValue)
{
    stage s;
    hosted<int> host;
    host.start(s, guards_nothing(&s));
    s.run_out();
    EXPECT_EQ(ending(host), "value 1");
}

}  // namespace with_deadline_test
}  // namespace

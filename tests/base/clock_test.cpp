#include "async_support.hpp"

#include <gtest/gtest.h>

namespace {
namespace clock_test {
using namespace base_tests;
using reagent::clock;
using reagent::clock_timer;

TEST(SystemClock, FiresOnItsExecutorNeverInsideArm)
{
    io_context context(1);
    int fired = 0;
    const auto timer = clock::system()->make_timer(context.get_executor(), [&] {
        ++fired;
        EXPECT_TRUE(context.get_executor().running_in_this_thread());
    });
    timer->arm(clock::system()->now() - 1s);
    EXPECT_EQ(fired, 0);
    context.run();
    EXPECT_EQ(fired, 1);
}

TEST(SystemClock, ArmingAgainReplacesTheTime)
{
    io_context context(1);
    int fired = 0;
    const auto timer = clock::system()->make_timer(context.get_executor(), [&] { ++fired; });
    timer->arm(clock::system()->now() + 1h);
    timer->arm(clock::system()->now());
    timer->arm(clock::system()->now());
    context.run();
    EXPECT_EQ(fired, 1);
}

TEST(SystemClock, DisarmedItKeepsNoContextAliveAndStaysSilent)
{
    io_context context(1);
    int fired = 0;
    const auto timer = clock::system()->make_timer(context.get_executor(), [&] { ++fired; });
    timer->arm(clock::system()->now() + 1h);
    timer->disarm();
    timer->disarm();
    context.run();  // returns: an armed timer of an hour would not
    EXPECT_EQ(fired, 0);
}

// Both due in one tick: cancelling the victim comes too late for Asio, not for us.
TEST(SystemClock, ADueTimerCanStillBeDisarmedOrDestroyed)
{
    for (const bool destroy : {false, true}) {
        io_context context(1);
        int fired = 0;
        std::unique_ptr<clock_timer> victim = clock::system()->make_timer(context.get_executor(), [&] { ++fired; });
        const auto killer = clock::system()->make_timer(context.get_executor(), [&] {
            if (destroy) victim.reset();
            else victim->disarm();
        });
        const auto due = clock::system()->now() - 1s;
        killer->arm(due);
        victim->arm(due + 1ms);
        context.run();
        EXPECT_EQ(fired, 0);
    }
}

TEST(SystemClock, ATimerMayDieOrArmItselfInItsOwnFunction)
{
    io_context context(1);
    const std::shared_ptr<int> held = std::make_shared<int>(5);
    std::unique_ptr<clock_timer> timer;
    int fired = 0;
    timer = clock::system()->make_timer(context.get_executor(), [&, held] {
        if (++fired < 3) {
            timer->arm(clock::system()->now());
            return;
        }
        timer.reset();
        EXPECT_EQ(*held, 5);  // what the function captured is still there
    });
    timer->arm(clock::system()->now());
    context.run();
    EXPECT_EQ(fired, 3);
    EXPECT_EQ(held.use_count(), 1);
}

TEST(SystemClock, ADestroyedTimerFreesItsFunction)
{
    io_context context(1);
    const std::shared_ptr<int> held = std::make_shared<int>(5);
    auto timer = clock::system()->make_timer(context.get_executor(), [held] {});
    timer->arm(clock::system()->now() + 1h);
    timer.reset();
    EXPECT_EQ(held.use_count(), 1);
}

TEST(SystemClock, TimesAreThoseOfTheMachine)
{
    const auto steady = std::chrono::steady_clock::now();
    EXPECT_LE(steady, clock::system()->now());
    EXPECT_LT(clock::system()->now() - steady, 1h);
    EXPECT_LT(std::chrono::abs(std::chrono::system_clock::now() - clock::system()->wall()), 1h);
}

awaitable<int> sleeps(reagent::clock_ptr c, reagent::duration d)
{
    co_await reagent::sleep_until(c, c->now() + d);
    co_return 1;
}

TEST(SleepUntil, EndsByTheClockItWasGiven)
{
    stage s;
    hosted<int> host;
    host.start(s, sleeps(s.clock, 10ms));
    s.poll();
    s.clock->advance(9ms);
    s.poll();
    EXPECT_FALSE(host.done);
    s.clock->advance(1ms);
    s.poll();
    EXPECT_EQ(host.value, 1);
    hosted<int> real;
    real.start(s, sleeps(clock::system(), 1us));
    s.context.restart();
    s.context.run();
    EXPECT_EQ(real.value, 1);
}

TEST(SleepUntil, ACancelledSleepAbortsAndLeavesNoTimer)
{
    stage s;
    hosted<int> host;
    host.start(s, sleeps(s.clock, 1h));
    s.poll();
    host.cancel();
    s.poll();
    EXPECT_TRUE(reagent::is_cancellation(host.failure));
    EXPECT_EQ(s.clock->armed(), 0u);
    hosted<int> real;
    real.start(s, sleeps(clock::system(), 1h));
    s.poll();
    real.cancel();
    s.context.restart();
    s.context.run();  // returns: nothing is armed
    EXPECT_TRUE(reagent::is_cancellation(real.failure));
}

}  // namespace clock_test
}  // namespace

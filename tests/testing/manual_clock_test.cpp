#include <reagent/testing/manual_clock.hpp>
#include <reagent/testing/run.hpp>

#include <gtest/gtest.h>

#include <string>

namespace {
namespace manual_clock_test {

using namespace std::chrono_literals;
using namespace reagent;
using reagent::testing::manual_clock;
using reagent::testing::run_until_idle;

struct fixture {
    asio::io_context context{1};
    std::shared_ptr<manual_clock> clock = std::make_shared<manual_clock>();
    std::string fired;
    std::unique_ptr<clock_timer> timer(std::string name)
    {
        return clock->make_timer(context.get_executor(), [this, name] { fired += name; });
    }
};

TEST(ManualClock, FiresInTimeOrderWhateverTheOrderOfArming)
{
    fixture f;
    const auto a = f.timer("a"), b = f.timer("b"), c = f.timer("c"), d = f.timer("d");
    a->arm(f.clock->now() + 3s);
    b->arm(f.clock->now() + 1s);
    c->arm(f.clock->now() + 2s);
    d->arm(f.clock->now() + 1s);
    EXPECT_EQ(f.clock->armed(), 4u);
    EXPECT_EQ(f.clock->next(), f.clock->now() + 1s);
    run_until_idle(f.context, 0us);
    EXPECT_EQ(f.fired, "");
    f.clock->advance(2s);
    EXPECT_EQ(f.fired, "") << "timers are posted, never called inside advance";
    run_until_idle(f.context, 0us);
    EXPECT_EQ(f.fired, "bdc");
    f.clock->advance(1s - 1ns);
    run_until_idle(f.context, 0us);
    EXPECT_EQ(f.fired, "bdc");
    f.clock->advance(1ns);
    run_until_idle(f.context, 0us);
    EXPECT_EQ(f.fired, "bdca");
}

TEST(ManualClock, ATimeInThePastIsPostedAtOnceAndNeverCalledInsideArm)
{
    fixture f;
    const auto a = f.timer("a");
    a->arm(f.clock->now());
    EXPECT_EQ(f.fired, "");
    EXPECT_EQ(f.clock->armed(), 0u);
    run_until_idle(f.context, 0us);
    EXPECT_EQ(f.fired, "a");
}

TEST(ManualClock, DisarmAfterTheTimeCameButBeforeItRan)
{
    fixture f;
    const auto a = f.timer("a"), b = f.timer("b");
    auto c = f.timer("c");
    for (clock_timer* t : {a.get(), b.get(), c.get()}) t->arm(f.clock->now() + 1s);
    f.clock->advance(1s);
    a->disarm();
    b->arm(f.clock->now() + 1s);
    c.reset();
    run_until_idle(f.context, 0us);
    EXPECT_EQ(f.fired, "");
    f.clock->advance(1s);
    run_until_idle(f.context, 0us);
    EXPECT_EQ(f.fired, "b");
}

TEST(ManualClock, ATimerMayRearmOrDestroyItselfWhenItFires)
{
    asio::io_context context(1);
    const auto clock = std::make_shared<manual_clock>();
    std::unique_ptr<clock_timer> again, once;
    int count = 0;
    again = clock->make_timer(context.get_executor(), [&] {
        if (++count < 3) again->arm(clock->now() + 1s);
    });
    once = clock->make_timer(context.get_executor(), [&] { once.reset(); });
    again->arm(clock->now() + 1s);
    once->arm(clock->now() + 1s);
    while (clock->advance_to_next()) run_until_idle(context, 0us);
    EXPECT_EQ(count, 3);
    EXPECT_EQ(once, nullptr);
}

TEST(ManualClock, AnArmedTimerIsWorkOfItsContext)
{
    fixture f;
    auto a = f.timer("a");
    a->arm(f.clock->now() + 1s);
    EXPECT_EQ(f.context.run_for(1ms), 0u);
    EXPECT_FALSE(f.context.stopped()) << "armed: the context has work left";
    a->disarm();
    EXPECT_EQ(f.context.run(), 0u);
    EXPECT_TRUE(f.context.stopped());
}

TEST(ManualClock, BothClocksMoveTogetherAndTheWallCanBeSet)
{
    manual_clock clock;
    const auto steady = clock.now();
    const auto wall = clock.wall();
    clock.advance(90s);
    EXPECT_EQ(clock.now() - steady, 90s);
    EXPECT_EQ(clock.wall() - wall, 90s);
    clock.set_wall(system_time(5s));
    clock.advance(1s);
    EXPECT_EQ(clock.wall(), system_time(6s));
    EXPECT_EQ(clock.now() - steady, 91s);
}

TEST(ManualClock, OutlivedByItsTimers)
{
    asio::io_context context(1);
    auto clock = std::make_shared<manual_clock>();
    auto timer = clock->make_timer(context.get_executor(), [] { FAIL(); });
    timer->arm(clock->now() + 1s);
    clock.reset();
    timer->disarm();
    EXPECT_EQ(context.run(), 0u);
}

}  // namespace manual_clock_test
}  // namespace

#include "async_support.hpp"

#include <reagent/base/gather.hpp>

#include <gtest/gtest.h>

#include <boost/asio/steady_timer.hpp>

namespace {
namespace gather_test {
using namespace base_tests;
using reagent::branch_outcome;
using reagent::branch_status;
using reagent::gather;
using reagent::gather_options;

using outcomes = std::vector<branch_outcome<int>>;
using branches = std::vector<awaitable<int>>;

std::string shape(const outcomes& all)
{
    std::string out;
    for (const branch_outcome<int>& o : all) out += "-vfc"[static_cast<int>(o.status())];
    return out;
}

awaitable<int> stepping(stage* s, int steps, int value)
{
    ++s->started;
    const live_count here(&s->live, &s->most);
    for (int i = 0; i < steps; ++i) co_await asio::post(asio::use_awaitable);
    co_return value;
}

// gather inside a coroutine of the host.
awaitable<outcomes> group(branches all, gather_options options, reagent::stop_predicate<int> stop)
{
    outcomes result = co_await gather<int>(std::move(all), options, std::move(stop));
    co_return result;
}

outcomes run(stage& s, branches all, gather_options options = {}, reagent::stop_predicate<int> stop = {})
{
    hosted<outcomes> host;
    host.start(s, group(std::move(all), options, std::move(stop)));
    s.run_out();
    EXPECT_TRUE(host.done);
    EXPECT_EQ(s.live, 0);
    EXPECT_EQ(s.clock->armed(), 0u);
    if (host.failure) std::rethrow_exception(host.failure);
    return host.value.value_or(outcomes());
}

branches timed(stage& s, std::initializer_list<int> milliseconds)
{
    branches all;
    int value = 0;
    for (int ms : milliseconds) all.push_back(value_after(&s, std::chrono::milliseconds(ms), value++));
    return all;
}

TEST(Gather, KeepsBranchOrderWhateverTheOrderOfEnds)
{
    stage s;
    const outcomes all = run(s, timed(s, {30, 10, 20}));
    EXPECT_EQ(shape(all), "vvv");
    for (int i = 0; i < 3; ++i) EXPECT_EQ(all[static_cast<std::size_t>(i)].value(), i);
    EXPECT_EQ(s.log, (std::vector<std::string>{"done 1", "done 2", "done 0"}));
    EXPECT_EQ(s.most, 3);
}

TEST(Gather, NothingToDoIsDoneAtOnce)
{
    stage s;
    EXPECT_TRUE(run(s, {}).empty());
}

TEST(Gather, AFailureIsIsolated)
{
    stage s;
    branches all = timed(s, {10});
    all.push_back(failure_after(&s, 5ms, "boom"));
    all.push_back(value_after(&s, 30ms, 2));
    const outcomes result = run(s, std::move(all));
    EXPECT_EQ(shape(result), "vfv");
    EXPECT_EQ(reagent::message_of(result[1].failure()), "boom");
    EXPECT_EQ(result[0].failure(), nullptr);
}

TEST(Gather, TheSpawnLimitHolds)
{
    for (std::size_t limit : {1u, 2u, 3u, 7u, 100u}) {
        stage s;
        const outcomes all = run(s, timed(s, {10, 10, 10, 5, 5, 5, 1}), gather_options().limit(limit));
        EXPECT_EQ(shape(all), "vvvvvvv");
        EXPECT_EQ(s.most, static_cast<int>(std::min<std::size_t>(limit, 7)));
    }
    stage s;
    branches one_by_one = timed(s, {3, 2, 1});
    run(s, std::move(one_by_one), gather_options().limit(1));
    EXPECT_EQ(s.log, (std::vector<std::string>{"done 0", "done 1", "done 2"}));
}

TEST(Gather, FirstKCancelsAndJoinsTheRest)
{
    stage s;
    branches all = timed(s, {10, 20});
    all.push_back(slow_to_stop(&s, 100ms, 2));
    all.push_back(failure_after(&s, 1ms, "early"));
    const auto before = s.clock->now();
    const outcomes result = run(s, std::move(all), gather_options().first(2));
    EXPECT_EQ(shape(result), "vvcf");
    EXPECT_EQ(s.log.back(), "cleaned 2");
    EXPECT_EQ(s.clock->now() - before, 25ms);
}

TEST(Gather, FirstKStartsNothingMoreOnceSatisfied)
{
    stage s;
    const outcomes result = run(s, timed(s, {10, 10, 10, 10}), gather_options().first(1).limit(2));
    EXPECT_EQ(result[2].status(), branch_status::not_started);
    EXPECT_EQ(result[3].status(), branch_status::not_started);
    EXPECT_EQ(s.started, 2);
}

TEST(Gather, FirstKWaitsForAllWhenThereAreTooFewValues)
{
    stage s;
    branches all;
    all.push_back(failure_after(&s, 1ms, "a"));
    all.push_back(failure_after(&s, 2ms, "b"));
    all.push_back(value_after(&s, 50ms, 2));
    EXPECT_EQ(shape(run(s, std::move(all), gather_options().first(2))), "ffv");
}

TEST(Gather, QuorumGivesUpOnceItIsOutOfReach)
{
    stage s;
    branches all;
    all.push_back(failure_after(&s, 1ms, "a"));
    all.push_back(failure_after(&s, 2ms, "b"));
    all.push_back(value_after(&s, 50ms, 2));
    const auto before = s.clock->now();
    EXPECT_EQ(shape(run(s, std::move(all), gather_options().quorum(2))), "ffc");
    EXPECT_EQ(s.clock->now() - before, 2ms);
    stage t;
    EXPECT_EQ(shape(run(t, timed(t, {3, 1, 2}), gather_options().quorum(2))), "cvv");
}

TEST(Gather, AFatalOutcomeCancelsTheSiblingsAndJoinsThem)
{
    stage s;
    branches all;
    all.push_back(slow_to_stop(&s, 100ms, 0));
    all.push_back(failure_after(&s, 10ms, "fatal"));
    all.push_back(value_after(&s, 5ms, 2));
    all.push_back(value_after(&s, 5ms, 3));
    std::vector<std::size_t> asked;
    const outcomes result = run(s, std::move(all), gather_options().limit(3), [&asked](std::size_t i, const branch_outcome<int>& o) {
        asked.push_back(i);
        return o.status() == branch_status::failed;
    });
    EXPECT_EQ(shape(result), "cfvv");
    EXPECT_EQ(asked, (std::vector<std::size_t>{2, 1})) << "asked in the order of ends, and no more after the stop";
    EXPECT_EQ(s.log.back(), "cleaned 0");
}

TEST(Gather, APredicateThatThrowsStopsTheGroupAndLeavesAfterTheJoin)
{
    stage s;
    branches all;
    all.push_back(slow_to_stop(&s, 100ms, 0));
    all.push_back(value_after(&s, 1ms, 1));
    EXPECT_THROW(run(s, std::move(all), {}, [](std::size_t, const branch_outcome<int>&) -> bool { throw std::logic_error("predicate"); }), std::logic_error);
    EXPECT_EQ(s.log.back(), "cleaned 0");
}

TEST(Gather, ACancelledGroupJoinsBeforeItThrows)
{
    stage s;
    hosted<outcomes> host;
    branches all = timed(s, {10, 50});
    all.push_back(slow_to_stop(&s, 50ms, 2));
    all.push_back(value_after(&s, 1ms, 3));
    host.start(s, group(std::move(all), gather_options().limit(3), {}));
    s.poll();
    s.clock->advance(10ms);
    s.poll();
    host.cancel();
    s.poll();
    EXPECT_FALSE(host.done) << "one branch is still cleaning up";
    s.run_out();
    ASSERT_TRUE(host.done);
    EXPECT_TRUE(reagent::is_cancellation(host.failure));
    EXPECT_EQ(s.live, 0);
    EXPECT_EQ(s.log.back(), "cleaned 2");
}

awaitable<outcomes> keeping(branches all, bool* later_await_threw, stage* s)
{
    outcomes result = co_await gather<int>(std::move(all), gather_options().keep_outcomes());
    try {
        co_await reagent::sleep_until(s->clock, s->in(1ms));
    } catch (const boost::system::system_error&) {
        *later_await_threw = true;
    }
    co_return result;
}

TEST(Gather, ACancelledGroupMayKeepItsOutcomes)
{
    stage s;
    hosted<outcomes> host;
    bool threw = false;
    host.start(s, keeping(timed(s, {10, 50}), &threw, &s));
    s.poll();
    s.clock->advance(10ms);
    s.poll();
    host.cancel();
    s.run_out();
    ASSERT_TRUE(host.value.has_value());
    EXPECT_EQ(shape(*host.value), "vc");
    EXPECT_TRUE(threw) << "the host itself stays cancelled";
}

TEST(Gather, CancelledAtEveryStepItEndsJoined)
{
    for (std::size_t limit : {0u, 2u}) {
        int cancelled = 0, finished = 0;
        for (std::size_t steps = 0;; ++steps) {
            stage s;
            hosted<outcomes> host;
            branches all;
            for (int i = 0; i < 5; ++i) all.push_back(stepping(&s, i, i));
            host.start(s, group(std::move(all), gather_options().limit(limit), {}));
            std::size_t ran = 0;
            while (ran < steps && s.context.poll_one() == 1) ++ran;
            const bool over = host.done;
            host.cancel();
            EXPECT_GT(s.context.run() + ran, 0u);  // returns by itself: nothing of ours is left
            ASSERT_TRUE(host.done);
            EXPECT_EQ(s.live, 0);
            if (host.failure) {
                EXPECT_TRUE(reagent::is_cancellation(host.failure));
                ++cancelled;
            } else {
                EXPECT_EQ(shape(*host.value), "vvvvv");
                ++finished;
            }
            if (over) break;
            ASSERT_LT(steps, 1000u);
        }
        EXPECT_GT(cancelled, 8);
        EXPECT_GT(finished, 0);
    }
}

awaitable<int> cancels_host(hosted<outcomes>* host, stage* s)
{
    host->cancel();
    co_await reagent::sleep_until(s->clock, s->in(1ms));
    co_return 1;
}

TEST(Gather, ABranchMayCancelItsHostFromItsFirstStep)
{
    stage s;
    hosted<outcomes> host;
    branches all;
    all.push_back(value_after(&s, 5ms, 0));
    all.push_back(cancels_host(&host, &s));
    all.push_back(value_after(&s, 5ms, 2));
    host.start(s, group(std::move(all), {}, {}));
    s.run_out();
    ASSERT_TRUE(host.done);
    EXPECT_TRUE(reagent::is_cancellation(host.failure));
    EXPECT_EQ(s.started, 1) << "nothing is started after the cancellation";
    EXPECT_EQ(s.live, 0);
}

awaitable<int> then_sleep(stage* s, bool* reached)
{
    branches two = timed(*s, {1, 1});
    outcomes all = co_await gather<int>(std::move(two));
    *reached = true;
    co_await reagent::sleep_until(s->clock, s->in(1h));
    co_return static_cast<int>(all.size());
}

TEST(Gather, TheHostCanBeCancelledAfterItReturned)
{
    stage s;
    hosted<int> host;
    bool reached = false;
    host.start(s, then_sleep(&s, &reached));
    s.poll();
    s.clock->advance(1ms);
    s.poll();
    ASSERT_TRUE(reached);
    host.cancel();
    s.poll();
    ASSERT_TRUE(host.done);
    EXPECT_TRUE(reagent::is_cancellation(host.failure));
}

awaitable<void> nothing_after(stage* s, reagent::duration d)
{
    const live_count here(&s->live);
    co_await reagent::sleep_until(s->clock, s->in(d));
}

awaitable<int> voids(stage* s)
{
    std::vector<awaitable<void>> all;
    for (int i = 0; i < 3; ++i) all.push_back(nothing_after(s, 1ms * i));
    std::vector<branch_outcome<void>> result = co_await gather<void>(std::move(all));
    int values = 0;
    for (const branch_outcome<void>& o : result) values += o.has_value() ? 1 : 0;
    co_return values;
}

TEST(Gather, BranchesWithoutValues)
{
    stage s;
    hosted<int> host;
    host.start(s, voids(&s));
    s.run_out();
    EXPECT_EQ(host.value, 3);
}

TEST(Gather, ValuesNeedNoDefaultConstructor)
{
    branch_outcome<std::unique_ptr<int>> o;
    EXPECT_EQ(o.status(), branch_status::not_started);
    o.set_value(std::make_unique<int>(4));
    EXPECT_EQ(*o.value(), 4);
}

TEST(Gather, AContextMayDieInTheMiddle)
{
    stage s;
    auto context = std::make_unique<io_context>(1);
    hosted<outcomes> host;
    asio::co_spawn(*context, group(timed(s, {10, 20, 30}), {}, {}), [](const std::exception_ptr&, const outcomes&) { FAIL() << "it never ended"; });
    context->poll();
    EXPECT_EQ(s.live, 3);
    context.reset();
    EXPECT_EQ(s.live, 0) << "the frames went with their context";
    EXPECT_EQ(s.clock->armed(), 0u);
}

}  // namespace gather_test
}  // namespace

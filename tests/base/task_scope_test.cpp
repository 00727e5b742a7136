#include "async_support.hpp"

#include <reagent/base/spawn.hpp>
#include <reagent/base/task_scope.hpp>

#include <gtest/gtest.h>

namespace {
namespace task_scope_test {
using namespace base_tests;
using reagent::task_scope;

awaitable<void> rest(stage* s, reagent::duration d)
{
    ++s->started;
    const live_count here(&s->live);
    co_await reagent::sleep_until(s->clock, s->in(d));
}

awaitable<void> fail(stage* s)
{
    co_await reagent::sleep_until(s->clock, s->in(1ms));
    throw std::runtime_error("broken pipe");
}

awaitable<void> stop_slowly(stage* s)
{
    const int ignored = co_await slow_to_stop(s, 1h, 9);
    static_cast<void>(ignored);
}

awaitable<int> join(task_scope* scope)
{
    co_await scope->join();
    co_return 0;
}

TEST(TaskScope, JoinWaitsForAllChildren)
{
    stage s;
    task_scope scope(s.context.get_executor());
    scope.spawn("a", rest(&s, 10ms));
    scope.spawn("b", rest(&s, 20ms));
    EXPECT_EQ(scope.size(), 2u);
    hosted<int> host;
    host.start(s, join(&scope));
    s.poll();
    s.clock->advance(10ms);
    s.poll();
    EXPECT_FALSE(host.done);
    EXPECT_EQ(scope.size(), 1u);
    s.clock->advance(10ms);
    s.poll();
    EXPECT_TRUE(host.done);
    EXPECT_EQ(scope.size(), 0u);
    hosted<int> again;
    again.start(s, join(&scope));
    s.poll();
    EXPECT_TRUE(again.done) << "an empty scope joins at once";
}

TEST(TaskScope, CancelSignalsEveryChildAndDropsLaterOnes)
{
    stage s;
    task_scope scope(s.context.get_executor());
    scope.spawn("a", rest(&s, 1h));
    scope.spawn("b", stop_slowly(&s));
    s.poll();
    scope.cancel();
    scope.cancel();
    scope.spawn("late", rest(&s, 1h));
    hosted<int> host;
    host.start(s, join(&scope));
    s.poll();
    EXPECT_FALSE(host.done) << "one child is still cleaning up";
    s.run_out();
    EXPECT_TRUE(host.done);
    EXPECT_EQ(host.failure, nullptr);
    EXPECT_EQ(s.live, 0);
    EXPECT_EQ(s.started, 2);
}

TEST(TaskScope, AFailingChildReportsToTheSink)
{
    stage s;
    std::vector<std::string> lines;
    task_scope scope(s.context.get_executor(), reagent::log_sink([&lines](reagent::log_level level, std::string_view line) {
                         EXPECT_EQ(level, reagent::log_level::error);
                         lines.emplace_back(line);
                     }));
    scope.spawn("heartbeat", fail(&s));
    scope.spawn("quiet", rest(&s, 1h));
    s.poll();
    s.clock->advance(1ms);
    s.poll();
    scope.cancel();
    s.poll();
    EXPECT_EQ(lines, (std::vector<std::string>{"task heartbeat failed: broken pipe"}));
    EXPECT_EQ(scope.size(), 0u);
}

TEST(TaskScope, ACancelledJoinCancelsAndStillWaits)
{
    stage s;
    task_scope scope(s.context.get_executor());
    scope.spawn("slow", stop_slowly(&s));
    hosted<int> host;
    host.start(s, join(&scope));
    s.poll();
    host.cancel();
    s.poll();
    EXPECT_FALSE(host.done);
    s.run_out();
    ASSERT_TRUE(host.done);
    EXPECT_TRUE(reagent::is_cancellation(host.failure));
    EXPECT_EQ(scope.size(), 0u);
}

TEST(TaskScope, ChildrenOfADeadContextAreGone)
{
    stage s;
    auto context = std::make_unique<io_context>(1);
    task_scope scope(context->get_executor());
    scope.spawn("a", rest(&s, 1h));
    context->poll();
    EXPECT_EQ(scope.size(), 1u);
    context.reset();
    EXPECT_EQ(scope.size(), 0u);
    EXPECT_EQ(s.live, 0);
}

TEST(TaskScopeDeathTest, DyingUnjoinedIsABug)
{
    GTEST_FLAG_SET(death_test_style, "threadsafe");
    EXPECT_DEATH(
        {
            stage s;
            task_scope scope(s.context.get_executor());
            scope.spawn("a", rest(&s, 1h));
            s.poll();
        },
        "task_scope destroyed before join");
}

awaitable<int> twice(int v)
{
    co_await asio::post(asio::use_awaitable);
    if (v < 0) throw reagent::error(reagent::errc::denied, "no");
    co_return 2 * v;
}

awaitable<void> only_waits(stage* s)
{
    co_await reagent::sleep_until(s->clock, s->in(1h));
}

TEST(StartForHandler, GivesValueOrCodeOnTheHandlersExecutor)
{
    stage s;
    io_context other(1);
    int got = 0;
    boost::system::error_code code;
    const auto take = [&](boost::system::error_code ec, int v) {
        EXPECT_TRUE(other.get_executor().running_in_this_thread());
        code = ec;
        got = v;
    };
    reagent::start_for_handler<int>(s.context.get_executor(), twice(21), asio::bind_executor(other.get_executor(), take));
    EXPECT_EQ(got, 0) << "never inside the initiating function";
    s.poll();
    EXPECT_EQ(got, 0);
    other.run();
    EXPECT_EQ(got, 42);
    EXPECT_FALSE(code);
    other.restart();
    reagent::start_for_handler<int>(s.context.get_executor(), twice(-1), asio::bind_executor(other.get_executor(), take));
    s.poll();
    other.run();
    EXPECT_EQ(code, reagent::errc::denied);
}

TEST(StartForHandler, TheHandlersSlotCancelsIt)
{
    stage s;
    asio::cancellation_signal stop;
    int calls = 0;
    reagent::start_for_handler<void>(s.context.get_executor(), only_waits(&s), asio::bind_cancellation_slot(stop.slot(), [&](boost::system::error_code ec) {
                                         ++calls;
                                         EXPECT_EQ(ec, reagent::condition::cancelled);
                                     }));
    s.poll();
    EXPECT_EQ(calls, 0);
    stop.emit(asio::cancellation_type::terminal);
    s.poll();
    EXPECT_EQ(calls, 1);
}

TEST(StartForHandler, TakesAnErasedHandler)
{
    stage s;
    int got = 0;
    asio::any_completion_handler<void(boost::system::error_code, int)> handler(
        asio::bind_executor(s.context.get_executor(), [&](boost::system::error_code, int v) { got = v; }));
    reagent::start_for_handler<int>(s.context.get_executor(), twice(4), std::move(handler));
    s.poll();
    EXPECT_EQ(got, 8);
}

awaitable<int> disables(stage* s)
{
    co_await asio::this_coro::reset_cancellation_state(asio::disable_cancellation());
    co_await reagent::sleep_until(s->clock, s->in(1ms));
    co_return 1;
}

awaitable<int> isolating_host(stage* s, bool* reached)
{
    const int v = co_await reagent::isolated(disables(s));
    *reached = true;
    co_await reagent::sleep_until(s->clock, s->in(1h));
    co_return v;
}

TEST(Isolated, LeavesTheHostsCancellationAlone)
{
    stage s;
    hosted<int> host;
    bool reached = false;
    host.start(s, isolating_host(&s, &reached));
    s.poll();
    s.clock->advance(1ms);
    s.poll();
    ASSERT_TRUE(reached);
    host.cancel();
    s.poll();
    ASSERT_TRUE(host.done);
    EXPECT_TRUE(reagent::is_cancellation(host.failure));
}

}  // namespace task_scope_test
}  // namespace

#include <reagent/base/clock.hpp>
#include <reagent/base/task_scope.hpp>

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/use_future.hpp>

#include <gtest/gtest.h>

#include <atomic>
#include <future>
#include <optional>
#include <thread>

namespace {
namespace task_scope_threads_test {
using reagent::awaitable;
using namespace std::chrono_literals;
namespace asio = reagent::asio;

constexpr int children = 20;

awaitable<void> rest(int i, std::atomic<int>* started)
{
    ++*started;
    // Every second one is about to end by itself when the signal comes.
    const auto limit = i % 2 == 0 ? reagent::duration(1h) : reagent::duration(100us * i);
    co_await reagent::sleep_until(reagent::clock::system(), reagent::clock::system()->now() + limit);
}

awaitable<void> host(reagent::task_scope* scope, std::atomic<int>* started)
{
    for (int i = 0; i < children; ++i) scope->spawn("child", rest(i, started));
    co_await scope->join();
}

TEST(TaskScopeThreads, CancelFromOtherThreadsWhileChildrenComeAndGo)
{
    for (int round = 0; round < 50; ++round) {
        asio::io_context context(1);
        std::optional<reagent::task_scope> scope(std::in_place, context.get_executor());
        std::atomic<int> started = 0;
        std::future<void> joined = asio::co_spawn(context, host(&*scope, &started), asio::use_future);
        std::thread runs([&context] { context.run(); });
        const auto cancel = [&scope, &started] {
            while (started < children) std::this_thread::yield();
            scope->cancel();
        };
        std::thread one(cancel), other(cancel);
        one.join();
        other.join();
        runs.join();  // all timers are gone: the hour of half of them was cut short
        joined.get();
        EXPECT_EQ(scope->size(), 0u);
        EXPECT_EQ(started, children);
    }
}

}  // namespace task_scope_threads_test
}  // namespace

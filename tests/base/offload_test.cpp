#include <reagent/base/error.hpp>
#include <reagent/base/offload.hpp>

#include <boost/asio/cancellation_signal.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/use_future.hpp>

#include <gtest/gtest.h>

#include <future>
#include <stdexcept>
#include <thread>

namespace {
namespace offload_test {
using reagent::awaitable;
namespace asio = reagent::asio;

struct sightings {
    std::thread::id before, inside, after;
};

awaitable<int> host(asio::thread_pool& pool, sightings& seen, bool fail)
{
    auto work = [&seen, fail] {
        seen.inside = std::this_thread::get_id();
        if (fail) throw std::runtime_error("disk");
        return 7;
    };
    seen.before = std::this_thread::get_id();
    int value = 0;
    try {
        value = co_await reagent::offload(pool, work);
    } catch (const std::runtime_error&) {
        value = -1;
    }
    seen.after = std::this_thread::get_id();
    co_return value;
}

TEST(Offload, RunsOnThePoolAndComesBack)
{
    for (const bool fail : {false, true}) {
        asio::thread_pool pool(1);
        asio::io_context context(1);
        sightings seen;
        std::future<int> result = asio::co_spawn(context, host(pool, seen, fail), asio::use_future);
        context.run();
        EXPECT_EQ(result.get(), fail ? -1 : 7);
        EXPECT_EQ(seen.before, std::this_thread::get_id());
        EXPECT_EQ(seen.after, std::this_thread::get_id());
        EXPECT_NE(seen.inside, std::this_thread::get_id());
        pool.join();
    }
}

awaitable<int> brief(asio::thread_pool* pool)
{
    auto work = [] { return 7; };
    const int value = co_await reagent::offload(*pool, work);
    co_return value;
}

TEST(Offload, ACancelReachesNobodyOnThePool)
{
    for (int round = 0; round < 20; ++round) {
        asio::thread_pool pool(1);
        asio::io_context context(1);
        asio::cancellation_signal stop;
        int got = 0;
        asio::co_spawn(context, brief(&pool),
                       asio::bind_cancellation_slot(stop.slot(), [&got](const std::exception_ptr& failure, int value) { got = failure ? -1 : value; }));
        // When the work is done and its result on the way back: the signal comes before it.
        asio::post(context, [&pool, &stop] {
            for (int turn = 0; turn < 4; ++turn) {
                std::promise<void> idle;
                asio::post(pool, [&idle] { idle.set_value(); });
                idle.get_future().wait();
            }
            stop.emit(asio::cancellation_type::terminal);
        });
        context.run();
        EXPECT_EQ(got, 7);
        pool.join();
    }
}

}  // namespace offload_test
}  // namespace

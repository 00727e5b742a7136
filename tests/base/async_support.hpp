// What the coroutine tests of base share: objects that count themselves, small operations, and a context that is driven step by step.
#pragma once
#include <reagent/base/asio.hpp>
#include <reagent/base/clock.hpp>
#include <reagent/base/error.hpp>
#include <reagent/testing/manual_clock.hpp>

#include <boost/asio/bind_cancellation_slot.hpp>
#include <boost/asio/bind_executor.hpp>
#include <boost/asio/cancellation_signal.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/this_coro.hpp>

#include <chrono>
#include <exception>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace base_tests {

using reagent::awaitable;
using reagent::asio::io_context;
using namespace std::chrono_literals;
namespace asio = reagent::asio;

/// Counts its living copies, and the most there ever were.
class live_count {
public:
    explicit live_count(int* now, int* most = nullptr) : now_(now), most_(most) { up(); }
    live_count(const live_count& o) : now_(o.now_), most_(o.most_) { up(); }
    live_count& operator=(const live_count&) = delete;
    ~live_count() { --*now_; }

private:
    void up()
    {
        ++*now_;
        if (most_ && *now_ > *most_) *most_ = *now_;
    }
    int* now_;
    int* most_;
};

/// A clock, a context that steps, and counters that every branch reports to.
struct stage {
    io_context context{1};
    std::shared_ptr<reagent::testing::manual_clock> clock = std::make_shared<reagent::testing::manual_clock>();
    int live = 0, most = 0, started = 0;
    std::vector<std::string> log;

    reagent::steady_time in(reagent::duration d) const { return clock->now() + d; }
    /// Runs until nothing is ready, advancing to each due time in turn.
    void run_out()
    {
        for (;;) {
            context.restart();
            context.poll();
            if (clock->armed() == 0) return;
            clock->advance(clock->next() - clock->now());
        }
    }
    void poll()
    {
        context.restart();
        context.poll();
    }
};

inline awaitable<int> value_after(stage* s, reagent::duration d, int value)
{
    ++s->started;
    const live_count here(&s->live, &s->most);
    co_await reagent::sleep_until(s->clock, s->in(d));
    s->log.push_back("done " + std::to_string(value));
    co_return value;
}

inline awaitable<int> failure_after(stage* s, reagent::duration d, std::string message)
{
    ++s->started;
    const live_count here(&s->live, &s->most);
    co_await reagent::sleep_until(s->clock, s->in(d));
    throw std::runtime_error(message);
}

/// Ends only some time after it was told to: what a join has to wait for.
inline awaitable<int> slow_to_stop(stage* s, reagent::duration d, int value)
{
    ++s->started;
    const live_count here(&s->live, &s->most);
    std::exception_ptr stopped;
    try {
        co_await reagent::sleep_until(s->clock, s->in(d));
    } catch (...) {
        stopped = std::current_exception();
    }
    if (!stopped) co_return value;
    co_await asio::this_coro::reset_cancellation_state(asio::disable_cancellation());
    co_await reagent::sleep_until(s->clock, s->in(5ms));
    s->log.push_back("cleaned " + std::to_string(value));
    std::rethrow_exception(stopped);
}

/// A host's coroutine under test, with a signal, its result, and its exception.
template <class T>
struct hosted {
    asio::cancellation_signal signal;
    bool done = false;
    std::exception_ptr failure;
    std::optional<T> value;

    void start(stage& s, awaitable<T> operation)
    {
        asio::co_spawn(s.context, std::move(operation), asio::bind_cancellation_slot(signal.slot(), [this](std::exception_ptr e, T v) {
                           done = true;
                           failure = std::move(e);
                           if (!failure) value.emplace(std::move(v));
                       }));
    }
    void cancel() { signal.emit(asio::cancellation_type::terminal); }
};

}  // namespace base_tests

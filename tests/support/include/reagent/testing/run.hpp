/// Driving an `io_context` from a test without sleeping.
#pragma once
#include <reagent/base/asio.hpp>
#include <reagent/testing/manual_clock.hpp>

#include <boost/asio/io_context.hpp>

#include <chrono>
#include <exception>
#include <functional>
#include <memory>
#include <optional>
#include <stdexcept>
#include <utility>

namespace reagent::inline v0::testing {

/// Runs handlers until none is ready and the sockets are quiet: four polls in a row find nothing, then the context waits for readiness up to
/// `quiet` and finds nothing either. Bytes written on loopback are at the peer's socket when `write` returns, unless the kernel puts the delivery off
/// under load; the wait covers that. It returns at once when the context runs out of work. Returns the number of handlers run.
/// Where a test knows what it waits for, `run_until` is the sharper tool. For one thread per context.
std::size_t run_until_idle(asio::io_context& context, std::chrono::microseconds quiet = std::chrono::milliseconds(2));

/// Runs handlers until `done()` holds; false when the context ran out of work or `limit` of real time passed first.
bool run_until(asio::io_context& context, const std::function<bool()>& done, std::chrono::milliseconds limit = std::chrono::seconds(20));

/// Like `run_until`, and whenever the context is idle the clock moves on to its next timer: an operation with waits in it ends at once.
bool run_until(asio::io_context& context, manual_clock& clock, const std::function<bool()>& done, std::chrono::milliseconds limit = std::chrono::seconds(20));

/// One coroutine started by a test, its outcome kept. May die before the coroutine ends.
template <class T>
class started;

template <>
class started<void> {
public:
    started(asio::io_context& context, awaitable<void> operation);
    bool done() const noexcept { return state_->done; }
    /// The exception it ended with, null when it succeeded.
    const std::exception_ptr& failure() const noexcept { return state_->failure; }
    /// Precondition: done. Rethrows its exception.
    void get();

private:
    struct state {
        bool done = false;
        std::exception_ptr failure;
    };
    std::shared_ptr<state> state_ = std::make_shared<state>();
};

template <class T>
awaitable<void> keep_value(awaitable<T> operation, std::shared_ptr<std::optional<T>> into)
{
    T value = co_await std::move(operation);
    into->emplace(std::move(value));
}

/// A value is kept by a coroutine around the operation, so that what `co_spawn` needs is compiled once and not for every `T`.
template <class T>
class started {
public:
    started(asio::io_context& context, awaitable<T> operation) : run_(context, keep_value(std::move(operation), value_)) {}
    bool done() const noexcept { return run_.done(); }
    const std::exception_ptr& failure() const noexcept { return run_.failure(); }
    T get()
    {
        run_.get();
        return std::move(**value_);
    }

private:
    std::shared_ptr<std::optional<T>> value_ = std::make_shared<std::optional<T>>();
    started<void> run_;
};

/// Runs `operation` to its end on `context` and gives its result or throws its exception. Other work of the context may go on afterwards.
template <class T>
T complete(asio::io_context& context, awaitable<T> operation, std::chrono::milliseconds limit = std::chrono::seconds(20))
{
    started<T> op(context, std::move(operation));
    if (!run_until(
            context, [&op] { return op.done(); }, limit))
        throw std::runtime_error("the operation did not end");
    return op.get();
}

/// The same under manual time.
template <class T>
T complete(asio::io_context& context, manual_clock& clock, awaitable<T> operation, std::chrono::milliseconds limit = std::chrono::seconds(20))
{
    started<T> op(context, std::move(operation));
    if (!run_until(
            context, clock, [&op] { return op.done(); }, limit))
        throw std::runtime_error("the operation did not end");
    return op.get();
}

}  // namespace reagent::inline v0::testing

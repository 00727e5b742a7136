/// Driving an `io_context` from a test without sleeping.
#pragma once
#include <reagent/base/asio.hpp>
#include <reagent/testing/manual_clock.hpp>

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/io_context.hpp>

#include <chrono>
#include <exception>
#include <functional>
#include <optional>
#include <stdexcept>
#include <type_traits>

namespace reagent::inline v0::testing {

/// Runs handlers until none is ready and the sockets are quiet: four polls in a row find nothing, then the context waits for readiness up to
/// `quiet` and finds nothing either. Bytes written on loopback are at the peer's socket when `write` returns, unless the kernel puts the delivery off
/// under load; the wait covers that. It returns at once when the context runs out of work. Returns the number of handlers run.
/// Where a test knows what it waits for, `run_until` is the sharper tool. For one thread per context.
std::size_t run_until_idle(asio::io_context& context, std::chrono::microseconds quiet = std::chrono::milliseconds(2));

/// Runs handlers until `done()` holds; false when the context ran out of work or `limit` of real time passed first.
bool run_until(asio::io_context& context, const std::function<bool()>& done, std::chrono::milliseconds limit = std::chrono::seconds(20));

/// Like `run_until`, and whenever the context is idle the clock moves on to its next timer: an operation with waits in it ends at once.
bool run_until(asio::io_context& context, manual_clock& clock, const std::function<bool()>& done,
               std::chrono::milliseconds limit = std::chrono::seconds(20));

/// One coroutine started by a test, its outcome kept. May die before the coroutine ends.
template <class T>
class started {
public:
    started(asio::io_context& context, awaitable<T> operation)
    {
        if constexpr (std::is_void_v<T>) {
            asio::co_spawn(context, std::move(operation), [s = state_](std::exception_ptr e) {
                s->failure = e;
                s->done = true;
            });
        } else {
            asio::co_spawn(context, std::move(operation), [s = state_](std::exception_ptr e, T value) {
                s->failure = e;
                s->done = true;
                if (!e) s->value.emplace(std::move(value));
            });
        }
    }
    bool done() const noexcept { return state_->done; }
    /// The exception it ended with, null when it succeeded.
    const std::exception_ptr& failure() const noexcept { return state_->failure; }
    /// Precondition: done. Rethrows its exception.
    T get()
    {
        if (!state_->done) throw std::logic_error("the operation has not ended");
        if (state_->failure) std::rethrow_exception(state_->failure);
        if constexpr (!std::is_void_v<T>) return std::move(*state_->value);
    }

private:
    struct nothing {};
    struct state {
        bool done = false;
        std::exception_ptr failure;
        std::optional<std::conditional_t<std::is_void_v<T>, nothing, T>> value;
    };
    std::shared_ptr<state> state_ = std::make_shared<state>();
};

extern template class started<void>;  // every test unit would compile it again

/// Runs `operation` to its end on `context` and gives its result or throws its exception. Other work of the context may go on afterwards.
template <class T>
T complete(asio::io_context& context, awaitable<T> operation, std::chrono::milliseconds limit = std::chrono::seconds(20))
{
    started<T> op(context, std::move(operation));
    if (!run_until(context, [&op] { return op.done(); }, limit)) throw std::runtime_error("the operation did not end");
    return op.get();
}

/// The same under manual time.
template <class T>
T complete(asio::io_context& context, manual_clock& clock, awaitable<T> operation, std::chrono::milliseconds limit = std::chrono::seconds(20))
{
    started<T> op(context, std::move(operation));
    if (!run_until(context, clock, [&op] { return op.done(); }, limit)) throw std::runtime_error("the operation did not end");
    return op.get();
}

}  // namespace reagent::inline v0::testing

#pragma once
#include <reagent/base/asio.hpp>

#include <boost/asio/steady_timer.hpp>

namespace reagent::inline v0::net_detail {

/// A place where one coroutine waits until somebody wakes it. A wake before the wait is not lost. The waiter is kept by the reactor, so
/// that a context which dies takes it along.
class parking {
public:
    explicit parking(any_io_executor ex) : woken_cv_(std::move(ex), asio::steady_timer::time_point::max()) {}
    /// Waits for `wake`. Cancellation: terminal, at once; never throws by itself: the caller looks at its cancellation state afterwards.
    awaitable<void> wait();
    /// Idempotent. The waiter goes on later, on the executor.
    void wake();
    /// Forgets that it was woken, for another wait.
    void again() noexcept { woken_ = false; }

private:
    asio::steady_timer woken_cv_;  // never expires, cancelled by wake
    bool woken_ = false;
};

}  // namespace reagent::inline v0::net_detail

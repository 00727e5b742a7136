#pragma once
#include <reagent/base/asio.hpp>

#include <chrono>
#include <functional>
#include <memory>

namespace reagent::inline v0 {

using steady_time = std::chrono::steady_clock::time_point;
using system_time = std::chrono::system_clock::time_point;
using duration = std::chrono::steady_clock::duration;

/// One timer of a clock with one duty: calls its function on its executor when the time comes.
class clock_timer {
public:
    virtual ~clock_timer() = default;  ///< after this the function is never called again
    /// Replaces any earlier time. While armed it counts as outstanding work of the executor's context.
    virtual void arm(steady_time when) = 0;
    virtual void disarm() noexcept = 0;
};

/// Time as a dependency. The real clock is `clock::system()`; tests hand in `testing::manual_clock`.
class clock {
public:
    virtual ~clock() = default;
    virtual steady_time now() const noexcept = 0;
    virtual system_time wall() const noexcept = 0;
    /// `fire` is called on `ex`, never inside `arm`. Single-threaded use per timer, on `ex`.
    virtual std::unique_ptr<clock_timer> make_timer(any_io_executor ex, std::function<void()> fire) = 0;
    static const std::shared_ptr<clock>& system();
};
using clock_ptr = std::shared_ptr<clock>;

/// Waits until `when` by the given clock. Cancellation: terminal, total; then `operation_aborted`.
awaitable<void> sleep_until(clock_ptr clock, steady_time when);

}  // namespace reagent::inline v0

#pragma once
#include <reagent/base/clock.hpp>

#include <memory>
#include <optional>

namespace reagent::inline v0::testing {

/// Time as a variable: it moves only when told to. Works over real sockets: run the context until it is idle (`run.hpp`), then advance.
/// A timer that falls due is posted to its executor, earliest first, equal times in the order they were armed; it runs when the context runs, and
/// sees the time advanced to. Starts at an arbitrary fixed point. Safe to read and advance from any thread; a timer belongs to its executor.
class manual_clock : public clock, public std::enable_shared_from_this<manual_clock> {
public:
    manual_clock();
    ~manual_clock() override;
    steady_time now() const noexcept override;
    system_time wall() const noexcept override;
    std::unique_ptr<clock_timer> make_timer(any_io_executor ex, std::function<void()> fire) override;
    /// Moves both times on and posts what falls due. Precondition: `d` is not negative.
    void advance(duration d);
    void advance_to(steady_time when);
    /// Moves to the earliest armed timer and posts all timers due then; tells by how much, or nothing when no timer is armed.
    std::optional<duration> advance_to_next();
    /// Sets the wall clock alone, as an operator would.
    void set_wall(system_time t);
    /// Armed timers not yet due, and the earliest of them (`steady_time::max()` when there is none).
    std::size_t armed() const noexcept;
    steady_time next() const noexcept;

private:
    struct impl;
    std::shared_ptr<impl> impl_;
};

}  // namespace reagent::inline v0::testing

#pragma once
#include <reagent/base/clock.hpp>

#include <memory>

namespace reagent::inline v0::testing {

/// Time as a variable. Advances only when told to; due timers are posted to their executors. Works over real sockets: run the context until it
/// is idle, then advance. Single-threaded.
class manual_clock : public clock, public std::enable_shared_from_this<manual_clock> {
public:
    manual_clock();
    ~manual_clock() override;
    steady_time now() const noexcept override;
    system_time wall() const noexcept override;
    std::unique_ptr<clock_timer> make_timer(any_io_executor ex, std::function<void()> fire) override;
    void advance(duration d);
    void set_wall(system_time t);
    /// Armed timers, and the earliest of them.
    std::size_t armed() const noexcept;
    steady_time next() const noexcept;

private:
    struct impl;
    std::unique_ptr<impl> impl_;
};

}  // namespace reagent::inline v0::testing

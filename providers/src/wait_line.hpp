/// A line of coroutines, first come first served, at an object that several threads share.
#pragma once
#include <reagent/base/clock.hpp>
#include <reagent/base/context_watcher.hpp>

#include <cstddef>
#include <list>
#include <memory>
#include <mutex>

namespace reagent::inline v0::providers_detail {

class line_place;

/// The state of the shared object derives from this. Who stands first decides, under the mutex, whether its turn has come; whoever changes what the
/// decision rests on wakes it. So a wake-up that meets a cancellation loses nothing: the place is left, and the next one is woken.
class wait_line {
public:
    wait_line() = default;
    wait_line(const wait_line&) = delete;
    wait_line& operator=(const wait_line&) = delete;
    std::mutex mutex;
    // Below: with the mutex held.
    std::size_t length() const noexcept { return places_.size(); }
    void wake_first();
    void wake_all();

protected:
    ~wait_line() = default;

private:
    friend class line_place;
    std::list<line_place*> places_;
};

/// A coroutine's place, from its construction (at the end) to its destruction. A local variable of the coroutine.
class line_place final : private context_watcher {
public:
    line_place(const any_io_executor& ex, std::shared_ptr<wait_line> line);
    ~line_place();
    /// With the mutex held.
    bool first() const noexcept;
    /// Waits until woken, or until the clock says `until`. The caller looks again at what it waits for.
    /// Cancellation: terminal.
    awaitable<void> wait(clock_ptr clock, steady_time until);

private:
    struct bell;
    friend class wait_line;
    void context_ends() noexcept override { leave(); }
    void leave() noexcept;
    void wake();  // with the mutex held

    any_io_executor ex_;
    std::shared_ptr<wait_line> line_;
    std::shared_ptr<bell> bell_;
    std::list<line_place*>::iterator at_;
    bool stands_ = true;  // under the mutex
};

}  // namespace reagent::inline v0::providers_detail

#pragma once
#include <reagent/base/asio.hpp>
#include <reagent/base/log_sink.hpp>

#include <cstddef>
#include <memory>
#include <string>

namespace reagent::inline v0 {

/// Owner of child coroutines on one executor. The last member of its class. Must be joined before it dies: with children alive the destructor
/// cancels them, reports to the sink and asserts. Children of a context that is gone are no longer alive.
/// A child that throws reports to the sink, never to nobody. Unsafe to share between threads, but for `cancel` and `size`: all else, and the end of the
/// scope, belongs to its executor.
class task_scope {
public:
    explicit task_scope(any_io_executor ex, log_sink log = {});
    task_scope(const task_scope&) = delete;
    task_scope& operator=(const task_scope&) = delete;
    ~task_scope();
    /// Starts `work` now; after `cancel` it is dropped unstarted.
    void spawn(std::string name, awaitable<void> work);
    /// Signals every child (terminal). Idempotent. From any thread while the scope lives: called outside the executor, it gives the signals there
    /// later, and what is spawned after it is dropped nevertheless.
    void cancel();
    /// Waits until no child lives. Cancellation of the join cancels the children, still waits for them, and then throws `operation_aborted`. A
    /// coroutine that was cancelled before disables its cancellation first (style: clean-up that awaits), else this await throws at once.
    awaitable<void> join();
    /// How many children live.
    std::size_t size() const noexcept;

private:
    struct impl;
    static awaitable<void> join_body(std::shared_ptr<impl> self);
    std::shared_ptr<impl> impl_;
};

}  // namespace reagent::inline v0

#pragma once
#include <reagent/agent/run_result.hpp>
#include <reagent/base/asio.hpp>
#include <reagent/model/event.hpp>

#include <memory>

namespace reagent::inline v0 {
namespace agent_detail {
class run_state;
}

/// One run under way, read batch by batch. It starts at the first `read`; its destructor only signals cancellation, `close` joins. A move-only
/// handle for one coroutine on the agent's executor; not thread safe.
class run {
public:
    run() noexcept = default;
    explicit run(std::shared_ptr<agent_detail::run_state> state) noexcept : state_(std::move(state)) {}
    run(run&&) noexcept = default;
    run& operator=(run&& other) noexcept;
    ~run();

    /// Waits for the next events. True: `batch` holds some (its views live until the next `read`). False: the run has ended and `result` holds.
    /// Back-pressure is not reading: the run waits before its next model call. Errors: only when nothing started (a configuration error, a
    /// cancellation before the first step). Cancellation: terminal; cancels the run, waits for it and answers false, the result then says so.
    awaitable<bool> read(event_batch& batch);
    /// The outcome. Precondition: `read` answered false or `close` returned.
    const run_result& result() const;
    bool finished() const noexcept;
    /// Lets what runs finish and starts nothing more, no model call and no tool (spec/loop-and-providers.md §12.5). Sticky; before the start it stops the run at once.
    void stop() noexcept;
    /// Signals cancellation without waiting.
    void cancel() noexcept;
    /// Cancels what is left and waits until nothing of the run is alive; events not read are dropped. A run that was never read is cancelled.
    awaitable<void> close();

private:
    std::shared_ptr<agent_detail::run_state> state_;
};

}  // namespace reagent::inline v0

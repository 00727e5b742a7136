#pragma once
#include <reagent/base/asio.hpp>
#include <reagent/base/context_watcher.hpp>

#include <functional>
#include <memory>
#include <optional>

namespace reagent::inline v0::agent_detail {

/// One coroutine waits until another wakes it; both on one executor. Level-triggered use: check a condition, wait, check again.
class waiter final : public std::enable_shared_from_this<waiter>, context_watcher {
public:
    explicit waiter(any_io_executor ex) : context_watcher(ex), ex_(std::move(ex)) {}
    /// `forward` is what a cancellation of `wait_forwarding` calls; while `hold` answers true a wake-up is put back instead of delivered.
    waiter(any_io_executor ex, std::function<void()> forward, std::function<bool()> hold)
        : context_watcher(ex), ex_(std::move(ex)), forward_(std::move(forward)), hold_(std::move(hold))
    {}
    waiter(const waiter&) = delete;
    waiter& operator=(const waiter&) = delete;

    /// Until `notify`. Cancellation: terminal; throws `operation_aborted`.
    awaitable<void> wait();
    /// Until `notify`. A cancellation calls `forward` instead of ending the wait.
    awaitable<void> wait_forwarding();
    void notify() { complete(error_code()); }
    bool waiting() const noexcept { return handler_.has_value(); }
    /// Destroys the waiting coroutine without resuming it; for a context that goes down.
    void drop() noexcept;

private:
    using handler = asio::any_completion_handler<void(error_code)>;
    template <class Handler>
    void start(Handler h, bool forwarding);
    void complete(error_code ec);
    bool put_back(handler& h);
    class wake_up;
    void context_ends() noexcept override;

    any_io_executor ex_;
    std::function<void()> forward_;
    std::function<bool()> hold_;
    std::optional<handler> handler_;  // emplaced and reset, never assigned: any_completion_handler's move assignment recurses (Boost 1.81)
};

}  // namespace reagent::inline v0::agent_detail

#pragma once
#include <reagent/base/asio.hpp>

#include <functional>
#include <optional>

namespace reagent::inline v0::net_detail {

/// A place where one coroutine waits until somebody wakes it. Single use. A wake before the wait is not lost. Lives in the waiter's frame or in
/// what the waiter owns.
class parking {
public:
    explicit parking(any_io_executor ex) : ex_(std::move(ex)) {}
    parking(const parking&) = delete;
    parking& operator=(const parking&) = delete;
    ~parking();
    /// Waits for `wake`. Cancellation: terminal, at once; the caller looks at its cancellation state afterwards. With `on_cancel` a cancellation
    /// calls it instead and the wait goes on: what is waited for is told to end.
    awaitable<void> wait(std::function<void()> on_cancel = {});
    /// Idempotent. The waiter goes on later, on the executor.
    void wake();

private:
    void start(asio::any_completion_handler<void()> handler);
    any_io_executor ex_;
    std::function<void()> on_cancel_;
    std::optional<asio::any_completion_handler<void()>> waiter_;  // emplaced, never assigned: 1.81 recurses
    bool woken_ = false;
};

}  // namespace reagent::inline v0::net_detail

#pragma once
#include "agent_core.hpp"
#include "waiter.hpp"

#include <deque>
#include <memory>

namespace reagent::inline v0::agent_detail {

/// The history and the queue of a conversation.
class chat_state {
public:
    chat_state(std::shared_ptr<const agent_core> c, any_io_executor ex, transcript h) : core(std::move(c)), executor(std::move(ex)), history(std::move(h)) {}
    /// History after a turn: its transcript without the system message.
    void keep(const transcript& messages, bool with_system);

    const std::shared_ptr<const agent_core> core;
    const any_io_executor executor;
    transcript history;

private:
    friend class turn_guard;
    class place;
    bool busy_ = false;
    std::deque<std::shared_ptr<place>> queue_;

public:
    std::size_t pending() const noexcept { return queue_.size() + (busy_ ? 1 : 0); }
};

/// One turn's right to run. Its destructor passes the turn on.
class turn_guard {
public:
    explicit turn_guard(std::shared_ptr<chat_state> chat) noexcept : chat_(std::move(chat)) {}
    turn_guard(const turn_guard&) = delete;
    turn_guard& operator=(const turn_guard&) = delete;
    ~turn_guard();
    /// Waits FIFO. Cancellation: terminal; the place is given up.
    awaitable<void> acquire();

private:
    std::shared_ptr<chat_state> chat_;
    std::shared_ptr<chat_state::place> place_;
    bool mine_ = false;
};

}  // namespace reagent::inline v0::agent_detail

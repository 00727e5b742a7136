#include "chat_state.hpp"
#include "run_driver.hpp"

#include <reagent/agent/conversation.hpp>
#include <reagent/base/spawn.hpp>

#include <algorithm>

namespace reagent::inline v0 {
namespace agent_detail {

class chat_state::place {
public:
    explicit place(any_io_executor ex) : cv(std::make_shared<waiter>(std::move(ex))) {}
    const std::shared_ptr<waiter> cv;
    bool granted = false;
};

void chat_state::keep(const transcript& messages, bool with_system)
{
    // A `trim` may have taken the system prompt away.
    const bool prompt = with_system && !messages.empty() && messages.front()->who == role::system;
    history.assign(messages.begin() + (prompt ? 1 : 0), messages.end());
}

awaitable<void> turn_guard::acquire()
{
    if (!chat_->busy_) {
        chat_->busy_ = true;
        mine_ = true;
        co_return;
    }
    place_ = std::make_shared<chat_state::place>(chat_->executor);
    chat_->queue_.push_back(place_);
    while (!place_->granted) co_await place_->cv->wait();
    mine_ = true;
}

turn_guard::~turn_guard()
{
    if (!chat_) return;
    if (place_ && !place_->granted) {
        std::erase(chat_->queue_, place_);
        return;
    }
    // A grant that met a cancellation is passed on like a turn that ran.
    if (!mine_ && !place_) return;
    if (chat_->queue_.empty()) {
        chat_->busy_ = false;
        return;
    }
    const std::shared_ptr<chat_state::place> next = chat_->queue_.front();
    chat_->queue_.pop_front();
    next->granted = true;
    next->cv->notify();
}

awaitable<run_result> chat_to_end(std::shared_ptr<chat_state> chat, run_request request)
{
    const std::shared_ptr<const agent_core> core = chat->core;
    const any_io_executor ex = chat->executor;
    const std::shared_ptr<run_state> state = run_state::make(core, ex, std::move(request), std::move(chat));
    co_await run_state::to_end(state);
    co_return std::move(state->result);
}

void start_turn(std::shared_ptr<chat_state> chat, any_io_executor ex, run_request request, run_handler handler)
{
    const log_sink log = chat->core->options.log;
    start_for_handler(std::move(ex), log_failure(log, chat_to_end(std::move(chat), std::move(request))), std::move(handler));
}

}  // namespace agent_detail

void conversation::check_not_empty() const
{
    if (!state_) throw validation_error("[Loop] an empty conversation was used");
}

awaitable<run_result> conversation::send(run_request turn)
{
    check_not_empty();
    return agent_detail::chat_to_end(state_, std::move(turn));
}

run conversation::start(run_request turn)
{
    check_not_empty();
    agent_detail::check_read_request(turn);
    agent_detail::check_request(*state_->core, turn);
    return run(agent_detail::run_state::make(state_->core, state_->executor, std::move(turn), state_));
}

const transcript& conversation::history() const noexcept
{
    static const transcript none;
    return state_ ? state_->history : none;
}

std::size_t conversation::pending() const noexcept
{
    return state_ ? state_->pending() : 0;
}

any_io_executor conversation::get_executor() const noexcept
{
    return state_ ? state_->executor : any_io_executor();
}

}  // namespace reagent::inline v0

#pragma once
#include <reagent/agent/run.hpp>
#include <reagent/agent/run_request.hpp>
#include <reagent/agent/run_result.hpp>
#include <reagent/base/asio.hpp>

#include <memory>
#include <string>
#include <utility>

namespace reagent::inline v0 {
namespace agent_detail {
class agent_core;
class chat_state;
awaitable<run_result> chat_to_end(std::shared_ptr<chat_state> chat, run_request request);
using run_handler = asio::any_completion_handler<void(error_code, run_result)>;
void start_turn(std::shared_ptr<chat_state> chat, any_io_executor ex, run_request request, run_handler handler);
}  // namespace agent_detail

/// Runs that share a history. Turns run one at a time in the order they were started. After any started turn the history is its transcript
/// without the system message, unfinished calls sealed; when nothing started it is unchanged. A handle; one executor.
class conversation {
public:
    conversation() noexcept = default;
    explicit conversation(std::shared_ptr<agent_detail::chat_state> state) noexcept : state_(std::move(state)) {}

    /// One turn to read, as `agent::start`. Its place in the queue is taken at the first `read`.
    run start(run_request turn);
    run start(std::string question) { return start(run_request(std::move(question))); }

    /// One whole turn, as `agent::run`.
    awaitable<run_result> send(run_request turn);
    awaitable<run_result> send(std::string question) { return send(run_request(std::move(question))); }

    /// `send` for any completion token, as `agent::async_run`.
    template <class Token = asio::use_awaitable_t<>>
    auto async_send(run_request turn, Token&& token = {})
    {
        check_not_empty();
        return asio::async_initiate<Token, void(error_code, run_result)>(
            [](auto handler, std::shared_ptr<agent_detail::chat_state> chat, any_io_executor ex, run_request r) {
                agent_detail::start_turn(std::move(chat), std::move(ex), std::move(r), std::move(handler));
            },
            token, state_, get_executor(), std::move(turn));
    }
    template <class Token = asio::use_awaitable_t<>>
    auto async_send(std::string question, Token&& token = {})
    {
        return async_send(run_request(std::move(question)), std::forward<Token>(token));
    }

    const transcript& history() const noexcept;
    /// Turns that run or wait.
    std::size_t pending() const noexcept;
    any_io_executor get_executor() const noexcept;

private:
    void check_not_empty() const;
    std::shared_ptr<agent_detail::chat_state> state_;
};

}  // namespace reagent::inline v0

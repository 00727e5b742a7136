#pragma once
#include <reagent/agent/agent_options.hpp>
#include <reagent/agent/conversation.hpp>
#include <reagent/agent/run.hpp>
#include <reagent/agent/run_request.hpp>
#include <reagent/agent/run_result.hpp>
#include <reagent/agent/validate.hpp>
#include <reagent/base/asio.hpp>
#include <reagent/model/provider.hpp>

#include <memory>
#include <string>
#include <utility>

namespace reagent::inline v0 {
namespace agent_detail {
class agent_core;
awaitable<run_result> run_to_end(std::shared_ptr<const agent_core> core, any_io_executor ex, run_request request);
/// The same for a handler, which sees an error code: the sentence goes to the log. Erased, so that a host's unit compiles none of it.
void start_run(std::shared_ptr<const agent_core> core, any_io_executor ex, run_request request, run_handler handler);
}  // namespace agent_detail

/// A model, its instructions, its tools and its rules: immutable, any number of runs at once. A cheap handle on shared state that a cancelled run
/// keeps alive. Everything runs on the executor given; `on` makes the same agent for another one.
class agent {
public:
    agent() noexcept = default;
    /// Throws `validation_error` without a provider, `config_error` when the audit log that the gate's rules name cannot be opened.
    agent(any_io_executor ex, provider_ptr model, agent_options options = {});

    /// A run to read; nothing happens before the first `read`. Throws `config_error` or `validation_error` for what can be known now: no price
    /// or no output bound under a budget, an unusable tool.
    reagent::run start(run_request request) const;
    reagent::run start(std::string question) const { return start(run_request(std::move(question))); }

    /// A whole run. A run that started always ends with a result, cancelled included. Throws only when nothing started, and then the whole error:
    /// `config_error`, `validation_error`, `operation_aborted`. Cancellation: terminal; the run is cancelled and waited for.
    awaitable<run_result> run(run_request request) const;
    awaitable<run_result> run(std::string question) const { return run(run_request(std::move(question))); }

    /// `run` for any completion token, signature `void(error_code, run_result)`. An error code only when nothing started; its sentence goes to
    /// the agent's log. An empty agent throws `validation_error` at once. Cancellation: terminal, through the handler's slot.
    template <class Token = asio::use_awaitable_t<>>
    auto async_run(run_request request, Token&& token = {}) const
    {
        check_not_empty();
        return asio::async_initiate<Token, void(error_code, run_result)>(
            [](auto handler, std::shared_ptr<const agent_detail::agent_core> core, any_io_executor ex, run_request r) {
                agent_detail::start_run(std::move(core), std::move(ex), std::move(r), std::move(handler));
            },
            token, core_, executor_, std::move(request));
    }
    template <class Token = asio::use_awaitable_t<>>
    auto async_run(std::string question, Token&& token = {}) const
    {
        return async_run(run_request(std::move(question)), std::forward<Token>(token));
    }

    /// A dialogue that keeps its history.
    conversation chat(transcript history = {}) const;
    /// Tries the provider with one real call, the store when given, and the tools. Never throws but for memory.
    awaitable<validation_report> validate(store_probe* store = nullptr) const;

    agent on(any_io_executor ex) const;
    any_io_executor get_executor() const noexcept { return executor_; }
    const provider_ptr& provider() const noexcept;
    /// Where decisions are written: the log given with the gate, else the one that the rules name; empty when there is none.
    const audit_log& audit() const noexcept;
    /// Runs that started and have not ended, on all executors.
    std::size_t live_runs() const noexcept;
    explicit operator bool() const noexcept { return core_ != nullptr; }

private:
    friend class conversation;
    void check_not_empty() const;
    any_io_executor executor_;
    std::shared_ptr<const agent_detail::agent_core> core_;
};

}  // namespace reagent::inline v0

#pragma once
#include <reagent/agent/agent_options.hpp>
#include <reagent/agent/conversation.hpp>
#include <reagent/agent/run.hpp>
#include <reagent/agent/run_request.hpp>
#include <reagent/agent/run_result.hpp>
#include <reagent/agent/validate.hpp>
#include <reagent/base/asio.hpp>
#include <reagent/base/spawn.hpp>
#include <reagent/model/provider.hpp>

#include <memory>
#include <utility>

namespace reagent::inline v0 {
namespace agent_detail {
class agent_core;
awaitable<run_result> run_to_end(std::shared_ptr<const agent_core> core, any_io_executor ex, run_request request);
}

/// A model, its instructions, its tools and its rules: immutable, any number of runs at once. A cheap handle on shared state that a cancelled run
/// keeps alive. Everything runs on the executor given; `on` makes the same agent for another one.
class agent {
public:
    agent() noexcept = default;
    /// Throws `validation_error` without a provider.
    agent(any_io_executor ex, provider_ptr model, agent_options options = {});

    /// A run to read; nothing happens before the first `read`. Throws `config_error` or `validation_error` for what can be known now: no price
    /// or no output bound under a budget, an unusable tool.
    run start(run_request request) const;
    run start(std::string question) const { return start(run_request(std::move(question))); }

    /// A whole run for any completion token, signature `void(error_code, run_result)`. A run that started always completes with a result,
    /// cancelled included; an error code only when nothing started. Cancellation: terminal, through the handler's slot.
    template <class Token = asio::use_awaitable_t<>>
    auto async_run(run_request request, Token&& token = {}) const
    {
        return asio::async_initiate<Token, void(error_code, run_result)>(
            [](auto handler, std::shared_ptr<const agent_detail::agent_core> core, any_io_executor ex, run_request r) {
                start_for_handler(ex, agent_detail::run_to_end(std::move(core), ex, std::move(r)), std::move(handler));
            },
            token, core_, executor_, std::move(request));
    }

    /// A dialogue that keeps its history.
    conversation chat(transcript history = {}) const;
    /// Tries the provider with one real call, the store when given, and the tools. Never throws but for memory.
    awaitable<validation_report> validate(store_probe* store = nullptr) const;

    agent on(any_io_executor ex) const;
    any_io_executor get_executor() const noexcept { return executor_; }
    const provider_ptr& provider() const noexcept;
    /// Runs that started and have not ended, on all executors.
    std::size_t live_runs() const noexcept;
    explicit operator bool() const noexcept { return core_ != nullptr; }

private:
    friend class conversation;
    any_io_executor executor_;
    std::shared_ptr<const agent_detail::agent_core> core_;
};

}  // namespace reagent::inline v0

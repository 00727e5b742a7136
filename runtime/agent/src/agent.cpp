#include "chat_state.hpp"
#include "run_driver.hpp"

#include <reagent/agent/agent.hpp>

namespace reagent::inline v0 {

agent::agent(any_io_executor ex, provider_ptr model, agent_options options) : executor_(std::move(ex))
{
    if (!model) throw validation_error("[Loop] requires a provider");
    agent_options::values values = options.get();
    if (!values.audit) values.audit = values.policy.open_audit(values.time);
    core_ = std::make_shared<const agent_detail::agent_core>(std::move(model), std::move(values));
}

void agent::check_not_empty() const
{
    if (!core_) throw validation_error("[Loop] an empty agent was used");
}

reagent::run agent::start(run_request request) const
{
    check_not_empty();
    agent_detail::check_read_request(request);
    agent_detail::check_request(*core_, request);
    return reagent::run(agent_detail::run_state::make(core_, executor_, std::move(request)));
}

awaitable<run_result> agent::run(run_request request) const
{
    check_not_empty();
    return agent_detail::run_to_end(core_, executor_, std::move(request));
}

conversation agent::chat(transcript history) const
{
    check_not_empty();
    return conversation(std::make_shared<agent_detail::chat_state>(core_, executor_, std::move(history)));
}

agent agent::on(any_io_executor ex) const
{
    agent copy = *this;
    copy.executor_ = std::move(ex);
    return copy;
}

const audit_log& agent::audit() const noexcept
{
    static const audit_log none;
    return core_ ? core_->options.audit : none;
}

const provider_ptr& agent::provider() const noexcept
{
    static const provider_ptr none;
    return core_ ? core_->model : none;
}

std::size_t agent::live_runs() const noexcept
{
    return core_ ? core_->live_runs.load() : 0;
}

}  // namespace reagent::inline v0

#include "run_driver.hpp"

#include <algorithm>
#include <set>

namespace reagent::inline v0::agent_detail {

std::vector<std::string> tool_faults(const std::vector<tool>& tools)
{
    std::vector<std::string> faults;
    std::set<std::string, std::less<>> names;
    for (const tool& t : tools) {
        if (!t) faults.emplace_back("Tool is missing a name (got nothing)");
        else if (!t.parameters().is_null() && !t.parameters().is_object())
            faults.push_back("Tool \"" + t.name() + "\" has invalid parameters: expected an object, got " + std::string(t.parameters().type_name()));
        else if (!names.insert(t.name()).second) faults.push_back("Tool \"" + t.name() + "\" is offered twice");
    }
    return faults;
}

generate_options merged(const generate_options& own, const generate_options& request)
{
    generate_options out = own;
    if (request.temperature) out.temperature = request.temperature;
    if (request.max_tokens.value_or(0) != 0) out.max_tokens = request.max_tokens;
    if (request.tool_choice) out.tool_choice = request.tool_choice;
    if (request.thinking) out.thinking = request.thinking;
    if (request.mode) out.mode = request.mode;
    if (!request.idle.inherits()) out.idle = request.idle;
    if (!request.total.inherits()) out.total = request.total;
    out.stream = own.stream && request.stream;
    out.accept_resets = own.accept_resets || request.accept_resets;
    out.deadline = std::min(own.deadline, request.deadline);
    return out;
}

std::optional<std::uint64_t> own_output_bound(const generate_options& options, const provider& model)
{
    return options.max_tokens.value_or(0) != 0 ? options.max_tokens : model.max_output();
}

budget run_budget(const agent_core& core, const run_request& request, const std::string& run_id)
{
    budget money = request.budget();
    if (budget own = core.options.money; !money && own) money = own.child("run " + run_id);
    return money;
}

void check_read_request(const run_request& request)
{
    if (request.on_events()) throw validation_error("[Loop] on_events is for run, async_run, send and async_send; a run that was started is read");
}

void check_request(const agent_core& core, const run_request& request)
{
    const std::vector<tool>* fixed = request.tools() ? &*request.tools() : &core.options.tools;
    if (request.thunk() || (!request.tools() && core.options.thunk)) fixed = nullptr;
    if (fixed != nullptr) {
        const std::vector<std::string> faults = tool_faults(*fixed);
        if (!faults.empty()) throw validation_error("[Loop] " + faults.front());
    }
    check_budget(core, request.budget() ? request.budget() : core.options.money, merged(core.options.generate, request.options()));
}

void check_budget(const agent_core& core, const budget& money, const generate_options& options)
{
    const budget_caps caps = core.options.policy.budget();
    const bool cost = caps.cost || (money && money.caps_cost()), tokens = caps.tokens || (money && money.caps_tokens());
    check_caps(cost, tokens, core.model->model(), core.options.prices, own_output_bound(options, *core.model));
}

}  // namespace reagent::inline v0::agent_detail

#include "policy_impl.hpp"

#include <reagent/base/error.hpp>

#include <cmath>

namespace reagent::inline v0 {

namespace gd = governance_detail;

namespace {
template <class Change>
gate_policy changed(const gate_policy& from, Change change)
{
    auto copy = std::make_shared<gate_policy::impl>(from.get());
    change(*copy);
    return gate_policy(std::shared_ptr<const gate_policy::impl>(std::move(copy)));
}
}  // namespace

gate_policy::gate_policy()
{
    static const std::shared_ptr<const impl> no_rules = std::make_shared<impl>();  // immutable
    impl_ = no_rules;
}

gate_policy gate_policy::allow_tools(std::vector<std::string> globs) const
{
    return changed(*this, [&](impl& p) { p.allow_step = gd::tool_allowlist(std::move(globs)); });
}

gate_policy gate_policy::deny_tools(std::vector<std::string> globs) const
{
    return changed(*this, [&](impl& p) { p.deny_step = gd::tool_denylist(std::move(globs)); });
}

gate_policy gate_policy::max_turns(std::uint64_t n) const
{
    return changed(*this, [&](impl& p) { p.max_turns = n; });
}

gate_policy gate_policy::max_tool_rounds(std::uint64_t n) const
{
    return changed(*this, [&](impl& p) { p.max_tool_rounds = n; });
}

gate_policy gate_policy::max_cost(usd cap) const
{
    if (cap < usd()) throw config_error("budget.maxCostUsd: must be at least 0");
    return changed(*this, [&](impl& p) { p.caps.cost = cap; });
}

gate_policy gate_policy::max_tokens(std::uint64_t cap) const
{
    return changed(*this, [&](impl& p) { p.caps.tokens = cap; });
}

gate_policy gate_policy::soft_ratio(double ratio) const
{
    if (!(ratio > 0 && ratio < 1)) throw config_error("budget.softRatio: must be strictly between 0 and 1");
    return changed(*this, [&](impl& p) { p.soft_ratio = ratio; });
}

gate_policy gate_policy::channel_timeout(std::chrono::nanoseconds limit) const
{
    return changed(*this, [&](impl& p) { p.channel_timeout = limit; });
}

budget_caps gate_policy::budget() const
{
    return impl_->caps;
}

std::chrono::nanoseconds gate_policy::channel_timeout() const noexcept
{
    return impl_->channel_timeout;
}

const std::string& gate_policy::run_id() const noexcept
{
    return impl_->run_id;
}

bool gate_policy::has_rules() const noexcept
{
    const impl& p = *impl_;
    return p.deny_step || p.allow_step || !p.middle_steps.empty() || p.max_turns || p.max_tool_rounds || p.caps.cost || p.caps.tokens;
}

audit_log gate_policy::open_audit(clock_ptr clock) const
{
    switch (impl_->audit) {
    case impl::audit_target::memory: return audit_log::in_memory(std::move(clock));
    case impl::audit_target::file: return audit_log::file(impl_->audit_path, std::move(clock));
    case impl::audit_target::unset: break;
    }
    return {};
}

gd::finding gate_policy::impl::judge(const gd::rule_subject& subject, scope which) const
{
    std::optional<gd::finding> found;
    const auto ask = [&](const std::shared_ptr<const gd::rule_step>& step) {
        if (!step || (which == scope::only_tools && !step->about_tools()) || (which == scope::no_tools && step->about_tools())) return false;
        found = step->judge(subject);
        return found.has_value();
    };
    if (ask(deny_step)) return std::move(*found);
    for (const auto& step : middle_steps)
        if (ask(step)) return std::move(*found);
    if (ask(allow_step)) return std::move(*found);
    return {};
}

}  // namespace reagent::inline v0

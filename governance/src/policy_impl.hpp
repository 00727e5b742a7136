#pragma once
#include "rule_step.hpp"

#include <reagent/governance/gate_policy.hpp>

namespace reagent::inline v0 {

struct gate_policy::impl {
    enum class audit_target : std::uint8_t { unset, memory, file };

    /// In evaluation order. The slots of tools.denylist (first) and tools.allowlist (last) are separate, so that a setter replaces its own.
    std::shared_ptr<const governance_detail::rule_step> deny_step, allow_step;
    std::vector<std::shared_ptr<const governance_detail::rule_step>> middle_steps;
    std::optional<std::uint64_t> max_turns, max_tool_rounds;
    budget_caps caps;
    std::optional<double> soft_ratio;
    std::chrono::nanoseconds channel_timeout{0};
    std::string run_id, parent_run_id;
    int spawn_depth = 0;
    audit_target audit = audit_target::unset;
    std::string audit_path;

    /// The first step with an opinion. `only_tools`: the name probe; `no_tools`: a model attempt.
    enum class scope : std::uint8_t { all, only_tools, no_tools };
    governance_detail::finding judge(const governance_detail::rule_subject& subject, scope which) const;
};

}  // namespace reagent::inline v0

#pragma once
#include <reagent/base/clock.hpp>
#include <reagent/base/json.hpp>
#include <reagent/governance/audit_log.hpp>
#include <reagent/governance/budget.hpp>

#include <chrono>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace reagent::inline v0 {

/// The compiled rules (spec/governance.md §1.5, §4.1, §5.2). Immutable and shared; thread safe; a cheap copy. Each setter returns a new policy.
/// A section known to the spec and not evaluated by this version is a `config_error`, never ignored (so `content`, whose patterns the spec has on by default).
class gate_policy {
public:
    gate_policy();  ///< no rule: everything is allowed
    /// `{tools:{allowlist, denylist}, limits:{maxTurns, maxToolRounds}, budget:{maxCostUsd, maxTokens, softRatio}, audit:{path},
    /// humanChannelTimeoutMs, runId, parentRunId, spawnDepth, allowUnknownKeys}`, all optional.
    /// Throws `config_error` naming `section.key[index]`; an unknown key names the nearest known one.
    static gate_policy from_json(const json& config);

    /// Only these tools; `*` stands for any run of characters. An empty list allows none. Model rounds are not tools.
    gate_policy allow_tools(std::vector<std::string> globs) const;
    gate_policy deny_tools(std::vector<std::string> globs) const;
    /// Records (model rounds and tool calls) after which the run halts.
    gate_policy max_turns(std::uint64_t n) const;
    /// Records of tool calls after which the run halts.
    gate_policy max_tool_rounds(std::uint64_t n) const;
    gate_policy max_cost(usd cap) const;
    gate_policy max_tokens(std::uint64_t cap) const;
    /// Writes a `budget_warn` line when the spend passes this part of a cap; strictly between 0 and 1.
    gate_policy soft_ratio(double ratio) const;
    /// How long a person may take; zero waits for ever.
    gate_policy channel_timeout(std::chrono::nanoseconds limit) const;

    budget_caps budget() const;
    bool has_rules() const noexcept;
    std::chrono::nanoseconds channel_timeout() const noexcept;
    /// `runId`: the identity of runs that bring none of their own; empty when the key is absent.
    const std::string& run_id() const noexcept;
    /// The log that `audit.path` names: the file, in memory for null, an empty handle when the key is absent. Throws `config_error`.
    audit_log open_audit(clock_ptr clock = {}) const;

    struct impl;
    const impl& get() const noexcept { return *impl_; }
    explicit gate_policy(std::shared_ptr<const impl> i) noexcept : impl_(std::move(i)) {}

private:
    std::shared_ptr<const impl> impl_;
};

}  // namespace reagent::inline v0

/// The state of one run's gate, and its steps without I/O.
#pragma once
#include "policy_impl.hpp"

#include <reagent/governance/gate.hpp>

#include <array>

namespace reagent::inline v0 {

namespace governance_detail {

/// What an evaluation found (spec/governance.md §2), before any person is asked.
struct evaluation {
    finding found;
    bool halts = false;                         // severity
    std::optional<budget_dimension> dimension;  // of a money or token halt
    budget short_budget;                        // whose cap it is
    json spent, cap;
};

/// Calls of a batch that were admitted and not yet recorded.
struct unrecorded {
    std::uint64_t turns = 0, tool_rounds = 0;
};

using lines = std::vector<json>;

}  // namespace governance_detail

struct run_gate::impl {
    impl(gate_policy p, budget m, gate_options o);

    gate_policy policy;
    budget money;
    gate_options options;
    bool is_open;
    bool is_terminated = false;
    bool warned_no_channel = false;
    std::uint64_t seq = 0, turns = 0, tool_rounds = 0;
    // For the halt context: sums over record lines.
    usd spent;
    std::uint64_t tokens = 0;
    std::array<usd, 5> last_costs{};
    budget_amount warned_from;  // spend at the last record, for budget_warn
    std::optional<system_time> first_line, last_line;

    const gate_policy::impl& rules() const noexcept { return policy.get(); }
    std::chrono::nanoseconds channel_timeout() const noexcept;
    const std::string& run_id();

    // gate_rules.cpp: judging
    std::optional<governance_detail::evaluation> halt_condition(const governance_detail::unrecorded& pending) const;
    governance_detail::evaluation evaluate(const json& action, const governance_detail::unrecorded& pending, gate_policy::impl::scope scope) const;
    governance_detail::evaluation money_halt(const admission& refusal, const budget_amount* wanted = nullptr) const;
    json halt_context() const;

    // gate_lines.cpp: what is written
    bool audited() const noexcept { return static_cast<bool>(options.audit); }
    json line(std::string_view phase, std::string_view aid);
    void gate_line(governance_detail::lines& out, std::string_view aid, const json& action, std::string_view decision, severity s, std::string_view rule,
                   std::string_view reason);
    void gate_line(governance_detail::lines& out, const json& action, const decision& d);
    void halt_line(governance_detail::lines& out, std::string_view aid, const governance_detail::evaluation& e, bool has_channel);
    void approval_line(governance_detail::lines& out, std::string_view aid, const json& action, json decision, std::string_view reason,
                       std::optional<double> new_cap);
    void topup_line(governance_detail::lines& out, std::string_view aid, std::string_view dimension, std::optional<double> old_cap, double new_cap);
    bool terminate(governance_detail::lines& out, std::string_view reason);
    void record(governance_detail::lines& out, const action& a, const json& result, std::string_view aid);
    void budget_warnings(governance_detail::lines& out, std::string_view aid);
    /// Writes and empties `out`.
    void flush(governance_detail::lines& out);
};

namespace governance_detail {

/// A check in progress: its action, what it wants to reserve, and the lines not yet written.
class check_work {
public:
    check_work(action a, lines* out) : subject(std::move(a)), pending(out) {}
    action subject;
    lines* pending;  // outlives the check; flushed before every wait
    unrecorded admitted;
    std::optional<budget_amount> worst_case;  // a model attempt
    reservation held;
};

/// Decides one action, asking whom it must (spec/governance.md §3.2). Its last lines stay in `work.pending`.
awaitable<decision> decide(run_gate::impl& gate, check_work& work);

/// "nothing" is also what an unsettled person answers.
class channel_reply {
public:
    channel_reply() = default;
    enum class how : std::uint8_t { answered, threw, timed_out };
    how end = how::answered;
    human_answer answer;
    std::string what;  // it threw
};
/// Puts the question; a reply after `timeout` (zero: none) is dropped. Throws only `operation_aborted`, when the caller is cancelled.
awaitable<channel_reply> ask_channel(human_channel channel, human_event event, clock_ptr clock, std::chrono::nanoseconds timeout);

}  // namespace governance_detail
}  // namespace reagent::inline v0

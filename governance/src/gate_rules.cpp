#include "gate_impl.hpp"

#include <reagent/base/random.hpp>

#include <algorithm>
#include <utility>

namespace reagent::inline v0 {

namespace gd = governance_detail;

namespace {

constexpr std::string_view dimension_name(budget_dimension d) noexcept
{
    return d == budget_dimension::cost ? "costUsd" : "tokens";
}

gd::evaluation halt(std::string rule, std::string reason)
{
    gd::evaluation e;
    e.found = gd::finding{gd::finding_kind::ask, std::move(rule), std::move(reason)};
    e.halts = true;
    return e;
}

gd::evaluation count_halt(std::string_view rule, std::uint64_t n, std::uint64_t max)
{
    gd::evaluation e = halt(std::string(rule), std::to_string(n) + " of " + std::to_string(max) + " used up (" + std::string(rule) + ')');
    e.spent = n;
    e.cap = max;
    return e;
}

std::string amount_text(budget_dimension d, const budget_amount& a)
{
    return d == budget_dimension::cost ? '$' + a.cost.to_string() : std::to_string(a.tokens) + " tokens";
}

}  // namespace

// `wanted` is what the attempt would have reserved, null when it did not come to that.
gd::evaluation run_gate::impl::money_halt(const admission& refusal, const budget_amount* wanted) const
{
    const budget_dimension d = *refusal.refused;
    const budget_amount cap(refusal.caps.cost.value_or(usd()), refusal.caps.tokens.value_or(0));
    const bool used_up = d == budget_dimension::cost ? refusal.spent.cost >= cap.cost : refusal.spent.tokens >= cap.tokens;
    std::string reason = amount_text(d, refusal.spent) + " of " + amount_text(d, cap) + " spent in budget \"" + refusal.budget_name + '"';
    if (!used_up) {
        const budget_amount left(cap.cost - refusal.spent.cost, cap.tokens - std::min(cap.tokens, refusal.spent.tokens));
        reason += ", " + amount_text(d, left) + " left";
    }
    if (wanted) reason += "; the next attempt would reserve " + amount_text(d, *wanted);
    gd::evaluation e = halt(std::string(budget_rule(d)), std::move(reason));
    e.dimension = d;
    e.short_budget = refusal.refused_by();
    e.spent = d == budget_dimension::cost ? json(refusal.spent.cost.to_double()) : json(refusal.spent.tokens);
    e.cap = d == budget_dimension::cost ? json(cap.cost.to_double()) : json(cap.tokens);
    return e;
}

std::optional<gd::evaluation> run_gate::impl::halt_condition(const gd::unrecorded& pending) const
{
    if (is_terminated) {
        gd::evaluation e = halt("gate.terminated", "the gate was terminated");
        e.found.kind = gd::finding_kind::deny;  // P1 is terminal: nobody is asked
        return e;
    }
    if (const std::optional<admission> refusal = money.exhausted()) return money_halt(*refusal);
    const gate_policy::impl& p = rules();
    if (p.max_turns && turns + pending.turns >= *p.max_turns) return count_halt("limits.maxTurns", turns + pending.turns, *p.max_turns);
    if (p.max_tool_rounds && tool_rounds + pending.tool_rounds >= *p.max_tool_rounds)
        return count_halt("limits.maxToolRounds", tool_rounds + pending.tool_rounds, *p.max_tool_rounds);
    return {};
}

gd::evaluation run_gate::impl::evaluate(const json& action, const gd::unrecorded& pending, gate_policy::impl::scope scope) const
{
    if (std::optional<gd::evaluation> e = halt_condition(pending)) return std::move(*e);
    gd::evaluation e;
    const json* type = action.is_object() ? action.find("type") : nullptr;
    if (!type || !type->is_string() || type->as_string().empty()) {
        e.found = gd::finding{gd::finding_kind::deny, "gate.invalidAction", "an action is an object with a non-empty string `type`"};
        return e;
    }
    gd::rule_subject subject{action, type->as_string(), {}};
    if (const json* tool = action.find("tool"); tool && !tool->is_null()) {
        if (tool->is_string() && !tool->as_string().empty()) subject.tool = tool->as_string();
        else subject.tool_unusable = true;
    }
    e.found = rules().judge(subject, scope);
    return e;
}

json run_gate::impl::halt_context() const
{
    budget_caps nearest;
    for (budget b = money; b; b = b.parent()) {
        const budget_state s = b.state();
        if (!nearest.cost) nearest.cost = s.caps.cost;
        if (!nearest.tokens) nearest.tokens = s.caps.tokens;
    }
    const std::size_t n = static_cast<std::size_t>(std::min<std::uint64_t>(turns, last_costs.size()));
    json recent = json::array();
    double recent_sum = 0;
    for (std::size_t i = 0; i < n; ++i) {
        const double cost = last_costs[(turns - n + i) % last_costs.size()].to_double();
        recent.push_back(cost);
        recent_sum += cost;
    }
    const auto elapsed = first_line ? std::chrono::duration_cast<std::chrono::milliseconds>(*last_line - *first_line).count() : 0;
    return json::object()
        .set("spent", json::object().set("costUsd", spent.to_double()).set("tokens", tokens))
        .set("cap",
             json::object()
                 .set("costUsd", nearest.cost ? json(nearest.cost->to_double()) : json())
                 .set("tokens", nearest.tokens ? json(*nearest.tokens) : json()))
        .set("turns", turns)
        .set("maxTurns", rules().max_turns ? json(*rules().max_turns) : json())
        .set("timeElapsedMs", elapsed)
        .set("spendRate",
             json::object()
                 .set("avgPerTurn", turns ? spent.to_double() / static_cast<double>(turns) : 0.0)
                 .set("last5Avg", n ? recent_sum / static_cast<double>(n) : 0.0)
                 .set("last5", std::move(recent)));
}

}  // namespace reagent::inline v0

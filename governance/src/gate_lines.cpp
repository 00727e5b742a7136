#include "gate_impl.hpp"

#include <reagent/base/time_text.hpp>

#include <cmath>

namespace reagent::inline v0 {

namespace gd = governance_detail;

namespace {

json or_null(std::string_view text)
{
    return text.empty() ? json() : json(text);
}
constexpr std::string_view severity_name(severity s) noexcept
{
    return s == severity::halt ? "halt" : "action";
}

/// `tokens` as spec/governance.md §5.1 counts them: finite, positive.
std::uint64_t counted(const json& v)
{
    if (const auto exact = v.get_uint64()) return *exact;
    const double d = v.get_double().value_or(0);
    return d > 0 && std::isfinite(d) ? (d >= 0x1p64 ? UINT64_MAX : static_cast<std::uint64_t>(d)) : 0;
}

}  // namespace

json run_gate::impl::line(std::string_view phase, std::string_view aid)
{
    const system_time now = options.clock->wall();
    if (!first_line) first_line = now;
    last_line = now;
    json out = json::object();
    out.as_object().reserve(14);
    auto& o = out.as_object();
    o.emplace_back("ts", format_iso8601(now));
    o.emplace_back("seq", ++seq);
    o.emplace_back("run_id", run_id());
    o.emplace_back("parent_run_id", or_null(options.parent_run_id));
    o.emplace_back("spawn_depth", options.spawn_depth);
    o.emplace_back("phase", phase);
    if (!aid.empty()) o.emplace_back("aid", aid);
    return out;
}

void run_gate::impl::gate_line(gd::lines& out, std::string_view aid, const json& action, std::string_view decision, severity s, std::string_view rule,
                               std::string_view reason)
{
    if (!audited()) return;
    json l = line("gate", aid);
    auto& o = l.as_object();
    o.emplace_back("action", action);
    o.emplace_back("decision", decision);
    o.emplace_back("severity", severity_name(s));
    o.emplace_back("rule", rule);
    o.emplace_back("reason", or_null(reason));
    out.push_back(std::move(l));
}

void run_gate::impl::gate_line(gd::lines& out, const json& action, const decision& d)
{
    gate_line(out, d.aid, action, d.allowed() ? "allow" : "deny", d.level, d.rule, d.reason);
}

void run_gate::impl::halt_line(gd::lines& out, std::string_view aid, const gd::evaluation& e, bool has_channel)
{
    if (!audited()) return;
    json l = line("halt", aid);
    l.set("action", nullptr);
    l.set("dimension", e.dimension ? json(*e.dimension == budget_dimension::cost ? "costUsd" : "tokens") : json());
    l.set("spent", e.spent);
    l.set("cap", e.cap);
    l.set("rule", e.found.rule);
    l.set("reason", e.found.reason);
    l.set("awaiting", has_channel ? "human" : "no-channel");
    out.push_back(std::move(l));
}

void run_gate::impl::approval_line(gd::lines& out, std::string_view aid, const json& action, json decision, std::string_view reason,
                                   std::optional<double> new_cap)
{
    if (!audited()) return;
    json l = line("approval", aid);
    l.set("action", action);
    l.set("decision", std::move(decision));
    l.set("reason", or_null(reason));
    l.set("newCap", new_cap && std::isfinite(*new_cap) ? json(*new_cap) : json());
    out.push_back(std::move(l));
}

void run_gate::impl::topup_line(gd::lines& out, std::string_view aid, std::string_view dimension, std::optional<double> old_cap, double new_cap)
{
    if (!audited()) return;
    json l = line("topup", aid);
    l.set("action", nullptr);
    l.set("dimension", dimension);
    l.set("oldCap", old_cap ? json(*old_cap) : json());
    l.set("newCap", new_cap);
    out.push_back(std::move(l));
}

bool run_gate::impl::terminate(gd::lines& out, std::string_view reason)
{
    if (is_terminated) return false;
    is_terminated = true;
    is_open = false;
    if (!audited()) return true;
    json l = line("terminate", {});
    l.set("action", nullptr);
    l.set("reason", or_null(reason));
    out.push_back(std::move(l));
    return true;
}

void run_gate::impl::record(gd::lines& out, const action& a, const json& result, std::string_view aid)
{
    const bool model_round = a.type() == "llm";
    const json* cost = result.find("costUsd");
    const std::optional<double> dollars = cost ? cost->get_double() : std::optional<double>(0.0);
    const std::string* pricing = result["pricing"].get_string();
    const bool unpriced = !dollars || !std::isfinite(*dollars) || (pricing && *pricing == "unpriced");
    const budget_amount amount(unpriced ? usd() : std::max(usd(), usd::from_double(*dollars)), counted(result["tokens"]));
    last_costs[turns % last_costs.size()] = amount.cost;
    spent += amount.cost;
    tokens = tokens > UINT64_MAX - amount.tokens ? UINT64_MAX : tokens + amount.tokens;
    ++turns;
    if (!model_round) {
        ++tool_rounds;
        money.charge(amount);  // a model attempt has settled its reservation already
    }
    if (!audited()) return;
    json l = line("record", aid);
    auto& o = l.as_object();
    o.emplace_back("action", a.value);
    o.emplace_back("result", result);
    for (const char* name : {"decision", "severity", "rule", "reason"}) o.emplace_back(name, nullptr);
    out.push_back(std::move(l));
    if (unpriced) {
        json u = line("unpriced", aid);
        u.set("action", a.value);
        u.set("reason", "no usable price for this record; it counts as $0");
        out.push_back(std::move(u));
    }
    budget_warnings(out, aid);
}

void run_gate::impl::budget_warnings(gd::lines& out, std::string_view aid)
{
    if (!rules().soft_ratio || !money) return;
    const double ratio = *rules().soft_ratio;
    const budget_state now = money.state();
    const auto warn = [&](std::string_view dimension, double before, double after, double cap) {
        if (!(before < ratio * cap && after >= ratio * cap && after < cap)) return;
        json l = line("budget_warn", aid);
        l.set("action", nullptr);
        l.set("dimension", dimension);
        l.set("spent", after);
        l.set("cap", cap);
        l.set("ratio", ratio);
        l.set("reason", std::string(dimension) + " has passed its soft limit");
        out.push_back(std::move(l));
    };
    if (now.caps.cost) warn("costUsd", warned_from.cost.to_double(), now.spent.cost.to_double(), now.caps.cost->to_double());
    if (now.caps.tokens) warn("tokens", static_cast<double>(warned_from.tokens), static_cast<double>(now.spent.tokens), static_cast<double>(*now.caps.tokens));
    warned_from = now.spent;
}

void run_gate::impl::flush(gd::lines& out)
{
    if (out.empty()) return;
    gd::lines going;
    going.swap(out);
    options.audit.write(std::move(going));
}

}  // namespace reagent::inline v0

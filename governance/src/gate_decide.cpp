#include "gate_impl.hpp"

#include <reagent/base/random.hpp>
#include <reagent/governance/redaction.hpp>

#include <cmath>

namespace reagent::inline v0::governance_detail {
namespace {

constexpr int max_topups = 5;

/// What becomes of a question.
struct outcome {
    std::optional<decision> verdict;  // none: evaluate again
    bool last_line = true;            // a `gate` line follows
};

outcome denied(const evaluation& e, severity s, std::string reason)
{
    return {decision(outcome_kind::deny, s, e.found.rule, std::move(reason))};
}

outcome allowed(std::string reason)
{
    return {decision(outcome_kind::allow, severity::action, "humanChannel.allow", std::move(reason))};
}

const char* verdict_name(human_verdict v) noexcept
{
    switch (v) {
    case human_verdict::allow: return "allow";
    case human_verdict::deny: return "deny";
    case human_verdict::topup: return "topup";
    case human_verdict::terminate: return "terminate";
    default: return "";
    }
}

outcome top_up(run_gate::impl& gate, check_work& work, const evaluation& e, const human_answer& answer, std::string_view aid, int& topups)
{
    if (!e.halts) return allowed("topup-on-ask treated as allow");
    if (!answer.new_cap || !std::isfinite(*answer.new_cap) || *answer.new_cap < 0) return denied(e, severity::halt, "topup with invalid newCap");
    if (!e.dimension) return denied(e, severity::halt, "topup not applicable to this rule");
    const std::optional<double> old = e.short_budget.raise_cap(*e.dimension, *answer.new_cap);
    gate.topup_line(*work.pending, aid, *e.dimension == budget_dimension::cost ? "costUsd" : "tokens", old, *answer.new_cap);
    if (++topups >= max_topups) return denied(e, severity::halt, "topup loop exceeded 5 iterations");
    return {};
}

/// spec/governance.md §3.2, steps 4 to 6.
outcome take_reply(run_gate::impl& gate, check_work& work, const evaluation& e, channel_reply& reply, std::string_view aid, int& topups)
{
    const json& subject = work.subject.value;
    const auto unanswered = [&](std::string reason) {
        gate.approval_line(*work.pending, aid, subject, "deny", reason, {});
        outcome o = denied(e, severity::halt, std::move(reason));
        o.last_line = false;
        return o;
    };
    if (reply.end == channel_reply::how::timed_out) {
        const double ms = std::chrono::duration<double, std::milli>(gate.channel_timeout()).count();
        return unanswered("humanChannel timeout after " + json(ms).dump() + "ms");
    }
    if (reply.end == channel_reply::how::threw) return unanswered("humanChannel threw: " + reply.what);

    human_answer& a = reply.answer;
    const bool unknown = a.verdict > human_verdict::none;
    const std::string word = a.verdict == human_verdict::other ? a.word : std::to_string(static_cast<int>(a.verdict));
    gate.approval_line(*work.pending, aid, subject,
                       unknown                                ? json(word)
                           : a.verdict == human_verdict::none ? json()
                                                              : json(verdict_name(a.verdict)),
                       a.reason, a.new_cap);
    const severity as_asked = e.halts ? severity::halt : severity::action;
    switch (a.verdict) {
    case human_verdict::allow: return allowed(std::move(a.reason));
    case human_verdict::deny: return denied(e, as_asked, a.reason.empty() ? "human denied" : std::move(a.reason));
    case human_verdict::none: return denied(e, as_asked, "humanChannel returned nothing");
    case human_verdict::topup: return top_up(gate, work, e, a, aid, topups);
    case human_verdict::terminate:
        gate.terminate(*work.pending, a.reason);
        return {decision(outcome_kind::deny, severity::halt, "gate.terminated", a.reason.empty() ? "the gate was terminated" : std::move(a.reason))};
    default: return denied(e, severity::halt, "humanChannel returned unknown decision: " + word);
    }
}

human_event question(run_gate::impl& gate, const check_work& work, const evaluation& e)
{
    static const redactor rules;  // immutable
    human_event event;
    event.halt = e.halts;
    event.subject = action(rules(work.subject.value));
    event.level = e.halts ? severity::halt : severity::action;
    event.rule = e.found.rule;
    event.reason = e.found.reason;
    event.context = gate.halt_context();
    return event;
}

outcome nobody_to_ask(run_gate::impl& gate, const evaluation& e)
{
    if (!std::exchange(gate.warned_no_channel, true))
        gate.options.log(log_level::warn, "[Gate] " + e.found.rule + " needs a person and no humanChannel is registered; the run halts: " + e.found.reason);
    return denied(e, severity::halt, e.found.reason + " (no humanChannel registered)");
}

}  // namespace

awaitable<decision> decide(run_gate::impl& gate, check_work& work)
{
    using scope = gate_policy::impl::scope;
    const std::string aid = random_hex(gate.options.random, 8);
    const json& subject = work.subject.value;
    int topups = 0;
    std::optional<finding> let_through;  // a person's word; then only the money is still to be found
    for (;;) {
        evaluation e;
        if (let_through) e.found = *let_through;
        else e = gate.evaluate(subject, work.admitted, work.worst_case ? scope::no_tools : scope::all);
        if (e.found.kind == finding_kind::allow && work.worst_case) {
            gate.flush(*work.pending);
            admission money = co_await gate.money.reserve(*work.worst_case);
            if (money.granted()) work.held = std::move(money.held);
            else e = gate.money_halt(money, &*work.worst_case);
        }
        if (e.found.kind != finding_kind::ask) {
            const bool yes = e.found.kind == finding_kind::allow;
            decision d(yes ? outcome_kind::allow : outcome_kind::deny, e.halts ? severity::halt : severity::action, std::move(e.found.rule),
                       std::move(e.found.reason));
            d.aid = aid;
            gate.gate_line(*work.pending, subject, d);
            co_return d;
        }
        gate.gate_line(*work.pending, aid, subject, "askHuman", e.halts ? severity::halt : severity::action, e.found.rule, e.found.reason);
        if (e.halts) gate.halt_line(*work.pending, aid, e, static_cast<bool>(gate.options.channel));
        outcome after;
        if (!gate.options.channel) {
            after = nobody_to_ask(gate, e);
        } else {
            gate.flush(*work.pending);
            human_event event = question(gate, work, e);
            channel_reply reply = co_await ask_channel(gate.options.channel, std::move(event), gate.options.clock, gate.channel_timeout());
            after = take_reply(gate, work, e, reply, aid, topups);
        }
        if (!after.verdict) continue;
        decision d = std::move(*after.verdict);
        if (d.allowed() && work.worst_case) {
            if (!e.dimension) {
                let_through = finding{finding_kind::allow, std::move(d.rule), std::move(d.reason)};
                continue;
            }
            work.held = gate.money.force(*work.worst_case);
        }
        d.aid = aid;
        if (after.last_line) gate.gate_line(*work.pending, subject, d);
        co_return d;
    }
}

}  // namespace reagent::inline v0::governance_detail

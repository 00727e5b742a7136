#include "gate_impl.hpp"

#include <reagent/base/error.hpp>

namespace reagent::inline v0 {

namespace gd = governance_detail;

run_gate::impl::impl(gate_policy p, budget m, gate_options o) : policy(std::move(p)), money(std::move(m)), options(std::move(o))
{
    const budget_caps own = policy.budget();
    if (own.cost || own.tokens) money = money.child("run", own);
    if (!options.clock) options.clock = options.audit ? options.audit.clock() : clock::system();
    const gate_policy::impl& defaults = rules();
    if (options.run_id.empty()) options.run_id = defaults.run_id;
    if (options.parent_run_id.empty()) options.parent_run_id = defaults.parent_run_id;
    if (options.spawn_depth == 0) options.spawn_depth = defaults.spawn_depth;
    if (defaults.soft_ratio) warned_from = money.state().spent;
    is_open = !options.audit && !policy.has_rules() && !money;
}

std::chrono::nanoseconds run_gate::impl::channel_timeout() const noexcept
{
    return options.channel_timeout.count() > 0 ? options.channel_timeout : policy.channel_timeout();
}

const std::string& run_gate::impl::run_id()
{
    // Made when first needed: most gates of a fan-out without audit never are asked.
    if (options.run_id.empty()) options.run_id = random_uuid(options.random);
    return options.run_id;
}

run_gate::run_gate(gate_policy policy, class budget money, gate_options options)
    : impl_(std::make_unique<impl>(std::move(policy), std::move(money), std::move(options)))
{}
run_gate::~run_gate() = default;
run_gate::run_gate(run_gate&&) noexcept = default;

bool run_gate::open() const noexcept
{
    return impl_->is_open;
}
bool run_gate::terminated() const noexcept
{
    return impl_->is_terminated;
}
const class budget& run_gate::money() const noexcept
{
    return impl_->money;
}
json run_gate::halt_context() const
{
    return impl_->halt_context();
}
const std::string& run_gate::run_id() const
{
    return impl_->run_id();
}

namespace {

awaitable<decision> check_one(run_gate::impl& gate, action a)
{
    gd::lines pending;
    gd::check_work work(std::move(a), &pending);
    decision d = co_await gd::decide(gate, work);
    gate.flush(pending);
    co_return d;
}

awaitable<std::vector<decision>> check_all(run_gate::impl& gate, std::vector<action> batch)
{
    gd::lines pending;
    gd::unrecorded admitted;
    std::vector<decision> out;
    out.reserve(batch.size());
    std::optional<decision> halt;
    for (action& a : batch) {
        if (halt) {
            out.push_back(*halt);
            continue;
        }
        const bool model_round = a.type() == "llm";
        gd::check_work work(std::move(a), &pending);
        work.admitted = admitted;
        decision d = co_await gd::decide(gate, work);
        if (d.halts()) {
            halt = d;
        } else if (d.allowed()) {
            ++admitted.turns;
            admitted.tool_rounds += model_round ? 0 : 1;
        }
        out.push_back(std::move(d));
    }
    gate.flush(pending);
    if (halt)
        for (decision& d : out)
            if (d.allowed()) {
                const std::string aid = std::move(d.aid);
                d = *halt;
                d.aid = aid;
            }
    co_return out;
}

awaitable<reservation> admit_one(run_gate::impl& gate, action a, budget_amount worst_case)
{
    gd::lines pending;
    gd::check_work work(std::move(a), &pending);
    work.worst_case = worst_case;
    const decision d = co_await gd::decide(gate, work);
    gate.flush(pending);
    if (!d.allowed()) throw halt_error(d.rule, d.reason);
    co_return std::move(work.held);
}

}  // namespace

awaitable<decision> run_gate::check(action a)
{
    return check_one(*impl_, std::move(a));
}
awaitable<std::vector<decision>> run_gate::check_batch(std::vector<action> batch)
{
    return check_all(*impl_, std::move(batch));
}
awaitable<reservation> run_gate::admit(action a, budget_amount worst_case)
{
    return admit_one(*impl_, std::move(a), worst_case);
}

void run_gate::record(const action& a, const json& result, std::string_view aid)
{
    gd::lines out;
    impl_->record(out, a, result, aid);
    impl_->flush(out);
}

void run_gate::record(const std::vector<record_entry>& entries)
{
    gd::lines out;
    for (const record_entry& e : entries) impl_->record(out, e.subject, e.result, e.aid);
    impl_->flush(out);
}

bool run_gate::allows(const action& a) const
{
    const gd::evaluation e = impl_->evaluate(a.value, {}, gate_policy::impl::scope::all);
    return !e.halts && e.found.kind != gd::finding_kind::deny;
}

bool run_gate::allows_tool(std::string_view name) const
{
    const json probe = json::object().set("type", name).set("tool", name);
    const gd::evaluation e = impl_->evaluate(probe, {}, gate_policy::impl::scope::only_tools);
    return !e.halts && e.found.kind != gd::finding_kind::deny;
}

void run_gate::raise_cap(std::string_view dimension, double new_cap)
{
    budget_dimension d;
    if (dimension == "costUsd") d = budget_dimension::cost;
    else if (dimension == "tokens") d = budget_dimension::tokens;
    else throw validation_error("raiseCap: the dimension must be \"costUsd\" or \"tokens\"");
    budget target = impl_->money;
    for (budget b = impl_->money; b; b = b.parent()) {
        const budget_caps caps = b.state().caps;
        if (d == budget_dimension::cost ? caps.cost.has_value() : caps.tokens.has_value()) {
            target = b;
            break;
        }
    }
    const std::optional<double> old = target.raise_cap(d, new_cap);
    gd::lines out;
    impl_->topup_line(out, {}, dimension, old, new_cap);
    impl_->flush(out);
}

bool run_gate::terminate(std::string_view reason)
{
    gd::lines out;
    const bool first = impl_->terminate(out, reason);
    impl_->flush(out);
    return first;
}

}  // namespace reagent::inline v0

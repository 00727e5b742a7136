#include "run_driver.hpp"

#include <reagent/base/gather.hpp>

#include <algorithm>

namespace reagent::inline v0::agent_detail {
namespace {

std::string denial_text(const decision& d, const std::string& tool)
{
    std::string out = "[deny: " + d.rule + "] ";
    out += d.reason.empty() ? tool + " denied" : d.reason;
    return out;
}

bool is_halt(const std::exception_ptr& failure) noexcept
{
    if (!failure) return false;
    try {
        std::rethrow_exception(failure);
    } catch (const halt_error&) {
        return true;
    } catch (...) {
        return false;
    }
}

/// A call that ended as cancelled while the run goes on: its tool gave itself up.
tool_result given_up(const tool_call& call, const std::exception_ptr& failure)
{
    const bool cancelled = is_cancellation(failure);
    tool_result r;
    r.name = call.name;
    r.args = call.arguments;
    r.code = cancelled ? "cancelled" : "tool_error";
    r.error = cancelled ? std::string("the call was cancelled") : message_of(failure);
    return r;
}

}  // namespace

const tool* run_driver::find_tool(std::string_view name) const noexcept
{
    const auto found = std::ranges::find_if(tools_, [&](const tool& t) { return t.name() == name; });
    return found == tools_.end() ? nullptr : &*found;
}

void run_driver::answer_malformed()
{
    for (const batch_call& b : machine_.batch()) {
        ++metrics_.tool_calls;
        ++metrics_.by_tool[b.call.name];
        emit_tool(event_kind::tool_result, b.call, json::object().set("error", b.malformed ? "arguments are not JSON" : "not run"));
    }
}

awaitable<void> run_driver::ask_policy(std::size_t i)
{
    const tool_call& call = machine_.batch()[i].call;
    std::exception_ptr failure;
    policy_verdict verdict;
    try {
        tool_call copy = call;
        verdict = co_await hooks_.policy(std::move(copy));
    } catch (...) {
        failure = std::current_exception();
    }
    if (failure) {
        const asio::cancellation_state now = co_await asio::this_coro::cancellation_state;
        if (is_halt(failure) || (is_cancellation(failure) && told_to_end(now))) std::rethrow_exception(failure);
    }
    if (failure) machine_.judge_denied(i, "[Loop] policy error: " + message_of(failure));
    else if (!verdict.allowed()) machine_.judge_denied(i, verdict.reason().empty() ? "[Loop] Tool \"" + call.name + "\" denied by policy" : verdict.reason());
}

/// The whole batch, in call order, before any of it starts.
awaitable<void> run_driver::judge()
{
    std::vector<std::size_t> asked;
    std::vector<action> actions;
    for (std::size_t i = 0; i < machine_.batch().size(); ++i) {
        const tool_call& call = machine_.batch()[i].call;
        ++metrics_.tool_calls;
        ++metrics_.by_tool[call.name];
        if (find_tool(call.name) == nullptr) {
            machine_.judge_unknown(i);
            continue;
        }
        emit_tool(event_kind::tool_call, call, json::object().set("args", call.arguments));
        if (hooks_.on_tool_call) {
            try {
                hooks_.on_tool_call(call);
            } catch (...) {
                absorb(std::current_exception(), "callback:onToolCall", json::object().set("tool", call.name));
            }
        }
        if (hooks_.policy) co_await ask_policy(i);  // a halt of its leaves what follows unjudged
        if (machine_.batch()[i].state != call_state::open) continue;
        asked.push_back(i);
        actions.push_back(action::tool(call.name, call.arguments));
    }
    state_.deliver();
    if (gate_.open()) {
        for (const std::size_t i : asked) running_.try_emplace(i);
        co_return;
    }
    if (asked.empty()) co_return;
    const std::vector<decision> verdicts = co_await gate_.check_batch(std::move(actions));
    for (std::size_t k = 0; k < asked.size(); ++k) {
        const decision& d = verdicts[k];
        const std::size_t i = asked[k];
        if (d.halts()) {
            // The hook had judged the whole batch by now: only what it denied before the halt keeps its reason.
            machine_.forget_after(i);
            throw halt_error(d.rule, d.reason);
        }
        if (d.allowed()) running_[i].aid = d.aid;
        else machine_.judge_denied(i, denial_text(d, machine_.batch()[i].call.name));
    }
}

void run_driver::tell_denied()
{
    for (const batch_call& b : machine_.batch())
        if (b.state == call_state::denied) emit_tool(event_kind::tool_result, b.call, json::object().set("denied", true).set("reason", b.reason));
}

awaitable<void> run_driver::run_one(std::size_t i)
{
    const tool_call& call = machine_.batch()[i].call;
    const tool* t = find_tool(call.name);
    // A stop lets what runs finish and starts nothing more.
    if (t == nullptr || state_.stop_requested()) co_return;
    std::exception_ptr failure;
    if (hooks_.before_tool) {
        try {
            co_await hooks_.before_tool(call);
        } catch (...) {
            failure = std::current_exception();
        }
        if (failure) {
            const asio::cancellation_state now = co_await asio::this_coro::cancellation_state;
            absorb(failure, "beforeTool", json::object().set("tool", call.name), now);
        }
    }
    tool_context context;
    context.executor = state_.executor;
    context.run_id = state_.run_id;
    context.call_id = call.id;
    context.deadline = call_options_.deadline;
    context.clock = clock_;
    context.log = options_.log;
    context.budget = gate_.money();
    json args = call.arguments;
    failure = nullptr;
    tool_result result;
    try {
        result = co_await t->invoke(std::move(args), context);
    } catch (...) {
        failure = std::current_exception();
    }
    if (failure) {
        const asio::cancellation_state now = co_await asio::this_coro::cancellation_state;
        // Only a cancellation that nobody asked for is the call's own failure.
        if (is_halt(failure) || told_to_end(now)) std::rethrow_exception(failure);
        result = given_up(call, failure);
    }
    running& slot = running_.at(i);
    slot.result = result;
    if (!hooks_.after_tool) co_return;
    tool_report done;
    done.run_id = state_.run_id;
    done.call = call;
    done.result = std::move(result);
    failure = nullptr;
    try {
        co_await hooks_.after_tool(std::move(done));
    } catch (...) {
        failure = std::current_exception();
    }
    if (!failure) co_return;
    const asio::cancellation_state now = co_await asio::this_coro::cancellation_state;
    absorb(failure, "afterTool", json::object().set("tool", call.name), now);
}

/// Calls side by side. A halt cancels the others, which are joined; it is handed back so that finished calls are booked first.
awaitable<std::exception_ptr> run_driver::run_group(const std::vector<std::size_t>& group)
{
    std::vector<awaitable<void>> branches;
    branches.reserve(group.size());
    for (const std::size_t i : group) branches.push_back(run_one(i));
    gather_options how;
    how.limit(std::max(1u, options_.tool_concurrency)).keep_outcomes();
    stop_predicate<void> on_halt = [](std::size_t, const branch_outcome<void>& o) { return is_halt(o.failure()); };
    const std::vector<branch_outcome<void>> outcomes = co_await gather(std::move(branches), how, std::move(on_halt));
    std::exception_ptr other;
    for (const branch_outcome<void>& o : outcomes) {
        if (is_halt(o.failure())) co_return o.failure();
        if (o.failure() && !other) other = o.failure();
    }
    co_return other;
}

/// In call order: concurrent calls form groups, a serial tool is a group of its own.
awaitable<void> run_driver::execute()
{
    std::vector<std::vector<std::size_t>> groups;
    bool joinable = false;
    for (const auto& [i, slot] : running_) {
        const bool serial = find_tool(machine_.batch()[i].call.name)->serial();
        if (serial || !joinable) groups.emplace_back();
        groups.back().push_back(i);
        joinable = !serial;
    }
    std::exception_ptr stopped_by;
    for (const std::vector<std::size_t>& group : groups) {
        const asio::cancellation_state now = co_await asio::this_coro::cancellation_state;
        if (stopped_by || state_.stop_requested() || told_to_end(now)) break;
        stopped_by = co_await run_group(group);
    }
    if (state_.stop_requested()) machine_.stop();
    std::vector<std::size_t> reported;
    keep_books(reported);
    for (const std::size_t i : reported) {
        if (!hooks_.on_tool_result) break;
        tool_report r;
        r.run_id = state_.run_id;
        r.call = machine_.batch()[i].call;
        r.result = *running_.at(i).result;
        std::exception_ptr failure;
        try {
            co_await hooks_.on_tool_result(std::move(r));
        } catch (...) {
            failure = std::current_exception();
        }
        if (!failure) continue;
        const asio::cancellation_state now = co_await asio::this_coro::cancellation_state;
        // The halt that came first is the one the run ends with.
        if (stopped_by && (is_halt(failure) || (is_cancellation(failure) && told_to_end(now)))) continue;
        absorb(failure, "onToolResult", json::object().set("tool", machine_.batch()[i].call.name), now);
    }
    if (stopped_by) std::rethrow_exception(stopped_by);
}

record_entry run_driver::audit_entry(std::size_t i, const running& slot) const
{
    const tool_call& call = machine_.batch()[i].call;
    json record = json::object();
    if (slot.result->completed) record.set("result", slot.result->output);
    else record.set("error", slot.result->error);
    record.set("durationMs", slot.result->latency_ms);
    if (slot.result->cost_micros) record.set("costUsd", static_cast<double>(*slot.result->cost_micros) / 1e6);
    return record_entry(action::tool(call.name, call.arguments), std::move(record), slot.aid);
}

/// Everything that follows from the batch without waiting: messages, guards, events, audit, all in call order.
void run_driver::keep_books(std::vector<std::size_t>& reported)
{
    std::vector<record_entry> audit;
    for (std::size_t i = 0; i < machine_.batch().size(); ++i) {
        const batch_call& b = machine_.batch()[i];
        const tool_call& call = b.call;
        if (b.state == call_state::denied) {
            emit_tool(event_kind::tool_result, call, json::object().set("denied", true).set("reason", b.reason));
            machine_.settle_denied(i);
            continue;
        }
        if (b.state == call_state::unknown) {
            emit_tool(event_kind::tool_result, call, json::object().set("error", "[Loop] Unknown tool: " + call.name));
            machine_.settle_unknown(i);
            continue;
        }
        const auto slot = running_.find(i);
        if (slot == running_.end() || !slot->second.result) continue;
        const tool_result& result = *slot->second.result;
        json told = json::object();
        if (result.completed) told.set("result", result.output);
        else told.set("error", turn_machine::answer_text(result));
        emit_tool(event_kind::tool_result, call, std::move(told));
        if (!gate_.open()) audit.push_back(audit_entry(i, slot->second));
        if (machine_.settle(i, result)) reported.push_back(i);
    }
    if (!audit.empty()) gate_.record(audit);
}

awaitable<void> run_driver::run_batch()
{
    running_.clear();
    if (state_.stop_requested()) {
        machine_.stop();
        machine_.end_stopped();
        co_return;
    }
    std::exception_ptr failure;
    try {
        co_await judge();
    } catch (...) {
        failure = std::current_exception();
    }
    // Denials up to the call that ended the round keep their reason; `seal` gives all other calls the marker.
    if (failure) {
        tell_denied();
        std::rethrow_exception(failure);
    }
    if (!machine_.close_judging()) {
        tell_denied();
        co_return;
    }
    for (const std::size_t i : machine_.repeated()) {
        const std::string& name = machine_.batch()[i].call.name;
        ++metrics_.repeated_calls;
        const std::string text = "tool \"" + name + "\" was called with the same arguments " + std::to_string(machine_.batch()[i].in_a_row) + " times in a row";
        options_.log(log_level::warn, "[Loop] " + text);
        report("identical_calls", text, json::object().set("tool", name));
    }
    state_.deliver();
    co_await execute();
    machine_.end_batch();
}

}  // namespace reagent::inline v0::agent_detail

#include <reagent/agent/turn_machine.hpp>

#include "fingerprint.hpp"

#include <reagent/base/blank.hpp>

#include <algorithm>
#include <set>

namespace reagent::inline v0 {
namespace {

constexpr std::string_view not_run = "[Loop] Not run: another call of this round was malformed";

bool is_terminal(std::string_view stop_reason) noexcept
{
    return stop_reason == "max_tokens" || stop_reason == "refusal" || stop_reason == "context_exceeded";
}

std::size_t calls_in(const generate_result& result) noexcept
{
    return std::max(result.tool_calls.size(), result.attempted.size());
}

/// `finish`, or `member__finish` of a group.
bool names_tool(std::string_view name, std::string_view wanted) noexcept
{
    if (name == wanted) return true;
    return name.size() > wanted.size() + 2 && name.ends_with(wanted) && name.substr(name.size() - wanted.size() - 2, 2) == "__";
}

}  // namespace

turn_machine::turn_machine(turn_limits limits, transcript messages) : limits_(std::move(limits)), messages_(std::move(messages)) {}

bool turn_machine::begin_round()
{
    if (ended()) return false;
    if (stopping_) {
        end_stopped();
        return false;
    }
    if (started_) ++round_;
    started_ = true;
    if (round_ < max_rounds) return true;
    round_ = max_rounds - 1;
    std::string text = "[Loop] hit internal safety limit of 100 rounds. Set limits.maxTurns or limits.maxToolRounds in the gate to end runs earlier";
    ending e;
    e.outcome = run_outcome::failed;
    e.done.set("warning", text);
    e.error = std::move(text);
    ending_ = std::move(e);
    return false;
}

void turn_machine::note(const generate_result& result)
{
    if (result.usage) usage_ = *result.usage;
    if (!is_blank(result.text)) text_ = result.text;
    stop_reason_ = result.stop_reason;
    if (!result.model.empty()) model_ = result.model;
    malformed_ = result.malformed;
    temperature_dropped_ = temperature_dropped_ || result.temperature_dropped;
    if (result.thinking && (!thinking_ || *result.thinking > *thinking_)) thinking_ = result.thinking;
}

round_step turn_machine::accept(generate_result result)
{
    batch_.clear();
    repeated_.clear();
    dropped_ = 0;
    if (is_terminal(result.stop_reason)) return truncated(result);
    if (result.stop_reason == "pause_turn") return pause(result);
    if (result.tool_calls.empty() && !result.malformed) return final_answer(result);
    return open_batch(result);
}

round_step turn_machine::final_answer(generate_result& result)
{
    ending e;
    e.outcome = run_outcome::completed;
    e.final_text = true;
    e.flush = true;
    e.done.set("usage", usage_.to_json());
    text_ = result.text;
    messages_.push_back(message::assistant(std::move(result.text), {}, std::move(result.blocks)));
    ending_ = std::move(e);
    return round_step::finish;
}

round_step turn_machine::truncated(generate_result& result)
{
    const bool cut = result.stop_reason == "max_tokens";
    ending e;
    e.outcome = run_outcome::incomplete;
    e.error = cut ? "truncated:max_tokens" : result.stop_reason;
    if (cut) e.done.set("truncated", true);
    e.done.set("terminal", cut ? std::string("truncated") : result.stop_reason);
    e.done.set("stopReason", result.stop_reason).set("droppedToolCalls", calls_in(result));
    if (!is_blank(result.text)) messages_.push_back(message::assistant(std::move(result.text), {}, std::move(result.blocks)));
    ending_ = std::move(e);
    return round_step::finish;
}

round_step turn_machine::pause(generate_result& result)
{
    if (!is_blank(result.text) || result.blocks) {
        std::string text = is_blank(result.text) ? std::string() : std::move(result.text);
        const bool null_content = text.empty();
        auto paused = std::make_shared<message>(*message::assistant(std::move(text), {}, std::move(result.blocks)));
        paused->content_null = null_content;
        messages_.push_back(std::move(paused));
    }
    return round_step::resume;
}

round_step turn_machine::open_batch(generate_result& result)
{
    const bool bad = result.malformed.has_value();
    if (!bad) {
        for (tool_call& c : result.tool_calls) batch_.emplace_back(std::move(c), false, 0);
    } else if (!result.attempted.empty()) {
        for (attempted_call& a : result.attempted) {
            if (a.malformed) a.call.arguments = json::object();
            batch_.emplace_back(std::move(a.call), a.malformed, a.offset);
        }
    } else {
        // A provider that names the bad call without listing the round still gets its answer.
        const std::string name = result.malformed->name.empty() ? "unknown" : result.malformed->name;
        batch_.emplace_back(tool_call("call_malformed_" + std::to_string(round_), name, json::object()), true, result.malformed->offset);
    }
    if (limits_.max_calls_per_round != 0 && batch_.size() > limits_.max_calls_per_round) {
        dropped_ = batch_.size() - limits_.max_calls_per_round;
        batch_.erase(batch_.begin() + static_cast<std::ptrdiff_t>(limits_.max_calls_per_round), batch_.end());
    }
    // A provider of the host's own may send no ids or one id twice; results are paired by id.
    std::set<std::string, std::less<>> ids;
    for (std::size_t i = 0; i < batch_.size(); ++i) {
        std::string& id = batch_[i].call.id;
        if (id.empty()) id = "call_" + std::to_string(round_) + "_" + std::to_string(i);
        const std::string first = id;
        for (unsigned n = 2; !ids.insert(id).second; ++n) id = first + "__" + std::to_string(n);
    }
    std::vector<tool_call> kept;
    kept.reserve(batch_.size());
    for (const batch_call& b : batch_) kept.push_back(b.call);
    messages_.push_back(message::assistant(std::move(result.text), std::move(kept), std::move(result.blocks)));
    if (!bad) return round_step::run_batch;
    return answer_malformed() ? round_step::answered : round_step::finish;
}

bool turn_machine::answer_malformed()
{
    const tool_call* culprit = nullptr;
    for (std::size_t i = 0; i < batch_.size(); ++i) {
        const batch_call& b = batch_[i];
        if (b.malformed && culprit == nullptr) culprit = &b.call;
        push_answer(i,
                    b.malformed ? "[Loop] Tool error: " + b.call.name + ": arguments are not JSON at byte " + std::to_string(b.offset) : std::string(not_run));
    }
    return culprit == nullptr || count_failure(*culprit);
}

void turn_machine::judge_unknown(std::size_t i)
{
    batch_[i].state = call_state::unknown;
}

void turn_machine::judge_denied(std::size_t i, std::string reason)
{
    batch_[i].state = call_state::denied;
    batch_[i].reason = std::move(reason);
}

bool turn_machine::close_judging()
{
    std::map<std::string, unsigned> seen;
    for (std::size_t i = 0; i < batch_.size(); ++i) {
        batch_call& b = batch_[i];
        const std::string print = agent_detail::call_fingerprint(b.call);
        const auto [now, fresh] = seen.try_emplace(print, 0);
        if (fresh) {
            const auto before = streaks_.find(print);
            if (before != streaks_.end()) now->second = before->second;
        }
        b.in_a_row = ++now->second;
        if (b.state == call_state::denied) {
            ++denials_;
            if (limits_.max_consecutive_denials == 0 || denials_ < limits_.max_consecutive_denials) continue;
            ending e;
            e.outcome = run_outcome::halted;
            e.error = "denied:" + b.call.name;
            e.marker = "[halted:" + *e.error + "]";
            e.source = "denied";
            e.reason = std::to_string(denials_) + " tool calls in a row were denied";
            e.extra.set("rule", *e.error).set("denials", denials_);
            e.done.set("denied", true).set("rule", *e.error);
            ending_ = std::move(e);
            forget_after(i);
            return false;
        }
        if (b.state != call_state::unknown) denials_ = 0;
        if (limits_.max_identical_calls == 0) continue;
        if (limits_.on_repeat == repeat_policy::warn) {
            if (now->second % limits_.max_identical_calls == 0) repeated_.push_back(i);
        } else if (now->second > limits_.max_identical_calls) {
            end_stuck(b.call.name, limits_.max_identical_calls);
            forget_after(i);
            return false;
        }
    }
    // Only what this round called again stays in a row.
    streaks_ = std::move(seen);
    return true;
}

void turn_machine::forget_after(std::size_t i)
{
    // What follows the call that ended the judging takes the marker like any other open call.
    for (std::size_t j = i + 1; j < batch_.size(); ++j) batch_[j].state = call_state::open;
}

std::string turn_machine::answer_text(const tool_result& result)
{
    return result.completed ? result.output : "[Loop] Tool error: " + result.error;
}

/// The answer of the last call that was kept says how many were not.
std::string turn_machine::with_note(std::size_t i, std::string text) const
{
    if (dropped_ == 0 || i + 1 != batch_.size()) return text;
    if (!text.empty()) text += '\n';
    return text + "[Loop] " + std::to_string(dropped_) + " further calls dropped (limit " + std::to_string(limits_.max_calls_per_round) + ")";
}

void turn_machine::push_answer(std::size_t i, std::string text)
{
    messages_.push_back(message::tool_result(batch_[i].call.id, with_note(i, std::move(text))));
    batch_[i].state = call_state::answered;
}

bool turn_machine::settle(std::size_t i, const tool_result& result)
{
    push_answer(i, answer_text(result));
    const tool_call& call = batch_[i].call;
    if (!result.completed) return count_failure(call);
    count_success();
    finish_if_asked(call, result);
    return true;
}

bool turn_machine::settle_unknown(std::size_t i)
{
    push_answer(i, "[Loop] Unknown tool: " + batch_[i].call.name);
    return count_failure(batch_[i].call);
}

void turn_machine::settle_denied(std::size_t i)
{
    std::string reason = batch_[i].reason;
    push_answer(i, std::move(reason));
}

void turn_machine::finish_if_asked(const tool_call& call, const tool_result& result)
{
    if (finished_with_) return;
    const bool asked = std::ranges::any_of(limits_.stop_on, [&](const std::string& n) { return names_tool(call.name, n); });
    if (!asked) return;
    const std::string* answer = call.arguments[std::string_view("answer")].get_string();
    finished_with_ = answer != nullptr ? *answer : result.output;
}

bool turn_machine::end_batch()
{
    if (ended()) return false;
    if (finished_with_) {
        ending e;
        e.outcome = run_outcome::completed;
        e.final_text = true;
        e.flush = true;
        e.done.set("usage", usage_.to_json());
        text_ = std::move(*finished_with_);
        e.marker = "[stopped]";
        ending_ = std::move(e);
        return false;
    }
    if (stopping_) {
        end_stopped();
        return false;
    }
    if (limits_.max_identical_calls != 0 && limits_.on_repeat == repeat_policy::stop) {
        for (const batch_call& b : batch_) {
            const auto found = streaks_.find(agent_detail::call_fingerprint(b.call));
            if (found == streaks_.end() || found->second < limits_.max_identical_calls) continue;
            end_stuck(b.call.name, found->second);
            return false;
        }
    }
    return true;
}

bool turn_machine::count_failure(const tool_call& call)
{
    std::string print = agent_detail::failure_fingerprint(call);
    failures_ = print == last_failure_ ? failures_ + 1 : 1;
    last_failure_ = std::move(print);
    if (limits_.max_identical_tool_errors == 0 || failures_ < limits_.max_identical_tool_errors) return true;
    end_stuck(call.name, failures_);
    return false;
}

void turn_machine::count_success() noexcept
{
    last_failure_.clear();
    failures_ = 0;
}

void turn_machine::end_stuck(const std::string& tool, unsigned attempts)
{
    if (ended()) return;
    ending e;
    e.outcome = run_outcome::halted;
    e.error = "stuck:" + tool;
    e.marker = "[halted:" + *e.error + "]";
    e.source = "stuck";
    e.reason = "the same call was made " + std::to_string(attempts) + " times";
    e.extra.set("rule", *e.error).set("attempts", attempts);
    e.done.set("stuck", true).set("rule", *e.error);
    ending_ = std::move(e);
}

void turn_machine::end_halted(std::string rule, std::string reason)
{
    ending e;
    e.outcome = run_outcome::halted;
    e.error = "halt:" + rule;
    e.marker = "[halted:" + rule + "]";
    e.source = "halt";
    e.reason = std::move(reason);
    e.extra.set("rule", rule).set("reason", e.reason);
    e.done.set("halted", true).set("rule", std::move(rule));
    ending_ = std::move(e);
}

void turn_machine::end_cancelled()
{
    ending e;
    e.outcome = run_outcome::cancelled;
    e.error = "cancelled";
    e.marker = "[cancelled]";
    e.done.set("cancelled", true);
    ending_ = std::move(e);
}

void turn_machine::end_deadline()
{
    ending e;
    e.outcome = run_outcome::halted;
    e.error = "deadline";
    e.marker = "[deadline]";
    e.done.set("deadline", true);
    ending_ = std::move(e);
}

void turn_machine::end_failed(std::string message, std::string source)
{
    ending e;
    e.outcome = run_outcome::failed;
    e.error = message;
    e.marker = "[failed]";
    e.source = std::move(source);
    e.reason = std::move(message);
    e.extra.set("round", round_);
    ending_ = std::move(e);
}

void turn_machine::end_stopped()
{
    ending e;
    e.outcome = run_outcome::stopped;
    e.marker = "[stopped]";
    e.flush = true;
    e.done.set("stopped", true);
    ending_ = std::move(e);
}

void turn_machine::seal()
{
    if (!ending_ || ending_->marker.empty()) return;
    for (std::size_t i = 0; i < batch_.size(); ++i) {
        const batch_call& b = batch_[i];
        if (b.state != call_state::answered) push_answer(i, b.state == call_state::denied ? b.reason : ending_->marker);
    }
}

}  // namespace reagent::inline v0

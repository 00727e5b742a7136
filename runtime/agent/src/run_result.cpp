#include "run_result_builder.hpp"

#include <reagent/agent/run_result.hpp>

#include <chrono>

namespace reagent::inline v0 {

std::string_view to_string(run_outcome o) noexcept
{
    switch (o) {
    case run_outcome::completed: return "completed";
    case run_outcome::halted: return "halted";
    case run_outcome::incomplete: return "incomplete";
    case run_outcome::stopped: return "stopped";
    case run_outcome::cancelled: return "cancelled";
    case run_outcome::failed: break;
    }
    return "failed";
}

void run_result_builder::fill(run_result& out, const turn_machine& machine, const run_metrics& metrics, const std::optional<std::string>& partial,
                              const std::string& run_id)
{
    out.outcome_ = machine.end().outcome;
    out.error_ = machine.end().error;
    out.text_ = machine.text();
    out.stop_reason_ = machine.stop_reason();
    out.model_ = machine.model();
    out.run_id_ = run_id;
    out.usage_ = machine.last_usage();
    out.messages_ = machine.messages();
    out.metrics_ = metrics;
    out.partial_text_ = partial;
    out.malformed_ = machine.malformed();
    out.temperature_dropped_ = machine.temperature_dropped();
    out.thinking_ = machine.thinking();
}

json run_result::to_json() const
{
    const auto text_or_null = [](const std::string& s) { return s.empty() ? json() : json(s); };
    json out = json::object()
                   .set("text", text_)
                   .set("toolCalls", json::array())
                   .set("usage", usage_.to_json())
                   .set("cost", cost().to_double())
                   .set("error", error_ ? json(*error_) : json())
                   .set("outcome", to_string(outcome_))
                   .set("stopReason", text_or_null(stop_reason_))
                   .set("model", text_or_null(model_))
                   .set("msgs", transcript_to_json(messages_))
                   .set("metrics", metrics_.to_json());
    if (malformed_) out.set("malformedToolCall", malformed_->to_json());
    if (temperature_dropped_) out.set("temperatureDropped", true);
    if (thinking_) {
        out.set("thinkingStatus", to_string(*thinking_));
        // Applied and unsupported or ignored answer the question; unknown does not.
        if (*thinking_ == thinking_status::unknown) out.set("thinkingApplied", json());
        else out.set("thinkingApplied", *thinking_ == thinking_status::applied);
    }
    if (partial_text_) out.set("partialText", *partial_text_);
    return out;
}

json run_metrics::to_json() const
{
    json tools = json::object();
    for (const auto& [name, count] : by_tool) tools.set(name, count);
    const auto spawn = by_tool.find("spawn");
    const json tokens =
        json::object().set("input", input_tokens).set("output", output_tokens).set("cacheCreation", cache_creation_tokens).set("cacheRead", cache_read_tokens);
    const json context = json::object().set("compactions", compactions).set("summaries", 0).set("tokensTrimmed", tokens_trimmed);
    return json::object()
        .set("turns", turns)
        .set("sessionTurns", session_turns)
        .set("toolCalls", tool_calls)
        .set("byTool", std::move(tools))
        .set("tokens", tokens)
        .set("costUsd", cost ? json(cost->to_double()) : json())
        .set("unpricedRounds", unpriced_rounds)
        .set("estimatedRounds", estimated_rounds)
        .set("spawned", spawn == by_tool.end() ? std::uint64_t(0) : spawn->second)
        .set("context", context)
        .set("durationMs", std::chrono::duration_cast<std::chrono::milliseconds>(duration).count())
        .set("attempts", attempts)
        .set("droppedCalls", dropped_calls)
        .set("repeatedCalls", repeated_calls);
}

}  // namespace reagent::inline v0

#pragma once
#include <reagent/agent/metrics.hpp>
#include <reagent/base/json.hpp>
#include <reagent/base/usd.hpp>
#include <reagent/model/generate.hpp>
#include <reagent/model/message.hpp>

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace reagent::inline v0 {

/// How a run ended (design: errors). `error()` of the result keeps the exact token.
enum class run_outcome : std::uint8_t {
    completed,   ///< a final answer; `error` is null
    halted,      ///< `halt:*`, `denied:*`, `stuck:*`, `deadline`
    incomplete,  ///< `truncated:max_tokens`, `refusal`, `context_exceeded`
    stopped,     ///< `run::stop`; `error` is null
    cancelled,   ///< the owner cancelled
    failed,      ///< provider error, session error, the limit of 100 rounds
};
std::string_view to_string(run_outcome o) noexcept;

/// What a run that started leaves behind (spec/loop-and-providers.md §1.7). A value.
class run_result {
public:
    run_result() = default;
    run_outcome outcome() const noexcept { return outcome_; }
    /// The error token, empty optional when the run completed or was stopped.
    const std::optional<std::string>& error() const noexcept { return error_; }
    bool completed() const noexcept { return outcome_ == run_outcome::completed; }
    /// Last non-blank assistant text of the run; on completion the final round's text, or the answer of a finishing tool.
    const std::string& text() const noexcept { return text_; }
    /// Last usage a round reported; zeros when none did.
    const reagent::usage& usage() const noexcept { return usage_; }
    /// What the run cost, zero when nothing was priced (then `metrics().cost` is empty).
    usd cost() const noexcept { return metrics_.cost.value_or(usd()); }
    /// Stop reason of the last completed round, empty when null.
    const std::string& stop_reason() const noexcept { return stop_reason_; }
    const std::string& model() const noexcept { return model_; }
    /// The full transcript, a prepended system message included. Each call has exactly one result, whatever the outcome.
    const transcript& messages() const noexcept { return messages_; }
    const run_metrics& metrics() const noexcept { return metrics_; }
    /// Text of a model call that did not complete; never in the transcript.
    const std::optional<std::string>& partial_text() const noexcept { return partial_text_; }
    const rare<malformed_tool_call>& malformed() const noexcept { return malformed_; }
    bool temperature_dropped() const noexcept { return temperature_dropped_; }
    std::optional<thinking_status> thinking() const noexcept { return thinking_; }
    const std::string& run_id() const noexcept { return run_id_; }
    /// spec/loop-and-providers.md §1.7 plus `outcome`.
    json to_json() const;

private:
    friend class run_result_builder;
    run_outcome outcome_ = run_outcome::failed;
    std::optional<std::string> error_;
    std::string text_, stop_reason_, model_, run_id_;
    reagent::usage usage_;
    transcript messages_;
    run_metrics metrics_;
    std::optional<std::string> partial_text_;
    rare<malformed_tool_call> malformed_;
    bool temperature_dropped_ = false;
    std::optional<thinking_status> thinking_;
};

}  // namespace reagent::inline v0

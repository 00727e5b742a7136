#pragma once
#include <reagent/agent/agent_options.hpp>
#include <reagent/agent/run_result.hpp>
#include <reagent/agent/tool.hpp>
#include <reagent/base/json.hpp>
#include <reagent/model/generate.hpp>
#include <reagent/model/message.hpp>

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace reagent::inline v0 {

/// The guards of a loop, as `agent_options` sets them.
class turn_limits {
public:
    turn_limits() = default;
    unsigned max_consecutive_denials = 3;
    unsigned max_identical_tool_errors = 3;
    unsigned max_identical_calls = 10;
    repeat_policy on_repeat = repeat_policy::warn;
    unsigned max_calls_per_round = 128;
    std::vector<std::string> stop_on{"finish"};
};

/// Why and how a run ends (spec/loop-and-providers.md §12.4).
class ending {
public:
    ending() = default;
    run_outcome outcome = run_outcome::failed;
    std::optional<std::string> error;
    std::string marker;           ///< content of the results that are missing; empty seals nothing
    std::string source;           ///< of the report to `on_error`; empty reports nothing
    std::string reason;           ///< text of that report
    json extra = json::object();  ///< of that report
    json done = json::object();   ///< members of `done` beyond text and cost
    bool final_text = false;      ///< the text is a final answer
    bool flush = false;           ///< `trim.flush` runs
};

/// What a model round means for the next step.
enum class round_step : std::uint8_t {
    finish,     ///< the run has ended
    run_batch,  ///< calls wait in `batch()`
    resume,     ///< the model paused; call it again
    answered,   ///< a malformed round was answered; call the model again
};

/// How one call of the current batch stands.
enum class call_state : std::uint8_t { open, unknown, denied, answered };
class batch_call {
public:
    batch_call(tool_call c, bool bad, std::size_t at) : call(std::move(c)), malformed(bad), offset(at) {}
    tool_call call;
    bool malformed;
    std::size_t offset;  ///< byte of the arguments where reading stopped
    call_state state = call_state::open;
    std::string reason;     ///< of a denial
    unsigned in_a_row = 0;  ///< how often the same call was made in an unbroken row of rounds, this one included; known after `close_judging`
};

/// The logic of turns without I/O: which step comes next, every terminal condition, the guards, sealing. `agent` drives it; so may any other
/// driver of the same loop. Call order: `begin_round`, `note`, `accept`, then for a batch `judge…`, `settle…`, `end_batch`.
class turn_machine {
public:
    static constexpr std::uint32_t max_rounds = 100;

    turn_machine(turn_limits limits, transcript messages);

    /// Opens the next round. False: the run has ended (stop, safety limit).
    bool begin_round();
    std::uint32_t round() const noexcept { return round_; }
    const transcript& messages() const noexcept { return messages_; }
    void replace_messages(transcript messages) { messages_ = std::move(messages); }

    /// Takes down what the round reported, before hooks see it.
    void note(const generate_result& result);
    /// Classifies the round and commits its message.
    round_step accept(generate_result result);

    /// Calls of the round in call order; over the limit they are already dropped.
    const std::vector<batch_call>& batch() const noexcept { return batch_; }
    std::size_t dropped() const noexcept { return dropped_; }

    /// Judging, in call order, before any call starts.
    void judge_unknown(std::size_t i);
    /// Marks a denial; guards count it in `close_judging`.
    void judge_denied(std::size_t i, std::string reason);
    /// Takes back the judgement of all calls after `i`, at which a halt ended the judging: they take the marker of the ending.
    void forget_after(std::size_t i);
    /// Applies the denial and identical-call guards in call order. False: one tripped, no call may start.
    bool close_judging();
    /// Calls whose repetition the guard noticed in this batch, when it only warns.
    const std::vector<std::size_t>& repeated() const noexcept { return repeated_; }

    /// Records the outcome of call `i` as its message. Unknown and denied calls need no result. False: the failure tripped `stuck`.
    bool settle(std::size_t i, const tool_result& result);
    bool settle_unknown(std::size_t i);
    void settle_denied(std::size_t i);
    /// The text of the message that answers call `i`, for events.
    static std::string answer_text(const tool_result& result);
    /// After the whole batch. True: the run goes on.
    bool end_batch();

    void stop() noexcept { stopping_ = true; }
    bool stopping() const noexcept { return stopping_; }
    bool ended() const noexcept { return ending_.has_value(); }
    const ending& end() const noexcept { return *ending_; }
    /// Ends from outside. The first ending wins, except that a halt during a stop's flush replaces the stop.
    void end_halted(std::string rule, std::string reason);
    void end_cancelled();
    void end_deadline();
    void end_failed(std::string message, std::string source);
    void end_stopped();
    /// Gives every call without a result the marker of the ending (denials keep their reason).
    void seal();

    const std::string& text() const noexcept { return text_; }
    const reagent::usage& last_usage() const noexcept { return usage_; }
    const std::string& stop_reason() const noexcept { return stop_reason_; }
    const std::string& model() const noexcept { return model_; }
    const rare<malformed_tool_call>& malformed() const noexcept { return malformed_; }
    bool temperature_dropped() const noexcept { return temperature_dropped_; }
    std::optional<thinking_status> thinking() const noexcept { return thinking_; }

private:
    round_step final_answer(generate_result& result);
    round_step truncated(generate_result& result);
    round_step pause(generate_result& result);
    round_step open_batch(generate_result& result);
    bool answer_malformed();
    std::string with_note(std::size_t i, std::string text) const;
    void push_answer(std::size_t i, std::string text);
    bool count_failure(const tool_call& call);
    void count_success() noexcept;
    void end_stuck(const std::string& tool, unsigned attempts);
    void finish_if_asked(const tool_call& call, const tool_result& result);

    turn_limits limits_;
    transcript messages_;
    std::uint32_t round_ = 0;
    bool started_ = false, stopping_ = false;
    std::optional<ending> ending_;

    std::vector<batch_call> batch_;
    std::size_t dropped_ = 0;
    std::vector<std::size_t> repeated_;
    std::optional<std::string> finished_with_;

    unsigned denials_ = 0;
    std::string last_failure_;
    unsigned failures_ = 0;
    std::map<std::string, unsigned> streaks_;  ///< identical calls in an unbroken row of rounds

    std::string text_, stop_reason_, model_;
    reagent::usage usage_;
    rare<malformed_tool_call> malformed_;
    bool temperature_dropped_ = false;
    std::optional<thinking_status> thinking_;
};

}  // namespace reagent::inline v0

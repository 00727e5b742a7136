#pragma once
#include <reagent/base/clock.hpp>
#include <reagent/base/json.hpp>
#include <reagent/base/rare.hpp>
#include <reagent/base/usd.hpp>
#include <reagent/model/attempt_log.hpp>
#include <reagent/model/message.hpp>

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace reagent::inline v0 {

class attempt_gate;
class encoded_prefix;

/// What a model is told about a tool (spec/loop-and-providers.md §1.3). `parameters` null means absent.
class tool_schema {
public:
    tool_schema() = default;
    tool_schema(std::string n, std::string d, json p) : name(std::move(n)), description(std::move(d)), parameters(std::move(p)) {}
    std::string name, description;
    json parameters;
};
/// Shared and immutable: an encoded prefix compares the pointer.
using tool_list = std::shared_ptr<const std::vector<tool_schema>>;

/// Tokens as spec/loop-and-providers.md §1.5 counts them: `input` is the uncached remainder.
class usage {
public:
    std::uint64_t input = 0, output = 0;
    std::optional<std::uint64_t> cache_read, cache_creation;
    std::optional<std::uint64_t> reasoning;  ///< part of `output`; absent = not reported
    std::uint64_t total_input() const noexcept { return input + cache_read.value_or(0) + cache_creation.value_or(0); }
    std::uint64_t total() const noexcept { return total_input() + output; }
    json to_json() const;
    /// What `to_json` wrote, as in the data of a `usage` event. What is no count is absent.
    static usage from_json(const json& j);
    friend bool operator==(const usage&, const usage&) = default;
};

enum class thinking_mode : std::uint8_t { on, off };
enum class thinking_status : std::uint8_t { applied, unknown, unsupported, ignored };  ///< rising severity, worst wins over a run
std::string_view to_string(thinking_status s) noexcept;

/// A time limit of a call: inherit, off, or a span (spec/loop-and-providers.md §2.2 resolution rules are applied at the JSON edge).
class time_limit {
public:
    time_limit() = default;  ///< inherit
    template <class Rep, class Period>
    time_limit(std::chrono::duration<Rep, Period> d) : set_(true), span_(clamped(d))
    {}  ///< zero is off, a negative one is over at once; saturates at 292 years
    static time_limit off() { return time_limit(std::chrono::nanoseconds(0)); }
    bool inherits() const noexcept { return !set_; }
    std::chrono::nanoseconds span() const noexcept { return span_; }
    std::chrono::nanoseconds or_else(std::chrono::nanoseconds d) const noexcept { return set_ ? span_ : d; }

private:
    template <class Rep, class Period>
    static std::chrono::nanoseconds clamped(std::chrono::duration<Rep, Period> d)
    {
        using std::chrono::nanoseconds;
        const auto wide = std::chrono::duration<long double, std::nano>(d).count();
        if (!(wide < static_cast<long double>(nanoseconds::max().count()))) return nanoseconds::max();
        if (wide <= static_cast<long double>(nanoseconds::min().count())) return nanoseconds::min();
        return std::chrono::duration_cast<nanoseconds>(d);
    }
    bool set_ = false;
    std::chrono::nanoseconds span_{0};
};

/// Reads `timeoutMs` or `deadlineMs` by spec/loop-and-providers.md §2.2: null inherits, 0 and Infinity are off, numeric strings count. Anything else is
/// 600 s, or a `validation_error` naming `knob` when `strict`.
time_limit time_limit_from_json(const json& value, std::string_view component, std::string_view knob, bool strict);

/// Per-call options read by providers (spec/loop-and-providers.md §1.8). Each unset member takes the provider's own.
class generate_options {
public:
    generate_options() = default;
    std::optional<double> temperature;
    std::optional<std::uint64_t> max_tokens;           ///< bounds the output of this one call; 0 counts as unset but on wires that send it
    std::optional<json> tool_choice;                   ///< `"auto"`, `"required"`, `"none"` or `{name}`
    std::optional<json> thinking;                      ///< engaged null suppresses the provider's own
    std::optional<std::optional<thinking_mode>> mode;  ///< engaged empty suppresses the provider's own
    std::optional<json> system;                        ///< instead of the transcript's system messages; read by Anthropic
    std::optional<bool> cache_system, cache_messages;  ///< marks for the prompt cache; read by Anthropic
    bool stream = true;          ///< whether a started call wants deltas as they come; `generate` asks for one piece; the result is the same
    bool accept_resets = false;  ///< the reader of a started call takes `reset` events, so that what was delivered may be sent anew; `generate` always does
    time_limit idle, total;      ///< `timeoutMs`, `deadlineMs`
    steady_time deadline = steady_time::max();  ///< absolute; the tighter of this and `total` holds
    /// Reads the JSON names (`temperature`, `maxTokens`, `toolChoice`, `thinking`, `thinkingMode`, `system`, `cacheSystem`, `cacheMessages`, `timeoutMs`, `deadlineMs`) by the rules of
    /// spec/loop-and-providers.md §2.2. Throws `validation_error`.
    static generate_options from_json(const json& j, std::string_view component);
};

/// One model call. A cheap handle: messages and tools are shared, immutable.
class generate_request {
public:
    generate_request() = default;
    explicit generate_request(transcript m, tool_list t = {}) : messages(std::move(m)), tools(std::move(t)) {}
    transcript messages;
    tool_list tools;  ///< null when none
    generate_options options;
    /// Asked before every attempt that leaves (design: budgets reserve before each attempt). Null admits all. Must outlive the call.
    attempt_gate* gate = nullptr;
    /// Where the run keeps what it already encoded for this provider; null encodes from scratch. Must outlive the call.
    encoded_prefix* prefix = nullptr;
    /// Where wrappers write down what each attempt came to, also of a call that fails. Null: the outermost wrapper makes one.
    std::shared_ptr<attempt_log> log;
    /// A retry around this one already sees to attempts; those within send once. Two layers of retry would multiply them.
    bool retried = false;
};

/// A call whose arguments could not be read (spec/loop-and-providers.md §4.2).
class malformed_tool_call {
public:
    malformed_tool_call() = default;
    std::string name;   ///< empty when the model sent none
    std::string error;  ///< what and at which byte
    std::optional<std::string> raw_arguments;
    std::size_t offset = 0;  ///< byte of the arguments where reading stopped
    json to_json() const;
};
/// A call of a malformed round as it stood, for the agent's answer (design §9.15): `arguments` is `{}` for the unreadable ones.
class attempted_call {
public:
    attempted_call() = default;
    tool_call call;
    bool malformed = false;
    std::size_t offset = 0;
};

class rate_limit_window {
public:
    std::optional<std::uint64_t> limit, remaining;
    std::optional<system_time> reset;
};
class rate_limit_info {
public:
    rate_limit_window requests, tokens, input_tokens, output_tokens;
    json to_json() const;
};
class call_timings {
public:
    std::chrono::nanoseconds connect{0}, first_byte{0}, total{0};
};

/// What a model call returned (spec/loop-and-providers.md §1.6).
class generate_result {
public:
    generate_result() = default;
    std::string text;
    std::vector<tool_call> tool_calls;
    std::optional<reagent::usage> usage;  ///< empty: the response carried no usage signal at all
    std::string model;                    ///< empty when unknown
    std::string stop_reason;              ///< neutral vocabulary of §4.1; empty is null
    std::optional<provider_blocks> blocks;
    std::optional<usd> cost;  ///< only an authoritative price of the provider
    bool temperature_dropped = false;
    rare<malformed_tool_call> malformed;
    std::vector<attempted_call> attempted;  ///< only with `malformed`
    std::optional<thinking_status> thinking;
    std::string request_id;
    rare<rate_limit_info> rate_limit;
    call_timings timings;
    unsigned attempts = 1;                ///< requests that left for this logical call, 0 when it was answered without
    std::vector<attempt_record> records;  ///< what each attempt came to; empty when no wrapper was there to write it down
    json to_json() const;
};

}  // namespace reagent::inline v0

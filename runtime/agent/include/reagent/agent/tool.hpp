#pragma once
#include <reagent/base/asio.hpp>
#include <reagent/base/clock.hpp>
#include <reagent/base/error.hpp>
#include <reagent/base/json.hpp>
#include <reagent/base/log_sink.hpp>
#include <reagent/governance/budget.hpp>
#include <reagent/model/generate.hpp>

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace reagent::inline v0 {

enum class effect : std::uint8_t { unset, readonly, idempotent, destructive };
enum class trust : std::uint8_t { unset, own, external };
std::string_view to_string(effect e) noexcept;
std::string_view to_string(trust t) noexcept;

/// A tool failed; `what()` is for the model and the log, `tool_code()` a word such as `bad_timezone` (spec/tools.md §2).
class tool_error : public error {
public:
    tool_error(std::string code, std::string message) : error(errc::tool_failed, std::move(message)), tool_code_(std::move(code)) {}
    const std::string& tool_code() const noexcept { return tool_code_; }
    std::optional<std::int64_t> cost_micros;

private:
    std::string tool_code_;
};

enum class arg_type : std::uint8_t { string, number, boolean, enumeration, integer, strings, object };
/// One declared argument (spec/tools.md §1.1).
class arg_spec {
public:
    arg_spec(std::string n, arg_type t, std::string d, bool req = true) : name(std::move(n)), type(t), description(std::move(d)), required(req) {}
    std::string name;
    arg_type type;
    std::string description;
    bool required;
    std::vector<std::string> options;  ///< enumeration only
};

/// What a running tool may use. Lives as long as the invocation.
class tool_context {
public:
    tool_context() = default;
    any_io_executor executor;
    std::string run_id, call_id;
    steady_time deadline = steady_time::max();
    clock_ptr clock;
    log_sink log;
    reagent::budget budget;  ///< of the run: what a tool spends on models of its own comes from it, or from a `child`; empty when the run has none
};

/// What a tool runs, a coroutine: both arguments live until it has ended, so it may take `args` by value or by `const&`.
using tool_function = std::function<awaitable<json>(const json& args, tool_context& context)>;
/// Every problem of the arguments, in the order of spec/tools.md §1.3; empty when they will do. `args` is an object.
using args_check = std::function<std::vector<std::string>(const json& args)>;

/// Where a part of an answer comes from, for citations.
class tool_source {
public:
    tool_source() = default;
    std::string url, title, snippet, date;
};
/// Outcome of one invocation (spec/tools.md §2).
class tool_result {
public:
    tool_result() = default;
    std::string name;
    json args, value;  ///< `value` is what the tool returned
    bool completed = false;
    std::string output;  ///< what the model reads
    std::string error, code;
    std::int64_t latency_ms = 0;
    trust whose = trust::unset;
    std::optional<std::int64_t> cost_micros;
    std::vector<tool_source> sources;
    std::optional<std::pair<std::size_t, std::size_t>> truncated;  ///< kept, of (characters)
    json to_json() const;
};

/// A tool: immutable, shared, cheap to copy. `make_tool` builds one from a described struct, `tool::from_args` from a list of arguments,
/// `tool::from_schema` from a JSON Schema. Setters chain and change this handle only.
class tool {
public:
    tool() = default;
    /// Construction errors of spec/tools.md §1.2 throw `tool_error` with their code.
    static tool from_args(std::string name, std::string description, std::vector<arg_spec> args, tool_function run);
    static tool from_schema(std::string name, std::string description, json parameters, tool_function run);
    /// As `from_schema` with a check of the caller's own instead of the schema's.
    static tool from_check(std::string name, std::string description, json parameters, args_check check, tool_function run);

    /// Describes a field to the model; a nested one as `outer.inner`. Throws `tool_error` (`arg_unknown`) for a field that is not there.
    tool& doc(std::string_view field, std::string text) &;
    tool&& doc(std::string_view field, std::string text) && { return std::move(doc(field, std::move(text))); }
    tool& effect(reagent::effect e) &;
    tool&& effect(reagent::effect e) && { return std::move(effect(e)); }
    tool& trust(reagent::trust t) &;
    tool&& trust(reagent::trust t) && { return std::move(trust(t)); }
    tool& pinned(bool p = true) &;
    tool&& pinned(bool p = true) && { return std::move(pinned(p)); }
    /// A barrier in call order: never runs beside another call of its round.
    tool& serial(bool s = true) &;
    tool&& serial(bool s = true) && { return std::move(serial(s)); }
    /// Characters of output before it is cut; 0 is no limit. Default 20,000.
    tool& output_limit(std::size_t n) &;
    tool&& output_limit(std::size_t n) && { return std::move(output_limit(n)); }

    const std::string& name() const noexcept;
    const std::string& description() const noexcept;
    const json& parameters() const noexcept;  ///< JSON Schema
    reagent::effect effect() const noexcept;
    reagent::trust trust() const noexcept;
    bool pinned() const noexcept;
    bool serial() const noexcept;
    tool_schema schema() const;
    explicit operator bool() const noexcept { return impl_ != nullptr; }

    /// Validates, runs, renders, truncates. Never throws but `halt_error` and cancellation (spec/tools.md §3.2).
    awaitable<tool_result> invoke(json args, tool_context& context) const;

    struct impl;

private:
    impl& edit();
    std::shared_ptr<impl> impl_;  ///< copied before a setter changes a shared one
};

/// The text the model reads for a value (spec/tools.md §2 render).
std::string render_tool_value(const json& value);

}  // namespace reagent::inline v0

#include <reagent/model/generate.hpp>

#include <reagent/base/error.hpp>
#include <reagent/base/time_text.hpp>
#include <reagent/base/untrusted_text.hpp>

#include <charconv>
#include <cmath>

namespace reagent::inline v0 {

json usage::to_json() const
{
    json out = json::object().set("inputTokens", input).set("outputTokens", output);
    if (cache_read) out.set("cacheReadTokens", *cache_read);
    if (cache_creation) out.set("cacheCreationTokens", *cache_creation);
    if (reasoning) out.set("reasoningTokens", *reasoning);
    return out;
}

usage usage::from_json(const json& j)
{
    usage u;
    u.input = j["inputTokens"].get_uint64().value_or(0);
    u.output = j["outputTokens"].get_uint64().value_or(0);
    u.cache_read = j["cacheReadTokens"].get_uint64();
    u.cache_creation = j["cacheCreationTokens"].get_uint64();
    u.reasoning = j["reasoningTokens"].get_uint64();
    return u;
}

std::string_view to_string(thinking_status s) noexcept
{
    switch (s) {
    case thinking_status::applied: return "applied";
    case thinking_status::unknown: return "unknown";
    case thinking_status::unsupported: return "unsupported";
    case thinking_status::ignored: return "ignored";
    }
    return {};
}

json malformed_tool_call::to_json() const
{
    json out = json::object();
    if (!name.empty()) out.set("name", name);
    out.set("error", error);
    if (raw_arguments) out.set("rawArguments", *raw_arguments);
    return out;
}

namespace {

json window_to_json(const rate_limit_window& w)
{
    json out = json::object();
    if (w.limit) out.set("limit", *w.limit);
    if (w.remaining) out.set("remaining", *w.remaining);
    if (w.reset) out.set("reset", format_iso8601(*w.reset));
    return out;
}

}  // namespace

json rate_limit_info::to_json() const
{
    json out = json::object();
    const auto add = [&](const char* name, const rate_limit_window& w) {
        json j = window_to_json(w);
        if (!j.empty()) out.set(name, std::move(j));
    };
    add("requests", requests);
    add("tokens", tokens);
    add("inputTokens", input_tokens);
    add("outputTokens", output_tokens);
    return out;
}

namespace {

double in_milliseconds(std::chrono::nanoseconds d)
{
    return std::round(static_cast<double>(d.count()) / 1e3) / 1e3;
}

std::string shown(const json& value)
{
    return untrusted_text(value.dump(), 40);
}

/// A number as a JavaScript host would coerce it; nothing for what is no number.
std::optional<double> coerced(const json& value)
{
    if (value.is_number()) return value.get_double();
    const std::string* text = value.get_string();
    if (text == nullptr) return std::nullopt;
    std::string_view t(*text);
    const std::size_t first = t.find_first_not_of(" \t\r\n");
    if (first == std::string_view::npos) return std::nullopt;
    t = t.substr(first, t.find_last_not_of(" \t\r\n") - first + 1);
    if (t == "Infinity") return HUGE_VAL;
    double out = 0;
    const auto [end, ec] = std::from_chars(t.data(), t.data() + t.size(), out);
    if (ec != std::errc() || end != t.data() + t.size()) return std::nullopt;
    return out;
}

}  // namespace

time_limit time_limit_from_json(const json& value, std::string_view component, std::string_view knob, bool strict)
{
    if (value.is_null()) return {};
    const std::optional<double> ms = coerced(value);
    if (ms && (*ms == 0 || *ms == HUGE_VAL)) return time_limit::off();
    if (ms && std::isfinite(*ms) && *ms > 0) {
        // Ten years: past this the sum with a time point would overflow.
        constexpr double longest = 10.0 * 365 * 86400 * 1e3;
        if (*ms > longest) return time_limit::off();
        return time_limit(std::chrono::nanoseconds(std::llround(*ms * 1e6)));
    }
    if (!strict) return time_limit(std::chrono::seconds(600));
    throw validation_error("[" + std::string(component) + "] " + std::string(knob) + " must be a positive number of milliseconds, 0 for none; got " +
                           shown(value));
}

generate_options generate_options::from_json(const json& j, std::string_view component)
{
    const auto fail = [&](std::string_view knob, std::string_view wanted, const json& got) {
        throw validation_error("[" + std::string(component) + "] " + std::string(knob) + " must be " + std::string(wanted) + "; got " + shown(got));
    };
    generate_options out;
    if (j.is_null()) return out;
    if (!j.is_object()) fail("options", "an object", j);
    const json& temperature = j["temperature"];
    if (!temperature.is_null()) {
        out.temperature = temperature.get_double();
        if (!out.temperature || !std::isfinite(*out.temperature)) fail("temperature", "a number", temperature);
    }
    const json& most = j["maxTokens"];
    if (!most.is_null()) {
        const auto n = most.get_uint64();
        if (!n) fail("maxTokens", "a whole number of tokens", most);
        out.max_tokens = *n;
    }
    if (const json* choice = j.find("toolChoice"); choice != nullptr && !choice->is_null()) out.tool_choice = *choice;
    if (const json* raw = j.find("thinking")) out.thinking = *raw;
    if (const json* mode = j.find("thinkingMode")) {
        const std::string* name = mode->get_string();
        if (mode->is_null()) out.mode.emplace(std::nullopt);
        else if (name != nullptr && *name == "on") out.mode.emplace(thinking_mode::on);
        else if (name != nullptr && *name == "off") out.mode.emplace(thinking_mode::off);
        else fail("thinkingMode", "\"on\", \"off\" or null", *mode);
    }
    if (const json& system = j["system"]; !system.is_null()) {
        if (!system.is_string() && !system.is_array()) fail("system", "a string or an array of blocks", system);
        out.system = system;
    }
    const auto flag = [&](const char* key, std::optional<bool>& into) {
        const json& v = j[key];
        if (!v.is_null() && !v.is_bool()) fail(key, "true or false", v);
        if (v.is_bool()) into = v.as_bool();
    };
    flag("cacheSystem", out.cache_system);
    flag("cacheMessages", out.cache_messages);
    // Wanted by nobody's wire yet; passing over them in silence would change what the caller asked for.
    for (const char* key : {"stopSequences", "responseSchema"})
        if (!j[key].is_null()) throw validation_error("[" + std::string(component) + "] " + key + " is not supported");
    const json& stream = j["stream"];
    if (stream.is_bool()) out.stream = stream.as_bool();
    out.idle = time_limit_from_json(j["timeoutMs"], component, "timeoutMs", false);
    out.total = time_limit_from_json(j["deadlineMs"], component, "deadlineMs", true);
    return out;
}

json generate_result::to_json() const
{
    json calls = json::array();
    for (const tool_call& c : tool_calls) calls.push_back(json::object().set("id", c.id).set("name", c.name).set("arguments", c.arguments));
    json out = json::object()
                   .set("text", text)
                   .set("toolCalls", std::move(calls))
                   .set("usage", usage ? usage->to_json() : json())
                   .set("model", model.empty() ? json() : json(model))
                   .set("stopReason", stop_reason.empty() ? json() : json(stop_reason));
    if (blocks) out.set("providerBlocks", blocks->to_json());
    if (cost) out.set("costUsd", cost->to_double());
    if (temperature_dropped) out.set("temperatureDropped", true);
    if (malformed) out.set("malformedToolCall", malformed->to_json());
    if (thinking) {
        out.set("thinkingStatus", to_string(*thinking));
        out.set("thinkingApplied", *thinking == thinking_status::applied ? json(true) : *thinking == thinking_status::unknown ? json() : json(false));
    }
    if (!request_id.empty()) out.set("requestId", request_id);
    if (rate_limit) out.set("rateLimit", rate_limit->to_json());
    if (timings.total.count() != 0)
        out.set("timings",
                json::object()
                    .set("connectMs", in_milliseconds(timings.connect))
                    .set("ttfbMs", in_milliseconds(timings.first_byte))
                    .set("totalMs", in_milliseconds(timings.total)));
    if (attempts != 1) out.set("attempts", attempts);
    if (!records.empty()) out.set("attemptRecords", reagent::to_json(records));
    return out;
}

}  // namespace reagent::inline v0

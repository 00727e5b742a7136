#include <reagent/base/error.hpp>
#include <reagent/base/untrusted_text.hpp>
#include <reagent/providers/openai.hpp>

#include <algorithm>
#include <array>

namespace reagent::inline v0 {

namespace {

[[noreturn]] void bad(std::string_view key, std::string_view wanted, const json& got)
{
    throw validation_error(prefixed(openai_component, std::string(key) + " must be " + std::string(wanted) + "; got " + untrusted_text(got.dump(), 40)));
}

bool flag(const json& v, std::string_view key)
{
    if (!v.is_bool()) bad(key, "true or false", v);
    return v.as_bool();
}

std::string text(const json& v, std::string_view key)
{
    const std::string* s = v.get_string();
    if (s == nullptr || s->empty()) bad(key, "a non-empty string", v);
    return *s;
}

}  // namespace

openai_options openai_options::from_json(const json& j)
{
    static constexpr std::array<std::string_view, 16> known = {"apiKey",       "model",       "baseUrl",          "legacyMaxTokens",  "thinking",
                                                               "thinkingMode", "temperature", "maxTokens",        "exposeErrorBody",  "exposeMalformedArgs",
                                                               "timeoutMs",    "deadlineMs",  "connectTimeoutMs", "headersTimeoutMs", "streamUsage",
                                                               "systemRole"};
    if (!j.is_object()) throw validation_error(prefixed(openai_component, "options must be an object; got " + std::string(j.type_name())));
    for (const auto& [key, value] : j.as_object()) {
        if (std::find(known.begin(), known.end(), key) != known.end()) continue;
        std::string names;
        for (std::string_view k : known) names.append(names.empty() ? "" : ", ").append(k);
        throw validation_error(prefixed(openai_component, "unknown option " + untrusted_text(key, 40) + "; known are " + names));
    }
    const generate_options call = generate_options::from_json(j, openai_component);
    openai_options out;
    const auto when = [&](std::string_view key, auto&& use) {
        const json& v = j[key];
        if (!v.is_null()) use(v);
    };
    when("apiKey", [&](const json& v) {
        // Whatever was meant to be a key is never shown. An empty one is none: local servers need none.
        const std::string* key = v.get_string();
        if (key == nullptr) throw validation_error(prefixed(openai_component, "apiKey must be a string; got " + std::string(v.type_name())));
        out.codec_.key = secret(*key);
    });
    when("model", [&](const json& v) { out.codec_.model = text(v, "model"); });
    when("baseUrl", [&](const json& v) { out.codec_.base_url = url::parse_or_throw(text(v, "baseUrl"), prefixed(openai_component, "baseUrl")); });
    when("legacyMaxTokens", [&](const json& v) { out.codec_.legacy_max_tokens = flag(v, "legacyMaxTokens"); });
    when("exposeErrorBody", [&](const json& v) { out.codec_.expose_error_body = flag(v, "exposeErrorBody"); });
    when("exposeMalformedArgs", [&](const json& v) { out.codec_.expose_malformed_args = flag(v, "exposeMalformedArgs"); });
    when("streamUsage", [&](const json& v) { out.codec_.stream_usage = flag(v, "streamUsage"); });
    when("systemRole", [&](const json& v) { out.codec_.system_role = text(v, "systemRole"); });
    out.codec_.temperature = call.temperature;
    out.codec_.max_tokens = call.max_tokens;
    if (call.thinking) out.codec_.thinking = *call.thinking;
    if (call.mode) out.codec_.mode = *call.mode;
    out.idle_ = call.idle;
    out.total_ = call.total;
    out.connect_ = time_limit_from_json(j["connectTimeoutMs"], openai_component, "connectTimeoutMs", true);
    out.first_byte_ = time_limit_from_json(j["headersTimeoutMs"], openai_component, "headersTimeoutMs", true);
    return out;
}

}  // namespace reagent::inline v0

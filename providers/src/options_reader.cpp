#include "options_reader.hpp"

#include <reagent/base/error.hpp>
#include <reagent/base/untrusted_text.hpp>
#include <reagent/model/http_failure.hpp>

#include <algorithm>
#include <array>

namespace reagent::inline v0::providers_detail {

options_reader::options_reader(const json& j, std::string_view component, std::initializer_list<std::string_view> own, std::string_view base_url)
    : j_(j), component_(component), base_url_(base_url)
{
    const std::array<std::string_view, 13> shared = {
        "apiKey",    "model",      base_url,           "thinking",        "thinkingMode", "temperature", "maxTokens", "exposeErrorBody", "exposeMalformedArgs",
        "timeoutMs", "deadlineMs", "connectTimeoutMs", "headersTimeoutMs"};
    if (!j.is_object()) throw validation_error(prefixed(component, "options must be an object; got " + std::string(j.type_name())));
    for (const auto& [key, value] : j.as_object()) {
        if (std::find(shared.begin(), shared.end(), key) != shared.end() || std::find(own.begin(), own.end(), key) != own.end()) continue;
        std::string names;
        for (std::string_view k : shared) names.append(names.empty() ? "" : ", ").append(k);
        for (std::string_view k : own) names.append(", ").append(k);
        throw validation_error(prefixed(component, "unknown option " + untrusted_text(key, 40) + "; known are " + names));
    }
}

void options_reader::refuse(std::string_view key, std::string_view wanted) const
{
    throw validation_error(prefixed(component_, std::string(key) + " must be " + std::string(wanted) + "; got " + untrusted_text(j_[key].dump(), 40)));
}

void options_reader::read(std::string_view key, bool& into) const
{
    const json& v = j_[key];
    if (v.is_null()) return;
    if (!v.is_bool()) refuse(key, "true or false");
    into = v.as_bool();
}

void options_reader::read(std::string_view key, std::string& into) const
{
    const json& v = j_[key];
    if (v.is_null()) return;
    const std::string* s = v.get_string();
    if (s == nullptr || s->empty()) refuse(key, "a non-empty string");
    into = *s;
}

void options_reader::read_shared(codec_options& codec, http_call_options& call) const
{
    const generate_options own = generate_options::from_json(j_, component_);
    if (const json& v = j_["apiKey"]; !v.is_null()) {
        // Whatever was meant to be a key is never shown. An empty one is none: local servers need none.
        const std::string* key = v.get_string();
        if (key == nullptr) throw validation_error(prefixed(component_, "apiKey must be a string; got " + std::string(v.type_name())));
        codec.key = secret(*key);
    }
    read("model", codec.model);
    std::string base;
    read(base_url_, base);
    if (!base.empty()) codec.base_url = url::parse_or_throw(base, prefixed(component_, base_url_));
    read("exposeErrorBody", codec.expose_error_body);
    read("exposeMalformedArgs", codec.expose_malformed_args);
    codec.temperature = own.temperature;
    codec.max_tokens = own.max_tokens;
    if (own.thinking) codec.thinking = *own.thinking;
    if (own.mode) codec.mode = *own.mode;
    call.idle = own.idle;
    call.total = own.total;
    call.connect = time_limit_from_json(j_["connectTimeoutMs"], component_, "connectTimeoutMs", true);
    call.first_byte = time_limit_from_json(j_["headersTimeoutMs"], component_, "headersTimeoutMs", true);
}

}  // namespace reagent::inline v0::providers_detail

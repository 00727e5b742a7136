// The OpenAI-shaped projection of a message (spec/loop-and-providers.md §1.1, §1.2), both ways.
#include <reagent/base/error.hpp>
#include <reagent/base/untrusted_text.hpp>
#include <reagent/model/message.hpp>

namespace reagent::inline v0 {

namespace {

bool only_keys(const json& object, std::initializer_list<std::string_view> keys)
{
    for (const auto& [k, v] : object.as_object()) {
        bool known = false;
        for (std::string_view key : keys) known = known || k == key;
        if (!known) return false;
    }
    return true;
}

[[noreturn]] void bad(std::string_view where, std::string_view what)
{
    throw validation_error(std::string(where) + ": " + std::string(what));
}

std::string string_or_empty(const json& j)
{
    const std::string* s = j.get_string();
    return s == nullptr ? std::string() : *s;
}

std::optional<image_part> image_from_neutral(const json& p)
{
    if (!only_keys(p, {"type", "source", "detail"})) return std::nullopt;
    const json& source = p["source"];
    const std::string* kind = source["kind"].get_string();
    if (kind == nullptr) return std::nullopt;
    image_part out;
    out.detail = string_or_empty(p["detail"]);
    if (*kind == "base64") {
        out.media_type = string_or_empty(source["mediaType"]);
        out.data_base64 = string_or_empty(source["data"]);
        if (out.media_type.empty() || source["data"].get_string() == nullptr) return std::nullopt;
        return out;
    }
    if (*kind != "url") return std::nullopt;
    out.url = string_or_empty(source["url"]);
    if (out.url.empty()) return std::nullopt;
    return out;
}

/// OpenAI's `image_url`; an inline `data:` URL becomes data.
std::optional<image_part> image_from_openai(const json& p)
{
    const json& image = p["image_url"];
    if (!only_keys(p, {"type", "image_url"}) || !image.is_object() || !only_keys(image, {"url", "detail"})) return std::nullopt;
    const std::string* url = image["url"].get_string();
    if (url == nullptr || url->empty()) return std::nullopt;
    image_part out;
    out.detail = string_or_empty(image["detail"]);
    constexpr std::string_view scheme = "data:", coding = ";base64,";
    const std::size_t comma = url->starts_with(scheme) ? url->find(coding) : std::string::npos;
    if (comma == std::string::npos) {
        out.url = *url;
    } else {
        out.media_type = url->substr(scheme.size(), comma - scheme.size());
        out.data_base64 = url->substr(comma + coding.size());
    }
    return out;
}

part part_from_json(const json& p, std::string_view where)
{
    if (!p.is_object()) bad(where, std::string("a content part must be an object, not ") + std::string(p.type_name()));
    const std::string* type = p["type"].get_string();
    if (type != nullptr) {
        if (*type == "text" && p["text"].is_string() && only_keys(p, {"type", "text"})) return text_part(p["text"].as_string());
        if (*type == "thinking" && p["thinking"].is_string() && only_keys(p, {"type", "thinking", "signature"}))
            return thinking_part(p["thinking"].as_string(), string_or_empty(p["signature"]));
        if (*type == "image") {
            if (auto image = image_from_neutral(p)) return std::move(*image);
        }
        if (*type == "image_url") {
            if (auto image = image_from_openai(p)) return std::move(*image);
        }
    }
    return native_part(p);
}

/// Text that is no JSON, or a JSON string, is kept as a string value and written back as it is.
json arguments_from_json(const json& j)
{
    const std::string* text = j.get_string();
    if (text == nullptr) return j.is_null() ? json::object() : j;
    auto parsed = json::parse(*text);
    if (!parsed || parsed->is_string()) return j;
    return std::move(*parsed);
}

tool_call call_from_json(const json& j, std::string_view where)
{
    const json& function = j["function"];
    const std::string* name = function["name"].get_string();
    if (name == nullptr) bad(where, "a tool call needs `function.name`");
    return tool_call(string_or_empty(j["id"]), *name, arguments_from_json(function["arguments"]));
}

std::string arguments_text(const json& arguments)
{
    const std::string* text = arguments.get_string();
    return text == nullptr ? arguments.dump() : *text;
}

json part_to_json(const part& p)
{
    if (const auto* t = std::get_if<text_part>(&p)) return json::object().set("type", "text").set("text", t->text);
    if (const auto* t = std::get_if<thinking_part>(&p)) {
        json out = json::object().set("type", "thinking").set("thinking", t->text);
        if (!t->signature.empty()) out.set("signature", t->signature);
        return out;
    }
    if (const auto* i = std::get_if<image_part>(&p)) {
        json source = i->url.empty() ? json::object().set("kind", "base64").set("mediaType", i->media_type).set("data", i->data_base64)
                                     : json::object().set("kind", "url").set("url", i->url);
        json out = json::object().set("type", "image").set("source", std::move(source));
        if (!i->detail.empty()) out.set("detail", i->detail);
        return out;
    }
    if (const auto* n = std::get_if<native_part>(&p)) return n->value;
    return json();
}

bool in_content(const part& p) noexcept
{
    return !std::holds_alternative<tool_call>(p) && !std::holds_alternative<provider_blocks>(p);
}

}  // namespace

json provider_blocks::to_json() const
{
    json out = json::object().set("provider", provider).set("model", model.empty() ? json() : json(model)).set("blocks", blocks);
    if (!layout.is_null()) out.set("layout", layout);
    return out;
}

std::optional<provider_blocks> provider_blocks::from_json(const json& j)
{
    const std::string* p = j["provider"].get_string();
    if (p == nullptr || !j["blocks"].is_array()) return std::nullopt;
    provider_blocks out(*p, string_or_empty(j["model"]), j["blocks"]);
    out.layout = j["layout"];
    return out;
}

json message::to_json() const
{
    json out = json::object().set("role", who == role::other ? std::string_view(role_name) : to_string(who));
    std::size_t shown = 0;
    bool plain = !content_parts;
    for (const part& p : parts) {
        if (!in_content(p)) continue;
        ++shown;
        plain = plain && std::holds_alternative<text_part>(p);
    }
    if (content_null && shown == 0) {
        out.set("content", nullptr);
    } else if (plain && shown <= 1) {
        out.set("content", text());
    } else {
        json content = json::array();
        for (const part& p : parts)
            if (in_content(p)) content.push_back(part_to_json(p));
        out.set("content", std::move(content));
    }
    json calls_out = json::array();
    for (const part& p : parts) {
        const auto* c = std::get_if<tool_call>(&p);
        if (c == nullptr) continue;
        calls_out.push_back(json::object()
                                .set("id", c->id)
                                .set("type", "function")
                                .set("function", json::object().set("name", c->name).set("arguments", arguments_text(c->arguments))));
    }
    if (!calls_out.empty()) out.set("tool_calls", std::move(calls_out));
    if (who == role::tool) out.set("tool_call_id", tool_call_id);
    if (const provider_blocks* b = blocks()) out.set("providerBlocks", b->to_json());
    if (extra.is_object())
        for (const auto& [k, v] : extra.as_object()) out.set(k, v);
    return out;
}

message_ptr message::from_json(const json& j, std::string_view where)
{
    if (!j.is_object()) bad(where, std::string("must be an object, not ") + std::string(j.type_name()));
    const std::string* name = j["role"].get_string();
    if (name == nullptr || name->empty()) bad(where, "`role` must be a non-empty string");
    auto m = std::make_shared<message>();
    if (*name == "system") m->who = role::system;
    else if (*name == "user") m->who = role::user;
    else if (*name == "assistant") m->who = role::assistant;
    else if (*name == "tool") m->who = role::tool;
    else {
        m->who = role::other;
        m->role_name = *name;
    }
    const json& content = j["content"];
    if (content.is_null()) {
        m->content_null = true;
    } else if (content.is_string()) {
        m->parts.emplace_back(text_part(content.as_string()));
    } else if (content.is_array()) {
        m->content_parts = true;
        std::size_t i = 0;
        for (const json& p : content.as_array()) m->parts.push_back(part_from_json(p, std::string(where) + ".content[" + std::to_string(i++) + "]"));
    } else {
        bad(where, std::string("`content` must be a string, null or an array, not ") + std::string(content.type_name()));
    }
    for (const auto& [key, value] : j.as_object()) {
        if (key == "role" || key == "content") continue;
        if (key == "tool_calls" && m->who == role::assistant) {
            if (value.is_null()) continue;
            if (!value.is_array()) bad(where, "`tool_calls` must be an array");
            std::size_t i = 0;
            for (const json& c : value.as_array()) m->parts.emplace_back(call_from_json(c, std::string(where) + ".tool_calls[" + std::to_string(i++) + "]"));
        } else if (key == "tool_call_id" && m->who == role::tool) {
            if (!value.is_string()) bad(where, "`tool_call_id` must be a string");
            m->tool_call_id = value.as_string();
        } else if (key == "providerBlocks") {
            if (auto b = provider_blocks::from_json(value)) m->parts.emplace_back(std::move(*b));
            else if (!value.is_null()) bad(where, "`providerBlocks` needs `provider` and an array `blocks`");
        } else {
            m->extra.set(key, value);
        }
    }
    return m;
}

json transcript_to_json(std::span<const message_ptr> messages)
{
    json out = json::array();
    for (const message_ptr& m : messages) out.push_back(m->to_json());
    return out;
}

transcript transcript_from_json(const json& array)
{
    if (!array.is_array()) bad("messages", std::string("must be an array, not ") + std::string(array.type_name()));
    transcript out;
    out.reserve(array.size());
    std::size_t i = 0;
    for (const json& m : array.as_array()) out.push_back(message::from_json(m, "messages[" + std::to_string(i++) + "]"));
    return out;
}

}  // namespace reagent::inline v0

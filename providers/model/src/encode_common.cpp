#include "encode_common.hpp"

#include <reagent/base/ascii.hpp>
#include <reagent/base/error.hpp>
#include <reagent/base/untrusted_text.hpp>
#include <reagent/model/http_failure.hpp>

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>

namespace reagent::inline v0::model_detail {

bool truthy(const json& j) noexcept
{
    switch (j.type()) {
    case json::kind::null: return false;
    case json::kind::boolean: return j.as_bool();
    case json::kind::number: return j.as_number().as_double() != 0;
    case json::kind::string: return !j.as_string().empty();
    default: return true;
    }
}

void append_unsigned(std::string& out, std::uint64_t n)
{
    std::array<char, 24> buffer{};
    const auto end = std::to_chars(buffer.data(), buffer.data() + buffer.size(), n).ptr;
    out.append(buffer.data(), end);
}

void append_number(std::string& out, std::string_view before, double value)
{
    // The shortest text of a number takes long to find, and a temperature comes again and again.
    thread_local double last = 0;
    thread_local std::string text = "0";
    out += before;
    if (value != last || std::signbit(value) != std::signbit(last)) {
        text.clear();
        json::number(value).append_to(text);
        last = value;
    }
    out += text;
}

std::size_t estimated_size(const generate_request& r) noexcept
{
    std::size_t bytes = 512;
    for (const message_ptr& m : r.messages) {
        bytes += 96;
        for (const part& p : m->parts) {
            if (const auto* t = std::get_if<text_part>(&p)) bytes += t->text.size() + t->text.size() / 16;
            else if (const auto* i = std::get_if<image_part>(&p)) bytes += i->data_base64.size() + i->url.size() + 96;
            else bytes += 256;
        }
    }
    return bytes;
}

void append_data_url(std::string& out, const image_part& image)
{
    std::string data;
    data.reserve(image.media_type.size() + image.data_base64.size() + 16);
    data += "data:";
    data += image.media_type;
    data += ";base64,";
    data += image.data_base64;
    append_json_string(out, data);
}

bool is_text(const native_part& n) noexcept
{
    const std::string* type = n.value["type"].get_string();
    return type != nullptr && *type == "text" && n.value["text"].is_string();
}

std::string tool_result_text(const message& m, std::string_view component)
{
    for (const part& p : m.parts) {
        const auto* native = std::get_if<native_part>(&p);
        if (std::holds_alternative<image_part>(p) || (native != nullptr && !is_text(*native)))
            throw validation_error(prefixed(component, "a tool result can carry text only; the result of call " + m.tool_call_id + " has another part"));
    }
    return m.text();
}

void append_arguments(std::string& out, const json& arguments)
{
    if (arguments.is_object()) {
        arguments.dump_to(out);
        return;
    }
    const std::string* text = arguments.get_string();
    const auto read = json::parse(text == nullptr ? std::string_view() : std::string_view(*text));
    if (read && read->is_object()) read->dump_to(out);
    else out += "{}";
}

void append_chat_tool(const tool_schema& t, std::string& out)
{
    out += R"({"type":"function","function":{"name":)";
    append_json_string(out, t.name);
    if (!t.description.empty()) {
        out += R"(,"description":)";
        append_json_string(out, t.description);
    }
    if (!t.parameters.is_null()) {
        out += R"(,"parameters":)";
        t.parameters.dump_to(out);
    }
    out += "}}";
}

answered_call call_answered(std::span<const message_ptr> before, std::string_view id) noexcept
{
    answered_call out;
    for (std::size_t i = before.size(); i-- > 0 && out.call == nullptr;) {
        std::size_t index = 0;
        for (const part& p : before[i]->parts) {
            const auto* call = std::get_if<tool_call>(&p);
            if (call == nullptr) continue;
            if (call->id == id) {
                out.by = before[i].get();
                out.call = call;
                out.index = index;
                break;
            }
            ++index;
        }
    }
    return out;
}

const provider_blocks* own_blocks(const message& m, std::string_view provider_name) noexcept
{
    const provider_blocks* b = m.blocks();
    return b == nullptr || b->provider != provider_name || !b->blocks.is_array() || b->blocks.empty() ? nullptr : b;
}

namespace {

/// No control character may stand in a header: a line break would start one of its own.
bool fits_a_header(std::string_view text) noexcept
{
    return std::none_of(text.begin(), text.end(), [](char c) { return static_cast<unsigned char>(c) < 0x20 || c == 0x7f; });
}

}  // namespace

std::string header_lines(std::string_view component, const codec_options& options, std::string_view key_header, std::string_view key_scheme)
{
    std::string lines = "Content-Type: application/json\r\n";
    if (!options.key.empty()) {
        if (!fits_a_header(options.key.reveal())) throw validation_error(prefixed(component, "apiKey must be one line of text"));
        lines.append(key_header).append(": ").append(key_scheme).append(options.key.reveal()).append("\r\n");
    }
    for (const auto& [name, value] : options.headers) {
        if (equal_but_case(name, "content-type") || (equal_but_case(name, key_header) && !options.key.empty()))
            throw validation_error(prefixed(component, "the header " + name + " is set by the provider"));
        const bool token =
            !name.empty() && name.find_first_not_of("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789!#$%&'*+-.^_`|~") == std::string::npos;
        if (!token || !fits_a_header(value))
            throw validation_error(prefixed(component, "the header " + untrusted_text(name, 40) + " must be a name and one line of text"));
        lines.append(name).append(": ").append(value).append("\r\n");
    }
    return lines;
}

std::string encoded_members(std::string_view component, const json& members, std::span<const std::string_view> ours)
{
    std::string out;
    if (members.is_null()) return out;
    if (!members.is_object()) throw validation_error(prefixed(component, "body members must be an object"));
    for (const auto& [name, value] : members.as_object()) {
        if (std::find(ours.begin(), ours.end(), name) != ours.end())
            throw validation_error(prefixed(component, "the body member " + name + " is set by the provider"));
        out += ',';
        append_json_string(out, name);
        out += ':';
        value.dump_to(out);
    }
    return out;
}

json taken_member(json& members, std::string_view name)
{
    json* found = members.find(name);
    if (found == nullptr) return {};
    json out = std::move(*found);
    members.erase(name);
    return out;
}

std::string& begin_body(const generate_request& request, std::string& storage, const wire_codec* codec, const message_items& items, std::string_view head,
                        std::size_t more)
{
    return begin_body(request, request.messages, storage, codec, items, head, more);
}

std::string& begin_body(const generate_request& request, std::span<const message_ptr> messages, std::string& storage, const wire_codec* codec,
                        const message_items& items, std::string_view head, std::size_t more)
{
    if (request.prefix != nullptr) return request.prefix->begin_body(codec, items, head, messages);
    storage.clear();
    storage.reserve(estimated_size(request) + more);
    storage += head;
    items.append_to(storage, codec, messages);
    return storage;
}

}  // namespace reagent::inline v0::model_detail

#include "encode_common.hpp"

#include <reagent/base/error.hpp>
#include <reagent/model/openai_codec.hpp>

#include <array>

namespace reagent::inline v0 {

/// Named, since the encoders of all wires share a unit.
namespace openai_wire {
namespace {

using namespace model_detail;

bool is_deepseek(std::string_view host) noexcept
{
    constexpr std::string_view domain = "deepseek.com";
    return host.size() > domain.size() && host.ends_with(domain) && host[host.size() - domain.size() - 1] == '.';
}

void append_image(std::string& out, const image_part& image)
{
    out += R"({"type":"image_url","image_url":{"url":)";
    if (image.url.empty()) {
        append_data_url(out, image);
    } else {
        append_json_string(out, image.url);
    }
    if (!image.detail.empty()) {
        out += R"(,"detail":)";
        append_json_string(out, image.detail);
    }
    out += "}}";
}

void append_parts(std::string& out, const message& m)
{
    out += '[';
    bool first = true;
    for (const part& p : m.parts) {
        const auto* text = std::get_if<text_part>(&p);
        const auto* image = std::get_if<image_part>(&p);
        const auto* native = std::get_if<native_part>(&p);
        if (text == nullptr && image == nullptr && native == nullptr) continue;
        if (!first) out += ',';
        first = false;
        if (text != nullptr) {
            out += R"({"type":"text","text":)";
            append_json_string(out, text->text);
            out += '}';
        } else if (image != nullptr) {
            append_image(out, *image);
        } else {
            native->value.dump_to(out);
        }
    }
    out += ']';
}

void append_content(std::string& out, const message& m)
{
    std::size_t texts = 0, others = 0;
    for (const part& p : m.parts) {
        if (std::holds_alternative<text_part>(p)) ++texts;
        else if (std::holds_alternative<image_part>(p) || std::holds_alternative<native_part>(p)) ++others;
    }
    if (m.who == role::tool) {
        append_json_string(out, tool_result_text(m, openai_component));
    } else if (m.content_null && texts + others == 0) {
        out += "null";
    } else if (others == 0 && texts <= 1 && !m.content_parts) {
        const text_part* only = nullptr;
        for (const part& p : m.parts)
            if (const auto* t = std::get_if<text_part>(&p)) only = t;
        append_json_string(out, only == nullptr ? std::string_view() : std::string_view(only->text));
    } else {
        append_parts(out, m);
    }
}

/// Reasoning text that DeepSeek wants back beside the calls it led to.
std::string reasoning_of(const message& m)
{
    std::string out;
    const provider_blocks* b = own_blocks(m, "openai");
    if (b == nullptr) return out;
    for (const json& block : b->blocks.as_array()) {
        const std::string* type = block["type"].get_string();
        const std::string* text = block["text"].get_string();
        if (type != nullptr && text != nullptr && *type == "reasoning_content") out += *text;
    }
    return out;
}

void append_calls(std::string& out, const message& m)
{
    bool first = true;
    std::string text;
    for (const part& p : m.parts) {
        const auto* call = std::get_if<tool_call>(&p);
        if (call == nullptr) continue;
        out += first ? R"(,"tool_calls":[{"id":)" : R"(,{"id":)";
        first = false;
        append_json_string(out, call->id);
        out += R"(,"type":"function","function":{"name":)";
        append_json_string(out, call->name);
        out += R"(,"arguments":)";
        if (const std::string* raw = call->arguments.get_string()) {
            append_json_string(out, *raw);
        } else {
            text.clear();
            call->arguments.dump_to(text);
            append_json_string(out, text);
        }
        out += "}}";
    }
    if (!first) out += ']';
}

void append_message(const void* opaque, std::span<const message_ptr> so_far, std::size_t at, std::string& out)
{
    const auto& codec = *static_cast<const openai_codec*>(opaque);
    const message& m = *so_far[at];
    out += R"({"role":)";
    append_json_string(out,
                       m.who == role::system      ? std::string_view(codec.options().system_role)
                           : m.who == role::other ? std::string_view(m.role_name)
                                                  : to_string(m.who));
    out += R"(,"content":)";
    append_content(out, m);
    if (m.who == role::assistant) {
        const std::size_t before = out.size();
        append_calls(out, m);
        if (codec.deepseek() && out.size() != before) {
            const std::string reasoning = reasoning_of(m);
            if (!reasoning.empty()) {
                out += R"(,"reasoning_content":)";
                append_json_string(out, reasoning);
            }
        }
    }
    if (m.who == role::tool) {
        out += R"(,"tool_call_id":)";
        append_json_string(out, m.tool_call_id);
    }
    out += '}';
}

void append_choice(std::string& out, const tool_choice& choice)
{
    using kind = tool_choice::kind;
    if (choice.empty()) return;
    out += R"(,"tool_choice":)";
    if (choice.what == kind::named) {
        out += R"({"type":"function","function":{"name":)";
        append_json_string(out, choice.name);
        out += "}}";
        return;
    }
    out += choice.what == kind::automatic ? R"("auto")" : choice.what == kind::required ? R"("required")" : R"("none")";
}

}  // namespace
}  // namespace openai_wire

openai_codec_options::openai_codec_options() : codec_options("gpt-4o-mini", "https://api.openai.com/v1") {}

openai_codec::openai_codec(openai_codec_options options)
    : wire_codec(openai_component, "openai", stream_framing::sse),
      options_(std::move(options)),
      endpoint_(options_.base_url.joined("/chat/completions")),
      deepseek_(openai_wire::is_deepseek(endpoint_.host()))
{
    static constexpr std::array<std::string_view, 11> ours = {
        "model", "messages", "temperature", "max_tokens", "max_completion_tokens", "tools", "tool_choice", "thinking", "stream", "stream_options", "n"};
    header_lines_ = model_detail::header_lines(openai_component, options_, "Authorization", "Bearer ");
    members_ = model_detail::encoded_members(openai_component, options_.members, ours);
    head_ = R"({"model":)";
    append_json_string(head_, options_.model);
    head_ += R"(,"messages":[)";
}

thinking_ladder openai_codec::ladder(const call_plan& plan, std::optional<std::size_t> winner) const
{
    static constexpr std::string_view enabled = R"("thinking":{"type":"enabled"})", disabled = R"("thinking":{"type":"disabled"})";
    static constexpr std::array<std::string_view, 1> deepseek_on = {enabled}, deepseek_off = {disabled}, on = {R"("reasoning_effort":"medium")"};
    static constexpr std::array<std::string_view, 2> off = {R"("reasoning_effort":"none")", R"("reasoning_effort":"minimal")"};
    if (!plan.mode) return {};
    const bool wanted = *plan.mode == thinking_mode::on;
    if (!deepseek_) return wanted ? thinking_ladder(*plan.mode, on, winner) : thinking_ladder(*plan.mode, off, winner);
    if (wanted && plan.choice.forces()) return thinking_ladder::unswitchable(*plan.mode, disabled);
    return wanted ? thinking_ladder(*plan.mode, deepseek_on, winner) : thinking_ladder(*plan.mode, deepseek_off, winner);
}

wire_request openai_codec::encode(const generate_request& request, const call_plan& plan, bool with_temperature, std::string_view thinking_members,
                                  std::string& storage) const
{
    using namespace openai_wire;
    std::string& out = begin_body(request, storage, this, message_items(&append_message), head_, remembered_size(request.tools));
    out += ']';
    if (with_temperature && plan.temperature) append_number(out, R"(,"temperature":)", *plan.temperature);
    if (plan.max_tokens) {
        out += options_.legacy_max_tokens ? R"(,"max_tokens":)" : R"(,"max_completion_tokens":)";
        append_unsigned(out, *plan.max_tokens);
    }
    out += encoded_tools(request.tools, R"(,"tools":[)", &append_chat_tool, "]");
    append_choice(out, plan.choice);
    out += members_;
    if (!plan.thinking.empty()) {
        out += R"(,"thinking":)";
        out += plan.thinking;
    }
    if (!thinking_members.empty()) {
        out += ',';
        out += thinking_members;
    }
    if (plan.stream) out += options_.stream_usage ? R"(,"stream":true,"stream_options":{"include_usage":true})" : R"(,"stream":true)";
    out += '}';
    wire_request w;
    w.target = &endpoint_;
    w.header_lines = header_lines_;
    w.body = out;
    return w;
}

}  // namespace reagent::inline v0

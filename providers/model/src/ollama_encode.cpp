#include "encode_common.hpp"

#include <reagent/base/error.hpp>
#include <reagent/model/http_failure.hpp>
#include <reagent/model/ollama_codec.hpp>

#include <array>

namespace reagent::inline v0 {

/// Named, since the encoders of all wires share a unit.
namespace ollama_wire {
namespace {

using namespace model_detail;

/// What the call asks for, 0 included.
std::optional<std::uint64_t> asked_tokens(const generate_request& request, const codec_options& own) noexcept
{
    return request.options.max_tokens ? request.options.max_tokens : own.max_tokens;
}

void append_images(std::string& out, const message& m)
{
    bool any = false;
    for (const part& p : m.parts) {
        if (const auto* native = std::get_if<native_part>(&p); native != nullptr && !is_text(*native))
            throw validation_error(prefixed(ollama_component, "a message can carry text and images only; this wire has no such part"));
        const auto* image = std::get_if<image_part>(&p);
        if (image == nullptr) continue;
        if (!image->url.empty()) throw validation_error(prefixed(ollama_component, "an image must come as data; this wire fetches no URLs"));
        out += any ? "," : R"(,"images":[)";
        any = true;
        append_json_string(out, image->data_base64);
    }
    if (any) out += ']';
}

void append_calls(std::string& out, const message& m)
{
    bool any = false;
    for (const part& p : m.parts) {
        const auto* call = std::get_if<tool_call>(&p);
        if (call == nullptr) continue;
        out += any ? R"(,{"id":)" : R"(,"tool_calls":[{"id":)";
        any = true;
        append_json_string(out, call->id);
        out += R"(,"function":{"name":)";
        append_json_string(out, call->name);
        out += R"(,"arguments":)";
        append_arguments(out, call->arguments);
        out += "}}";
    }
    if (any) out += ']';
}

void append_message(const void*, std::span<const message_ptr> so_far, std::size_t at, std::string& out)
{
    const message& m = *so_far[at];
    out += R"({"role":)";
    append_json_string(out, m.who == role::other ? std::string_view(m.role_name) : to_string(m.who));
    out += R"(,"content":)";
    if (m.who != role::tool) {
        append_json_string(out, m.text());
        append_images(out, m);
        if (m.who == role::assistant) append_calls(out, m);
    } else {
        append_json_string(out, tool_result_text(m, ollama_component));
        const answered_call asked = call_answered(so_far.first(at), m.tool_call_id);
        if (asked.call != nullptr) {
            out += R"(,"tool_name":)";
            append_json_string(out, asked.call->name);
        }
        out += R"(,"tool_call_id":)";
        append_json_string(out, m.tool_call_id);
    }
    out += '}';
}

}  // namespace
}  // namespace ollama_wire

ollama_codec_options::ollama_codec_options() : codec_options("llama3.2", "http://localhost:11434") {}

ollama_codec::ollama_codec(ollama_codec_options options)
    : wire_codec(ollama_component, "ollama", stream_framing::ndjson), options_(std::move(options)), endpoint_(options_.base_url.joined("/api/chat"))
{
    static constexpr std::array<std::string_view, 5> ours = {"model", "messages", "tools", "stream", "think"};
    static constexpr std::array<std::string_view, 2> ours_in_options = {"temperature", "num_predict"};
    header_lines_ = model_detail::header_lines(ollama_component, options_, "Authorization", "Bearer ");
    json members = options_.members;
    option_members_ = model_detail::encoded_members(ollama_component, model_detail::taken_member(members, "options"), ours_in_options);
    members_ = model_detail::encoded_members(ollama_component, members, ours);
    head_ = R"({"model":)";
    append_json_string(head_, options_.model);
    head_ += R"(,"messages":[)";
}

std::optional<std::uint64_t> ollama_codec::max_output() const noexcept
{
    return options_.max_tokens.value_or(0) == 0 ? std::nullopt : options_.max_tokens;
}

call_plan ollama_codec::plan(const generate_request& request) const
{
    call_plan out = wire_codec::plan(request);
    // A call's 0 goes out as it is, and so bounds nothing.
    if (ollama_wire::asked_tokens(request, options_) == std::uint64_t{0}) out.max_tokens.reset();
    if (!out.choice.empty()) out.notice = "toolChoice is no part of this wire; the model chooses by itself";
    return out;
}

thinking_ladder ollama_codec::ladder(const call_plan& plan, std::optional<std::size_t> winner) const
{
    static constexpr std::array<std::string_view, 2> on = {R"("think":true)", R"("think":"medium")"};
    static constexpr std::array<std::string_view, 1> off = {R"("think":false)"};
    if (!plan.mode) return {};
    return *plan.mode == thinking_mode::on ? thinking_ladder(*plan.mode, on, winner) : thinking_ladder(*plan.mode, off, winner);
}

wire_request ollama_codec::encode(const generate_request& request, const call_plan& plan, bool with_temperature, std::string_view thinking_members,
                                  std::string& storage) const
{
    using namespace ollama_wire;
    std::string& out = begin_body(request, storage, this, message_items(&append_message), head_, remembered_size(request.tools));
    out += plan.stream ? R"(],"stream":true)" : R"(],"stream":false)";
    std::string options;
    if (with_temperature && plan.temperature) append_number(options, R"(,"temperature":)", *plan.temperature);
    if (const auto tokens = asked_tokens(request, options_)) {
        options += R"(,"num_predict":)";
        append_unsigned(options, *tokens);
    }
    options += option_members_;
    if (!options.empty()) out.append(R"(,"options":{)").append(options, 1).append("}");
    out += encoded_tools(request.tools, R"(,"tools":[)", &append_chat_tool, "]");
    out += members_;
    if (!plan.thinking.empty()) out.append(R"(,"think":)").append(plan.thinking);
    if (!thinking_members.empty()) out.append(",").append(thinking_members);
    out += '}';
    wire_request w;
    w.target = &endpoint_;
    w.header_lines = header_lines_;
    w.body = out;
    return w;
}

}  // namespace reagent::inline v0

#include "encode_common.hpp"

#include <reagent/base/error.hpp>
#include <reagent/model/http_failure.hpp>
#include <reagent/model/model_table.hpp>
#include <reagent/model/openai_responses_codec.hpp>

#include <array>

namespace reagent::inline v0 {

/// Named, since the encoders of all wires share a unit.
namespace responses_wire {
namespace {

using namespace model_detail;

/// The items that a message becomes, comma-joined.
class item_writer {
public:
    explicit item_writer(std::string& out) noexcept : out_(out) {}
    std::string& next()
    {
        if (!first_) out_ += ',';
        first_ = false;
        return out_;
    }

private:
    std::string& out_;
    bool first_ = true;
};

void append_text(std::string& out, std::string_view type, std::string_view text)
{
    out += R"({"type":)";
    append_json_string(out, type);
    out += R"(,"text":)";
    append_json_string(out, text);
    out += '}';
}

void append_image(std::string& out, const image_part& image)
{
    out += R"({"type":"input_image","image_url":)";
    if (image.url.empty()) append_data_url(out, image);
    else append_json_string(out, image.url);
    if (!image.detail.empty()) {
        out += R"(,"detail":)";
        append_json_string(out, image.detail);
    }
    out += '}';
}

/// The parts of a message that stand in `content`. Text takes the type of its side.
void append_content(std::string& out, const message& m, std::string_view text_type)
{
    item_writer parts(out);
    for (const part& p : m.parts) {
        if (const auto* text = std::get_if<text_part>(&p)) append_text(parts.next(), text_type, text->text);
        else if (const auto* image = std::get_if<image_part>(&p)) append_image(parts.next(), *image);
        else if (const auto* native = std::get_if<native_part>(&p)) {
            if (is_text(*native)) append_text(parts.next(), text_type, native->value["text"].as_string());
            else native->value.dump_to(parts.next());
        }
    }
}

void append_said(std::string& out, std::string_view role, const message& m, std::string_view text_type)
{
    out += R"({"role":)";
    append_json_string(out, role);
    out += R"(,"content":[)";
    append_content(out, m, text_type);
    out += "]}";
}

/// Whether an assistant message says anything beside its calls.
bool says_something(const message& m)
{
    bool calls = false, something = false;
    for (const part& p : m.parts) {
        if (std::holds_alternative<image_part>(p))
            throw validation_error(prefixed(openai_responses_component, "an assistant message can carry no image on this wire"));
        const auto* text = std::get_if<text_part>(&p);
        calls = calls || std::holds_alternative<tool_call>(p);
        something = something || (text != nullptr && !text->text.empty()) || std::holds_alternative<native_part>(p);
    }
    return something || (!calls && !m.content_null && !m.content_parts);
}

void append_call(std::string& out, const tool_call& call)
{
    out += R"({"type":"function_call","call_id":)";
    append_json_string(out, call.id);
    out += R"(,"name":)";
    append_json_string(out, call.name);
    out += R"(,"arguments":)";
    if (const std::string* raw = call.arguments.get_string()) append_json_string(out, *raw);
    else append_json_string(out, call.arguments.dump());
    out += '}';
}

/// Whether the service can read the block again. One that it did not store, and that carries nothing but its id, it refuses.
bool replayable(const json& block, bool stored)
{
    const std::string* type = block["type"].get_string();
    if (type == nullptr || *type != "reasoning" || stored) return true;
    const std::string* sealed = block["encrypted_content"].get_string();
    const json& content = block["content"];
    return (sealed != nullptr && !sealed->empty()) || (content.is_array() && !content.empty());
}

void append_assistant(const openai_responses_codec& codec, const message& m, std::string& out)
{
    item_writer items(out);
    const bool said = says_something(m);
    const std::vector<const tool_call*> calls = m.calls();
    // Reasoning that nothing follows is refused, and so is that of another model.
    const provider_blocks* blocks = said || !calls.empty() ? own_blocks(m, codec.provider_name()) : nullptr;
    if (blocks != nullptr && blocks->model == codec.model())
        for (const json& block : blocks->blocks.as_array())
            if (replayable(block, codec.options().store)) block.dump_to(items.next());
    if (said) append_said(items.next(), "assistant", m, "output_text");
    for (const tool_call* call : calls) append_call(items.next(), *call);
}

void append_items(const void* opaque, std::span<const message_ptr> so_far, std::size_t at, std::string& out)
{
    const message& m = *so_far[at];
    switch (m.who) {
    case role::system: return;  // stands in `instructions`
    case role::assistant: return append_assistant(*static_cast<const openai_responses_codec*>(opaque), m, out);
    case role::tool:
        out += R"({"type":"function_call_output","call_id":)";
        append_json_string(out, m.tool_call_id);
        out += R"(,"output":)";
        append_json_string(out, tool_result_text(m, openai_responses_component));
        out += '}';
        return;
    case role::user:
    case role::other:
        if (m.content_null) return;
        append_said(out, m.who == role::user ? "user" : std::string_view(m.role_name), m, "input_text");
    }
}

std::string instructions(const transcript& messages)
{
    std::string out;
    for (const message_ptr& m : messages) {
        if (m->who != role::system) continue;
        for (const part& p : m->parts) {
            const auto* native = std::get_if<native_part>(&p);
            if (std::holds_alternative<image_part>(p) || (native != nullptr && !is_text(*native)))
                throw validation_error(prefixed(openai_responses_component, "a system message can carry text only"));
        }
        const std::string text = m->text();
        if (text.empty()) continue;
        if (!out.empty()) out += "\n\n";
        out += text;
    }
    return out;
}

void append_tool_schema(const tool_schema& t, std::string& out)
{
    out += R"({"type":"function","name":)";
    append_json_string(out, t.name);
    if (!t.description.empty()) {
        out += R"(,"description":)";
        append_json_string(out, t.description);
    }
    out += R"(,"parameters":)";
    if (t.parameters.is_null()) out += R"({"type":"object","properties":{}})";
    else t.parameters.dump_to(out);
    out += R"(,"strict":false})";
}

void append_choice(std::string& out, const tool_choice& choice)
{
    using kind = tool_choice::kind;
    switch (choice.what) {
    case kind::unset: return;
    case kind::automatic: out += R"(,"tool_choice":"auto")"; return;
    case kind::required: out += R"(,"tool_choice":"required")"; return;
    case kind::none: out += R"(,"tool_choice":"none")"; return;
    case kind::named:
        out += R"(,"tool_choice":{"type":"function","name":)";
        append_json_string(out, choice.name);
        out += '}';
    }
}

}  // namespace
}  // namespace responses_wire

openai_responses_codec_options::openai_responses_codec_options() : codec_options("gpt-4o-mini", "https://api.openai.com/v1") {}

openai_responses_codec::openai_responses_codec(openai_responses_codec_options options)
    : wire_codec(openai_responses_component, "openai-responses", stream_framing::sse),
      options_(std::move(options)),
      endpoint_(options_.base_url.joined("/responses"))
{
    static constexpr std::array<std::string_view, 15> ours = {"model",  "input",  "instructions", "temperature",  "max_output_tokens",
                                                              "tools",  "store",  "tool_choice",  "reasoning",    "include",
                                                              "stream", "prompt", "background",   "conversation", "previous_response_id"};
    header_lines_ = model_detail::header_lines(openai_responses_component, options_, "Authorization", "Bearer ");
    members_ = model_detail::encoded_members(openai_responses_component, options_.members, ours);
    head_ = R"({"model":)";
    append_json_string(head_, options_.model);
    head_ += R"(,"input":[)";
    const model_info* known = find_model(options_.model);
    reasons_ = known != nullptr && known->reasons;
}

thinking_ladder openai_responses_codec::ladder(const call_plan& plan, std::optional<std::size_t> winner) const
{
    static constexpr std::array<std::string_view, 1> on = {R"("reasoning":{"effort":"medium"})"};
    static constexpr std::array<std::string_view, 2> off = {R"("reasoning":{"effort":"none"})", R"("reasoning":{"effort":"minimal"})"};
    if (!plan.mode) return {};
    return *plan.mode == thinking_mode::on ? thinking_ladder(*plan.mode, on, winner) : thinking_ladder(*plan.mode, off, winner);
}

wire_request openai_responses_codec::encode(const generate_request& request, const call_plan& plan, bool with_temperature, std::string_view thinking_members,
                                            std::string& storage) const
{
    using namespace responses_wire;
    const std::string told = instructions(request.messages);
    std::string& out = begin_body(request, storage, this, message_items(&append_items), head_, remembered_size(request.tools));
    out += ']';
    if (!told.empty()) {
        out += R"(,"instructions":)";
        append_json_string(out, told);
    }
    if (with_temperature && plan.temperature) append_number(out, R"(,"temperature":)", *plan.temperature);
    if (plan.max_tokens) {
        out += R"(,"max_output_tokens":)";
        append_unsigned(out, *plan.max_tokens);
    }
    out += encoded_tools(request.tools, R"(,"tools":[)", &append_tool_schema, "]");
    append_choice(out, plan.choice);
    out += members_;
    if (!plan.thinking.empty()) {
        const bool effort = plan.thinking.front() == '"';
        out.append(effort ? R"(,"reasoning":{"effort":)" : R"(,"reasoning":)").append(plan.thinking);
        if (effort) out += '}';
    }
    if (!thinking_members.empty()) out.append(",").append(thinking_members);
    // A model that does not reason refuses this, so a shape it refused must not leave it behind.
    if (reasons_ || !plan.thinking.empty() || !thinking_members.empty()) out += R"(,"include":["reasoning.encrypted_content"])";
    out += options_.store ? R"(,"store":true)" : R"(,"store":false)";
    if (plan.stream) out += R"(,"stream":true)";
    out += '}';
    wire_request w;
    w.target = &endpoint_;
    w.header_lines = header_lines_;
    w.body = out;
    return w;
}

}  // namespace reagent::inline v0

#include "encode_common.hpp"

#include <reagent/base/error.hpp>
#include <reagent/model/gemini_codec.hpp>
#include <reagent/model/http_failure.hpp>

#include <algorithm>
#include <array>

namespace reagent::inline v0 {

/// Named, since the encoders of all wires share a unit.
namespace gemini_wire {
namespace {

using namespace model_detail;

/// A model may be given as services list it (`models/x`, `tunedModels/x`). Whatever else it holds stays one segment of the path.
std::string model_path(std::string_view model)
{
    std::string out = "/";
    if (!model.starts_with("models/") && !model.starts_with("tunedModels/")) out += "models/";
    for (const char c : model) {
        const auto byte = static_cast<unsigned char>(c);
        const bool plain =
            (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || std::string_view("-._~/@").find(c) != std::string_view::npos;
        if (plain) {
            out += c;
            continue;
        }
        constexpr std::string_view hex = "0123456789ABCDEF";
        out += '%';
        out += hex[byte >> 4U];
        out += hex[byte & 15U];
    }
    return out;
}

/// The generation of `gemini-3-flash-preview`; 0 when the name tells none.
unsigned generation(std::string_view model) noexcept
{
    constexpr std::string_view family = "gemini-";
    const std::size_t at = model.rfind('/') == std::string_view::npos ? 0 : model.rfind('/') + 1;
    model.remove_prefix(at);
    if (!model.starts_with(family)) return 0;
    unsigned n = 0;
    for (std::size_t i = family.size(); i < model.size() && model[i] >= '0' && model[i] <= '9' && n < 1000; ++i)
        n = n * 10 + static_cast<unsigned>(model[i] - '0');
    return n;
}

/// The native turn of an assistant message that this model made, else null: another model cannot read its signatures.
const json::array_type* own_turn(const message& m, const gemini_codec& codec) noexcept
{
    const provider_blocks* b = own_blocks(m, codec.provider_name());
    return b == nullptr || b->model != codec.model() ? nullptr : &b->blocks.as_array();
}

bool blank(std::string_view text) noexcept
{
    return text.find_first_not_of(" \t\r\n\f\v") == std::string_view::npos;
}

bool says_the_same(const tool_call& call, const json& native)
{
    const std::string* name = native["name"].get_string();
    if (name == nullptr || *name != call.name) return false;
    const json& args = native["args"];
    return args.is_null() ? call.arguments.is_object() && call.arguments.empty() : args == call.arguments;
}

/// The native part of the call at `index`, null when the turn has none like it.
const json* native_call(const json::array_type* turn, const tool_call& call, std::size_t index)
{
    if (turn == nullptr) return nullptr;
    for (const json& part : *turn) {
        const json& native = part["functionCall"];
        if (!native.is_object() || index-- != 0) continue;
        return says_the_same(call, native) ? &part : nullptr;
    }
    return nullptr;
}

/// Whether the native turn still says what the message says; who edits a transcript edits the message.
bool says_the_same(const message& m, const json::array_type& turn)
{
    const std::vector<const tool_call*> calls = m.calls();
    std::size_t seen = 0;
    std::string text;
    for (const json& part : turn) {
        if (const json& native = part["functionCall"]; native.is_object()) {
            if (seen == calls.size() || !says_the_same(*calls[seen], native)) return false;
            ++seen;
        } else if (const std::string* said = part["text"].get_string(); said != nullptr && part["thought"] != json(true)) {
            text += *said;
        }
    }
    const std::string own = m.text();
    return seen == calls.size() && (text == own || (blank(text) && blank(own)));
}

void append_text(std::string& out, std::string_view text)
{
    out += R"({"text":)";
    append_json_string(out, text);
    out += '}';
}

void append_image(std::string& out, const image_part& image)
{
    const bool inline_data = image.url.empty();
    out += inline_data ? R"({"inlineData":{"mimeType":)" : R"({"fileData":{)";
    if (inline_data) {
        append_json_string(out, image.media_type);
        out += R"(,"data":)";
        append_json_string(out, image.data_base64);
    } else {
        if (!image.media_type.empty()) {
            out += R"("mimeType":)";
            append_json_string(out, image.media_type);
            out += ',';
        }
        out += R"("fileUri":)";
        append_json_string(out, image.url);
    }
    out += "}}";
}

/// The parts of a message that is no result; nothing when there are none, as the service refuses a turn without parts.
void append_parts(std::string& out, const message& m, const json::array_type* turn)
{
    const std::size_t start = out.size();
    const auto separate = [&] {
        if (out.size() != start) out += ',';
    };
    std::size_t index = 0;
    for (const part& p : m.parts) {
        if (const auto* text = std::get_if<text_part>(&p)) {
            if (m.who == role::assistant && text->text.empty()) continue;
            separate();
            append_text(out, text->text);
        } else if (const auto* image = std::get_if<image_part>(&p)) {
            separate();
            append_image(out, *image);
        } else if (const auto* native = std::get_if<native_part>(&p)) {
            if (!is_text(*native)) throw validation_error(prefixed(gemini_component, "a message can carry text and images only; this wire has no such part"));
            separate();
            append_text(out, *native->value["text"].get_string());
        } else if (const auto* call = std::get_if<tool_call>(&p)) {
            separate();
            const json* known = native_call(turn, *call, index++);
            out += R"({"functionCall":{)";
            if (const std::string* id = known == nullptr ? nullptr : (*known)["functionCall"]["id"].get_string()) {
                out += R"("id":)";
                append_json_string(out, *id);
                out += ',';
            }
            out += R"("name":)";
            append_json_string(out, call->name);
            out += R"(,"args":)";
            append_arguments(out, call->arguments);
            out += '}';
            if (const std::string* signature = known == nullptr ? nullptr : (*known)["thoughtSignature"].get_string()) {
                out += R"(,"thoughtSignature":)";
                append_json_string(out, *signature);
            }
            out += '}';
        }
    }
}

void append_result(std::string& out, const gemini_codec& codec, std::span<const message_ptr> before, const message& m)
{
    const answered_call asked = call_answered(before, m.tool_call_id);
    out += R"({"functionResponse":{)";
    if (asked.call != nullptr) {
        const json* native = native_call(own_turn(*asked.by, codec), *asked.call, asked.index);
        if (const std::string* id = native == nullptr ? nullptr : (*native)["functionCall"]["id"].get_string()) {
            out += R"("id":)";
            append_json_string(out, *id);
            out += ',';
        }
    }
    out += R"("name":)";
    append_json_string(out,
                       asked.call != nullptr         ? std::string_view(asked.call->name)
                           : !m.tool_call_id.empty() ? std::string_view(m.tool_call_id)
                                                     : std::string_view("tool"));
    out += R"(,"response":{"content":)";
    append_json_string(out, tool_result_text(m, gemini_component));
    out += "}}}";
}

bool same_content(const message& before, const message& next)
{
    return before.who == role::tool && next.who == role::tool;
}

void append_content(const void* opaque, std::span<const message_ptr> so_far, std::size_t first, std::string& out)
{
    const auto& codec = *static_cast<const gemini_codec*>(opaque);
    const message& m = *so_far[first];
    if (m.who == role::system) return;
    const std::size_t start = out.size();
    out += m.who == role::assistant ? R"({"role":"model","parts":[)" : R"({"role":"user","parts":[)";
    const std::size_t empty = out.size();
    if (m.who == role::tool) {
        for (std::size_t i = first; i < so_far.size(); ++i) {
            if (i != first) out += ',';
            append_result(out, codec, so_far.first(first), *so_far[i]);
        }
    } else {
        const json::array_type* turn = m.who == role::assistant ? own_turn(m, codec) : nullptr;
        if (turn != nullptr && says_the_same(m, *turn)) {
            for (const json& part : *turn) {
                if (&part != &turn->front()) out += ',';
                part.dump_to(out);
            }
        } else {
            append_parts(out, m, turn);
        }
    }
    if (out.size() == empty) {
        out.resize(start);
        return;
    }
    out += "]}";
}

void append_system(std::string& out, std::span<const message_ptr> messages)
{
    bool any = false;
    for (const message_ptr& m : messages) {
        if (m->who != role::system) continue;
        const std::string text = m->text();
        if (text.empty()) continue;
        out += any ? "," : R"(,"systemInstruction":{"parts":[)";
        any = true;
        append_text(out, text);
    }
    if (any) out += "]}";
}

/// Whether a schema keeps to the part of OpenAPI that `parameters` understands; all else goes into `parametersJsonSchema`.
bool is_openapi(const json& schema)
{
    static constexpr std::array<std::string_view, 18> known = {"format",   "title",   "description",   "nullable",      "maxItems",  "minItems",
                                                               "required", "example", "minProperties", "maxProperties", "minLength", "maxLength",
                                                               "pattern",  "default", "minimum",       "maximum",       "enum",      "propertyOrdering"};
    if (!schema.is_object()) return false;
    for (const auto& [key, value] : schema.as_object()) {
        if (key == "type") {
            if (!value.is_string()) return false;
        } else if (key == "properties") {
            if (!value.is_object()) return false;
            for (const auto& [name, of] : value.as_object())
                if (!is_openapi(of)) return false;
        } else if (key == "items") {
            if (!is_openapi(value)) return false;
        } else if (key == "anyOf") {
            if (!value.is_array()) return false;
            for (const json& one : value.as_array())
                if (!is_openapi(one)) return false;
        } else if (key == "enum") {
            // Its values are names there.
            if (!value.is_array()) return false;
            for (const json& one : value.as_array())
                if (!one.is_string()) return false;
        } else if (std::find(known.begin(), known.end(), key) == known.end()) {
            return false;
        }
    }
    return true;
}

void append_declaration(const tool_schema& t, std::string& out)
{
    out += R"({"name":)";
    append_json_string(out, t.name);
    if (!t.description.empty()) {
        out += R"(,"description":)";
        append_json_string(out, t.description);
    }
    if (!t.parameters.is_null()) {
        out += is_openapi(t.parameters) ? R"(,"parameters":)" : R"(,"parametersJsonSchema":)";
        t.parameters.dump_to(out);
    }
    out += '}';
}

void append_choice(std::string& out, const tool_choice& choice)
{
    using kind = tool_choice::kind;
    if (choice.empty()) return;
    out += R"(,"toolConfig":{"functionCallingConfig":{"mode":)";
    out += choice.what == kind::automatic ? R"("AUTO")" : choice.what == kind::none ? R"("NONE")" : R"("ANY")";
    if (choice.what == kind::named) {
        out += R"(,"allowedFunctionNames":[)";
        append_json_string(out, choice.name);
        out += ']';
    }
    out += "}}";
}

}  // namespace
}  // namespace gemini_wire

gemini_codec_options::gemini_codec_options() : codec_options("gemini-2.5-flash", "https://generativelanguage.googleapis.com/v1beta") {}

gemini_codec::gemini_codec(gemini_codec_options options)
    : wire_codec(gemini_component, "gemini", stream_framing::sse),
      options_(std::move(options)),
      endpoint_(options_.base_url.joined(gemini_wire::model_path(options_.model) + ":generateContent")),
      stream_endpoint_(options_.base_url.joined(gemini_wire::model_path(options_.model) + ":streamGenerateContent?alt=sse"))
{
    static constexpr std::array<std::string_view, 4> ours = {"contents", "systemInstruction", "tools", "toolConfig"};
    static constexpr std::array<std::string_view, 4> ours_in_config = {"maxOutputTokens", "temperature", "thinkingConfig", "candidateCount"};
    header_lines_ = model_detail::header_lines(gemini_component, options_, "x-goog-api-key", "");
    json members = options_.members;
    config_members_ = model_detail::encoded_members(gemini_component, model_detail::taken_member(members, "generationConfig"), ours_in_config);
    members_ = model_detail::encoded_members(gemini_component, members, ours);
}

thinking_ladder gemini_codec::ladder(const call_plan& plan, std::optional<std::size_t> winner) const
{
    // Members of thinkingConfig, which encode puts around them.
    static constexpr std::string_view high = R"("thinkingLevel":"high")", free = R"("thinkingBudget":-1)";
    static constexpr std::string_view minimal = R"("thinkingLevel":"minimal")", zero = R"("thinkingBudget":0)";
    static constexpr std::array<std::string_view, 2> on_3 = {high, free}, on_2 = {free, high}, off_3 = {minimal, zero}, off_2 = {zero, minimal};
    if (!plan.mode) return {};
    const bool by_level = gemini_wire::generation(model()) >= 3;
    if (*plan.mode == thinking_mode::on) return thinking_ladder(*plan.mode, by_level ? on_3 : on_2, winner);
    if (model() == "gemini-3.1-pro-preview") return thinking_ladder::unswitchable(*plan.mode, {});
    return thinking_ladder(*plan.mode, by_level ? off_3 : off_2, winner);
}

wire_request gemini_codec::encode(const generate_request& request, const call_plan& plan, bool with_temperature, std::string_view thinking_members,
                                  std::string& storage) const
{
    using namespace gemini_wire;
    std::string& out = begin_body(request, storage, this, message_items(&append_content, &same_content), R"({"contents":[)", remembered_size(request.tools));
    out += ']';
    append_system(out, request.messages);
    out += encoded_tools(request.tools, R"(,"tools":[{"functionDeclarations":[)", &append_declaration, "]}]");
    append_choice(out, plan.choice);
    std::string config;
    if (plan.max_tokens) {
        config += R"(,"maxOutputTokens":)";
        append_unsigned(config, *plan.max_tokens);
    }
    if (with_temperature && plan.temperature) append_number(config, R"(,"temperature":)", *plan.temperature);
    if (!plan.thinking.empty()) config.append(R"(,"thinkingConfig":)").append(plan.thinking);
    if (!thinking_members.empty()) config.append(R"(,"thinkingConfig":{)").append(thinking_members).append("}");
    config += config_members_;
    if (!config.empty()) out.append(R"(,"generationConfig":{)").append(config, 1).append("}");
    out += members_;
    out += '}';
    wire_request w;
    w.target = &endpoint(plan.stream);
    w.header_lines = header_lines_;
    w.body = out;
    return w;
}

}  // namespace reagent::inline v0

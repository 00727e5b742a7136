#include "mock_wire.hpp"

namespace reagent::inline v0::testing_detail {

/// Gemini's generateContent.
namespace mock_gemini {
namespace {

std::string finish_reason(const mock_answer& a)
{
    return finish_by(a.finish, {{"stop", "STOP"}, {"tool_calls", "STOP"}, {"length", "MAX_TOKENS"}, {"content_filter", "SAFETY"}});
}

json call_part(const mock_tool_call& c)
{
    return json::object().set("functionCall", json::object().set("id", c.id).set("name", c.name).set("args", arguments_of(c)));
}

/// `last`: with the finish reason.
std::string chunk(const mock_answer& a, json parts, bool last)
{
    json content = json::object();
    content.set("parts", std::move(parts)).set("role", "model");
    json candidate = json::object().set("content", std::move(content));
    if (last) candidate.set("finishReason", finish_reason(a));
    candidate.set("index", 0);
    json usage = json::object().set("promptTokenCount", a.input);
    if (last) usage.set("candidatesTokenCount", a.output);
    usage.set("totalTokenCount", a.input + (last ? a.output : 0));
    json j = json::object();
    j.set("candidates", list_of(std::move(candidate))).set("usageMetadata", std::move(usage));
    j.set("modelVersion", a.model).set("responseId", "mock-" + std::to_string(a.sequence));
    return j.dump();
}

std::string read(const json& j, chat_facts& out)
{
    const json& contents = j["contents"];
    if (!contents.is_array() || contents.empty()) return "contents is not specified";
    for (const json& c : contents.as_array()) {
        const std::string* role = c["role"].get_string();
        if (role != nullptr && *role == "model") {
            ++out.assistant_messages;
            continue;
        }
        bool result = false;
        if (const json& parts = c["parts"]; parts.is_array()) {
            for (const json& part : parts.as_array()) {
                const json& response = part["functionResponse"];
                if (!response.is_object()) continue;
                note_tool_result(out, response["id"].is_string() ? response["id"] : response["name"]);
                result = true;
            }
        }
        if (!result) note_user(out, c["parts"]);
    }
    out.max_tokens = j["generationConfig"]["maxOutputTokens"].get_uint64().value_or(0);
    if (const json& tools = j["tools"]; tools.is_array()) {
        for (const json& group : tools.as_array()) {
            const json& declarations = group["functionDeclarations"];
            if (!declarations.is_array()) continue;
            for (const json& d : declarations.as_array()) note_tool(out, d["name"]);
        }
    }
    return {};
}

std::string body(const mock_answer& a)
{
    json parts = json::array();
    if (a.has_text) parts.push_back(json::object().set("text", a.text));
    for (const mock_tool_call& c : a.calls) parts.push_back(call_part(c));
    return chunk(a, std::move(parts), true);
}

std::vector<wire_event> events(const mock_answer& a)
{
    std::vector<wire_event> out;
    for (const std::string_view piece : cut(a.text, a.chunk_size)) out.push_back({"", chunk(a, list_of(json::object().set("text", piece)), false)});
    for (const mock_tool_call& c : a.calls) out.push_back({"", chunk(a, list_of(call_part(c)), false)});
    // This wire has no end but its last chunk's finish reason.
    if (a.with_finish && a.with_done) out.push_back({"", chunk(a, list_of(json::object().set("text", "")), true)});
    return out;
}

std::string error(int status, std::string_view message, std::string_view type, std::string_view)
{
    if (type.empty()) {
        switch (status) {
        case 401: type = "UNAUTHENTICATED"; break;
        case 403: type = "PERMISSION_DENIED"; break;
        case 404: type = "NOT_FOUND"; break;
        case 429: type = "RESOURCE_EXHAUSTED"; break;
        case 503: type = "UNAVAILABLE"; break;
        case 504: type = "DEADLINE_EXCEEDED"; break;
        default: type = status < 500 ? "INVALID_ARGUMENT" : "INTERNAL"; break;
        }
    }
    return json::object().set("error", json::object().set("code", status).set("message", message).set("status", type)).dump();
}

wire_event error_event(int status, std::string_view message, std::size_t)
{
    return {"", error(status != 0 ? status : 500, message, {}, {})};
}

}  // namespace
}  // namespace mock_gemini

const mock_wire gemini_wire = {mock_gemini::read, mock_gemini::body, mock_gemini::events, mock_gemini::error, mock_gemini::error_event, false};

}  // namespace reagent::inline v0::testing_detail

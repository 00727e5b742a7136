#include "mock_wire.hpp"

namespace reagent::inline v0::testing_detail {

/// Anthropic's Messages.
namespace mock_messages {
namespace {

std::string stop_reason(const mock_answer& a)
{
    return finish_by(a.finish, {{"stop", "end_turn"}, {"tool_calls", "tool_use"}, {"length", "max_tokens"}, {"content_filter", "refusal"}});
}

json usage_json(const mock_answer& a, std::uint64_t output)
{
    json u = json::object();
    u.set("input_tokens", a.input).set("cache_creation_input_tokens", 0).set("cache_read_input_tokens", 0).set("output_tokens", output);
    return u;
}

json start(const mock_answer& a, json content, json stop, std::uint64_t output)
{
    json j = json::object();
    j.set("id", "msg_mock_" + std::to_string(a.sequence)).set("type", "message").set("role", "assistant").set("model", a.model);
    j.set("content", std::move(content)).set("stop_reason", std::move(stop)).set("stop_sequence", nullptr).set("usage", usage_json(a, output));
    return j;
}

json text_block(std::string_view text)
{
    return json::object().set("type", "text").set("text", text);
}

json call_block(const mock_tool_call& c, json input)
{
    return json::object().set("type", "tool_use").set("id", c.id).set("name", c.name).set("input", std::move(input));
}

std::string read(const json& j, chat_facts& out)
{
    const json& messages = j["messages"];
    if (!messages.is_array() || messages.empty()) return "messages: at least one message is required";
    const auto max = j["max_tokens"].get_uint64();
    if (!max) return "max_tokens: Field required";
    out.max_tokens = *max;
    for (const json& m : messages.as_array()) {
        const std::string* role = m["role"].get_string();
        if (role == nullptr) return "messages: a message has no role";
        if (*role == "assistant") ++out.assistant_messages;
        if (*role != "user") continue;
        const json& content = m["content"];
        bool result = false;
        if (content.is_array()) {
            for (const json& part : content.as_array()) {
                const std::string* type = part["type"].get_string();
                if (type == nullptr || *type != "tool_result") continue;
                note_tool_result(out, part["tool_use_id"]);
                result = true;
            }
        }
        if (!result) note_user(out, content);
    }
    out.stream = j["stream"].get_bool().value_or(false);
    if (const json& tools = j["tools"]; tools.is_array()) {
        for (const json& t : tools.as_array()) note_tool(out, t["name"]);
    }
    return {};
}

std::string body(const mock_answer& a)
{
    json content = json::array();
    if (a.has_text) content.push_back(text_block(a.text));
    for (const mock_tool_call& c : a.calls) content.push_back(call_block(c, arguments_of(c)));
    return start(a, std::move(content), stop_reason(a), a.output).dump();
}

std::vector<wire_event> events(const mock_answer& a)
{
    std::vector<wire_event> out;
    const auto event = [&](const char* type, json rest) {
        json j = json::object().set("type", type);
        for (auto& [key, value] : rest.as_object()) j.set(key, std::move(value));
        out.push_back({type, j.dump()});
    };
    event("message_start", json::object().set("message", start(a, json::array(), nullptr, 1)));
    std::size_t index = 0;
    const auto block = [&](json opened, const char* delta, const char* key, std::string_view text) {
        event("content_block_start", json::object().set("index", index).set("content_block", std::move(opened)));
        for (const std::string_view piece : cut(text, a.chunk_size)) {
            event("content_block_delta", json::object().set("index", index).set("delta", json::object().set("type", delta).set(key, piece)));
        }
        event("content_block_stop", json::object().set("index", index));
        ++index;
    };
    if (a.has_text) block(text_block(""), "text_delta", "text", a.text);
    for (const mock_tool_call& c : a.calls) block(call_block(c, json::object()), "input_json_delta", "partial_json", c.arguments);
    if (!a.with_finish) return out;
    json delta = json::object();
    delta.set("stop_reason", stop_reason(a)).set("stop_sequence", nullptr);
    event("message_delta", json::object().set("delta", std::move(delta)).set("usage", usage_json(a, a.output)));
    if (a.with_done) event("message_stop", json::object());
    return out;
}

std::string error(int status, std::string_view message, std::string_view type, std::string_view)
{
    if (type.empty()) {
        switch (status) {
        case 401: type = "authentication_error"; break;
        case 403: type = "permission_error"; break;
        case 404: type = "not_found_error"; break;
        case 413: type = "request_too_large"; break;
        case 429: type = "rate_limit_error"; break;
        case 529: type = "overloaded_error"; break;
        default: type = status < 500 ? "invalid_request_error" : "api_error"; break;
        }
    }
    return json::object().set("type", "error").set("error", json::object().set("type", type).set("message", message)).dump();
}

wire_event error_event(int status, std::string_view message, std::size_t)
{
    return {"error", error(status != 0 ? status : 529, message, {}, {})};
}

}  // namespace
}  // namespace mock_messages

const mock_wire messages_wire = {mock_messages::read, mock_messages::body, mock_messages::events, mock_messages::error, mock_messages::error_event, false};

}  // namespace reagent::inline v0::testing_detail

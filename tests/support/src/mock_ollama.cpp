#include "mock_wire.hpp"

namespace reagent::inline v0::testing_detail {

/// Ollama's chat: streams unless told not to, in lines.
namespace mock_ollama {
namespace {

json line(const mock_answer& a, json message, bool done)
{
    json j = json::object();
    j.set("model", a.model).set("created_at", "2025-06-15T15:06:40Z").set("message", std::move(message)).set("done", done);
    return j;
}

json message_json(std::string_view text)
{
    return json::object().set("role", "assistant").set("content", text);
}

json call_json(const mock_tool_call& c)
{
    return json::object().set("id", c.id).set("function", json::object().set("name", c.name).set("arguments", arguments_of(c)));
}

std::string last_line(const mock_answer& a, json message)
{
    json j = line(a, std::move(message), true);
    j.set("done_reason", finish_by(a.finish, {{"tool_calls", "stop"}})).set("total_duration", 2'000'000).set("load_duration", 0);
    j.set("prompt_eval_count", a.input).set("prompt_eval_duration", 1'000'000).set("eval_count", a.output).set("eval_duration", 1'000'000);
    return j.dump();
}

std::string read(const json& j, chat_facts& out)
{
    const json& messages = j["messages"];
    if (!messages.is_array() || messages.empty()) return "messages must be an array with one element at least";
    for (const json& m : messages.as_array()) {
        const std::string* role = m["role"].get_string();
        if (role == nullptr) return "a message has no role";
        if (*role == "user") note_user(out, m["content"]);
        else if (*role == "assistant") ++out.assistant_messages;
        else if (*role == "tool") note_tool_result(out, m["tool_call_id"].is_string() ? m["tool_call_id"] : m["tool_name"]);
    }
    out.stream = j["stream"].get_bool().value_or(true);
    out.max_tokens = j["options"]["num_predict"].get_uint64().value_or(0);
    if (const json& tools = j["tools"]; tools.is_array()) {
        for (const json& t : tools.as_array()) note_tool(out, t["function"]["name"]);
    }
    return {};
}

std::string body(const mock_answer& a)
{
    json message = message_json(a.text);
    if (!a.calls.empty()) {
        json calls = json::array();
        for (const mock_tool_call& c : a.calls) calls.push_back(call_json(c));
        message.set("tool_calls", std::move(calls));
    }
    return last_line(a, std::move(message));
}

std::vector<wire_event> events(const mock_answer& a)
{
    std::vector<wire_event> out;
    for (const std::string_view piece : cut(a.text, a.chunk_size)) out.push_back({"", line(a, message_json(piece), false).dump()});
    for (const mock_tool_call& c : a.calls) out.push_back({"", line(a, message_json("").set("tool_calls", list_of(call_json(c))), false).dump()});
    // This wire has no end but its last line.
    if (a.with_finish && a.with_done) out.push_back({"", last_line(a, message_json(""))});
    return out;
}

std::string error(int, std::string_view message, std::string_view, std::string_view)
{
    return json::object().set("error", message).dump();
}

wire_event error_event(int, std::string_view message, std::size_t)
{
    return {"", json::object().set("error", message).dump()};
}

}  // namespace
}  // namespace mock_ollama

const mock_wire ollama_wire = {mock_ollama::read, mock_ollama::body, mock_ollama::events, mock_ollama::error, mock_ollama::error_event, true};

}  // namespace reagent::inline v0::testing_detail

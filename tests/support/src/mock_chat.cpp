#include "mock_wire.hpp"

namespace reagent::inline v0::testing_detail {

/// OpenAI's chat completions.
namespace mock_chat {
namespace {

json usage_json(const mock_answer& a)
{
    return json::object().set("prompt_tokens", a.input).set("completion_tokens", a.output).set("total_tokens", a.input + a.output);
}

json start(const mock_answer& a, const char* object)
{
    json j = json::object();
    j.set("id", "chatcmpl-mock-" + std::to_string(a.sequence)).set("object", object).set("created", 1'750'000'000).set("model", a.model);
    return j;
}

json call_json(const mock_tool_call& c, std::string_view arguments)
{
    json f = json::object();
    f.set("name", c.name).set("arguments", arguments);
    return json::object().set("id", c.id).set("type", "function").set("function", std::move(f));
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
        else if (*role == "tool") note_tool_result(out, m["tool_call_id"]);
    }
    out.stream = j["stream"].get_bool().value_or(false);
    out.include_usage = j["stream_options"]["include_usage"].get_bool().value_or(false);
    for (const char* key : {"max_tokens", "max_completion_tokens"}) {
        if (const auto n = j[key].get_uint64()) out.max_tokens = *n;
    }
    if (const json& tools = j["tools"]; tools.is_array()) {
        for (const json& t : tools.as_array()) note_tool(out, t["function"]["name"]);
    }
    return {};
}

std::string body(const mock_answer& a)
{
    json message = json::object();
    message.set("role", "assistant");
    message.set("content", a.has_text ? json(a.text) : json());
    if (!a.calls.empty()) {
        json calls = json::array();
        for (const mock_tool_call& c : a.calls) calls.push_back(call_json(c, c.arguments));
        message.set("tool_calls", std::move(calls));
    }
    json choice = json::object();
    choice.set("index", 0).set("message", std::move(message)).set("finish_reason", a.finish);
    return start(a, "chat.completion").set("choices", list_of(std::move(choice))).set("usage", usage_json(a)).dump();
}

std::vector<wire_event> events(const mock_answer& a)
{
    std::vector<wire_event> out;
    const auto chunk = [&](json delta, json finish) {
        json choice = json::object();
        choice.set("index", 0).set("delta", std::move(delta)).set("finish_reason", std::move(finish));
        out.push_back({"", start(a, "chat.completion.chunk").set("choices", list_of(std::move(choice))).dump()});
    };
    chunk(json::object().set("role", "assistant").set("content", a.has_text ? json("") : json()), nullptr);
    for (const std::string_view piece : cut(a.text, a.chunk_size)) chunk(json::object().set("content", piece), nullptr);
    for (std::size_t i = 0; i < a.calls.size(); ++i) {
        const auto fragment = [&](json call) { chunk(json::object().set("tool_calls", list_of(std::move(call))), nullptr); };
        json first = json::object().set("index", i);
        const json whole = call_json(a.calls[i], "");
        for (const auto& [key, value] : whole.as_object()) first.set(key, value);
        fragment(std::move(first));
        for (const std::string_view piece : cut(a.calls[i].arguments, a.chunk_size)) {
            fragment(json::object().set("index", i).set("function", json::object().set("arguments", piece)));
        }
    }
    if (!a.with_finish) return out;
    chunk(json::object(), a.finish);
    if (a.include_usage) out.push_back({"", start(a, "chat.completion.chunk").set("choices", json::array()).set("usage", usage_json(a)).dump()});
    if (a.with_done) out.push_back({"", "[DONE]"});
    return out;
}

std::string error(int status, std::string_view message, std::string_view type, std::string_view code)
{
    if (type.empty()) type = status == 429 ? "rate_limit_error" : status < 500 ? "invalid_request_error" : "server_error";
    if (code.empty() && status == 429) code = "rate_limit_exceeded";
    json e = json::object();
    e.set("message", message).set("type", type).set("code", code.empty() ? json() : json(code));
    return json::object().set("error", std::move(e)).dump();
}

wire_event error_event(int status, std::string_view message, std::size_t)
{
    json e = json::object();
    e.set("message", message).set("type", "server_error").set("code", status != 0 ? json(status) : json());
    return {"", json::object().set("error", std::move(e)).dump()};
}

}  // namespace
}  // namespace mock_chat

const mock_wire chat_wire = {mock_chat::read, mock_chat::body, mock_chat::events, mock_chat::error, mock_chat::error_event, false};

}  // namespace reagent::inline v0::testing_detail

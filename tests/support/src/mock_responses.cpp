#include "mock_wire.hpp"

namespace reagent::inline v0::testing_detail {

/// OpenAI's Responses.
namespace mock_responses {
namespace {

std::string number(const mock_answer& a)
{
    return "mock_" + std::to_string(a.sequence);
}

json part_json(std::string_view text)
{
    return json::object().set("type", "output_text").set("text", text).set("annotations", json::array()).set("logprobs", json::array());
}

json message_item(const mock_answer& a, const char* status, json content)
{
    json j = json::object();
    j.set("id", "msg_" + number(a)).set("type", "message").set("status", status).set("role", "assistant").set("content", std::move(content));
    return j;
}

json call_item(const mock_answer& a, std::size_t i, const char* status, std::string_view arguments)
{
    const mock_tool_call& c = a.calls[i];
    json j = json::object();
    j.set("id", "fc_" + number(a) + '_' + std::to_string(i + 1)).set("type", "function_call").set("status", status);
    j.set("call_id", c.id).set("name", c.name).set("arguments", arguments);
    return j;
}

/// What stands in the place of a finish reason; empty for an answer that is whole.
std::string incomplete(const mock_answer& a)
{
    return finish_by(a.finish, {{"stop", ""}, {"tool_calls", ""}, {"length", "max_output_tokens"}});
}

json start(const mock_answer& a, const char* status, json output)
{
    json j = json::object();
    j.set("id", "resp_" + number(a)).set("object", "response").set("created_at", 1'750'000'000).set("status", status).set("error", nullptr);
    j.set("incomplete_details", nullptr).set("instructions", nullptr).set("model", a.model).set("output", std::move(output));
    j.set("parallel_tool_calls", true).set("tool_choice", "auto").set("tools", json::array()).set("usage", nullptr);
    return j;
}

json whole(const mock_answer& a)
{
    json output = json::array();
    if (a.has_text) output.push_back(message_item(a, "completed", list_of(part_json(a.text))));
    for (std::size_t i = 0; i < a.calls.size(); ++i) output.push_back(call_item(a, i, "completed", a.calls[i].arguments));
    const std::string reason = incomplete(a);
    json j = start(a, reason.empty() ? "completed" : "incomplete", std::move(output));
    if (!reason.empty()) j.set("incomplete_details", json::object().set("reason", reason));
    json u = json::object();
    u.set("input_tokens", a.input).set("input_tokens_details", json::object().set("cached_tokens", 0)).set("output_tokens", a.output);
    u.set("output_tokens_details", json::object().set("reasoning_tokens", 0)).set("total_tokens", a.input + a.output);
    j.set("usage", std::move(u));
    return j;
}

std::string read(const json& j, chat_facts& out)
{
    const json& input = j["input"];
    if (input.is_string()) {
        note_user(out, input);
    } else {
        if (!input.is_array() || input.empty()) return "input must be a string or an array with one element at least";
        bool in_turn = false;  // a message and its calls are items of their own
        for (const json& item : input.as_array()) {
            const std::string* role = item["role"].get_string();
            const std::string* type = item["type"].get_string();
            if (role == nullptr && type == nullptr) return "an input item has neither role nor type";
            const bool assistant = role != nullptr ? *role == "assistant" : *type == "function_call";
            if (assistant && !in_turn) ++out.assistant_messages;
            in_turn = assistant;
            if (role != nullptr && *role == "user") note_user(out, item["content"]);
            else if (role == nullptr && *type == "function_call_output") note_tool_result(out, item["call_id"]);
        }
    }
    out.stream = j["stream"].get_bool().value_or(false);
    out.max_tokens = j["max_output_tokens"].get_uint64().value_or(0);
    if (const json& tools = j["tools"]; tools.is_array()) {
        for (const json& t : tools.as_array()) note_tool(out, t["name"]);
    }
    return {};
}

std::string body(const mock_answer& a)
{
    return whole(a).dump();
}

std::vector<wire_event> events(const mock_answer& a)
{
    std::vector<wire_event> out;
    const auto event = [&](const std::string& type, json rest) {
        json j = json::object().set("type", type).set("sequence_number", out.size());
        for (auto& [key, value] : rest.as_object()) j.set(key, std::move(value));
        out.push_back({type, j.dump()});
    };
    std::size_t index = 0;
    const auto at = [&](const json& item) { return json::object().set("item_id", item["id"]).set("output_index", index); };
    const auto item_event = [&](const char* type, json item) { event(type, json::object().set("output_index", index).set("item", std::move(item))); };
    event("response.created", json::object().set("response", start(a, "in_progress", json::array())));
    event("response.in_progress", json::object().set("response", start(a, "in_progress", json::array())));
    if (a.has_text) {
        const json item = message_item(a, "in_progress", json::array());
        item_event("response.output_item.added", item);
        event("response.content_part.added", at(item).set("content_index", 0).set("part", part_json("")));
        for (const std::string_view piece : cut(a.text, a.chunk_size)) {
            event("response.output_text.delta", at(item).set("content_index", 0).set("delta", piece).set("logprobs", json::array()));
        }
        event("response.output_text.done", at(item).set("content_index", 0).set("text", a.text).set("logprobs", json::array()));
        event("response.content_part.done", at(item).set("content_index", 0).set("part", part_json(a.text)));
        item_event("response.output_item.done", message_item(a, "completed", list_of(part_json(a.text))));
        ++index;
    }
    for (std::size_t i = 0; i < a.calls.size(); ++i, ++index) {
        const json item = call_item(a, i, "in_progress", "");
        item_event("response.output_item.added", item);
        for (const std::string_view piece : cut(a.calls[i].arguments, a.chunk_size)) {
            event("response.function_call_arguments.delta", at(item).set("delta", piece));
        }
        event("response.function_call_arguments.done", at(item).set("name", a.calls[i].name).set("arguments", a.calls[i].arguments));
        item_event("response.output_item.done", call_item(a, i, "completed", a.calls[i].arguments));
    }
    if (!a.with_finish || !a.with_done) return out;
    event(incomplete(a).empty() ? "response.completed" : "response.incomplete", json::object().set("response", whole(a)));
    return out;
}

std::string error(int status, std::string_view message, std::string_view type, std::string_view code)
{
    return chat_wire.error(status, message, type, code);
}

wire_event error_event(int status, std::string_view message, std::size_t at)
{
    json j = json::object();
    j.set("type", "error").set("sequence_number", at).set("code", status == 429 ? "rate_limit_exceeded" : "server_error");
    j.set("message", message).set("param", nullptr);
    return {"error", j.dump()};
}

}  // namespace
}  // namespace mock_responses

const mock_wire responses_wire = {mock_responses::read,  mock_responses::body,        mock_responses::events,
                                  mock_responses::error, mock_responses::error_event, false};

}  // namespace reagent::inline v0::testing_detail

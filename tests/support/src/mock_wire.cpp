#include "mock_wire.hpp"

#include <reagent/net/http_reason.hpp>

#include <algorithm>
#include <array>
#include <cstdio>

namespace reagent::inline v0::testing_detail {

namespace {

// `HTTP/1.1 <status> <reason>` and what every answer of the mock has, without the blank line.
std::string mock_head(int status, std::string_view content_type, bool keep_alive)
{
    std::string out = "HTTP/1.1 " + std::to_string(status) + ' ' + std::string(http_reason(static_cast<unsigned>(status))) + "\r\nContent-Type: ";
    out += content_type;
    out += "\r\n";
    if (!keep_alive) out += "Connection: close\r\n";
    return out;
}

using testing::mock_tool_call;
using testing::mock_usage;

std::string text_of(const json& content)
{
    if (const std::string* s = content.get_string()) return *s;
    std::string out;
    if (!content.is_array()) return out;
    for (const json& part : content.as_array()) {
        if (const std::string* s = part["text"].get_string()) out += (out.empty() ? "" : "\n") + *s;
    }
    return out;
}

/// Cuts `text` every `size` bytes, never inside a character.
std::vector<std::string_view> cut(std::string_view text, std::uint64_t size)
{
    std::vector<std::string_view> out;
    while (!text.empty()) {
        std::size_t n = std::min<std::uint64_t>(size, text.size());
        while (n < text.size() && (static_cast<unsigned char>(text[n]) & 0xC0U) == 0x80U) ++n;
        out.push_back(text.substr(0, n));
        text.remove_prefix(n);
    }
    return out;
}

json usage_json(std::uint64_t input, std::uint64_t output)
{
    return json::object().set("prompt_tokens", input).set("completion_tokens", output).set("total_tokens", input + output);
}

class answer {
public:
    answer(const chat_facts& facts, const mock_fixture& fixture, const mock_fault& fault, const answer_request& request)
        : facts_(facts), fixture_(fixture), fault_(fault), request_(request)
    {
        if (fixture.response.echo) content_ = "You said: " + facts.last_user;
        if (fixture.response.content) content_ = *fixture.response.content;
        calls_ = fixture.response.tool_calls;
        for (std::size_t i = 0; i < calls_.size(); ++i) {
            if (calls_[i].id.empty()) calls_[i].id = "call_" + std::to_string(request.sequence) + '_' + std::to_string(i + 1);
            // A character is dropped at least, so that the text is never whole.
            if (fault.kind == mock_fault_kind::truncated_arguments) calls_[i].arguments.resize(calls_[i].arguments.size() / 2);
        }
        finish_ = !fixture.response.finish_reason.empty() ? fixture.response.finish_reason : calls_.empty() ? "stop" : "tool_calls";
        count_usage();
    }

    answer_plan as_json() const
    {
        json message = json::object();
        message.set("role", "assistant");
        message.set("content", has_content() ? json(content_) : json());
        if (!calls_.empty()) {
            json calls = json::array();
            for (const mock_tool_call& c : calls_) calls.push_back(call_json(c, c.arguments));
            message.set("tool_calls", std::move(calls));
        }
        json choice = json::object();
        choice.set("index", 0).set("message", std::move(message)).set("finish_reason", finish_);
        json body = start("chat.completion");
        json choices = json::array();
        choices.push_back(std::move(choice));
        body.set("choices", std::move(choices)).set("usage", usage_json(input_, output_));
        std::string text = body.dump();
        if (fault_.kind == mock_fault_kind::malformed_json) text.resize(text.size() * 2 / 3);
        return counted(plan_body(200, "application/json", text, request_.keep_alive));
    }

    answer_plan as_stream() const
    {
        answer_plan p;
        p.bytes = mock_head(200, "text/event-stream", request_.keep_alive) + "Cache-Control: no-cache\r\nTransfer-Encoding: chunked\r\n\r\n";
        std::vector<std::string> events = stream_events();
        if (fault_.kind == mock_fault_kind::error_event) {
            const std::size_t all = events.size();
            events.resize(std::min<std::uint64_t>(fault_.after_events, all));
            p.output_tokens = output_ * events.size() / all;
            events.push_back(error_json(fault_.message, "server_error", fault_.status));
        } else if (fault_.kind == mock_fault_kind::malformed_json) {
            std::string& victim = events[events.size() / 2];
            victim.resize(victim.size() * 2 / 3);
        }
        for (const std::string& e : events) {
            std::array<char, 24> size{};
            std::snprintf(size.data(), size.size(), "%zx\r\n", e.size() + 8);
            p.bytes += size.data();
            p.bytes += "data: " + e + "\n\n\r\n";
            p.pieces.push_back(p.bytes.size());
        }
        p.bytes += "0\r\n\r\n";
        p.pieces.back() = p.bytes.size();
        const std::uint64_t shortened = p.output_tokens;
        p = counted(std::move(p));
        if (fault_.kind == mock_fault_kind::error_event) p.output_tokens = shortened;
        return p;
    }

    static std::string error_json(std::string_view message, std::string_view type, int code)
    {
        json e = json::object();
        e.set("message", message).set("type", type).set("code", code != 0 ? json(code) : json());
        return json::object().set("error", std::move(e)).dump();
    }

private:
    bool has_content() const { return fixture_.response.echo || fixture_.response.content.has_value(); }

    void count_usage()
    {
        std::size_t bytes = content_.size();
        for (const mock_tool_call& c : calls_) bytes += c.name.size() + c.arguments.size();
        switch (fixture_.usage) {
        case mock_usage::estimated:
            input_ = (request_.body_bytes + 3) / 4;
            output_ = std::min<std::uint64_t>(std::max<std::size_t>(1, (bytes + 3) / 4), request_.max_tokens);
            break;
        case mock_usage::worst_case:
            input_ = request_.body_bytes;
            output_ = request_.max_tokens;
            break;
        case mock_usage::given:
            input_ = fixture_.prompt_tokens;
            output_ = fixture_.completion_tokens;
            break;
        }
    }

    answer_plan counted(answer_plan p) const
    {
        p.input_tokens = input_;
        p.output_tokens = output_;
        return p;
    }

    json start(const char* object) const
    {
        json j = json::object();
        j.set("id", "chatcmpl-mock-" + std::to_string(request_.sequence)).set("object", object).set("created", 1'750'000'000).set("model", facts_.model);
        return j;
    }

    static json call_json(const mock_tool_call& c, std::string_view arguments)
    {
        json f = json::object();
        f.set("name", c.name).set("arguments", arguments);
        return json::object().set("id", c.id).set("type", "function").set("function", std::move(f));
    }

    std::string chunk(json delta, json finish) const
    {
        json choice = json::object();
        choice.set("index", 0).set("delta", std::move(delta)).set("finish_reason", std::move(finish));
        json choices = json::array();
        choices.push_back(std::move(choice));
        return start("chat.completion.chunk").set("choices", std::move(choices)).dump();
    }

    std::vector<std::string> stream_events() const
    {
        const std::uint64_t size = fixture_.chunk_size.value_or(request_.chunk_size);
        std::vector<std::string> out;
        out.push_back(chunk(json::object().set("role", "assistant").set("content", has_content() ? json("") : json()), nullptr));
        for (const std::string_view piece : cut(content_, size)) out.push_back(chunk(json::object().set("content", piece), nullptr));
        for (std::size_t i = 0; i < calls_.size(); ++i) {
            const auto fragment = [&](json call) {
                json calls = json::array();
                calls.push_back(std::move(call));
                out.push_back(chunk(json::object().set("tool_calls", std::move(calls)), nullptr));
            };
            json first = json::object().set("index", i);
            const json whole = call_json(calls_[i], "");
            for (const auto& [key, value] : whole.as_object()) first.set(key, value);
            fragment(std::move(first));
            for (const std::string_view piece : cut(calls_[i].arguments, size)) {
                fragment(json::object().set("index", i).set("function", json::object().set("arguments", piece)));
            }
        }
        if (fault_.kind == mock_fault_kind::missing_finish) return out;
        out.push_back(chunk(json::object(), finish_));
        if (facts_.include_usage) {
            out.push_back(start("chat.completion.chunk").set("choices", json::array()).set("usage", usage_json(input_, output_)).dump());
        }
        if (fault_.kind != mock_fault_kind::missing_done) out.emplace_back("[DONE]");
        return out;
    }

    const chat_facts& facts_;
    const mock_fixture& fixture_;
    const mock_fault& fault_;
    const answer_request& request_;
    std::string content_, finish_;
    std::vector<mock_tool_call> calls_;
    std::uint64_t input_ = 0, output_ = 0;
};

void cut_after(answer_plan& p, std::uint64_t bytes, plan_end end)
{
    const std::size_t n = std::min<std::uint64_t>(bytes, p.bytes.size());
    p.full_size = p.bytes.size();
    p.bytes.resize(n);
    while (!p.pieces.empty() && p.pieces.back() >= n) p.pieces.pop_back();
    p.pieces.push_back(n);
    p.end = end;
}

}  // namespace

std::string read_chat(std::string_view body, chat_facts& out)
{
    std::size_t offset = 0;
    const auto parsed = json::parse(body, json::parse_options(), offset);
    if (!parsed) return "the body is not JSON at byte " + std::to_string(offset);
    const json& j = *parsed;
    if (!j.is_object()) return "the body is not an object";
    const std::string* model = j["model"].get_string();
    if (model == nullptr) return "model must be a string";
    out.model = *model;
    const json& messages = j["messages"];
    if (!messages.is_array() || messages.empty()) return "messages must be an array with one element at least";
    for (const json& m : messages.as_array()) {
        const std::string* role = m["role"].get_string();
        if (role == nullptr) return "a message has no role";
        if (*role == "user") {
            out.last_user = text_of(m["content"]);
            out.has_tool_result = false;
        } else if (*role == "assistant") {
            ++out.assistant_messages;
        } else if (*role == "tool") {
            out.has_tool_result = true;
            if (const std::string* id = m["tool_call_id"].get_string()) out.last_tool_call_id = *id;
        }
    }
    out.stream = j["stream"].get_bool().value_or(false);
    out.include_usage = j["stream_options"]["include_usage"].get_bool().value_or(false);
    for (const char* key : {"max_tokens", "max_completion_tokens"}) {
        if (const auto n = j[key].get_uint64()) out.max_tokens = *n;
    }
    if (const json& tools = j["tools"]; tools.is_array()) {
        for (const json& t : tools.as_array()) {
            if (const std::string* name = t["function"]["name"].get_string()) out.tools.push_back(*name);
        }
    }
    return {};
}

bool holds(const testing::mock_match& m, const chat_facts& facts)
{
    if (m.user_message && facts.last_user.find(*m.user_message) == std::string::npos) return false;
    if (m.has_tool_result && *m.has_tool_result != facts.has_tool_result) return false;
    if (m.turn_index && *m.turn_index != facts.assistant_messages) return false;
    if (m.tool_name && std::find(facts.tools.begin(), facts.tools.end(), *m.tool_name) == facts.tools.end()) return false;
    if (m.tool_call_id && *m.tool_call_id != facts.last_tool_call_id) return false;
    return !m.model || *m.model == facts.model;
}

answer_plan plan_body(int status, std::string_view content_type, std::string_view body, bool keep_alive)
{
    answer_plan p;
    p.status = status;
    p.bytes = mock_head(status, content_type, keep_alive) + "Content-Length: " + std::to_string(body.size()) + "\r\n\r\n";
    p.bytes += body;
    p.pieces.push_back(p.bytes.size());
    return p;
}

std::string error_body(std::string_view message, std::string_view type, std::string_view code)
{
    json e = json::object();
    e.set("message", message).set("type", type).set("code", code.empty() ? json() : json(code));
    return json::object().set("error", std::move(e)).dump();
}

answer_plan plan_error(int status, std::string_view message, std::string_view type, std::string_view code, bool keep_alive, std::uint64_t retry_after_s)
{
    const std::string body = error_body(message, type, code);
    answer_plan p;
    p.status = status;
    p.bytes = mock_head(status, "application/json", keep_alive);
    if (retry_after_s > 0) p.bytes += "Retry-After: " + std::to_string(retry_after_s) + "\r\n";
    p.bytes += "Content-Length: " + std::to_string(body.size()) + "\r\n\r\n" + body;
    p.pieces.push_back(p.bytes.size());
    return p;
}

answer_plan plan_answer(const chat_facts& facts, const mock_fixture& fixture, const mock_fault& fault, const answer_request& request)
{
    const auto failing = [&](int status, std::string_view message, std::string_view type, std::string_view code) {
        const bool wait = status == 429 || status == 503;
        if (type.empty()) type = status == 429 ? "rate_limit_error" : status < 500 ? "invalid_request_error" : "server_error";
        if (code.empty() && status == 429) code = "rate_limit_exceeded";
        return plan_error(status, message, type, code, request.keep_alive, wait ? fault.retry_after_s : 0);
    };
    if (fault.kind == mock_fault_kind::status || (fault.kind == mock_fault_kind::error_event && !facts.stream)) {
        return failing(fault.status != 0 ? fault.status : 500, fault.message, {}, {});
    }
    if (fault.kind == mock_fault_kind::html) {
        const int status = fault.status != 0 ? fault.status : 502;
        return plan_body(status, "text/html; charset=utf-8",
                         "<html><head><title>" + std::to_string(status) + "</title></head><body><h1>" + fault.message + "</h1></body></html>\n",
                         request.keep_alive);
    }
    answer_plan p;
    if (fixture.response.error_message) {
        p = failing(fixture.response.status.value_or(500), *fixture.response.error_message, fixture.response.error_type, fixture.response.error_code);
    } else {
        const answer a(facts, fixture, fault, request);
        p = facts.stream ? a.as_stream() : a.as_json();
    }
    switch (fault.kind) {
    case mock_fault_kind::reset: cut_after(p, fault.after_bytes, plan_end::reset); break;
    case mock_fault_kind::close: cut_after(p, fault.after_bytes, plan_end::close); break;
    case mock_fault_kind::stall: cut_after(p, fault.after_bytes, plan_end::stall); break;
    case mock_fault_kind::trickle: p.trickle = true; break;
    default: break;
    }
    if (p.end == plan_end::keep && !request.keep_alive) p.end = plan_end::close;
    return p;
}

}  // namespace reagent::inline v0::testing_detail

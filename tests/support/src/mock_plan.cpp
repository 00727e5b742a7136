#include "mock_plan.hpp"

#include <reagent/net/http_reason.hpp>

#include <algorithm>
#include <array>
#include <cstdio>

namespace reagent::inline v0::testing_detail {

namespace {

using testing::mock_usage;

// `HTTP/1.1 <status> <reason>` and what every answer of the mock has, without the blank line.
std::string mock_head(int status, std::string_view content_type, bool keep_alive)
{
    std::string out = "HTTP/1.1 " + std::to_string(status) + ' ' + std::string(http_reason(static_cast<unsigned>(status))) + "\r\nContent-Type: ";
    out += content_type;
    out += "\r\n";
    if (!keep_alive) out += "Connection: close\r\n";
    return out;
}

void count_usage(mock_answer& a, const mock_fixture& fixture, const answer_request& request)
{
    std::size_t bytes = a.text.size();
    for (const mock_tool_call& c : a.calls) bytes += c.name.size() + c.arguments.size();
    switch (fixture.usage) {
    case mock_usage::estimated:
        a.input = (request.body_bytes + 3) / 4;
        a.output = std::min<std::uint64_t>(std::max<std::size_t>(1, (bytes + 3) / 4), request.max_tokens);
        break;
    case mock_usage::worst_case:
        a.input = request.body_bytes;
        a.output = request.max_tokens;
        break;
    case mock_usage::given:
        a.input = fixture.prompt_tokens;
        a.output = fixture.completion_tokens;
        break;
    }
}

mock_answer answer_of(const chat_facts& facts, const mock_fixture& fixture, const mock_fault& fault, const answer_request& request)
{
    mock_answer a;
    a.sequence = request.sequence;
    a.model = facts.model;
    a.has_text = fixture.response.echo || fixture.response.content.has_value();
    if (fixture.response.echo) a.text = "You said: " + facts.last_user;
    if (fixture.response.content) a.text = *fixture.response.content;
    a.calls = fixture.response.tool_calls;
    for (std::size_t i = 0; i < a.calls.size(); ++i) {
        if (a.calls[i].id.empty()) a.calls[i].id = "call_" + std::to_string(request.sequence) + '_' + std::to_string(i + 1);
        // A character is dropped at least, so that the text is never whole.
        if (fault.kind == mock_fault_kind::truncated_arguments) a.calls[i].arguments.resize(a.calls[i].arguments.size() / 2);
    }
    a.finish = !fixture.response.finish_reason.empty() ? fixture.response.finish_reason : a.calls.empty() ? "stop" : "tool_calls";
    a.chunk_size = fixture.chunk_size.value_or(request.chunk_size);
    a.include_usage = facts.include_usage;
    a.with_finish = fault.kind != mock_fault_kind::missing_finish;
    a.with_done = fault.kind != mock_fault_kind::missing_done;
    count_usage(a, fixture, request);
    return a;
}

answer_plan as_json(const mock_answer& a, const mock_fault& fault, const answer_request& request)
{
    std::string text = request.wire->body(a);
    if (fault.kind == mock_fault_kind::malformed_json) text.resize(text.size() * 2 / 3);
    answer_plan p = plan_body(200, "application/json", text, request.keep_alive);
    p.input_tokens = a.input;
    p.output_tokens = a.output;
    return p;
}

answer_plan as_stream(const mock_answer& a, const mock_fault& fault, const answer_request& request)
{
    const mock_wire& wire = *request.wire;
    answer_plan p;
    p.input_tokens = a.input;
    p.output_tokens = a.output;
    p.bytes = mock_head(200, wire.lines ? "application/x-ndjson" : "text/event-stream", request.keep_alive);
    p.bytes += "Cache-Control: no-cache\r\nTransfer-Encoding: chunked\r\n\r\n";
    std::vector<wire_event> events = wire.events(a);
    if (fault.kind == mock_fault_kind::error_event) {
        const std::size_t all = std::max<std::size_t>(events.size(), 1);
        events.resize(std::min<std::uint64_t>(fault.after_events, events.size()));
        p.output_tokens = a.output * events.size() / all;
        events.push_back(wire.error_event(fault.status, fault.message, events.size()));
    } else if (fault.kind == mock_fault_kind::malformed_json && !events.empty()) {
        std::string& victim = events[events.size() / 2].data;
        victim.resize(victim.size() * 2 / 3);
    }
    for (const wire_event& e : events) {
        std::string text;
        if (wire.lines) text = e.data + '\n';
        else text = (e.type.empty() ? std::string() : "event: " + e.type + '\n') + "data: " + e.data + "\n\n";
        std::array<char, 24> size{};
        std::snprintf(size.data(), size.size(), "%zx\r\n", text.size());
        p.bytes += size.data();
        p.bytes += text + "\r\n";
        p.pieces.push_back(p.bytes.size());
    }
    p.bytes += "0\r\n\r\n";
    if (p.pieces.empty()) p.pieces.push_back(0);
    p.pieces.back() = p.bytes.size();
    return p;
}

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

answer_plan plan_error(int status, std::string_view body, bool keep_alive, std::uint64_t retry_after_s)
{
    answer_plan p;
    p.status = status;
    p.bytes = mock_head(status, "application/json", keep_alive);
    if (retry_after_s > 0) p.bytes += "Retry-After: " + std::to_string(retry_after_s) + "\r\n";
    p.bytes += "Content-Length: " + std::to_string(body.size()) + "\r\n\r\n";
    p.bytes += body;
    p.pieces.push_back(p.bytes.size());
    return p;
}

answer_plan plan_answer(const chat_facts& facts, const mock_fixture& fixture, const mock_fault& fault, const answer_request& request)
{
    const auto failing = [&](int status, std::string_view message, std::string_view type, std::string_view code) {
        const bool wait = status == 429 || status == 503;
        return plan_error(status, request.wire->error(status, message, type, code), request.keep_alive, wait ? fault.retry_after_s : 0);
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
        const mock_answer a = answer_of(facts, fixture, fault, request);
        p = facts.stream ? as_stream(a, fault, request) : as_json(a, fault, request);
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

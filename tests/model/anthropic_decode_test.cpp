#include "anthropic_events.hpp"

#include <gtest/gtest.h>

#include <random>

namespace {
namespace anthropic_decode_test {

using namespace reagent;
using namespace reagent::anthropic_events_detail;

/// A block as one piece and as a stream.
class said {
public:
    std::string block;
    std::vector<std::string> events;  ///< with the index to be
};

std::vector<std::string> cut(const std::string& text, std::mt19937& random)
{
    std::vector<std::string> out;
    for (std::size_t at = 0; at < text.size();) {
        const std::size_t n = std::min<std::size_t>(1 + random() % 5, text.size() - at);
        out.push_back(text.substr(at, n));
        at += n;
    }
    return out;
}

said random_block(int index, std::mt19937& random)
{
    const auto pick = [&](std::uint32_t n) { return static_cast<std::uint32_t>(random() % n); };
    const auto word = [&](std::uint32_t most) {
        std::string s(pick(most), 'x');
        for (char& c : s) c = static_cast<char>("ab{}[]\":,\\ 1e"[pick(13)]);
        return s;
    };
    const char* inputs[] = {"{}", R"({"q":1})", R"({"n":12345678901234567890123,"d":1.50,"z":-0.0})", R"({"a":[1,{"b":"}"}]})", R"({"n":1e999})"};
    said s;
    switch (pick(6)) {
    case 0:
    case 1: {
        const std::string t = word(20);
        s.block = R"({"type":"text","text":)" + in_quotes(t) + "}";
        s.events.push_back(start(index, text_block));
        for (const std::string& p : cut(t, random)) s.events.push_back(text_delta(index, p));
        break;
    }
    case 2: {
        const std::string t = word(20);
        s.block = R"({"type":"thinking","thinking":)" + in_quotes(t) + R"(,"signature":"Sg=="})";
        s.events.push_back(start(index, R"({"type":"thinking","thinking":"","signature":""})"));
        for (const std::string& p : cut(t, random)) s.events.push_back(thinking_delta(index, p));
        s.events.push_back(delta(index, R"({"type":"signature_delta","signature":"Sg"})"));
        s.events.push_back(delta(index, R"({"type":"signature_delta","signature":"=="})"));
        break;
    }
    case 3:
        s.block = pick(2) == 0 ? R"({"type":"redacted_thinking","data":"abc="})" : R"({"type":"odd","n":1.50,"deep":[{"k":12345678901234567890123}]})";
        s.events.push_back(start(index, s.block));
        break;
    default: {
        const bool server = pick(3) == 0;
        const std::string id = std::string(1, "ab"[pick(2)]), input = inputs[pick(server ? 4 : 5)];
        const std::string head =
            std::string(R"({"type":)") + (server ? R"("server_tool_use")" : R"("tool_use")") + R"(,"id":")" + id + R"(","name":"f","input":)";
        s.block = head + input + "}";
        s.events.push_back(start(index, head + "{}}"));
        if (input != "{}")
            for (const std::string& p : cut(input, random)) s.events.push_back(json_delta(index, p));
    }
    }
    s.events.push_back(stop(index));
    return s;
}

TEST(AnthropicDecode, StreamingAndOneShotGiveTheSameResult)
{
    std::mt19937 random(7);
    for (int i = 0; i < 500; ++i) {
        std::string content;
        std::vector<std::string> events = {began};
        for (int n = static_cast<int>(random() % 6), index = 0; index < n; ++index) {
            const said s = random_block(index, random);
            content += (index == 0 ? "" : ",") + s.block;
            events.insert(events.end(), s.events.begin(), s.events.end());
            if (random() % 3 == 0) events.push_back(R"({"type":"ping"})");
        }
        const char* reason = std::array{"end_turn", "max_tokens", "pause_turn", "odd"}[random() % 4];
        events.push_back(ended(reason));
        events.push_back(over);
        decoding one, stream;
        ASSERT_EQ(one.body(whole(content, reason)), decode_state::done) << content;
        ASSERT_EQ(stream.feed(events), decode_state::done) << content;
        EXPECT_EQ(one.text_of(event_kind::thinking), stream.text_of(event_kind::thinking));
        EXPECT_EQ(one.decoder->received_bytes(), stream.decoder->received_bytes()) << content;
        const generate_result x = one.result(), y = stream.result();
        ASSERT_EQ(x.to_json().dump(), y.to_json().dump()) << content;
        ASSERT_EQ(stream.text_of(event_kind::text), y.text);
        ASSERT_EQ(one.text_of(event_kind::text), x.text);
        ASSERT_EQ(x.malformed.has_value(), content.find("1e999") != std::string::npos);
    }
}

TEST(AnthropicDecode, StopReasonsOfTheTable)
{
    for (const auto& [raw, neutral] : {std::pair{"end_turn", "end_turn"},
                                       {"max_tokens", "max_tokens"},
                                       {"tool_use", "tool_use"},
                                       {"stop_sequence", "stop_sequence"},
                                       {"refusal", "refusal"},
                                       {"pause_turn", "pause_turn"},
                                       {"model_context_window_exceeded", "context_exceeded"},
                                       {"toString", "toString"},
                                       {"__proto__", "__proto__"}}) {
        for (const bool call : {false, true}) {
            decoding one, stream;
            ASSERT_EQ(one.body(whole(call ? call_block : std::string(), raw)), decode_state::done);
            ASSERT_EQ(call ? stream.feed({began, start(0, call_block), stop(0), ended(raw), over}) : stream.feed({began, ended(raw), over}),
                      decode_state::done);
            // Only an end of turn becomes a use of tools.
            const std::string wanted = call && std::string_view(raw) == "end_turn" ? "tool_use" : neutral;
            EXPECT_EQ(one.result().stop_reason, wanted) << raw;
            EXPECT_EQ(stream.result().stop_reason, wanted) << raw;
        }
    }
    decoding none, empty;
    ASSERT_EQ(none.body(R"({"content":[],"stop_reason":null})"), decode_state::done);
    EXPECT_EQ(none.result().stop_reason, "");
    ASSERT_EQ(empty.feed({began, R"({"type":"message_delta","delta":{"stop_reason":7}})", over}), decode_state::done);
    EXPECT_EQ(empty.result().stop_reason, "");
}

TEST(AnthropicDecode, OnlyNumbersAreUsageAndNullIsNotZero)
{
    const auto used = [](const std::string& text) {
        decoding one, stream;
        EXPECT_EQ(one.body(R"({"content":[],"usage":)" + text + "}"), decode_state::done);
        EXPECT_EQ(stream.feed({R"({"type":"message_start","message":{"usage":)" + text + "}}", over}), decode_state::done);
        const auto a = one.result().usage, b = stream.result().usage;
        EXPECT_EQ(a, b) << text;
        return a ? a->to_json().dump() : std::string("null");
    };
    for (const char* nothing : {"null", "{}", "[]", "7", R"({"input_tokens":"9"})", R"({"input_tokens":-1})", R"({"input_tokens":null,"output_tokens":null})",
                                R"({"service_tier":"standard"})"})
        EXPECT_EQ(used(nothing), "null") << nothing;
    for (const char* key : {"input_tokens", "output_tokens", "cache_read_input_tokens", "cache_creation_input_tokens"})
        EXPECT_EQ(used(std::string("{\"") + key + "\":0}"), R"({"inputTokens":0,"outputTokens":0,"cacheReadTokens":0,"cacheCreationTokens":0})") << key;
    EXPECT_EQ(used(R"({"input_tokens":1,"output_tokens":2.0,"cache_read_input_tokens":30,"cache_creation_input_tokens":4})"),
              R"({"inputTokens":1,"outputTokens":2,"cacheReadTokens":30,"cacheCreationTokens":4})");
}

TEST(AnthropicDecode, UsageOfTheEndIsLaidOverThatOfTheStart)
{
    decoding d;
    d.feed({began, ended("end_turn", R"({"input_tokens":null,"output_tokens":9,"cache_creation_input_tokens":2})"), ended("x", "null")});
    EXPECT_EQ(d.decoder->reported_usage()->to_json().dump(), R"({"inputTokens":3,"outputTokens":9,"cacheReadTokens":0,"cacheCreationTokens":2})");
    d.event(over);
    std::vector<std::int64_t> outputs;
    for (const event& e : d.events)
        if (e.kind == event_kind::usage) outputs.push_back(*(*e.data)["outputTokens"].get_int64());
    EXPECT_EQ(outputs, (std::vector<std::int64_t>{1, 9}));
    EXPECT_EQ(d.result().stop_reason, "end_turn") << "the first reason holds";
}

TEST(AnthropicDecode, Case_A12_ErrorsInsideA200AreTypedAsHttpErrorsAre)
{
    class row {
    public:
        const char* type;
        int status;
        bool retryable;
    };
    for (const row& r :
         {row{"invalid_request_error", 400, false}, row{"authentication_error", 401, false}, row{"billing_error", 402, false},
          row{"permission_error", 403, false}, row{"not_found_error", 404, false}, row{"request_too_large", 413, false}, row{"rate_limit_error", 429, true},
          row{"api_error", 500, true}, row{"timeout_error", 504, true}, row{"overloaded_error", 529, true}, row{"future_error", 0, false}}) {
        const std::string error = std::string(R"({"type":"error","error":{"type":")") + r.type + R"(","message":"why"}})";
        decoding first, late, body;
        ASSERT_EQ(first.event(error), decode_state::failed) << r.type;
        ASSERT_EQ(late.feed({began, start(0, text_block), text_delta(0, "par"), error}), decode_state::failed);
        ASSERT_EQ(body.body(error), decode_state::failed);
        const json a = first.failure(), b = late.failure(), c = body.failure();
        for (const json* f : {&a, &b, &c}) {
            EXPECT_EQ((*f)["status"].get_int64().value_or(0), r.status) << r.type;
            EXPECT_EQ((*f)["retryable"].as_bool(), r.retryable) << r.type;
            EXPECT_EQ((*f)["message"].as_string(), "[AnthropicProvider] why");
        }
        EXPECT_EQ(a["bound"].as_string(), "stream-error");
        EXPECT_EQ(c["bound"].as_string(), "error-in-200");
        EXPECT_EQ(b["partial"]["text"].as_string(), "par");
        EXPECT_EQ(c.find("partial"), nullptr);
    }
    // In other shapes: named by the event alone, without its type, with a status of its own.
    decoding named, bare, numbered, whole_body;
    ASSERT_EQ(named.event(R"({"message":"x","type":"rate_limit_error"})", "error"), decode_state::failed);
    EXPECT_EQ(named.failure()["status"].get_int64(), 429);
    ASSERT_EQ(bare.event(R"({"error":{"type":"api_error","message":"x"}})"), decode_state::failed);
    EXPECT_EQ(bare.failure()["status"].get_int64(), 500);
    ASSERT_EQ(numbered.event(R"({"type":"error","error":{"type":"timeout_error","code":503,"message":"x"}})"), decode_state::failed);
    EXPECT_EQ(numbered.failure()["status"].get_int64(), 503);
    ASSERT_EQ(whole_body.body(R"({"error":"boom"})"), decode_state::failed);
    EXPECT_EQ(whole_body.failure()["bound"].as_string(), "error-in-200");
    // A null is none, and what a body says beside its content neither.
    decoding fine, beside;
    EXPECT_EQ(fine.event(R"({"type":"ping","error":null})"), decode_state::more);
    EXPECT_EQ(beside.body(R"({"content":[{"type":"text","text":"x"}],"error":{"message":"a warning"}})"), decode_state::done);
}

TEST(AnthropicDecode, ABodyWithoutContentSaysSoAndHidesTheRest)
{
    anthropic_codec_options o = options();
    o.expose_error_body = true;
    decoding hidden, shown(o), broken;
    ASSERT_EQ(hidden.body(R"({"why":"secret"})"), decode_state::failed);
    ASSERT_EQ(shown.body(R"({"why":"secret"})"), decode_state::failed);
    ASSERT_EQ(broken.body("<p>"), decode_state::failed);
    const json h = hidden.failure(), s = shown.failure();
    EXPECT_EQ(h["message"].as_string(), "[AnthropicProvider] response has no content");
    EXPECT_EQ(h["bound"].as_string(), "no-content");
    EXPECT_EQ(h.find("body"), nullptr);
    EXPECT_EQ(s["message"].as_string(), R"([AnthropicProvider] response has no content: {"why":"secret"})");
    EXPECT_EQ(s["body"].as_string(), R"({"why":"secret"})");
    EXPECT_EQ(broken.failure()["bound"].as_string(), "invalid-json");
}

TEST(AnthropicDecode, TextOfTheServiceNeverShowsTheKey)
{
    anthropic_codec_options o = options();
    o.key = secret("sk-ant-0123456789abcdef");
    o.expose_error_body = true;
    const auto shown = [&](auto&& feed) {
        decoding d(o);
        EXPECT_EQ(feed(d), decode_state::failed);
        return d.failure()["message"].as_string();
    };
    EXPECT_EQ(shown([](decoding& d) { return d.event(R"({"type":"error","error":{"message":"bad sk-ant-0123456789abcdef"}})"); }).find("sk-"),
              std::string::npos);
    EXPECT_EQ(shown([](decoding& d) { return d.body(R"({"why":"bad sk-ant-0123456789abcdef"})"); }).find("sk-"), std::string::npos);
    EXPECT_EQ(shown([](decoding& d) { return d.event("{sk-ant-0123456789abcdef"); }).find("sk-"), std::string::npos);
}

TEST(AnthropicDecode, Case_A11_ACallThatWasNotClosedIsNeverACall)
{
    // A silent end, inside the arguments and behind them, before the reason to stop has come: an error.
    for (const char* arguments : {R"({"path":"/)", R"({"path":"/"})"}) {
        decoding d;
        EXPECT_EQ(d.feed({began, start(0, call_block), json_delta(0, arguments)}), decode_state::more);
        ASSERT_EQ(d.decoder->on_end(true, &d.events), decode_state::failed);
        for (const event& e : d.events) EXPECT_NE(e.kind, event_kind::tool_end);
        const json f = d.failure();
        EXPECT_EQ(f["event"].as_string(), "premature-end");
        EXPECT_EQ(f["partial"]["toolCallsStarted"].get_int64(), 1);
    }
    // With it the answer stands, but an open call is malformed whatever it looks like.
    for (const bool stopped : {true, false}) {
        decoding d;
        d.feed({began, start(0, call_block), json_delta(0, R"({"path":"/"})"), ended("tool_use")});
        ASSERT_EQ(stopped ? d.event(over) : d.decoder->on_end(false, &d.events), decode_state::done);
        for (const event& e : d.events) EXPECT_NE(e.kind, event_kind::tool_end);
        const generate_result r = d.result();
        EXPECT_TRUE(r.tool_calls.empty());
        ASSERT_TRUE(r.malformed.has_value());
        EXPECT_EQ(r.malformed->name, "find");
        EXPECT_EQ(r.malformed->error, "the answer ended before the call did");
        ASSERT_EQ(r.attempted.size(), 1U);
        EXPECT_EQ(r.attempted[0].call.id, "t1");
        EXPECT_TRUE(r.attempted[0].malformed);
    }
    // A second block at the index does not close the first; the closed one of two is voided with the open one.
    decoding d;
    d.feed({began, start(0, call_block), start(0, R"({"type":"tool_use","id":"t2","name":"find","input":{}})"), stop(0), ended("tool_use")});
    ASSERT_EQ(d.event(over), decode_state::done);
    const generate_result r = d.result();
    EXPECT_TRUE(r.tool_calls.empty());
    ASSERT_EQ(r.attempted.size(), 2U);
    EXPECT_TRUE(r.attempted[0].malformed);
    EXPECT_FALSE(r.attempted[1].malformed);
}

TEST(AnthropicDecode, Case_B3_EmptyArgumentsAreAnEmptyObject)
{
    class row {
    public:
        const char* block;
        std::vector<const char*> pieces;
        const char* arguments;  ///< null: malformed
    };
    const char* given = R"({"type":"tool_use","id":"a","name":"write","input":{"n":1.50}})";
    const char* empty = R"({"type":"tool_use","id":"a","name":"write","input":{}})";
    const char* free = R"({"type":"tool_use","id":"a","name":"now"})";
    const char* bound = R"({"type":"tool_use","id":"a","name":"write"})";
    for (const row& r :
         {row{given, {}, R"({"n":1.50})"}, row{given, {""}, R"({"n":1.50})"}, row{given, {R"({"x":)", "2}"}, R"({"x":2})"}, row{empty, {""}, "{}"},
          row{free, {}, "{}"}, row{free, {""}, "{}"}, row{free, {" \n"}, "{}"}, row{free, {"null"}, "{}"}, row{bound, {}, nullptr}, row{bound, {""}, nullptr},
          row{bound, {" "}, nullptr}, row{bound, {"null"}, nullptr}, row{free, {"[1]"}, nullptr}}) {
        decoding d(options(), writing_tool());
        d.feed({began, start(0, r.block)});
        for (const char* p : r.pieces) d.event(json_delta(0, p));
        ASSERT_EQ(d.feed({stop(0), ended("tool_use"), over}), decode_state::done);
        const generate_result got = d.result();
        ASSERT_EQ(got.tool_calls.size(), r.arguments == nullptr ? 0U : 1U) << r.block;
        EXPECT_EQ(got.malformed.has_value(), r.arguments == nullptr) << r.block;
        if (r.arguments != nullptr) { EXPECT_EQ(got.tool_calls[0].arguments.dump(), r.arguments) << r.block; }
    }
    decoding one(options(), writing_tool());
    ASSERT_EQ(one.body(whole(std::string(empty) + "," + free)), decode_state::done);
    EXPECT_EQ(one.result().tool_calls.size(), 2U);
}

TEST(AnthropicDecode, Case_B4_CutArgumentsNameTheirToolAndThePlace)
{
    for (const bool expose : {false, true}) {
        anthropic_codec_options o = options();
        o.expose_malformed_args = expose;
        decoding d(o);
        ASSERT_EQ(d.feed({began, start(0, call_block), json_delta(0, R"({"q":"x)"), stop(0), ended("max_tokens"), over}), decode_state::done);
        const generate_result r = d.result();
        EXPECT_EQ(r.stop_reason, "max_tokens");
        ASSERT_TRUE(r.malformed.has_value());
        EXPECT_EQ(r.malformed->error, "arguments are not JSON at byte 7");
        EXPECT_EQ(r.malformed->raw_arguments.value_or("hidden"), expose ? R"({"q":"x)" : "hidden");
        EXPECT_EQ(r.attempted.at(0).offset, 7U);
    }
}

TEST(AnthropicDecode, Case_B5_NumbersSurviveTheWire)
{
    for (const std::string number : {"9007199254740993", "9223372036854775807", "18446744073709551615", "-0.0", "1.50"}) {
        const std::string value = "{\"id\":" + number + "}";
        decoding pieces, started, one;
        ASSERT_EQ(pieces.feed({began, start(0, call_block), json_delta(0, "{\"id\":"), json_delta(0, number + "}"), stop(0), ended("tool_use"), over}),
                  decode_state::done);
        ASSERT_EQ(started.feed({began, start(0, R"({"type":"tool_use","id":"a","name":"f","input":)" + value + "}"), stop(0), ended("tool_use"), over}),
                  decode_state::done);
        ASSERT_EQ(one.body(whole(R"({"type":"tool_use","id":"a","name":"f","input":)" + value + "}")), decode_state::done);
        for (decoding* d : {&pieces, &started, &one}) EXPECT_EQ(d->result().tool_calls.at(0).arguments.dump(), value);
    }
    // In native blocks every number keeps its text, also one that no double can hold.
    const std::string odd = R"({"type":"odd","a":[9007199254740993,18446744073709551615,1e400,-0.0,1.50]})";
    decoding stream, one;
    ASSERT_EQ(stream.feed({began, start(0, odd), stop(0), ended("end_turn"), over}), decode_state::done);
    ASSERT_EQ(one.body(whole(odd)), decode_state::done);
    EXPECT_EQ(stream.result().blocks.value().blocks.dump(), "[" + odd + "]");
    EXPECT_EQ(one.result().blocks.value().blocks.dump(), "[" + odd + "]");
    // As arguments that one is malformed, not rounded.
    decoding infinite;
    ASSERT_EQ(infinite.body(whole(R"({"type":"tool_use","id":"a","name":"f","input":{"n":1e400}})")), decode_state::done);
    EXPECT_TRUE(infinite.result().malformed.has_value());
}

TEST(AnthropicDecode, Case_A2_IllFormedBytesOfAWholeEventAreReplacedNotDropped)
{
    decoding d;
    ASSERT_EQ(d.feed({began, start(0, text_block), text_delta(0, "ok ")}), decode_state::more);
    EXPECT_EQ(d.event("{\"type\":\"content_block_delta\",\"index\":0,\"delta\":{\"type\":\"text_delta\",\"text\":\"a\xFF\xE4\xBD z\"}}"), decode_state::more);
    EXPECT_EQ(d.decoder->text(), "ok a\xEF\xBF\xBD\xEF\xBF\xBD z");
    EXPECT_EQ(d.text_of(event_kind::text), d.decoder->text());
}

TEST(AnthropicDecode, EventsOfAStreamInOrder)
{
    decoding d;
    ASSERT_EQ(d.feed({R"({"type":"ping"})", began, start(0, R"({"type":"thinking","thinking":"","signature":""})"), thinking_delta(0, "t"), stop(0),
                      start(1, R"({"type":"text","text":"x"})"), text_delta(1, "y"), stop(1), start(2, call_block), json_delta(2, ""), json_delta(2, "{}"),
                      stop(2), ended("tool_use"), over}),
              decode_state::done);
    EXPECT_EQ(d.kinds(),
              (std::vector<event_kind>{event_kind::start, event_kind::usage, event_kind::thinking, event_kind::text, event_kind::text, event_kind::tool_start,
                                       event_kind::tool_args, event_kind::usage, event_kind::tool_end, event_kind::stop}));
    EXPECT_EQ(d.events[0].id, "req_1");
    EXPECT_EQ(d.events[0].name, "m-1");
    EXPECT_EQ(d.events[5].index, 0U) << "calls count by themselves";
    EXPECT_EQ(d.events[9].payload, "tool_use");
    EXPECT_EQ(d.decoder->received_bytes(), 5U);
}

TEST(AnthropicDecode, WhatIsNoEventOfOursIsPassedOver)
{
    decoding d;
    ASSERT_EQ(d.feed({" ", R"({"type":"ping"})", "7", "[]", R"({"type":"future","index":0,"delta":{"type":"text_delta","text":"no"}})", R"({"x":1})",
                      R"({"type":"content_block_start","index":0})", R"({"type":"content_block_stop","index":9})", R"({"type":"message_start"})"}),
              decode_state::more);
    // The event's name counts when the data has no type.
    EXPECT_EQ(d.event(R"({"index":0,"content_block":{"type":"text","text":"by name"}})", "content_block_start"), decode_state::more);
    EXPECT_EQ(d.event(R"({"delta":{"stop_reason":"end_turn"}})", "message_delta"), decode_state::more);
    EXPECT_EQ(d.event("[DONE]"), decode_state::done);
    EXPECT_EQ(d.result().text, "by name");
    decoding early;
    EXPECT_EQ(early.feed({began, "[DONE]"}), decode_state::failed) << "not complete";
    decoding bad;
    ASSERT_EQ(bad.event("{\"type\":"), decode_state::failed);
    EXPECT_EQ(bad.failure()["bound"].as_string(), "invalid-event");
}

TEST(AnthropicDecode, LimitsAreNamedAndCountWhatIsKept)
{
    anthropic_codec_options o = options();
    o.max_arguments = 4;
    decoding pieces(o), one(o), started(o);
    ASSERT_EQ(pieces.feed({began, start(0, call_block), json_delta(0, "12345")}), decode_state::failed);
    ASSERT_EQ(one.body(whole(R"({"type":"tool_use","id":"a","name":"f","input":{"n":12345}})")), decode_state::failed);
    ASSERT_EQ(started.feed({began, start(0, R"({"type":"tool_use","id":"a","name":"f","input":{"n":12345}})"), stop(0)}), decode_state::failed);
    for (decoding* d : {&pieces, &one, &started}) EXPECT_EQ(d->failure()["bound"].as_string(), "event-too-large");
    // Native blocks and their deltas are held, and so is every block for itself.
    decoding held;
    held.event(began);
    std::uint64_t before = held.decoder->held_bytes();
    for (const std::string& e : {start(0, R"({"type":"odd"})"), delta(0, R"({"type":"signature_delta","signature":"0123456789"})"),
                                 delta(0, R"({"type":"odd_delta","n":1})"), json_delta(0, "12345"), start(1, text_block), start(2, call_block)}) {
        held.event(e);
        EXPECT_GE(held.decoder->held_bytes(), before + 10) << e;
        before = held.decoder->held_bytes();
    }
    std::string deep = R"({"content":)" + std::string(2000, '[') + std::string(2000, ']') + "}";
    decoding body, event;
    EXPECT_EQ(body.body(deep), decode_state::failed);
    EXPECT_EQ(event.event(deep), decode_state::failed);
}

TEST(AnthropicDecode, IdsAreUniqueInARound)
{
    decoding d;
    ASSERT_EQ(
        d.body(whole(
            R"({"type":"tool_use","id":"a","name":"f","input":{}},{"type":"tool_use","id":"a","name":"f","input":{}},{"type":"tool_use","name":"f","input":"{\"q\":1}"})")),
        decode_state::done);
    const generate_result r = d.result();
    ASSERT_EQ(r.tool_calls.size(), 3U);
    EXPECT_EQ(r.tool_calls[0].id, "a");
    EXPECT_EQ(r.tool_calls[1].id, "a__2");
    EXPECT_EQ(r.tool_calls[2].id.substr(0, 5), "call_");
    EXPECT_EQ(r.tool_calls[2].arguments.dump(), R"({"q":1})") << "arguments as text are read as text";
}

}  // namespace anthropic_decode_test
}  // namespace

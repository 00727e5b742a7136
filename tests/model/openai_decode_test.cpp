#include <reagent/model/openai_decoder.hpp>

#include <gtest/gtest.h>

#include <random>

namespace {
namespace openai_decode_test {

using namespace reagent;

openai_codec_options numbered_ids()
{
    openai_codec_options o;
    o.model = "m";
    o.random = [n = std::uint64_t{0}]() mutable { return ++n; };
    return o;
}

class decoding {
public:
    explicit decoding(openai_codec_options options = numbered_ids()) : codec(std::move(options)), decoder(codec, {}, "req_1") {}
    decode_state event(std::string_view data, std::string_view type = {}) { return decoder.on_event(data, type, &events); }
    json failure() { return provider_error_to_json(std::make_exception_ptr(decoder.take_failure())); }
    std::string text_events() const
    {
        std::string out;
        for (const reagent::event& e : events) out += e.text();
        return out;
    }
    openai_codec codec;
    openai_decoder decoder;
    event_batch events;
};

std::string delta(const json& members, const char* finish = nullptr)
{
    json choice = json::object().set("index", 0).set("delta", members).set("finish_reason", finish == nullptr ? json() : json(finish));
    json choices = json::array();
    choices.push_back(std::move(choice));
    return json::object().set("id", "c").set("model", "m").set("choices", std::move(choices)).dump();
}

/// One answer of the model: what both wires can say.
class answer {
public:
    std::string text, thinking, refusal, finish;
    std::vector<std::array<std::string, 3>> calls;  ///< id, name, arguments
    json used;
};

json call_json(const std::array<std::string, 3>& c, bool first, std::string_view arguments)
{
    json function = json::object();
    if (first) function.set("name", c[1]);
    function.set("arguments", arguments);
    json out = json::object();
    if (first && !c[0].empty()) out.set("id", c[0]).set("type", "function");
    return std::move(out).set("function", std::move(function));
}

std::string one_shot(const answer& a)
{
    json message = json::object().set("role", "assistant").set("content", a.text.empty() ? json() : json(a.text));
    if (!a.thinking.empty()) message.set("reasoning_content", a.thinking);
    if (!a.refusal.empty()) message.set("refusal", a.refusal);
    json calls = json::array();
    for (const auto& c : a.calls) calls.push_back(call_json(c, true, c[2]));
    if (!calls.empty()) message.set("tool_calls", std::move(calls));
    json choices = json::array();
    choices.push_back(json::object().set("index", 0).set("message", std::move(message)).set("finish_reason", a.finish));
    return json::object().set("model", "m").set("choices", std::move(choices)).set("usage", a.used).dump();
}

std::vector<std::string> pieces(const std::string& text, std::mt19937& random)
{
    std::vector<std::string> out;
    for (std::size_t at = 0; at < text.size();) {
        const std::size_t n = std::min<std::size_t>(1 + random() % 5, text.size() - at);
        out.push_back(text.substr(at, n));
        at += n;
    }
    return out;
}

std::vector<std::string> streamed(const answer& a, std::mt19937& random)
{
    std::vector<std::string> out;
    for (const std::string& p : pieces(a.thinking, random)) out.push_back(delta(json::object().set("reasoning_content", p)));
    for (const std::string& p : pieces(a.text, random)) out.push_back(delta(json::object().set("content", p)));
    for (const std::string& p : pieces(a.refusal, random)) out.push_back(delta(json::object().set("refusal", p)));
    for (std::size_t i = 0; i < a.calls.size(); ++i) {
        const auto push = [&](bool first, std::string_view arguments) {
            json call = call_json(a.calls[i], first, arguments);
            call.set("index", i);
            json list = json::array();
            list.push_back(std::move(call));
            out.push_back(delta(json::object().set("tool_calls", std::move(list))));
        };
        push(true, "");
        for (const std::string& p : pieces(a.calls[i][2], random)) push(false, p);
    }
    out.push_back(delta(json::object(), a.finish.c_str()));
    if (!a.used.is_null()) out.push_back(json::object().set("model", "m").set("choices", json::array()).set("usage", a.used).dump());
    return out;
}

answer random_answer(std::mt19937& random)
{
    const auto pick = [&](std::uint32_t n) { return static_cast<std::uint32_t>(random() % n); };
    const auto word = [&](std::uint32_t most) {
        std::string s(pick(most), 'x');
        for (char& c : s) c = static_cast<char>("ab{}[]\":,\\ 1e"[pick(13)]);
        return s;
    };
    answer a;
    a.finish = std::array{"stop", "length", "tool_calls", "content_filter", "odd"}[pick(5)];
    if (pick(2) == 0) a.text = word(30);
    if (pick(3) == 0) a.thinking = word(20);
    if (pick(5) == 0) a.refusal = word(10);
    for (std::uint32_t n = pick(4); n > 0; --n) {
        const char* ids[] = {"", "a", "b"};
        const char* arguments[] = {"", "{}", R"({"q":1})", R"({"q":)", "[1]", " ", "null", R"({"n":12345678901234567890123})", R"({"n":1e999})"};
        a.calls.push_back({ids[pick(3)], pick(2) == 0 ? "find" : "write", arguments[pick(9)]});
    }
    // Two ids that are alike at different indexes are different calls in both forms; without ids they are told apart by index.
    if (pick(2) == 0) a.used = json::object().set("prompt_tokens", pick(100)).set("completion_tokens", pick(100));
    return a;
}

TEST(OpenaiDecode, StreamingAndOneShotGiveTheSameResult)
{
    std::mt19937 random(11);
    for (int i = 0; i < 600; ++i) {
        const answer a = random_answer(random);
        decoding whole, stream;
        ASSERT_EQ(whole.decoder.on_body(one_shot(a), 200, &whole.events), decode_state::done);
        for (const std::string& e : streamed(a, random)) ASSERT_EQ(stream.event(e), decode_state::more) << e;
        ASSERT_EQ(stream.event("[DONE]"), decode_state::done);
        const std::string texts = stream.text_events();
        const generate_result x = whole.decoder.take_result(), y = stream.decoder.take_result();
        ASSERT_EQ(x.to_json().dump(), y.to_json().dump()) << one_shot(a);
        ASSERT_EQ(texts, y.text);
        ASSERT_EQ(whole.text_events(), x.text);
    }
}

TEST(OpenaiDecode, Case_A14_AnErrorBesideEmptyChoicesIsAnError)
{
    decoding d;
    EXPECT_EQ(d.event(delta(json::object().set("content", "par"))), decode_state::more);
    ASSERT_EQ(d.event(R"({"id":"c","choices":[],"error":{"message":"upstream broke","code":502},"usage":{"prompt_tokens":1,"completion_tokens":0}})"),
              decode_state::failed);
    EXPECT_EQ(
        d.failure().dump(),
        R"({"kind":"provider","status":502,"retryable":true,"bound":"stream-error","message":"[OpenAIProvider] upstream broke","partial":{"text":"par","toolCallsStarted":0},"requestId":"req_1"})");
}

TEST(OpenaiDecode, Case_A14_AnErrorInAnyShapeIsNeverAChunk)
{
    for (const char* chunk : {R"({"choices":[],"error":"upstream broke"})",
                              R"({"error":{"message":"upstream broke"},"choices":[],"usage":{"prompt_tokens":0,"completion_tokens":0}})",
                              R"({"choices":[{"index":0,"delta":{"content":""},"finish_reason":"error"}],"error":{"code":502,"message":"upstream broke"}})",
                              R"({"choices":[{"index":0,"delta":{},"finish_reason":"stop"}],"error":{"message":"upstream broke"}})"}) {
        decoding d;
        EXPECT_EQ(d.event(delta(json::object().set("content", "par"))), decode_state::more);
        ASSERT_EQ(d.event(chunk), decode_state::failed) << chunk;
        const json f = d.failure();
        EXPECT_EQ(f["message"].as_string(), "[OpenAIProvider] upstream broke") << chunk;
        EXPECT_EQ(f["partial"]["text"].as_string(), "par") << chunk;
    }
    // A member that is null says nothing.
    decoding fine;
    EXPECT_EQ(fine.event(R"({"choices":[{"index":0,"delta":{"content":"x"}}],"error":null})"), decode_state::more);
}

TEST(OpenaiDecode, Case_A12_StreamErrorsAreTypedAsHttpErrorsAre)
{
    class row {
    public:
        std::string error;
        int status;
        bool retryable;
        errc code;
    };
    for (const row& r :
         {row{R"({"type":"overloaded_error"})", 529, true, errc::provider_failed}, row{R"({"type":"rate_limit_error"})", 429, true, errc::rate_limited},
          row{R"({"code":"rate_limit_exceeded"})", 429, true, errc::rate_limited}, row{R"({"code":"insufficient_quota"})", 429, false, errc::rate_limited},
          row{R"({"type":"authentication_error"})", 401, false, errc::provider_failed}, row{R"({"type":"api_error"})", 500, true, errc::provider_failed},
          row{R"({"type":"server_error"})", 500, true, errc::provider_failed}, row{R"({"code":503})", 503, true, errc::provider_failed},
          row{R"({"type":"invalid_request_error"})", 400, false, errc::provider_failed}, row{R"({"code":429})", 429, true, errc::rate_limited}}) {
        for (const bool typed : {false, true}) {
            decoding d;
            ASSERT_EQ(d.event("{\"error\":" + r.error + "}", typed ? "error" : ""), decode_state::failed) << r.error;
            const provider_error e = d.decoder.take_failure();
            EXPECT_EQ(e.status, r.status) << r.error;
            EXPECT_EQ(e.retryable(), r.retryable) << r.error;
            EXPECT_EQ(e.code(), r.code) << r.error;
        }
    }
    {
        decoding d;  // an error first
        ASSERT_EQ(d.event(R"({"type":"error","error":{"type":"overloaded_error","message":"Overloaded"}})", "error"), decode_state::failed);
        const json f = d.failure();
        EXPECT_EQ(f["status"].get_int64(), 529);
        EXPECT_TRUE(f["retryable"].as_bool());
    }
    {
        decoding d;  // after partial text, told by the event's type alone
        EXPECT_EQ(d.event(delta(json::object().set("content", "par"))), decode_state::more);
        ASSERT_EQ(d.event(R"({"type":"rate_limit_error","message":"slow"})", "error"), decode_state::failed);
        const json f = d.failure();
        EXPECT_EQ(f["status"].get_int64(), 429);
        EXPECT_EQ(f["partial"]["text"].as_string(), "par");
        EXPECT_EQ(f["message"].as_string(), "[OpenAIProvider] slow");
    }
    {
        decoding d;
        ASSERT_EQ(d.event(R"({"error":{"type":"authentication_error","message":"who?"}})"), decode_state::failed);
        const json f = d.failure();
        EXPECT_EQ(f["status"].get_int64(), 401);
        EXPECT_FALSE(f["retryable"].as_bool());
    }
}

TEST(OpenaiDecode, Case_A11_ACallCutInItsArgumentsIsNeverACall)
{
    decoding d;
    EXPECT_EQ(d.event(R"({"choices":[{"index":0,"delta":{"tool_calls":[{"index":0,"id":"a","function":{"name":"rm","arguments":"{\"path\":\"/"}}]}}]})"),
              decode_state::more);
    ASSERT_EQ(d.decoder.on_end(true, &d.events), decode_state::failed);
    for (const event& e : d.events) EXPECT_NE(e.kind, event_kind::tool_end);
    const json f = d.failure();
    EXPECT_EQ(f["event"].as_string(), "premature-end");
    EXPECT_EQ(f["partial"]["toolCallsStarted"].get_int64(), 1);
    EXPECT_TRUE(f["retryable"].as_bool());
}

TEST(OpenaiDecode, Case_A11_WholeArgumentsWithoutAnEndAreNoCallEither)
{
    for (const bool clean : {true, false}) {
        decoding d;
        EXPECT_EQ(d.event(R"({"choices":[{"index":0,"delta":{"tool_calls":[{"index":0,"id":"a","function":{"name":"rm","arguments":"{\"path\":\"/\"}"}}]}}]})"),
                  decode_state::more);
        ASSERT_EQ(d.decoder.on_end(clean, &d.events), decode_state::failed);
        for (const event& e : d.events) EXPECT_NE(e.kind, event_kind::tool_end);
    }
}

TEST(OpenaiDecode, Case_B1_GluedCallsOfTheWireAreTwo)
{
    // A new id at the same index, in two chunks and in one; then a new name without an id.
    const auto call = [](const char* id, const char* name, const char* arguments) {
        json c = json::object().set("index", 0);
        if (*id != '\0') c.set("id", id);
        return std::move(c).set("function", json::object().set("name", name).set("arguments", arguments));
    };
    const auto calls_of = [](const std::vector<std::vector<json>>& chunks) {
        decoding d;
        for (const std::vector<json>& chunk : chunks) {
            json list = json::array();
            for (const json& c : chunk) list.push_back(c);
            EXPECT_EQ(d.event(delta(json::object().set("tool_calls", std::move(list)))), decode_state::more);
        }
        EXPECT_EQ(d.event(delta(json::object(), "tool_calls")), decode_state::more);
        EXPECT_EQ(d.event("[DONE]"), decode_state::done);
        std::vector<std::string> out;
        for (const tool_call& c : d.decoder.take_result().tool_calls) out.push_back((c.id.size() == 1 ? c.id + " " : "") + c.name + " " + c.arguments.dump());
        return out;
    };
    const std::vector<std::string> two = {R"(a find {"q":1})", R"(b find {"q":2})"};
    const json a = call("a", "find", R"({"q":1})"), b = call("b", "find", R"({"q":2})");
    EXPECT_EQ(calls_of({{a}, {b}}), two);
    EXPECT_EQ(calls_of({{a, b}}), two);
    EXPECT_EQ(calls_of({{call("a", "find", R"({"q":)")}, {call("b", "find", R"({"q":)")}, {call("a", "find", "1}")}, {call("b", "find", "2}")}}), two)
        << "interleaved";
    EXPECT_EQ(calls_of({{call("", "find", R"({"q":1})")}, {call("", "write", R"({"q":2})")}}),
              (std::vector<std::string>{R"(find {"q":1})", R"(write {"q":2})"}));
}

TEST(OpenaiDecode, Case_B2_CallsWithoutIdOrIndexKeepTheirArguments)
{
    decoding d;
    d.event(R"({"choices":[{"index":0,"delta":{"tool_calls":[{"id":"a","function":{"name":"f","arguments":"{\"n\":"}}]}}]})");
    d.event(R"({"choices":[{"index":0,"delta":{"tool_calls":[{"function":{"arguments":"1}"}},{"function":{"name":"g","arguments":"{}"}}]}}]})");
    d.event(delta(json::object(), "tool_calls"));
    ASSERT_EQ(d.event("[DONE]"), decode_state::done);
    const generate_result r = d.decoder.take_result();
    ASSERT_EQ(r.tool_calls.size(), 2U);
    EXPECT_EQ(r.tool_calls[0].arguments.dump(), R"({"n":1})");
    EXPECT_EQ(r.tool_calls[1].name, "g");
    EXPECT_FALSE(r.tool_calls[1].id.empty());
}

TEST(OpenaiDecode, Case_B4_CutArgumentsNameTheirToolAndThePlace)
{
    decoding d;
    d.event(
        R"({"choices":[{"index":0,"delta":{"tool_calls":[{"index":0,"id":"a","function":{"name":"find","arguments":"{\"q\":\"x"}}]},"finish_reason":"length"}]})");
    ASSERT_EQ(d.event("[DONE]"), decode_state::done);
    const generate_result r = d.decoder.take_result();
    EXPECT_EQ(r.stop_reason, "max_tokens");
    EXPECT_TRUE(r.tool_calls.empty());
    ASSERT_TRUE(r.malformed.has_value());
    EXPECT_EQ(r.malformed->name, "find");
    EXPECT_EQ(r.malformed->offset, 7U);
    EXPECT_EQ(r.malformed->error, "arguments are not JSON at byte 7");
    ASSERT_EQ(r.attempted.size(), 1U);
    EXPECT_EQ(r.attempted[0].call.id, "a");
    EXPECT_TRUE(r.attempted[0].malformed);
    EXPECT_EQ(r.attempted[0].offset, 7U);
}

TEST(OpenaiDecode, Case_A2_IllFormedBytesOfAWholeEventAreReplacedNotDropped)
{
    decoding d;
    EXPECT_EQ(d.event("{\"choices\":[{\"index\":0,\"delta\":{\"content\":\"a\xFF\xE4\xBD z\"}}]}"), decode_state::more);
    EXPECT_EQ(d.decoder.text(), "a\xEF\xBF\xBD\xEF\xBF\xBD z");
    EXPECT_EQ(d.text_events(), d.decoder.text());
}

TEST(OpenaiDecode, Case_B3_EmptyArgumentsDoNotCrashTheRun)
{
    decoding d;
    d.event(R"({"choices":[{"index":0,"delta":{"tool_calls":[{"index":0,"id":"a","function":{"name":"now","arguments":""}}]},"finish_reason":"tool_calls"}]})");
    ASSERT_EQ(d.event("[DONE]"), decode_state::done);
    const generate_result r = d.decoder.take_result();
    ASSERT_EQ(r.tool_calls.size(), 1U);
    EXPECT_EQ(r.tool_calls[0].arguments.dump(), "{}");
    // The answer in one piece, with an empty text, a blank one and none at all.
    for (const char* function : {R"({"name":"now","arguments":""})", R"({"name":"now","arguments":" \n"})", R"({"name":"now"})"}) {
        decoding whole;
        ASSERT_EQ(whole.decoder.on_body(R"({"choices":[{"index":0,"message":{"tool_calls":[{"id":"a","function":)" + std::string(function) +
                                            R"(}]},"finish_reason":"tool_calls"}]})",
                                        200, &whole.events),
                  decode_state::done);
        const generate_result one = whole.decoder.take_result();
        ASSERT_EQ(one.tool_calls.size(), 1U) << function;
        EXPECT_EQ(one.tool_calls[0].arguments.dump(), "{}") << function;
    }
}

TEST(OpenaiDecode, Case_B5_NumbersSurviveTheWire)
{
    for (const std::string number : {"9007199254740993", "9223372036854775807", "18446744073709551615", "-0.0", "1.50"}) {
        decoding text, value;
        text.event(R"({"choices":[{"index":0,"delta":{"tool_calls":[{"index":0,"id":"a","function":{"name":"f","arguments":"{\"id\":)" + number +
                   R"(}"}}]},"finish_reason":"stop"}]})");
        text.event("[DONE]");
        EXPECT_EQ(text.decoder.take_result().tool_calls.at(0).arguments.dump(), "{\"id\":" + number + "}");
        // Arguments as a value: doubles of the fast parser would lose their text.
        value.event(R"({"choices":[{"index":0,"delta":{"content":"once","tool_calls":[{"index":0,"id":"a","function":{"name":"f","arguments":{"id":)" + number +
                    R"(}}}]},"finish_reason":"stop"}]})");
        value.event("[DONE]");
        const generate_result r = value.decoder.take_result();
        EXPECT_EQ(r.text, "once");
        EXPECT_EQ(r.tool_calls.at(0).arguments.dump(), "{\"id\":" + number + "}");
    }
}

TEST(OpenaiDecode, EventsOfAStreamInOrder)
{
    decoding d;
    d.event(delta(json::object().set("role", "assistant").set("reasoning_content", "t")));
    d.event(delta(json::object().set("content", "x")));
    d.event(
        R"({"choices":[{"index":0,"delta":{"tool_calls":[{"index":0,"id":"a","function":{"name":"f","arguments":"{}"}}]},"finish_reason":"tool_calls"}],"usage":{"prompt_tokens":3,"completion_tokens":4}})");
    d.event("[DONE]");
    std::vector<event_kind> kinds;
    for (const event& e : d.events) kinds.push_back(e.kind);
    EXPECT_EQ(kinds,
              (std::vector<event_kind>{event_kind::start, event_kind::thinking, event_kind::text, event_kind::tool_start, event_kind::tool_args,
                                       event_kind::usage, event_kind::tool_end, event_kind::stop}));
    EXPECT_EQ(d.events[0].id, "req_1");
    EXPECT_EQ(d.events[0].name, "m");
    EXPECT_EQ((*d.events[5].data)["inputTokens"].get_int64(), 3);
    EXPECT_EQ(d.events[7].payload, "tool_use");
    EXPECT_EQ(d.decoder.received_bytes(), 4U);
}

TEST(OpenaiDecode, LastOfDuplicateKeysWinsInBothReaders)
{
    decoding fast, slow;
    fast.event(R"({"model":"x","model":"y","choices":[{"index":0,"delta":{"content":"a","content":"b"},"finish_reason":"stop"}]})");
    slow.event("{\"model\":\"x\",\"model\":\"y\",\"pad\":\"\xFF\",\"choices\":[{\"index\":0,\"delta\":{\"content\":\"a\",\"content\":\"b\"},\"finish_reason\":"
               "\"stop\"}]}");
    fast.event("[DONE]");
    slow.event("[DONE]");
    const generate_result a = fast.decoder.take_result(), b = slow.decoder.take_result();
    EXPECT_EQ(a.text, "b");
    EXPECT_EQ(a.model, "y");
    EXPECT_EQ(a.to_json(), b.to_json());
}

TEST(OpenaiDecode, OnlyNumbersAreUsage)
{
    const auto used = [](const char* text) {
        decoding d;
        d.event(std::string(R"({"choices":[{"index":0,"delta":{},"finish_reason":"stop"}],"usage":)") + text + "}");
        d.event("[DONE]");
        const auto u = d.decoder.take_result().usage;
        return u ? u->to_json().dump() : std::string("null");
    };
    EXPECT_EQ(used("{}"), "null");
    EXPECT_EQ(used("null"), "null");
    EXPECT_EQ(used(R"({"prompt_tokens":"9"})"), "null");
    EXPECT_EQ(used(R"({"prompt_tokens":-1})"), "null");
    EXPECT_EQ(used(R"({"prompt_tokens":0})"), R"({"inputTokens":0,"outputTokens":0,"cacheReadTokens":0,"cacheCreationTokens":0})");
    EXPECT_EQ(used(R"({"prompt_tokens":10,"completion_tokens":1,"prompt_tokens_details":{"cached_tokens":30}})"),
              R"({"inputTokens":0,"outputTokens":1,"cacheReadTokens":30,"cacheCreationTokens":0})");
    EXPECT_EQ(used(R"({"completion_tokens":5.0,"completion_tokens_details":{"reasoning_tokens":2}})"),
              R"({"inputTokens":0,"outputTokens":5,"cacheReadTokens":0,"cacheCreationTokens":0,"reasoningTokens":2})");
}

TEST(OpenaiDecode, AnEmptyFinishReasonIsNone)
{
    decoding d;
    d.event(R"({"choices":[{"index":0,"delta":{"content":"x"},"finish_reason":""}]})");
    EXPECT_FALSE(d.decoder.complete());
    EXPECT_EQ(d.decoder.on_end(true, nullptr), decode_state::failed);
}

TEST(OpenaiDecode, ContentAfterTheFinishReasonStillCounts)
{
    decoding d;
    d.event(delta(json::object().set("content", "a"), "length"));
    d.event(delta(json::object().set("content", "b"), "stop"));
    ASSERT_EQ(d.decoder.on_end(false, &d.events), decode_state::done);
    const generate_result r = d.decoder.take_result();
    EXPECT_EQ(r.text, "ab");
    EXPECT_EQ(r.stop_reason, "max_tokens");
}

TEST(OpenaiDecode, TheErrorBodyIsShownOnlyWhenAsked)
{
    openai_codec_options o = numbered_ids();
    o.expose_error_body = true;
    decoding shown(o), hidden;
    const char* text = R"({"error":{"message":"m","type":"server_error"}})";
    shown.event(text);
    hidden.event(text);
    EXPECT_EQ(shown.failure()["body"].as_string(), R"({"message":"m","type":"server_error"})");
    EXPECT_EQ(hidden.failure().find("body"), nullptr);
}

TEST(OpenaiDecode, ArgumentLimitIsNamed)
{
    openai_codec_options o = numbered_ids();
    o.max_arguments = 4;
    decoding d(o);
    ASSERT_EQ(d.event(R"({"choices":[{"index":0,"delta":{"tool_calls":[{"index":0,"id":"a","function":{"name":"f","arguments":"12345"}}]}}]})"),
              decode_state::failed);
    const json f = d.failure();
    EXPECT_EQ(f["bound"].as_string(), "event-too-large");
    EXPECT_FALSE(f["retryable"].as_bool());
}

TEST(OpenaiDecode, DeepJsonIsRefusedNotRecursedInto)
{
    std::string deep = R"({"choices":)";
    for (int i = 0; i < 2000; ++i) deep += '[';
    for (int i = 0; i < 2000; ++i) deep += ']';
    deep += '}';
    decoding event, body;
    EXPECT_EQ(event.event(deep), decode_state::failed);
    EXPECT_EQ(event.failure()["bound"].as_string(), "invalid-event");
    EXPECT_EQ(body.decoder.on_body(deep, 200, nullptr), decode_state::failed);
    EXPECT_EQ(body.failure()["bound"].as_string(), "invalid-json");
}

TEST(OpenaiDecode, RawArgumentsNeedAStringOnTheWire)
{
    json required = json::array();
    required.push_back("content");
    auto tools = std::make_shared<std::vector<tool_schema>>();
    tools->emplace_back("write", "", json::object().set("required", std::move(required)));
    const auto marker = [&](const char* function, bool stream) {
        openai_codec_options o = numbered_ids();
        o.expose_malformed_args = true;
        const openai_codec codec(o);
        openai_decoder d(codec, tools, "");
        const std::string call = std::string(R"([{"index":0,"id":"a","function":)") + function + "}]";
        if (stream) {
            d.on_event(R"({"choices":[{"index":0,"delta":{"tool_calls":)" + call + R"(},"finish_reason":"tool_calls"}]})", "", nullptr);
            d.on_event("[DONE]", "", nullptr);
        } else {
            d.on_body(R"({"choices":[{"index":0,"message":{"tool_calls":)" + call + R"(},"finish_reason":"tool_calls"}]})", 200, nullptr);
        }
        return d.take_result().malformed.value().to_json();
    };
    for (const bool stream : {false, true}) {
        EXPECT_EQ(marker(R"({"name":"write","arguments":[1]})", stream).find("rawArguments"), nullptr);
        EXPECT_EQ(marker(R"({"name":"write","arguments":7})", stream).find("rawArguments"), nullptr);
        EXPECT_EQ(marker(R"({"name":"write","arguments":null})", stream).find("rawArguments"), nullptr);
        EXPECT_EQ(marker(R"({"name":"write"})", stream).find("rawArguments"), nullptr);
        EXPECT_EQ(marker(R"({"name":"write","arguments":""})", stream)["rawArguments"].as_string(), "");
        EXPECT_EQ(marker(R"({"name":"write","arguments":"[1]"})", stream)["rawArguments"].as_string(), "[1]");
    }
}

TEST(OpenaiDecode, TextOfTheServiceNeverShowsTheKeyNotEvenCut)
{
    openai_codec_options o = numbered_ids();
    o.key = secret("sk-0123456789abcdef0123456789abcdef");
    o.expose_error_body = true;
    const std::string key(o.key.reveal());
    for (std::size_t before = 150; before <= 300; before += 3) {
        const std::string text = std::string(before, 'm') + key + std::string(100, 'n');
        const auto shown = [&](auto&& feed) {
            const openai_codec codec(o);
            openai_decoder d(codec, {}, "");
            feed(d);
            return std::string(d.take_failure().message());
        };
        EXPECT_EQ(shown([&](openai_decoder& d) { d.on_event("{" + text, "", nullptr); }).find("sk-"), std::string::npos) << before;
        EXPECT_EQ(shown([&](openai_decoder& d) { d.on_event(R"({"error":{"message":")" + text + R"("}})", "", nullptr); }).find("sk-"), std::string::npos)
            << before;
        EXPECT_EQ(shown([&](openai_decoder& d) { d.on_body("<p>" + text, 200, nullptr); }).find("sk-"), std::string::npos) << before;
        EXPECT_EQ(shown([&](openai_decoder& d) { d.on_body(R"({"why":")" + text + R"("})", 200, nullptr); }).find("sk-"), std::string::npos) << before;
    }
}

TEST(OpenaiDecode, DetailsOfThePromptAreAUsageSignalLikeItsCount)
{
    const auto used = [](const char* text) {
        decoding d;
        d.event(std::string(R"({"choices":[],"usage":)") + text + "}");
        return d.decoder.reported_usage();
    };
    EXPECT_FALSE(used("{}").has_value());
    EXPECT_FALSE(used(R"({"prompt_tokens_details":null,"total_tokens":3})").has_value());
    EXPECT_FALSE(used(R"({"completion_tokens_details":{}})").has_value());
    ASSERT_TRUE(used(R"({"prompt_tokens_details":{}})").has_value());
    EXPECT_EQ(used(R"({"prompt_tokens_details":{}})")->total(), 0U);
    EXPECT_EQ(used(R"({"prompt_tokens_details":{"cached_tokens":4}})")->cache_read, 4U);
}

TEST(OpenaiDecode, ChoicesWithoutIndexCountByTheirPlace)
{
    decoding d;
    ASSERT_EQ(
        d.decoder.on_body(R"({"choices":[{"message":{"content":"first"},"finish_reason":"stop"},{"message":{"content":"second"},"finish_reason":"length"}]})",
                          200, nullptr),
        decode_state::done);
    const generate_result r = d.decoder.take_result();
    EXPECT_EQ(r.text, "first");
    EXPECT_EQ(r.stop_reason, "end_turn");
}

TEST(OpenaiDecode, AnEmptyReasoningContentHidesNoReasoning)
{
    decoding d;
    d.event(R"({"choices":[{"index":0,"delta":{"reasoning_content":"","reasoning":"hm"},"finish_reason":"stop"}]})");
    ASSERT_EQ(d.event("[DONE]"), decode_state::done);
    EXPECT_EQ(d.decoder.take_result().blocks.value().blocks[0]["text"].as_string(), "hm");
}

TEST(OpenaiDecode, TooManyCallsAreNamedAsSuch)
{
    decoding d;
    std::string calls;
    for (int i = 0; i <= 4096; ++i) calls += (i == 0 ? "" : ",") + std::string(R"({"id":"a","function":{"name":"f","arguments":"{}"}})");
    ASSERT_EQ(d.decoder.on_body(R"({"choices":[{"message":{"tool_calls":[)" + calls + R"(]},"finish_reason":"tool_calls"}]})", 200, nullptr),
              decode_state::failed);
    EXPECT_EQ(d.failure()["message"].as_string(), "[OpenAIProvider] an answer with more than 4096 tool calls passes the limit");
}

TEST(OpenaiDecode, AFailureTellsTheRequestId)
{
    decoding d;
    d.event(R"({"error":{"message":"over"}})");
    EXPECT_EQ(d.failure()["requestId"].as_string(), "req_1");
}

}  // namespace openai_decode_test
}  // namespace

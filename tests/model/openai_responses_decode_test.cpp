#include <reagent/base/utf8.hpp>
#include <reagent/model/openai_responses_codec.hpp>
#include <reagent/model/wire_decoder.hpp>

#include <gtest/gtest.h>

#include <random>

namespace {
namespace openai_responses_decode_test {

using namespace reagent;

openai_responses_codec_options numbered_ids()
{
    openai_responses_codec_options o;
    o.model = "m";
    o.random = [n = std::uint64_t{0}]() mutable { return ++n; };
    return o;
}

class decoding {
public:
    explicit decoding(openai_responses_codec_options options = numbered_ids(), tool_list tools = {})
        : codec(std::move(options)), decoder(codec.decoder(std::move(tools), "req_1"))
    {}
    decode_state event(std::string_view data, std::string_view type = {}) { return decoder->on_event(data, type, &events); }
    decode_state body(std::string_view text) { return decoder->on_body(text, 200, &events); }
    json result() { return decoder->take_result().to_json(); }
    json failure() { return provider_error_to_json(std::make_exception_ptr(decoder->take_failure())); }
    std::string payloads(event_kind kind) const
    {
        std::string out;
        for (const reagent::event& e : events)
            if (e.kind == kind) out += e.payload;
        return out;
    }
    openai_responses_codec codec;
    std::unique_ptr<wire_decoder> decoder;
    event_batch events;
};

json array_of(std::vector<json> values)
{
    json out = json::array();
    for (json& v : values) out.push_back(std::move(v));
    return out;
}

json parsed(std::string_view text)
{
    return json::parse_or_throw(text, "test");
}

json message_item(std::string_view text, std::string_view type = "output_text")
{
    const char* member = type == "refusal" ? "refusal" : "text";
    return json::object().set("type", "message").set("role", "assistant").set("content", array_of({json::object().set("type", type).set(member, text)}));
}

json call_item(std::string_view id, std::string_view name, json arguments)
{
    return json::object().set("type", "function_call").set("call_id", id).set("name", name).set("arguments", std::move(arguments));
}

json response(std::vector<json> output, std::string_view status = "completed")
{
    return json::object().set("model", "m-2").set("status", status).set("error", json()).set("output", array_of(std::move(output)));
}

std::string ended(const json& r, std::string_view type = "response.completed")
{
    return json::object().set("type", type).set("sequence_number", 9).set("response", r).dump();
}

std::string text_delta(std::string_view text, int n = 4)
{
    return json::object()
        .set("type", "response.output_text.delta")
        .set("sequence_number", n)
        .set("item_id", "msg_1")
        .set("output_index", 0)
        .set("content_index", 0)
        .set("delta", text)
        .set("logprobs", json::array())
        .dump();
}

std::string indexed(std::string_view type, int index, std::string_view member, json value)
{
    return json::object().set("type", type).set("output_index", index).set(std::string(member), std::move(value)).dump();
}

std::vector<std::string> pieces(const std::string& text, std::mt19937& random)
{
    std::vector<std::string> out;
    for (std::size_t at = 0; at < text.size();) {
        out.push_back(text.substr(at, 1 + random() % 5));
        at += out.back().size();
    }
    return out;
}

json random_item(std::mt19937& random)
{
    const auto pick = [&](std::uint32_t n) { return static_cast<std::uint32_t>(random() % n); };
    std::string word(pick(20), 'x');
    for (char& c : word) c = static_cast<char>("ab{}[]\":,\\ 1e"[pick(13)]);
    switch (pick(4)) {
    case 0: return message_item(word, pick(4) == 0 ? "refusal" : "output_text");
    case 1:
        return parsed(R"({"type":"reasoning","id":"rs_1","summary":[],"encrypted_content":"gA==","n":1.50})")
            .set("content", array_of({json::object().set("text", word)}));
    default: {
        const char* ids[] = {"", "a", "b"};
        const char* arguments[] = {"", "{}", R"({"q":1})", R"({"q":)", "[1]", " ", "null", R"({"n":12345678901234567890123})", R"({"n":1e999})"};
        return call_item(ids[pick(3)], pick(2) == 0 ? "find" : "write", arguments[pick(9)]);
    }
    }
}

/// The events that bring an item, in pieces.
void stream_item(decoding& d, const json& item, int index, std::mt19937& random)
{
    const std::string& type = item["type"].as_string();
    json begun = item;
    if (type == "message") begun.set("content", json::array());
    if (type == "function_call") begun.set("arguments", "");
    ASSERT_EQ(d.event(indexed("response.output_item.added", index, "item", begun)), decode_state::more);
    if (type == "message") {
        const json& part = item["content"][0];
        const bool refusal = part["type"].as_string() == "refusal";
        for (const std::string& p : pieces(part[refusal ? "refusal" : "text"].as_string(), random))
            d.event(indexed(refusal ? "response.refusal.delta" : "response.output_text.delta", index, "delta", p));
    } else if (type == "function_call") {
        for (const std::string& p : pieces(item["arguments"].as_string(), random))
            d.event(indexed("response.function_call_arguments.delta", index, "delta", p));
    } else {
        for (const std::string& p : pieces(item["content"][0]["text"].as_string(), random))
            d.event(indexed("response.reasoning_text.delta", index, "delta", p));
    }
    ASSERT_EQ(d.event(indexed("response.output_item.done", index, "item", item)), decode_state::more);
}

TEST(OpenaiResponsesDecode, StreamingAndOneShotGiveTheSameResult)
{
    std::mt19937 random(7);
    for (int i = 0; i < 250; ++i) {
        std::vector<json> output;
        for (auto n = random() % 5; n > 0; --n) output.push_back(random_item(random));
        json r = response(output, random() % 4 == 0 ? "incomplete" : "completed");
        if (r["status"].as_string() == "incomplete") r.set("incomplete_details", json::object().set("reason", random() % 2 == 0 ? "max_output_tokens" : "odd"));
        if (random() % 2 == 0) r.set("usage", json::object().set("input_tokens", 7).set("output_tokens", 3));
        decoding whole, stream, bare;
        ASSERT_EQ(whole.body(r.dump()), decode_state::done);
        int index = 0;
        for (const json& item : output) stream_item(stream, item, index++, random);
        // A server that repeats nothing at the end leaves what streamed.
        json end = r;
        if (random() % 2 == 0) end.set("output", json::array());
        ASSERT_EQ(stream.event(ended(end)), decode_state::done);
        ASSERT_EQ(bare.event(ended(r)), decode_state::done);
        const std::string expected = whole.result().dump(), texts = stream.payloads(event_kind::text);
        ASSERT_EQ(texts, stream.decoder->text());
        ASSERT_EQ(stream.payloads(event_kind::thinking), whole.payloads(event_kind::thinking));
        ASSERT_EQ(stream.result().dump(), expected);
        ASSERT_EQ(bare.payloads(event_kind::text), texts);
        ASSERT_EQ(bare.result().dump(), expected);
    }
}

TEST(OpenaiResponsesDecode, StopReasons)
{
    class row {
    public:
        const char *response, *stop, *text;
    };
    for (
        const row& r : std::vector<row>{
            {R"({"status":"completed","output":[]})", "end_turn", ""},
            {R"({"status":"completed","output":[{"type":"function_call","call_id":"a","name":"f","arguments":"{}"}]})", "tool_use", ""},
            {R"({"status":"incomplete","incomplete_details":{"reason":"max_output_tokens"},"output":[{"type":"function_call","call_id":"a","name":"f","arguments":"{}"}]})",
             "max_tokens", ""},
            {R"({"status":"incomplete","incomplete_details":{"reason":"content_filter"},"output":[]})", "refusal", ""},
            {R"({"status":"incomplete","incomplete_details":{"reason":"__proto__"},"output":[]})", "__proto__", ""},
            {R"({"status":"incomplete","incomplete_details":null,"output":[]})", "incomplete", ""},
            {R"({"status":"cancelled","output":[]})", "cancelled", ""},
            {R"({"status":"completed","output":[{"type":"message","content":[{"type":"refusal","refusal":"no"}]}]})", "refusal", "no"},
            {R"({"status":"completed","output":[{"type":"message","content":[{"type":"output_text","text":"a"},{"type":"refusal","refusal":"no"}]}]})",
             "refusal", "ano"},
            {R"({"status":"completed","output":[{"type":"message","content":[{"type":"refusal","refusal":""},{"type":"odd","text":"x"}]}]})", "end_turn", ""},
            {R"({"status":"completed","output":[{"type":"message","content":"plain"},7,null,{"type":"message","content":[{"type":"output_text","text":" and"}]}]})",
             "end_turn", "plain and"},
        }) {
        decoding d, s;
        ASSERT_EQ(d.body(r.response), decode_state::done) << r.response;
        const json result = d.result();
        EXPECT_EQ(result["stopReason"].as_string(), r.stop) << r.response;
        EXPECT_EQ(result["text"].as_string(), r.text) << r.response;
        EXPECT_EQ(result["model"].as_string(), "m") << "the configured one, as the response names none";
        // Whichever event ends the stream, the status of the response counts.
        ASSERT_EQ(s.event(ended(parsed(r.response), "response.incomplete")), decode_state::done) << r.response;
        EXPECT_EQ(s.result().dump(), result.dump()) << r.response;
    }
    // Without a status the event's type tells it, and a body tells nothing.
    decoding completed, incomplete, nothing;
    EXPECT_EQ(completed.event(ended(parsed(R"({"output":[]})"))), decode_state::done);
    EXPECT_EQ(completed.result()["stopReason"].as_string(), "end_turn");
    EXPECT_EQ(incomplete.event(ended(parsed("{}"), "response.incomplete")), decode_state::done);
    EXPECT_EQ(incomplete.result()["stopReason"].as_string(), "incomplete");
    EXPECT_EQ(nothing.body(R"({"output":[],"status":7})"), decode_state::done);
    EXPECT_TRUE(nothing.result()["stopReason"].is_null());
}

TEST(OpenaiResponsesDecode, UsageIsNullWithoutASignal)
{
    class row {
    public:
        const char *used, *expected;
    };
    for (const row& r : std::vector<row>{
             {"null", "null"},
             {"{}", "null"},
             {R"({"input_tokens":"9","output_tokens":-1})", "null"},
             {R"({"input_tokens_details":{"cached_tokens":4}})", "null"},
             {R"({"input_tokens":0})", R"({"inputTokens":0,"outputTokens":0,"cacheReadTokens":0,"cacheCreationTokens":0})"},
             {R"({"input_tokens":10,"output_tokens":1,"input_tokens_details":{"cached_tokens":30}})",
              R"({"inputTokens":0,"outputTokens":1,"cacheReadTokens":30,"cacheCreationTokens":0})"},
         }) {
        decoding d;
        ASSERT_EQ(d.body(R"({"status":"completed","output":[],"usage":)" + std::string(r.used) + "}"), decode_state::done);
        EXPECT_EQ(d.result()["usage"].dump(), r.expected) << r.used;
    }
}

TEST(OpenaiResponsesDecode, Failures)
{
    class row {
    public:
        std::string text;
        const char* expected;
    };
    const auto shown = [](const json& f) {
        json out = json::object();
        for (const char* key : {"status", "retryable", "bound", "event", "message"})
            if (const json* v = f.find(key)) out.set(key, *v);
        return out.dump();
    };
    for (
        const row& r : std::vector<row>{
            {R"({"type":"error","code":"insufficient_quota","message":"empty"})",
             R"({"status":429,"retryable":false,"bound":"stream-error","message":"[OpenAIResponsesProvider] empty"})"},
            {R"({"error":{"code":502,"message":"upstream"}})",
             R"({"status":502,"retryable":true,"bound":"stream-error","message":"[OpenAIResponsesProvider] upstream"})"},
            {R"({"type":"response.output_text.delta","delta":"x","error":{"type":"overloaded_error","message":"busy"}})",
             R"({"status":529,"retryable":true,"bound":"stream-error","message":"[OpenAIResponsesProvider] busy"})"},
            {ended(parsed(R"({"status":"failed","error":{"code":"rate_limit_exceeded","message":"slow"}})"), "response.failed"),
             R"({"status":429,"retryable":true,"bound":"stream-error","message":"[OpenAIResponsesProvider] slow"})"},
            {ended(parsed(R"({"status":"completed","error":{"code":"invalid_prompt","message":"bad"}})")),
             R"({"retryable":false,"bound":"stream-error","message":"[OpenAIResponsesProvider] bad"})"},
            {ended(json(), "response.failed"),
             R"({"retryable":false,"bound":"stream-error","message":"[OpenAIResponsesProvider] the response failed and does not say why"})"},
            {"[DONE]",
             R"({"retryable":true,"bound":"transport","event":"premature-end","message":"[OpenAIResponsesProvider] response stream aborted before the body completed"})"},
            {"{\"type\":", R"({"retryable":true,"bound":"invalid-event","message":"[OpenAIResponsesProvider] stream event is not JSON: {\"type\":"})"},
        }) {
        decoding d;
        ASSERT_EQ(d.event(text_delta("par")), decode_state::more);
        ASSERT_EQ(d.event(r.text), decode_state::failed) << r.text;
        const json f = d.failure();
        EXPECT_EQ(shown(f), r.expected);
        EXPECT_EQ(f["partial"]["text"].as_string(), "par") << r.text;
    }
    for (const row& r : std::vector<row>{
             {R"({"error":{"type":"invalid_request_error","message":"no"}})",
              R"({"status":400,"retryable":false,"bound":"error-in-200","message":"[OpenAIResponsesProvider] no"})"},
             {R"({"status":"failed","error":{"code":"server_error","message":"broke"},"output":[]})",
              R"({"status":500,"retryable":true,"bound":"error-in-200","message":"[OpenAIResponsesProvider] broke"})"},
             {R"({"status":"completed","secret":"s"})",
              R"({"retryable":false,"bound":"no-output","message":"[OpenAIResponsesProvider] response has no output"})"},
             {"[1]", R"({"retryable":false,"bound":"no-output","message":"[OpenAIResponsesProvider] response has no output"})"},
             {"{", R"({"status":200,"retryable":false,"bound":"invalid-json","message":"[OpenAIResponsesProvider] Invalid JSON response: {"})"},
         }) {
        decoding d;
        ASSERT_EQ(d.body(r.text), decode_state::failed) << r.text;
        const json f = d.failure();
        EXPECT_EQ(shown(f), r.expected);
        EXPECT_EQ(f.find("body"), nullptr);
        EXPECT_EQ(f.find("partial"), nullptr);
    }
    openai_responses_codec_options open = numbered_ids();
    open.expose_error_body = true;
    decoding d(open);
    ASSERT_EQ(d.body(R"({"secret":"s"})"), decode_state::failed);
    const json f = d.failure();
    EXPECT_EQ(f["body"].as_string(), R"({"secret":"s"})");
    EXPECT_EQ(f["message"].as_string(), R"([OpenAIResponsesProvider] response has no output: {"secret":"s"})");
}

TEST(OpenaiResponsesDecode, UsageOfAFailedResponseIsKeptForWhoPaysIt)
{
    decoding d;
    ASSERT_EQ(d.event(ended(parsed(R"({"status":"failed","error":{"code":"server_error"},"usage":{"input_tokens":9,"output_tokens":2}})"), "response.failed")),
              decode_state::failed);
    ASSERT_TRUE(d.decoder->reported_usage().has_value());
    EXPECT_EQ(d.decoder->reported_usage()->input, 9U);
}

TEST(OpenaiResponsesDecode, TheResponseAtTheEndIsWhatTheAnswerIs)
{
    decoding d;
    d.event(text_delta("wrong"));
    d.event(indexed("response.output_item.added", 1, "item", call_item("a", "find", "")));
    d.event(indexed("response.function_call_arguments.delta", 1, "delta", R"({"q":1})"));
    ASSERT_EQ(d.event(ended(response({message_item("right"), call_item("a", "find", R"({"q":2})"), call_item("b", "write", "{}")}))), decode_state::done);
    EXPECT_EQ(d.payloads(event_kind::text), "wrong");
    EXPECT_EQ(d.payloads(event_kind::tool_args), R"({"q":1}{})") << "what is out stays out; the call that did not stream is told";
    const json r = d.result();
    EXPECT_EQ(r["text"].as_string(), "right");
    EXPECT_EQ(r["toolCalls"].dump(), R"([{"id":"a","name":"find","arguments":{"q":2}},{"id":"b","name":"write","arguments":{}}])");
    EXPECT_EQ(r["model"].as_string(), "m-2");

    decoding longer;
    longer.event(text_delta("ri"));
    ASSERT_EQ(longer.event(ended(response({message_item("right")}))), decode_state::done);
    EXPECT_EQ(longer.payloads(event_kind::text), "right");
    decoding none;  // a call that streamed and is not there at the end
    none.event(indexed("response.output_item.added", 0, "item", call_item("a", "find", "{}")));
    ASSERT_EQ(none.event(ended(response({message_item("x")}))), decode_state::done);
    EXPECT_EQ(none.result()["toolCalls"].dump(), "[]");
}

TEST(OpenaiResponsesDecode, CallsThatComeWithoutDeltasAreTold)
{
    decoding d;
    d.event(indexed("response.output_item.done", 0, "item", call_item("a", "find", R"({"q":1})")));
    d.event(indexed("response.output_item.added", 1, "item", call_item("b", "find", parsed(R"({"n":9007199254740993})"))));
    d.event(indexed("response.output_item.done", 2, "item", message_item("said")));
    EXPECT_EQ(d.payloads(event_kind::text), "said");
    ASSERT_EQ(d.event(ended(response({}))), decode_state::done);
    EXPECT_EQ(d.result()["toolCalls"].dump(), R"([{"id":"a","name":"find","arguments":{"q":1}},{"id":"b","name":"find","arguments":{"n":9007199254740993}}])");
}

TEST(OpenaiResponsesDecode, Case_B1_CallsAtOneIndexAreTwo)
{
    decoding d;
    for (const char* id : {"a", "b"}) {
        d.event(indexed("response.output_item.added", 0, "item", call_item(id, "find", "")));
        d.event(indexed("response.function_call_arguments.delta", 0, "delta", "{\"of\":\"" + std::string(id) + "\"}"));
    }
    ASSERT_EQ(d.event(ended(json(), "response.completed")), decode_state::done);
    EXPECT_EQ(d.result()["toolCalls"].dump(), R"([{"id":"a","name":"find","arguments":{"of":"a"}},{"id":"b","name":"find","arguments":{"of":"b"}}])");
}

TEST(OpenaiResponsesDecode, Case_B3_EmptyArgumentsDoNotCrashTheRun)
{
    for (const char* arguments : {"", " ", "null"}) {
        decoding d, strict(numbered_ids(), std::make_shared<const std::vector<tool_schema>>(1, tool_schema("now", "", parsed(R"({"required":["zone"]})"))));
        ASSERT_EQ(d.body(response({call_item("a", "now", arguments)}).dump()), decode_state::done);
        EXPECT_EQ(d.result()["toolCalls"].dump(), R"([{"id":"a","name":"now","arguments":{}}])");
        ASSERT_EQ(strict.body(response({call_item("a", "now", arguments)}).dump()), decode_state::done);
        EXPECT_EQ(strict.result()["malformedToolCall"]["name"].as_string(), "now");
    }
}

TEST(OpenaiResponsesDecode, Case_B4_CutArgumentsNameTheirToolAndThePlace)
{
    openai_responses_codec_options open = numbered_ids();
    open.expose_malformed_args = true;
    decoding d(open);
    json r = response({call_item("a", "find", R"({"q":"x)"), call_item("b", "find", "{}")}, "incomplete");
    r.set("incomplete_details", json::object().set("reason", "max_output_tokens"));
    ASSERT_EQ(d.event(ended(r, "response.incomplete")), decode_state::done);
    const json result = d.result();
    EXPECT_EQ(result["stopReason"].as_string(), "max_tokens");
    EXPECT_EQ(result["toolCalls"].dump(), "[]");
    EXPECT_EQ(result["malformedToolCall"].dump(), R"({"name":"find","error":"arguments are not JSON at byte 7","rawArguments":"{\"q\":\"x"})");
}

TEST(OpenaiResponsesDecode, Case_B5_ArgumentsAndBlocksKeepTheirNumbers)
{
    for (const std::string number : {"9007199254740993", "9223372036854775807", "18446744073709551615", "-0.0", "1.50"}) {
        const std::string object = "{\"id\":" + number + "}";
        decoding text, value, stream;
        ASSERT_EQ(text.body(response({call_item("a", "get", object)}).dump()), decode_state::done);
        EXPECT_EQ(text.decoder->take_result().tool_calls.at(0).arguments.dump(), object);
        const json kept = parsed(R"({"type":"reasoning","x":)" + number + "}");
        const json r = response({kept, call_item("a", "get", parsed(object))});
        ASSERT_EQ(value.body(r.dump()), decode_state::done);
        const generate_result result = value.decoder->take_result();
        EXPECT_EQ(result.tool_calls.at(0).arguments.dump(), object);
        EXPECT_EQ(result.blocks.value().blocks.dump(), "[" + kept.dump() + "]");
        ASSERT_EQ(stream.event(indexed("response.output_item.done", 0, "item", kept)), decode_state::more);
        ASSERT_EQ(stream.event(ended(response({}))), decode_state::done);
        EXPECT_EQ(stream.decoder->take_result().blocks.value().blocks.dump(), "[" + kept.dump() + "]");
    }
    decoding far;  // no double holds it, so no tool could be called with it
    ASSERT_EQ(far.body(response({call_item("a", "get", R"({"id":1e400})")}).dump()), decode_state::done);
    EXPECT_EQ(far.result()["malformedToolCall"]["error"].as_string(), "arguments hold a number out of range at byte 6");
}

TEST(OpenaiResponsesDecode, Case_A11_ACallCutInItsArgumentsIsNeverACall)
{
    for (const bool clean : {true, false}) {
        for (const char* arguments : {"{\"path\":\"/", "{\"path\":\"/\"}"}) {
            decoding d;
            d.event(indexed("response.output_item.added", 0, "item", call_item("a", "rm", "")));
            d.event(indexed("response.function_call_arguments.delta", 0, "delta", arguments));
            ASSERT_EQ(d.decoder->on_end(clean, &d.events), decode_state::failed);
            for (const event& e : d.events) EXPECT_NE(e.kind, event_kind::tool_end);
            const json f = d.failure();
            EXPECT_EQ(f["event"].as_string(), clean ? "premature-end" : "aborted");
            EXPECT_EQ(f["partial"]["toolCallsStarted"].get_int64(), 1);
            EXPECT_TRUE(f["retryable"].as_bool());
        }
    }
}

TEST(OpenaiResponsesDecode, Case_A2_IllFormedBytesOfAWholeEventAreReplacedNotDropped)
{
    decoding d;
    d.event("{\"type\":\"response.output_text.delta\",\"delta\":\"a\xFF\xE4\xBD z\\ud83d\"}");
    EXPECT_EQ(d.decoder->text(), "a\xEF\xBF\xBD\xEF\xBF\xBD z\xEF\xBF\xBD");
    EXPECT_EQ(d.payloads(event_kind::text), d.decoder->text());
}

TEST(OpenaiResponsesDecode, EventsThatRepeatAreReadLikeTheFirst)
{
    decoding d;
    std::string expected;
    for (int i = 0; i < 40; ++i) {
        const std::string text = i % 7 == 3 ? "\xC3\xA9\n" : " w" + std::to_string(i);
        ASSERT_EQ(d.event(text_delta(text, i), "response.output_text.delta"), decode_state::more);
        expected += text;
    }
    EXPECT_EQ(d.decoder->text(), expected);
    // The same bytes under the name of an error are one, and so is a delta that carries one.
    EXPECT_EQ(d.event(R"({"type":"response.output_text.delta","sequence_number":1,"delta":"x","error":{"message":"no"}})"), decode_state::failed);
    // The type may stand in the event's name alone; another name is another event.
    decoding named;
    EXPECT_EQ(named.event(R"({"delta":"a","sequence_number":1})", "response.output_text.delta"), decode_state::more);
    EXPECT_EQ(named.event(R"({"delta":"b","sequence_number":2})", "response.reasoning_text.delta"), decode_state::more);
    EXPECT_EQ(named.decoder->text(), "a");
    EXPECT_EQ(named.payloads(event_kind::thinking), "b");
}

TEST(OpenaiResponsesDecode, EventsComeInOrder)
{
    decoding d;
    d.event(R"({"type":"response.created","response":{"model":"m-2","status":"in_progress","output":[]}})");
    d.event(R"({"type":"response.queued","response":null})");
    d.event("  ");
    d.event("7");
    d.event(indexed("response.reasoning_summary_text.delta", 0, "delta", "hm"));
    d.event(indexed("response.output_item.added", 1, "item", call_item("a", "find", "")));
    d.event(indexed("response.function_call_arguments.delta", 1, "delta", "{}"));
    d.event(indexed("response.function_call_arguments.done", 1, "arguments", "{}"));
    d.event(indexed("response.unheard_of", 1, "item", json::object()));
    ASSERT_EQ(d.event(ended(response({parsed(R"({"type":"reasoning","summary":[{"type":"summary_text","text":"hm"}]})"), call_item("a", "find", "{}")}))),
              decode_state::done);
    std::string seen;
    for (const event& e : d.events) seen += std::to_string(static_cast<int>(e.kind)) + " ";
    std::string expected;
    for (const event_kind k : {event_kind::start, event_kind::thinking, event_kind::tool_start, event_kind::tool_args, event_kind::tool_end, event_kind::stop})
        expected += std::to_string(static_cast<int>(k)) + " ";
    EXPECT_EQ(seen, expected);
    EXPECT_EQ(d.events[0].name, "m-2");
    EXPECT_EQ(d.events[0].id, "req_1");
}

TEST(OpenaiResponsesDecode, TellsWhetherThereWasThinking)
{
    class row {
    public:
        const char* text;
        thinking_signal expected;
    };
    for (const row& r : std::vector<row>{
             {R"({"status":"completed","output":[]})", thinking_signal::unreadable},
             {R"({"status":"completed","output":[],"usage":{"input_tokens":1,"output_tokens":1,"output_tokens_details":{"reasoning_tokens":0}}})",
              thinking_signal::none},
             {R"({"status":"completed","output":[],"usage":{"input_tokens":1,"output_tokens":1,"output_tokens_details":{"reasoning_tokens":5}}})",
              thinking_signal::seen},
             {R"({"status":"completed","output":[{"type":"reasoning","summary":[{"type":"summary_text","text":"hm"}]}]})", thinking_signal::seen},
             {R"({"status":"completed","output":[{"type":"reasoning","summary":[],"encrypted_content":"g"}]})", thinking_signal::unreadable},
         }) {
        decoding d;
        ASSERT_EQ(d.body(r.text), decode_state::done);
        EXPECT_EQ(d.decoder->thinking_seen(), r.expected) << r.text;
    }
}

TEST(OpenaiResponsesDecode, OtherItemsAreKeptWholeAndInOrderUnderTheConfiguredModel)
{
    decoding d;
    const std::string first = R"({"id":"rs_1","type":"reasoning","summary":[],"encrypted_content":"gAAAA==","z":[1.0,{"a":null}]})";
    const std::string second = R"({"type":"compaction","encrypted_content":"x\u0000"})";
    ASSERT_EQ(d.body(R"({"model":"m-2026-01-01","status":"completed","output":[)" + first + R"(,{"type":"message","content":"a"},)" + second + "]}"),
              decode_state::done);
    EXPECT_EQ(d.result()["providerBlocks"].dump(), R"({"provider":"openai-responses","model":"m","blocks":[)" + first + "," + second + "]}");
}

TEST(OpenaiResponsesDecode, LimitsAreFailures)
{
    openai_responses_codec_options small = numbered_ids();
    small.max_arguments = 8;
    const json call = call_item("a", "f", "{\"q\":\"long\"}");
    for (const std::string& text : {ended(response({call})), indexed("response.output_item.done", 0, "item", call)}) {
        decoding d(small);
        ASSERT_EQ(d.event(text), decode_state::failed);
        EXPECT_EQ(d.failure()["bound"].as_string(), "event-too-large");
    }
    decoding body(small), delta(small);
    ASSERT_EQ(body.body(response({call}).dump()), decode_state::failed);
    EXPECT_EQ(body.failure().find("partial"), nullptr);
    delta.event(indexed("response.output_item.added", 0, "item", call_item("a", "f", "")));
    EXPECT_EQ(delta.event(indexed("response.function_call_arguments.delta", 0, "delta", "{\"q\":\"long\"}")), decode_state::failed);
    // Items that are kept until the end count for the limit of a stream.
    decoding held;
    held.event(indexed("response.output_item.done", 0, "item", parsed(R"({"type":"reasoning","encrypted_content":")" + std::string(1000, 'x') + "\"}")));
    EXPECT_GE(held.decoder->held_bytes(), 1000U);
}

}  // namespace openai_responses_decode_test
}  // namespace

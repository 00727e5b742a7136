#include <reagent/model/gemini_codec.hpp>
#include <reagent/model/wire_decoder.hpp>

#include <gtest/gtest.h>

#include <random>

namespace {
namespace gemini_decode_test {

using namespace reagent;

gemini_codec_options numbered_ids()
{
    gemini_codec_options o;
    o.model = "m";
    o.random = [n = std::make_shared<std::uint64_t>(0)] { return ++*n; };
    return o;
}

class decoding {
public:
    explicit decoding(gemini_codec_options options = numbered_ids()) : codec(std::move(options)), decoder(codec.decoder({}, "req_1")) {}
    decode_state event(std::string_view data) { return decoder->on_event(data, {}, &events); }
    decode_state body(std::string_view text) { return decoder->on_body(text, 200, &events); }
    json failure() { return provider_error_to_json(std::make_exception_ptr(decoder->take_failure())); }
    std::string seen(event_kind kind) const
    {
        std::string out;
        for (const reagent::event& e : events)
            if (e.kind == kind) out += std::string(e.payload) + (e.data == nullptr ? "" : e.data->dump());
        return out;
    }
    gemini_codec codec;
    std::unique_ptr<wire_decoder> decoder;
    event_batch events;
};

std::string chunk(std::string_view parts, std::string_view more = {})
{
    return R"({"candidates":[{"content":{"parts":[)" + std::string(parts) + R"(],"role":"model"},"index":0)" + std::string(more) + "}]}";
}

/// One answer: its parts as a whole answer has them, and as a stream may.
class answer {
public:
    std::vector<std::string> whole, streamed;
};

answer random_answer(std::mt19937& random)
{
    const auto pick = [&](std::uint32_t n) { return static_cast<std::uint32_t>(random() % n); };
    answer a;
    for (std::uint32_t n = pick(6); n > 0; --n) {
        const std::uint32_t kind = pick(6);
        if (kind < 3) {  // text, perhaps thought, perhaps signed at its end
            const char* thought = kind == 1 ? R"(,"thought":true)" : "";
            const char* pieces[] = {"a", "b\\n", "\\\"", "é", "c d"};
            std::string text;
            for (std::uint32_t p = 1 + pick(4); p > 0; --p) {
                const char* piece = pieces[pick(5)];
                text += piece;
                a.streamed.push_back(R"({"text":")" + std::string(piece) + "\"" + thought + "}");
            }
            a.whole.push_back(R"({"text":")" + text + "\"" + thought + "}");
            if (pick(3) == 0) {
                a.whole.push_back(R"({"text":"","thoughtSignature":"S"})");
                a.streamed.push_back(a.whole.back());
            }
        } else {
            const char* parts[] = {R"({"functionCall":{"name":"f","args":{"q":9007199254740993}},"thoughtSignature":"S"})",
                                   R"({"functionCall":{"name":"g"}})",
                                   R"({"functionCall":{"id":"x","name":"f","args":{}}})",
                                   R"({"inlineData":{"mimeType":"a/b","data":"QQ==","n":1.50}})",
                                   R"({"functionCall":{"name":"f","args":[1]}})",
                                   R"({})"};
            a.whole.push_back(parts[pick(6)]);
            a.streamed.push_back(a.whole.back());
        }
    }
    return a;
}

TEST(GeminiDecode, StreamingAndOneShotGiveTheSameResult)
{
    std::mt19937 random(11);
    for (int i = 0; i < 400; ++i) {
        const answer a = random_answer(random);
        const std::string finish = std::array{"STOP", "MAX_TOKENS", "SAFETY", "MALFORMED_FUNCTION_CALL", "ODD"}[random() % 5];
        const std::string counts = random() % 2 == 0 ? "" : R"(,"usageMetadata":{"promptTokenCount":9,"candidatesTokenCount":3})";
        std::string parts;
        for (const std::string& p : a.whole) parts += (parts.empty() ? "" : ",") + p;
        const std::string end = R"(,"finishReason":")" + finish + "\"";
        decoding whole, stream, array;
        const std::string body = chunk(parts, end);
        ASSERT_EQ(whole.body(body.substr(0, body.size() - 1) + counts + "}"), decode_state::done) << body;
        std::string chunks = "[";
        const auto push = [&](const std::string& one) {
            ASSERT_EQ(stream.event(one), decode_state::more) << one;
            chunks += (chunks.size() == 1 ? "" : ",") + one;
        };
        for (std::size_t at = 0; at < a.streamed.size();) {
            std::string some;
            for (std::size_t n = 1 + random() % 3; n > 0 && at < a.streamed.size(); --n) some += (some.empty() ? "" : ",") + a.streamed[at++];
            const std::string one = chunk(some);
            push(one.substr(0, one.size() - 1) + (counts.empty() ? "" : R"(,"usageMetadata":{"promptTokenCount":9,"candidatesTokenCount":1})") + "}");
        }
        const std::string last = chunk("", end);
        push(last.substr(0, last.size() - 1) + counts + "}");
        ASSERT_EQ(stream.decoder->on_end(true, &stream.events), decode_state::done);
        ASSERT_EQ(array.body(chunks + "]"), decode_state::done);
        const std::string expected = whole.decoder->take_result().to_json().dump();
        const generate_result y = stream.decoder->take_result();
        ASSERT_EQ(expected, y.to_json().dump()) << body;
        ASSERT_EQ(expected, array.decoder->take_result().to_json().dump()) << body;
        ASSERT_EQ(stream.seen(event_kind::text), y.text);
        ASSERT_EQ(stream.seen(event_kind::usage), whole.seen(event_kind::usage));
    }
}

TEST(GeminiDecode, MapsFinishReasons)
{
    for (const auto& [raw, neutral] : std::initializer_list<std::pair<std::string, std::string>>{{"STOP", "end_turn"},
                                                                                                 {"MAX_TOKENS", "max_tokens"},
                                                                                                 {"SAFETY", "refusal"},
                                                                                                 {"RECITATION", "refusal"},
                                                                                                 {"BLOCKLIST", "refusal"},
                                                                                                 {"PROHIBITED_CONTENT", "refusal"},
                                                                                                 {"SPII", "refusal"},
                                                                                                 {"IMAGE_SAFETY", "refusal"},
                                                                                                 {"IMAGE_PROHIBITED_CONTENT", "refusal"},
                                                                                                 {"IMAGE_RECITATION", "refusal"},
                                                                                                 {"MALFORMED_FUNCTION_CALL", "MALFORMED_FUNCTION_CALL"},
                                                                                                 {"OTHER", "OTHER"},
                                                                                                 {"toString", "toString"},
                                                                                                 {"", ""}}) {
        decoding d;
        ASSERT_EQ(d.body(chunk(R"({"text":"a"})", R"(,"finishReason":")" + raw + "\"")), decode_state::done);
        EXPECT_EQ(d.decoder->result().stop_reason, neutral);
    }
}

TEST(GeminiDecode, CountsUsage)
{
    class row {
    public:
        std::string metadata, used;
    };
    for (const row& r : {
             row{R"({"promptTokenCount":0})", R"({"inputTokens":0,"outputTokens":0,"cacheReadTokens":0,"cacheCreationTokens":0,"reasoningTokens":0})"},
             row{R"({"thoughtsTokenCount":3})", R"({"inputTokens":0,"outputTokens":3,"cacheReadTokens":0,"cacheCreationTokens":0,"reasoningTokens":3})"},
             row{R"({"promptTokenCount":5,"cachedContentTokenCount":9,"candidatesTokenCount":1})",
                 R"({"inputTokens":0,"outputTokens":1,"cacheReadTokens":9,"cacheCreationTokens":0,"reasoningTokens":0})"},
             row{R"({"promptTokenCount":"5","candidatesTokenCount":-1})", "null"},
             row{R"({"totalTokenCount":5})", "null"},
             row{"null", "null"},
         }) {
        decoding d;
        ASSERT_EQ(d.body(R"({"candidates":[{"content":{"parts":[{"text":"a"}]}}],"usageMetadata":)" + r.metadata + "}"), decode_state::done);
        EXPECT_EQ(d.decoder->take_result().to_json()["usage"].dump(), r.used) << r.metadata;
    }
}

TEST(GeminiDecode, CountsAlongWithChunksThatRepeat)
{
    decoding d;
    const auto one = [](int i, int cached) {
        const std::string n = std::to_string(i);
        return R"({"candidates":[{"content":{"parts":[{"text":"t)" + n +
            R"("}],"role":"model"},"index":0}],"usageMetadata":{"promptTokenCount":9,"candidatesTokenCount":)" + n + R"(,"totalTokenCount":)" + n +
            R"(,"cachedContentTokenCount":)" + std::to_string(cached) + "}}";
    };
    std::string text;
    for (int i = 1; i < 30; ++i) {
        ASSERT_EQ(d.event(one(i, i / 10)), decode_state::more);
        text += "t" + std::to_string(i);
        EXPECT_EQ(d.decoder->reported_usage()->output, static_cast<unsigned>(i));
        EXPECT_EQ(d.decoder->reported_usage()->cache_read, static_cast<unsigned>(i / 10));
    }
    EXPECT_EQ(d.decoder->text(), text);
    EXPECT_EQ(d.seen(event_kind::usage), "");
    ASSERT_EQ(d.event(chunk("", R"(,"finishReason":"STOP")")), decode_state::more);
    ASSERT_EQ(d.decoder->on_end(true, &d.events), decode_state::done);
    EXPECT_NE(d.seen(event_kind::usage).find(R"("outputTokens":29)"), std::string::npos);
}

TEST(GeminiDecode, KeepsWhatAMessageCannotSay)
{
    class row {
    public:
        std::string parts, blocks;
    };
    for (const row& r : {
             row{R"({"text":"a"},{"text":"b"})", "null"},
             row{R"({"functionCall":{"name":"f","args":{"q":1}}})", "null"},
             row{R"({"functionCall":{"id":"x","name":"f","args":{"q":1}}})", R"([{"functionCall":{"id":"x","name":"f","args":{"q":1}}}])"},
             row{R"({"text":"a"},{"text":"b","thoughtSignature":"S"},{"text":"c"},{"text":"d"})",
                 R"([{"text":"a"},{"text":"b","thoughtSignature":"S"},{"text":"cd"}])"},
             row{R"({"text":"w","thought":true},{"text":"hy","thought":true},{"text":"a"})", R"([{"text":"why","thought":true},{"text":"a"}])"},
             row{R"({"executableCode":{"code":"1","n":1.50}})", R"([{"executableCode":{"code":"1","n":1.50}}])"},
             row{R"({"functionCall":{"name":"f","args":{"n":9007199254740993,"z":-0.0}},"thoughtSignature":"S"})",
                 R"([{"functionCall":{"name":"f","args":{"n":9007199254740993,"z":-0.0}},"thoughtSignature":"S"}])"},
         }) {
        decoding d;
        ASSERT_EQ(d.body(chunk(r.parts, R"(,"finishReason":"STOP")")), decode_state::done);
        const generate_result result = d.decoder->take_result();
        EXPECT_EQ(result.blocks ? result.blocks->blocks.dump() : "null", r.blocks) << r.parts;
        if (result.blocks) { EXPECT_EQ(result.blocks->provider + result.blocks->model, "geminim"); }
    }
}

TEST(GeminiDecode, Case_B5_ArgumentsKeepTheirNumbers)
{
    for (const std::string number : {"9007199254740993", "9223372036854775807", "18446744073709551615", "-0.0", "1.10", "12345678901234567890123"}) {
        const std::string part = R"({"functionCall":{"name":"f","args":{"id":)" + number + "}}}";
        decoding whole, stream;
        ASSERT_EQ(whole.body(chunk(part, R"(,"finishReason":"STOP")")), decode_state::done);
        ASSERT_EQ(stream.event(chunk(part, R"(,"finishReason":"STOP")")), decode_state::more);
        ASSERT_EQ(stream.decoder->on_end(true, nullptr), decode_state::done);
        for (const decoding* d : {&whole, &stream}) EXPECT_EQ(d->decoder->result().tool_calls.at(0).arguments.dump(), "{\"id\":" + number + "}");
    }
    decoding huge;
    ASSERT_EQ(huge.body(chunk(R"({"functionCall":{"name":"f","args":{"id":1e400}}})", R"(,"finishReason":"STOP")")), decode_state::done);
    ASSERT_TRUE(huge.decoder->result().malformed.has_value());
    EXPECT_EQ(huge.decoder->result().malformed->name, "f");
}

TEST(GeminiDecode, ACallNeedsANameButNoArguments)
{
    auto tools = std::make_shared<std::vector<tool_schema>>();
    tools->emplace_back("f", "", json::parse_or_throw(R"({"required":["q"]})", "test"));
    const gemini_codec codec(numbered_ids());
    const auto d = codec.decoder(tools, "");
    ASSERT_EQ(d->on_body(chunk(R"({"functionCall":{"name":"f"}})", R"(,"finishReason":"STOP")"), 200, nullptr), decode_state::done);
    EXPECT_EQ(d->result().tool_calls.at(0).arguments.dump(), "{}");
    EXPECT_EQ(d->result().tool_calls.at(0).id, "gemini_call_0000000000000001");
    decoding nameless;
    ASSERT_EQ(nameless.body(chunk(R"({"functionCall":{"args":{}}})", R"(,"finishReason":"STOP")")), decode_state::done);
    EXPECT_TRUE(nameless.decoder->result().malformed.has_value());
    EXPECT_EQ(nameless.decoder->result().stop_reason, "end_turn");
}

TEST(GeminiDecode, AMalformedRoundOfTheServiceHasNoCalls)
{
    decoding d;
    ASSERT_EQ(d.body(chunk(R"({"functionCall":{"name":"f","args":{}}})", R"(,"finishReason":"MALFORMED_FUNCTION_CALL")")), decode_state::done);
    EXPECT_TRUE(d.decoder->result().tool_calls.empty());
    EXPECT_EQ(d.decoder->result().malformed->error, "MALFORMED_FUNCTION_CALL");
}

TEST(GeminiDecode, ThinkingIsSeenInPartsOrCounts)
{
    class row {
    public:
        std::string parts, metadata;
        thinking_signal seen;
    };
    for (const row& r :
         {row{R"({"text":"a"})", "null", thinking_signal::unreadable}, row{R"({"text":"a"})", R"({"promptTokenCount":1})", thinking_signal::none},
          row{R"({"text":"a"})", R"({"thoughtsTokenCount":1})", thinking_signal::seen}, row{R"({"text":"a","thought":true})", "null", thinking_signal::seen}}) {
        decoding d;
        ASSERT_EQ(d.body(R"({"candidates":[{"content":{"parts":[)" + r.parts + R"(]}}],"usageMetadata":)" + r.metadata + "}"), decode_state::done);
        EXPECT_EQ(d.decoder->thinking_seen(), r.seen) << r.parts << r.metadata;
        EXPECT_EQ(d.seen(event_kind::thinking).empty(), r.parts.find("thought") == std::string::npos);
    }
}

TEST(GeminiDecode, OnlyTheFirstCandidateCounts)
{
    decoding d;
    ASSERT_EQ(
        d.body(
            R"({"candidates":[{"index":0,"content":{"parts":[{"text":"a"}]},"finishReason":"STOP"},{"index":1,"content":{"parts":[{"text":"z"}]},"finishReason":"SAFETY"}]})"),
        decode_state::done);
    EXPECT_EQ(d.decoder->text(), "a");
    EXPECT_EQ(d.decoder->result().stop_reason, "end_turn");
}

TEST(GeminiDecode, ABlockedPromptIsARefusalBothWays)
{
    const std::string blocked = R"({"promptFeedback":{"blockReason":"OTHER"},"usageMetadata":{"promptTokenCount":4}})";
    decoding whole, stream;
    ASSERT_EQ(whole.body(blocked), decode_state::done);
    ASSERT_EQ(stream.event(blocked), decode_state::more);
    ASSERT_EQ(stream.decoder->on_end(true, nullptr), decode_state::done);
    EXPECT_EQ(whole.decoder->take_result().to_json().dump(), stream.decoder->take_result().to_json().dump());
    EXPECT_EQ(whole.seen(event_kind::stop), "refusal");
}

TEST(GeminiDecode, TellsCutsAndErrors)
{
    class row {
    public:
        std::vector<std::string> events;
        std::string bound;
        int status;
        bool retryable;
    };
    for (const row& r : {
             row{{chunk(R"({"text":"par"})")}, "transport", 0, true},
             row{{chunk(R"({"text":"par"})"), "[DONE]"}, "transport", 0, true},
             row{{chunk(R"({"text":"par"})"), R"({"error":{"code":503,"message":"busy","status":"UNAVAILABLE"}})"}, "stream-error", 503, true},
             row{{chunk(R"({"text":"par"})"), R"({"error":{"code":400,"message":"no"}})"}, "stream-error", 400, false},
             row{{chunk(R"({"text":"par"})"), R"({"candidates":[)"}, "invalid-event", 0, true},
         }) {
        decoding d;
        decode_state state = decode_state::more;
        for (const std::string& e : r.events) state = d.event(e);
        if (state == decode_state::more) state = d.decoder->on_end(true, nullptr);
        ASSERT_EQ(state, decode_state::failed) << r.events.back();
        const json f = d.failure();
        EXPECT_EQ(f["bound"].as_string(), r.bound) << r.events.back();
        EXPECT_EQ(f["status"].get_int64().value_or(0), r.status) << r.events.back();
        EXPECT_EQ(f["retryable"].as_bool(), r.retryable) << r.events.back();
        EXPECT_EQ(f["partial"]["text"].as_string(), "par") << r.events.back();
    }
    decoding done;
    ASSERT_EQ(done.event(chunk(R"({"text":"a"})", R"(,"finishReason":"STOP")")), decode_state::more);
    EXPECT_EQ(done.event("[DONE]"), decode_state::done);
    decoding cut;  // an array whose last chunk has no finish reason
    ASSERT_EQ(cut.body("[" + chunk(R"({"text":"par"})") + "]"), decode_state::failed);
    EXPECT_EQ(cut.failure()["event"].as_string(), "premature-end");
}

TEST(GeminiDecode, PartsWithoutBytesAreCountedToo)
{
    decoding d;
    std::string parts;
    for (int i = 0; i < 1000; ++i) parts += (i == 0 ? "" : ",") + std::string(R"({"x":1})");
    ASSERT_EQ(d.event(chunk(parts)), decode_state::more);
    EXPECT_GE(d.decoder->held_bytes(), 128'000U);
}

}  // namespace gemini_decode_test
}  // namespace

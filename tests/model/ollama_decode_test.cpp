#include <reagent/model/ollama_codec.hpp>
#include <reagent/model/wire_decoder.hpp>

#include <gtest/gtest.h>

#include <random>

namespace {
namespace ollama_decode_test {

using namespace reagent;

ollama_codec_options numbered_ids()
{
    ollama_codec_options o;
    o.model = "m";
    o.random = [n = std::uint64_t{0}]() mutable { return ++n; };
    return o;
}

tool_list tools()
{
    auto out = std::make_shared<std::vector<tool_schema>>();
    out->emplace_back("find", "", json());
    out->emplace_back("write", "", json::parse_or_throw(R"({"required":["content"]})", "test"));
    return out;
}

class decoding {
public:
    explicit decoding(ollama_codec_options options = numbered_ids()) : codec(std::move(options)), decoder(codec.decoder(tools(), "req_1")) {}
    decode_state line(std::string_view data) { return decoder->on_event(data, {}, &events); }
    decode_state body(std::string_view text) { return decoder->on_body(text, 200, &events); }
    json failure() { return provider_error_to_json(std::make_exception_ptr(decoder->take_failure())); }
    std::string seen(event_kind kind) const
    {
        std::string out;
        for (const reagent::event& e : events)
            if (e.kind == kind) out += e.payload;
        return out;
    }
    ollama_codec codec;
    std::unique_ptr<wire_decoder> decoder;
    event_batch events;
};

std::string line(std::string_view message, std::string_view more = R"("done":false)")
{
    static int second = 0;
    return R"({"model":"m","created_at":"2026-11-30T09:15:)" + std::to_string(++second) + R"(Z","message":{"role":"assistant")" + std::string(message) + "}," +
        std::string(more) + "}";
}

std::string call(std::string_view name, std::string_view arguments)
{
    return R"({"function":{"name":")" + std::string(name) + R"(","arguments":)" + std::string(arguments) + "}}";
}

TEST(OllamaDecode, StreamingAndOneShotGiveTheSameResult)
{
    std::mt19937 random(11);
    const auto pick = [&](std::uint32_t n) { return static_cast<std::uint32_t>(random() % n); };
    for (int i = 0; i < 400; ++i) {
        decoding whole, stream;
        std::string text, thought, calls;
        for (std::uint32_t n = pick(8); n > 0; --n) {
            const char* pieces[] = {"a", "b\\n", "\\\"", "é", "c d"};
            const std::string piece = pieces[pick(5)];
            const std::uint32_t kind = pick(4);
            if (kind == 0) {
                thought += piece;
                ASSERT_EQ(stream.line(line(R"(,"content":"","thinking":")" + piece + "\"")), decode_state::more);
            } else if (kind == 1) {
                const char* arguments[] = {"{}", R"({"q":9007199254740993})", R"("{\"q\":1}")", R"("{\"q\":")", "[1]", "null", "\"\""};
                const std::string one = call(pick(2) == 0 ? "find" : "write", arguments[pick(7)]);
                calls += (calls.empty() ? "" : ",") + one;
                ASSERT_EQ(stream.line(line(R"(,"content":"","tool_calls":[)" + one + "]")), decode_state::more);
            } else {
                text += piece;
                ASSERT_EQ(stream.line(line(R"(,"content":")" + piece + "\"")), decode_state::more);
            }
        }
        const std::string counts = pick(2) == 0 ? "" : R"(,"prompt_eval_count":3,"eval_count":4)";
        const std::string end = R"("done":true,"done_reason":")" + std::string(std::array{"stop", "length", "load", ""}[pick(4)]) + "\"" + counts;
        ASSERT_EQ(stream.line(line(R"(,"content":"")", end)), decode_state::done);
        const std::string body =
            line(R"(,"content":")" + text + R"(","thinking":")" + thought + "\"" + (calls.empty() ? "" : R"(,"tool_calls":[)" + calls + "]"), end);
        ASSERT_EQ(whole.body(body), decode_state::done);
        ASSERT_EQ(stream.seen(event_kind::text), whole.seen(event_kind::text));
        ASSERT_EQ(stream.seen(event_kind::thinking), whole.seen(event_kind::thinking));
        ASSERT_EQ(whole.decoder->thinking_seen(), thought.empty() ? thinking_signal::none : thinking_signal::seen);
        ASSERT_EQ(whole.decoder->take_result().to_json().dump(), stream.decoder->take_result().to_json().dump()) << body;
    }
}

TEST(OllamaDecode, ReadsOneShotAnswers)
{
    class row {
    public:
        std::string what, message, more, stop, used, calls;
    };
    for (const row& r : {
             row{"the model was only loaded", R"(,"content":"")", R"("done":true,"done_reason":"load")", "load", "null", "[]"},
             row{"no reason", R"(,"content":"a")", R"("done":true)", "", "null", "[]"},
             row{"zero counts", R"(,"content":"a")", R"("done":true,"done_reason":"stop","prompt_eval_count":0)", "end_turn",
                 R"({"inputTokens":0,"outputTokens":0})", "[]"},
             row{"counts that are none", R"(,"content":"a")", R"("done":true,"done_reason":"stop","prompt_eval_count":"7","eval_count":-1)", "end_turn", "null",
                 "[]"},
             row{"text arguments", R"(,"content":"","tool_calls":[)" + call("find", R"("{\"q\":1}")") + "]", R"("done":true,"done_reason":"stop")", "tool_use",
                 "null", R"([{"id":"call_0000000000000001","name":"find","arguments":{"q":1}}])"},
             row{"no arguments for a tool that needs none", R"(,"content":"","tool_calls":[{"id":"a","function":{"name":"find"}}])",
                 R"("done":true,"done_reason":"stop")", "tool_use", "null", R"([{"id":"a","name":"find","arguments":{}}])"},
             row{"no arguments for a tool that needs some", R"(,"content":"","tool_calls":[)" + call("write", "null") + "]",
                 R"("done":true,"done_reason":"stop")", "end_turn", "null", "[]"},
             row{"equal ids",
                 R"(,"content":"","tool_calls":[{"id":"a","function":{"name":"find","arguments":{}}},{"id":"a","function":{"name":"find","arguments":{}}}])",
                 R"("done":true,"done_reason":"stop")", "tool_use", "null",
                 R"([{"id":"a","name":"find","arguments":{}},{"id":"a__2","name":"find","arguments":{}}])"},
             row{"a call that is none", R"(,"content":"","tool_calls":[7])", R"("done":true,"done_reason":"stop")", "end_turn", "null", "[]"},
         }) {
        decoding d;
        ASSERT_EQ(d.body(line(r.message, r.more)), decode_state::done) << r.what;
        const generate_result result = d.decoder->take_result();
        EXPECT_EQ(result.stop_reason, r.stop) << r.what;
        const json out = result.to_json();
        EXPECT_EQ(out["usage"].dump(), r.used) << r.what;
        EXPECT_EQ(out["toolCalls"].dump(), r.calls) << r.what;
    }
}

TEST(OllamaDecode, Case_B5_ArgumentsKeepTheirNumbers)
{
    for (const std::string number : {"9007199254740993", "9223372036854775807", "18446744073709551615", "-0.0", "1.10", "12345678901234567890123"}) {
        const std::string arguments = "{\"id\":" + number + "}", message = R"(,"tool_calls":[)" + call("find", arguments) + "]";
        decoding whole, stream;
        ASSERT_EQ(whole.body(line(message, R"("done":true)")), decode_state::done);
        ASSERT_EQ(stream.line(line(message, R"("done":true)")), decode_state::done);
        for (const decoding* d : {&whole, &stream}) EXPECT_EQ(d->decoder->result().tool_calls.at(0).arguments.dump(), arguments);
    }
    decoding huge;
    ASSERT_EQ(huge.body(line(R"(,"tool_calls":[)" + call("find", R"({"id":1e400})") + "]", R"("done":true)")), decode_state::done);
    EXPECT_TRUE(huge.decoder->result().malformed.has_value());
}

TEST(OllamaDecode, ShowsUnreadableArgumentsOnlyWhenTheyWereText)
{
    ollama_codec_options o = numbered_ids();
    o.expose_malformed_args = true;
    for (const auto& [arguments, shown] : std::initializer_list<std::pair<std::string, bool>>{{R"("{\"q\":")", true}, {"[1]", false}}) {
        decoding d(o);
        ASSERT_EQ(d.body(line(R"(,"tool_calls":[)" + call("find", arguments) + "]", R"("done":true)")), decode_state::done);
        EXPECT_EQ(d.decoder->result().malformed->raw_arguments.has_value(), shown) << arguments;
    }
}

TEST(OllamaDecode, TellsCutsAndErrors)
{
    class row {
    public:
        std::string second, bound, message;
        bool retryable;
    };
    for (const row& r : {row{R"({"error":"boom"})", "stream-error", "[OllamaProvider] boom", false},
                         row{R"({"error":{"message":"boom"}})", "stream-error", "[OllamaProvider] boom", false},
                         row{R"({"message":{"content":"Z"})", "invalid-event", "", true}, row{"", "transport", "", true},
                         row{R"({"message":{"content":"Z"},"done":"true"})", "transport", "", true}}) {
        decoding d;
        ASSERT_EQ(d.line(line(R"(,"content":"Y")")), decode_state::more);
        decode_state state = d.line(r.second);
        if (state == decode_state::more) state = d.decoder->on_end(true, nullptr);
        ASSERT_EQ(state, decode_state::failed) << r.second;
        const json f = d.failure();
        EXPECT_EQ(f["bound"].as_string(), r.bound) << r.second;
        EXPECT_EQ(f["retryable"].as_bool(), r.retryable) << r.second;
        EXPECT_EQ(f["partial"]["text"].as_string().substr(0, 1), "Y") << r.second;
        if (!r.message.empty()) { EXPECT_EQ(f["message"].as_string(), r.message); }
    }
}

TEST(OllamaDecode, ABodyWithoutAMessageIsAnError)
{
    ollama_codec_options o = numbered_ids();
    o.expose_error_body = true;
    for (const auto& [body, bound] : std::initializer_list<std::pair<std::string, std::string>>{
             {"{}", "no-message"}, {"[]", "no-message"}, {R"({"error":"no such model"})", "error-in-200"}, {"<p>", "invalid-json"}}) {
        decoding d(o);
        ASSERT_EQ(d.body(body), decode_state::failed) << body;
        const json f = d.failure();
        EXPECT_EQ(f["bound"].as_string(), bound) << body;
        EXPECT_FALSE(f["retryable"].as_bool()) << body;
        EXPECT_EQ(f["body"].as_string(), body);
    }
}

}  // namespace ollama_decode_test
}  // namespace

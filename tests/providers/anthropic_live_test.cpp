// Anthropic's Messages over a real socket.
#include "live_world.hpp"

#include <reagent/providers/anthropic.hpp>

#include <gtest/gtest.h>

namespace {
namespace anthropic_live_test {

using namespace reagent;
namespace testing = reagent::testing;
using namespace reagent::live_world_detail;
using testing::http_response;

class messages_world : public live_world {
public:
    explicit messages_world(byte_script script) : live_world(std::move(script)) {}
    anthropic_options with()
    {
        anthropic_options o("m");
        o.base_url(server.origin() + "/v1").key(secret("k")).log(log_sink([this](log_level, std::string_view line) { warnings.emplace_back(line); }));
        return o;
    }
    provider_ptr provider() { return anthropic(http, with()); }
    std::vector<std::string> warnings;
};

std::string named(std::string_view type, const std::string& members = {})
{
    return "event: " + std::string(type) + "\ndata: {\"type\":\"" + std::string(type) + "\"" + (members.empty() ? "" : "," + members) + "}\n\n";
}

std::string text_delta(std::string_view text)
{
    std::string quoted;
    append_json_string(quoted, text);
    return named("content_block_delta", R"("index":0,"delta":{"type":"text_delta","text":)" + quoted + "}");
}

const std::string began =
    named("message_start", R"("message":{"id":"msg_1","model":"m-1","content":[],"usage":{"input_tokens":9,"cache_read_input_tokens":4,"output_tokens":1}})") +
    named("content_block_start", R"("index":0,"content_block":{"type":"text","text":""})") + named("ping");
const std::string stopped = named("content_block_stop", R"("index":0)") +
    named("message_delta", R"("delta":{"stop_reason":"end_turn"},"usage":{"output_tokens":3})") + named("message_stop");

std::string streamed(const std::string& body, bool whole = true)
{
    return testing::sse_head({{"request-id", "req_9"}}) + testing::http_chunk(body) + (whole ? testing::http_chunk("") : "");
}

const std::string answer_body =
    R"({"type":"message","model":"m-1","content":[{"type":"text","text":"Héllo 🌍"}],"stop_reason":"end_turn","usage":{"input_tokens":9,"cache_read_input_tokens":4,"output_tokens":3}})";

std::string refusal(std::string_view message)
{
    return http_response(400, R"({"type":"error","error":{"type":"invalid_request_error","message":")" + std::string(message) + R"("}})");
}

TEST(AnthropicLive, AStreamAndOnePieceGiveTheSame)
{
    messages_world w(byte_script()
                         .request()
                         .send(streamed(began + text_delta("Hé") + text_delta("llo 🌍") + stopped))
                         .request()
                         .send(http_response(200, answer_body, {{"request-id", "req_9"}})));
    const provider_ptr p = w.provider();
    EXPECT_EQ(p->name(), "anthropic");
    EXPECT_EQ(p->max_output(), 4096U);
    const observed_call seen = w.call(p, asking("hi"));
    ASSERT_TRUE(seen.result.has_value()) << seen.error().dump();
    EXPECT_EQ(seen.text, "Héllo 🌍");
    EXPECT_EQ(w.server.log().request().target(), "/v1/messages");
    EXPECT_EQ(w.server.log().request().header("x-api-key"), "k");
    EXPECT_EQ(w.server.log().request().header("anthropic-version"), "2023-06-01");
    EXPECT_EQ(w.body(0)["stream"].as_bool(), true);
    EXPECT_EQ(w.body(0)["max_tokens"].get_int64(), 4096);
    const generate_result one = w.generate(p, asking("hi"));
    for (const generate_result* r : {&*seen.result, &one}) {
        EXPECT_EQ(r->text, "Héllo 🌍");
        EXPECT_EQ(r->model, "m-1");
        EXPECT_EQ(r->stop_reason, "end_turn");
        EXPECT_EQ(r->usage->to_json().dump(), R"({"inputTokens":9,"outputTokens":3,"cacheReadTokens":4,"cacheCreationTokens":0})");
        EXPECT_EQ(r->request_id, "req_9");
    }
}

TEST(AnthropicLive, Case_A9_AClosedSocketAfterThreeDeltasIsATruncatedStream)
{
    messages_world w(byte_script().request().send(streamed(began + text_delta("a") + text_delta("b") + text_delta("c"), false)).close());
    const observed_call seen = w.call(w.provider(), asking("hi"));
    ASSERT_TRUE(seen.failure);
    EXPECT_EQ(code_of(seen.failure), errc::stream_truncated);
    EXPECT_EQ(seen.partial, "abc");
    EXPECT_TRUE(seen.error()["retryable"].as_bool());
}

TEST(AnthropicLive, Case_A10_TheCallEndsAtTheLastEventAndTheSocketIsGivenUp)
{
    messages_world w(byte_script().request().send(streamed(began + text_delta("a") + stopped, false)).stall());
    const steady_time before = w.clock->now();
    const observed_call seen = w.call(w.provider(), asking("hi"));
    ASSERT_TRUE(seen.result.has_value()) << seen.error().dump();
    EXPECT_EQ(seen.result->text, "a");
    EXPECT_EQ(w.clock->now(), before);
    EXPECT_TRUE(testing::run_until(w.io, [&] { return w.server.log().open() == 0; }));
}

TEST(AnthropicLive, Case_C5_DroppingACallClosesItsConnection)
{
    messages_world w(byte_script().request().send(streamed(began + text_delta("ab"), false)).stall());
    const provider_ptr p = w.provider();
    model_call_ptr call = p->start(asking("hi"));
    event_batch batch;
    while (call->partial_text().size() < 2) {
        w.io.restart();
        ASSERT_TRUE(testing::complete(w.io, call->read(batch)));
    }
    EXPECT_EQ(w.server.log().open(), 1U);
    call.reset();
    w.io.restart();
    EXPECT_TRUE(testing::run_until(w.io, [&] { return w.server.log().open() == 0; }));
}

TEST(AnthropicLive, Case_A12_AnErrorEventIsTypedAndKeepsWhatCame)
{
    messages_world w(byte_script()
                         .request()
                         .send(streamed(began + text_delta("par") + named("error", R"("error":{"type":"overloaded_error","message":"Overloaded"})")))
                         .stall());
    const observed_call seen = w.call(w.provider(), asking("hi"));
    const json e = seen.error();
    EXPECT_EQ(e["status"].get_int64(), 529);
    EXPECT_TRUE(e["retryable"].as_bool());
    EXPECT_EQ(e["partial"]["text"].as_string(), "par");
    EXPECT_EQ(e["requestId"].as_string(), "req_9");
}

TEST(AnthropicLive, ATemperatureGoesWhereThinkingIsOn)
{
    // J16 and J01: what is left out is the temperature, not the thinking.
    for (const bool thinks : {true, false}) {
        messages_world w(
            byte_script()
                .request()
                .send(refusal(thinks ? "`temperature` may only be set to 1 when thinking is enabled" : "`temperature` is deprecated for this model."))
                .request()
                .send(http_response(200, answer_body)));
        anthropic_options o = w.with();
        o.temperature(0.2);
        if (thinks) o.mode(thinking_mode::on);
        const generate_result r = w.generate(anthropic(w.http, o), asking("hi"));
        EXPECT_TRUE(r.temperature_dropped);
        EXPECT_EQ(w.body(0)["temperature"].get_double(), 0.2);
        EXPECT_EQ(w.body(1).find("temperature"), nullptr);
        EXPECT_EQ(w.body(1)["thinking"].dump(), thinks ? R"({"type":"adaptive"})" : "null");
        EXPECT_EQ(w.warnings.size(), 1U);
    }
}

TEST(AnthropicLive, TheLadderRemembersWhatWasAccepted)
{
    messages_world w(byte_script()
                         .request()
                         .send(refusal("adaptive thinking is not for this model"))
                         .request()
                         .send(http_response(200, answer_body))
                         .request()
                         .send(http_response(200, answer_body)));
    anthropic_options o = w.with();
    o.mode(thinking_mode::on);
    const provider_ptr p = anthropic(w.http, o);
    for (const unsigned attempts : {2U, 1U}) {
        const generate_result r = w.generate(p, asking("hi"));
        EXPECT_EQ(r.attempts, attempts);
        EXPECT_EQ(r.thinking, thinking_status::applied);
    }
    for (const std::size_t i : {1U, 2U}) EXPECT_EQ(w.body(i)["thinking"].dump(), R"({"type":"enabled","budget_tokens":2048})");
}

TEST(AnthropicLive, ThinkingThatWasSwitchedOffAndCameIsTold)
{
    const std::string thinks =
        R"({"type":"message","model":"m-1","content":[{"type":"redacted_thinking","data":"x"},{"type":"text","text":"ok"}],"stop_reason":"end_turn"})";
    messages_world w(byte_script().request().send(http_response(200, thinks)).request().send(http_response(200, thinks)));
    anthropic_options o = w.with();
    o.mode(thinking_mode::off);
    const provider_ptr p = anthropic(w.http, o);
    for (int i = 0; i < 2; ++i) {
        const generate_result r = w.generate(p, asking("hi"));
        EXPECT_EQ(r.thinking, thinking_status::ignored);
        EXPECT_EQ(r.text, "ok");
    }
    EXPECT_EQ(w.warnings.size(), 1U);
}

TEST(AnthropicLive, OptionsOfTheFileAndWhatIsRefused)
{
    const auto read = [](const char* text) { return anthropic_options::from_json(json::parse_or_throw(text, "test")); };
    const anthropic_options o =
        read(R"({"apiKey":"k","model":"x","cacheSystem":true,"cacheMessages":true,"cacheTtl":"1h","maxTokens":5,"exposeMalformedArgs":true})");
    EXPECT_EQ(o.model(), "x");
    EXPECT_TRUE(o.cache_system() && o.cache_messages() && o.expose_malformed_args());
    EXPECT_EQ(o.cache_ttl(), "1h");
    EXPECT_EQ(o.max_tokens(), 5U);
    for (const char* bad : {R"({"legacyMaxTokens":true})", R"({"cacheSystem":1})", R"({"cacheMessages":"yes"})", R"({"cacheTtl":7})"})
        EXPECT_THROW(static_cast<void>(read(bad)), validation_error) << bad;
    messages_world w(byte_script().request().stall());
    EXPECT_THROW(static_cast<void>(anthropic(w.http, anthropic_options("m"))), validation_error);
}

}  // namespace anthropic_live_test
}  // namespace

#include "live_world.hpp"

#include <reagent/providers/openai_responses.hpp>

#include <gtest/gtest.h>

namespace {
namespace openai_responses_test {

using namespace reagent;
namespace testing = reagent::testing;
using namespace reagent::live_world_detail;

std::string typed(std::string_view type, std::string_view members)
{
    return "event: " + std::string(type) + "\n" + testing::sse_event(R"({"type":")" + std::string(type) + R"(",)" + std::string(members) + "}");
}

const std::string answer =
    R"({"id":"resp_1","model":"m-2","status":"completed","error":null,"output":[{"type":"reasoning","id":"rs_1","summary":[{"type":"summary_text","text":"hm"}],"encrypted_content":"gA=="},)"
    R"({"type":"message","role":"assistant","content":[{"type":"output_text","text":"Héllo"}]},{"type":"function_call","call_id":"a","name":"find","arguments":"{\"q\":9007199254740993}"}],)"
    R"("usage":{"input_tokens":10,"input_tokens_details":{"cached_tokens":4},"output_tokens":2,"output_tokens_details":{"reasoning_tokens":1}}})";

std::string streamed_answer()
{
    return typed("response.created", R"("sequence_number":0,"response":{"model":"m-2","status":"in_progress","output":[]})") +
        typed("response.reasoning_summary_text.delta", R"("sequence_number":1,"output_index":0,"delta":"hm")") +
        typed("response.output_text.delta", R"("sequence_number":2,"output_index":1,"delta":"Hé")") +
        typed("response.output_text.delta", R"("sequence_number":3,"output_index":1,"delta":"llo")") +
        typed("response.output_item.added",
              R"("sequence_number":4,"output_index":2,"item":{"type":"function_call","call_id":"a","name":"find","arguments":""})") +
        typed("response.function_call_arguments.delta", R"("sequence_number":5,"output_index":2,"delta":"{\"q\":9007199254740993}")") +
        typed("response.completed", R"("sequence_number":6,"response":)" + answer);
}

provider_ptr provider_of(live_world& w, openai_responses_options o = openai_responses_options("m"))
{
    o.base_url(url::parse_or_throw(w.server.origin() + "/v1", "test")).key(secret("k"));
    return openai_responses(w.http, std::move(o));
}

json without_timings(const generate_result& r)
{
    json out = r.to_json();
    for (const char* key : {"timings", "attempts", "requestId"}) out.erase(key);
    return out;
}

TEST(OpenaiResponses, AStreamAndABodyGiveTheSameResultAndItsBlocksGoBack)
{
    live_world s(byte_script().request().send(testing::sse_head() + testing::http_chunk(streamed_answer()) + testing::http_chunk("")));
    const observed_call seen = s.call(provider_of(s), asking("hi"));
    ASSERT_TRUE(seen.result.has_value()) << seen.error().dump();
    EXPECT_EQ(seen.text, "Héllo");
    EXPECT_EQ(seen.result->tool_calls.at(0).arguments.dump(), R"({"q":9007199254740993})");
    EXPECT_EQ(seen.result->stop_reason, "tool_use");
    EXPECT_EQ(seen.result->usage->input, 6U);
    EXPECT_EQ(s.server.log().request().target(), "/v1/responses");
    EXPECT_EQ(s.server.log().request().header("authorization"), "Bearer k");
    EXPECT_TRUE(s.body(0)["stream"].as_bool());

    live_world b(byte_script().request().send(testing::http_response(200, answer)).request().send(testing::http_response(200, answer)));
    const provider_ptr p = provider_of(b);
    EXPECT_EQ(p->name(), "openai-responses");
    const generate_result whole = b.generate(p, asking("hi"));
    EXPECT_EQ(without_timings(whole).dump(), without_timings(*seen.result).dump());
    generate_request next({message::user("hi"), message::assistant(whole.text, whole.tool_calls, whole.blocks), message::tool_result("a", "r")});
    static_cast<void>(b.generate(p, next));
    EXPECT_EQ(
        b.body(1)["input"].dump(),
        R"([{"role":"user","content":[{"type":"input_text","text":"hi"}]},{"type":"reasoning","id":"rs_1","summary":[{"type":"summary_text","text":"hm"}],"encrypted_content":"gA=="},)"
        R"({"role":"assistant","content":[{"type":"output_text","text":"Héllo"}]},{"type":"function_call","call_id":"a","name":"find","arguments":"{\"q\":9007199254740993}"},)"
        R"({"type":"function_call_output","call_id":"a","output":"r"}])");
    EXPECT_EQ(b.body(0).find("stream"), nullptr);
}

TEST(OpenaiResponses, TheCallEndsWithTheLastEventAndACutIsAnError)
{
    live_world open(byte_script().request().send(testing::sse_head() + testing::http_chunk(streamed_answer())).stall());
    const observed_call seen = open.call(provider_of(open), asking("hi"));
    ASSERT_TRUE(seen.result.has_value()) << seen.error().dump();
    EXPECT_TRUE(testing::run_until(open.io, [&] { return open.server.log().open() == 0; }));
    const std::string all = streamed_answer();
    live_world cut(byte_script().request().send(testing::sse_head() + testing::http_chunk(all.substr(0, all.find("event: response.completed")))).close());
    const observed_call broken = cut.call(provider_of(cut), asking("hi"));
    ASSERT_TRUE(broken.failure);
    EXPECT_EQ(code_of(broken.failure), errc::stream_truncated);
    EXPECT_EQ(broken.partial, "Héllo");
    EXPECT_EQ(std::count(broken.kinds.begin(), broken.kinds.end(), event_kind::tool_end), 0);
}

TEST(OpenaiResponses, DroppingACallInItsMiddleClosesTheConnection)
{
    live_world w(byte_script().request().send(testing::sse_head() + testing::http_chunk(typed("response.output_text.delta", R"("delta":"a")"))).stall());
    model_call_ptr call = provider_of(w)->start(asking("hi"));
    event_batch batch;
    std::string text;
    for (int i = 0; text.empty() && i < 20; ++i) {
        w.io.restart();
        EXPECT_TRUE(testing::complete(w.io, call->read(batch)));
        for (const event& e : batch) text += e.text();
    }
    EXPECT_EQ(text, "a");
    call.reset();
    w.io.restart();
    EXPECT_TRUE(testing::run_until(w.io, [&] { return w.server.log().open() == 0; }));
}

TEST(OpenaiResponses, TemperatureAndThinkingDegradeAsOnEveryWire)
{
    const std::string ok = testing::http_response(200, answer);
    live_world w(byte_script()
                     .request()
                     .send(testing::http_response(400, error_body("Unsupported parameter: 'temperature' is not supported with this model.")))
                     .request()
                     .send(testing::http_response(400, error_body("Unsupported value: 'none'")))
                     .request()
                     .send(ok)
                     .request()
                     .send(ok));
    std::vector<std::string> said;
    openai_responses_options o("m");
    o.temperature(0.5).mode(thinking_mode::off).log(log_sink([&](log_level, std::string_view line) { said.emplace_back(line); }));
    const provider_ptr p = provider_of(w, o);
    const generate_result first = w.generate(p, asking("hi"));
    EXPECT_TRUE(first.temperature_dropped);
    EXPECT_EQ(first.thinking, thinking_status::ignored) << "the answer has thought";
    EXPECT_EQ(first.attempts, 3U);
    EXPECT_EQ(w.body(0)["reasoning"]["effort"].as_string(), "none");
    EXPECT_EQ(w.body(0)["temperature"].dump(), "0.5");
    EXPECT_EQ(w.body(1).find("temperature"), nullptr);
    EXPECT_EQ(w.body(2)["reasoning"]["effort"].as_string(), "minimal");
    EXPECT_EQ(said.size(), 2U);
}

TEST(OpenaiResponses, ReadsItsOptions)
{
    const auto options = openai_responses_options::from_json(
        json::parse_or_throw(R"({"apiKey":" k\n","model":"x","baseUrl":"http://127.0.0.1:1/v2","store":true,"maxTokens":5,"timeoutMs":7})", "test"));
    EXPECT_TRUE(options.store());
    EXPECT_EQ(options.model(), "x");
    EXPECT_EQ(options.max_tokens(), 5U);
    EXPECT_EQ(openai_responses_codec(options.codec()).endpoint(true).text(), "http://127.0.0.1:1/v2/responses");
    EXPECT_FALSE(openai_responses_options::from_json(json::object()).store());
    for (const char* bad : {R"({"store":1})", R"({"legacyMaxTokens":true})", "[]"})
        EXPECT_THROW(openai_responses_options::from_json(json::parse_or_throw(bad, "test")), validation_error) << bad;
}

}  // namespace openai_responses_test
}  // namespace

#include "live_world.hpp"

#include <gtest/gtest.h>

namespace {
namespace openai_stream_test {

using namespace reagent;
namespace testing = reagent::testing;
using namespace reagent::live_world_detail;
using testing::byte_end;
using testing::byte_log;
using testing::http_chunk;
using testing::http_head;
using testing::http_response;
using testing::sse_event;
using testing::sse_head;

std::string chunked(std::initializer_list<std::string> pieces)
{
    std::string out;
    for (const std::string& p : pieces) out += http_chunk(p);
    return out;
}

const std::string done_event = sse_event("[DONE]");

std::string finish_event(std::string_view reason)
{
    return sse_event(R"({"choices":[{"index":0,"delta":{},"finish_reason":")" + std::string(reason) + R"("}]})");
}

/// Reads on until the text has arrived, then leaves the call open.
awaitable<void> read_until(model_call* call, std::size_t bytes, std::string* text)
{
    event_batch batch;
    while (text->size() < bytes) {
        const bool more = co_await call->read(batch);
        for (const event& e : batch) *text += e.text();
        if (!more) break;
    }
}

TEST(OpenaiStream, DeliversDeltasAndTheResult)
{
    live_world w(byte_script().request().send(testing::sse_response(testing::openai_events({"Hé", "llo 🌍"}, 9, 3), {{"x-request-id", "req_1"}})));
    const observed_call seen = w.call(asking("hi"));
    ASSERT_TRUE(seen.result.has_value()) << seen.error().dump();
    EXPECT_EQ(seen.text, "Héllo 🌍");
    EXPECT_EQ(seen.result->text, "Héllo 🌍");
    EXPECT_EQ(seen.result->usage->output, 3U);
    EXPECT_EQ(seen.result->request_id, "req_1");
    EXPECT_EQ(seen.result->attempts, 1U);
    EXPECT_EQ(w.body(0)["stream"].as_bool(), true);
    EXPECT_EQ(w.server.log().request().header("authorization"), "Bearer k");
    EXPECT_EQ(w.server.log().request().target(), "/v1/chat/completions");
}

TEST(OpenaiStream, GenerateAsksForOnePieceAndGivesTheSameResult)
{
    live_world w(byte_script().request().send(http_response(200, testing::openai_answer("ok"))));
    const generate_result r = w.generate(w.provider(), asking("hi"));
    EXPECT_EQ(r.text, "ok");
    EXPECT_EQ(w.body(0).find("stream"), nullptr);
}

TEST(OpenaiStream, Case_A1_OneByteAtATimeFromARealSocket)
{
    live_world w(byte_script()
                     .request()
                     .send(sse_head())
                     .trickle(chunked({delta_event("H\xC3\xA9"), delta_event("\xF0\x9F\x8C\x8D"), finish_event("stop"), done_event, ""})));
    const observed_call seen = w.call(asking("hi"));
    ASSERT_TRUE(seen.result.has_value()) << seen.error().dump();
    EXPECT_EQ(seen.text, "H\xC3\xA9\xF0\x9F\x8C\x8D");
    EXPECT_EQ(seen.result->text, seen.text);
}

TEST(OpenaiStream, Case_A9_AClosedSocketAfterThreeDeltasIsATruncatedStream)
{
    live_world w(byte_script().request().send(sse_head() + chunked({delta_event("a"), delta_event("b"), delta_event("c")})).close());
    const observed_call seen = w.call(asking("hi"));
    ASSERT_TRUE(seen.failure);
    EXPECT_EQ(code_of(seen.failure), errc::stream_truncated);
    EXPECT_EQ(seen.text, "abc");
    EXPECT_EQ(seen.partial, "abc");
    const json e = seen.error();
    EXPECT_EQ(e["bound"].as_string(), "transport");
    EXPECT_EQ(e["partial"]["text"].as_string(), "abc");
    EXPECT_TRUE(e["retryable"].as_bool());
}

TEST(OpenaiStream, Case_A10_TheCallEndsAtDoneAndTheSocketIsGivenUp)
{
    live_world w(byte_script().request().send(sse_head() + chunked({delta_event("a"), finish_event("stop"), done_event})).stall());
    const steady_time before = w.clock->now();
    const observed_call seen = w.call(asking("hi"));
    ASSERT_TRUE(seen.result.has_value()) << seen.error().dump();
    EXPECT_EQ(seen.result->text, "a");
    EXPECT_EQ(w.clock->now(), before);  // no limit had to fire
    EXPECT_TRUE(testing::run_until(w.io, [&] { return w.server.log().open() == 0; }));
    EXPECT_EQ(w.http.stats().idle, 0U);
}

TEST(OpenaiStream, Case_A10_TheSocketGoesWithTheAnswerNotWithTheCall)
{
    live_world w(byte_script().request().send(sse_head() + chunked({delta_event("a"), finish_event("stop"), done_event})).stall());
    const provider_ptr p = w.provider();
    const model_call_ptr call = p->start(asking("hi"));
    event_batch batch;
    bool more = true;
    for (int i = 0; more && i < 20; ++i) {
        w.io.restart();
        more = testing::complete(w.io, call->read(batch));
    }
    EXPECT_FALSE(more);
    // The caller may hold on to the call; its connection is gone.
    w.io.restart();
    EXPECT_TRUE(testing::run_until(
        w.io, [&] { return w.server.log().open() == 0; }, std::chrono::seconds(3)));
    EXPECT_EQ(w.http.stats().open, 0U);
}

TEST(OpenaiStream, Case_A10_TheNextCallDoesNotMeetWhatWasLeftUnread)
{
    // The end of the body comes late, with bytes nobody asked for: that socket is not used again.
    live_world w({byte_script()
                      .request()
                      .send(sse_head() + chunked({delta_event("a"), finish_event("stop"), done_event}))
                      .gate("late")
                      .send(http_chunk("data: x\n\n") + http_chunk(""))
                      .stall(),
                  byte_script().request().send(sse_head() + chunked({delta_event("b"), finish_event("stop"), done_event, ""}))});
    const provider_ptr p = w.provider();
    EXPECT_EQ(w.call(p, asking("one")).text, "a");
    w.server.open("late");
    testing::run_until_idle(w.io);
    EXPECT_EQ(w.call(p, asking("two")).text, "b");
    EXPECT_EQ(w.server.log().connections.size(), 2U);
}

TEST(OpenaiStream, Case_A10_WithItsEndReadTheSocketIsUsedAgain)
{
    live_world w(byte_script().request().send(sse_head() + chunked({delta_event("a"), finish_event("stop"), done_event, ""})).repeat());
    const provider_ptr p = w.provider();
    ASSERT_TRUE(w.call(p, asking("one")).result.has_value());
    ASSERT_TRUE(w.call(p, asking("two")).result.has_value());
    EXPECT_EQ(w.server.log().connections.size(), 1U);
}

TEST(OpenaiStream, Case_A11_ASilentCloseInsideArgumentsIsNoCall)
{
    live_world w(
        byte_script()
            .request()
            .send(sse_head() +
                  chunked({sse_event(
                      R"({"choices":[{"index":0,"delta":{"tool_calls":[{"index":0,"id":"a","function":{"name":"rm","arguments":"{\"path\":\"/"}}]}}]})")}))
            .close());
    const observed_call seen = w.call(asking("hi"));
    ASSERT_TRUE(seen.failure);
    EXPECT_FALSE(seen.result.has_value());
    EXPECT_EQ(std::count(seen.kinds.begin(), seen.kinds.end(), event_kind::tool_start), 1);
    EXPECT_EQ(std::count(seen.kinds.begin(), seen.kinds.end(), event_kind::tool_end), 0);
}

TEST(OpenaiStream, Case_A12_AnErrorEventIsAnErrorFirstAndAfterText)
{
    const std::string overloaded = "event: error\n" + sse_event(R"({"type":"error","error":{"type":"overloaded_error","message":"Overloaded"}})");
    live_world w({byte_script().request().send(sse_head() + chunked({overloaded})).stall(),
                  byte_script().request().send(sse_head() + chunked({delta_event("par"), overloaded})).stall()});
    const provider_ptr p = w.provider();
    const observed_call first = w.call(p, asking("hi")), second = w.call(p, asking("hi"));
    for (const observed_call* seen : {&first, &second}) {
        ASSERT_TRUE(seen->failure);
        const json e = seen->error();
        EXPECT_EQ(e["status"].get_int64(), 529);
        EXPECT_TRUE(e["retryable"].as_bool());
        EXPECT_EQ(e["bound"].as_string(), "stream-error");
    }
    EXPECT_EQ(second.text, "par");
    EXPECT_EQ(second.error()["partial"]["text"].as_string(), "par");
}

TEST(OpenaiStream, Case_A13_A400InsideA200IsNotSentAgain)
{
    openai_options with_temperature("m");
    live_world w(byte_script().request().send(testing::sse_response({R"({"error":{"code":400,"message":"`temperature` is deprecated"}})"})).repeat());
    with_temperature = w.options();
    with_temperature.temperature(0.5).mode(thinking_mode::off);
    const observed_call seen = w.call(openai_chat(w.http, with_temperature), asking("hi"));
    ASSERT_TRUE(seen.failure);
    EXPECT_EQ(seen.error()["status"].get_int64(), 400);
    EXPECT_FALSE(seen.error()["retryable"].as_bool());
    EXPECT_EQ(w.server.log().requests(), 1U);
}

TEST(OpenaiStream, Case_A13_TheTypeOfAnErrorSaysWhatItsStatusWouldHaveSaid)
{
    for (const char* error : {R"({"error":{"type":"invalid_request_error","message":"no such parameter"}})",
                              R"({"error":{"code":"400","type":"invalid_request_error","message":"no such parameter"}})",
                              R"({"error":{"status":400,"message":"no such parameter"}})"}) {
        live_world w(byte_script().request().send(testing::sse_response({error})).repeat());
        const observed_call seen = w.call(asking("hi"));
        ASSERT_TRUE(seen.failure) << error;
        EXPECT_EQ(seen.error()["status"].get_int64(), 400) << error;
        EXPECT_FALSE(seen.error()["retryable"].as_bool()) << error;
        EXPECT_EQ(w.server.log().requests(), 1U) << error;
    }
}

TEST(OpenaiStream, Case_A14_AnErrorChunkWithoutChoicesIsNotTheUsageChunk)
{
    live_world w(byte_script().request().send(
        sse_head() + chunked({delta_event("par"), sse_event(R"({"choices":[],"error":{"code":502,"message":"provider died"}})"), done_event, ""})));
    const observed_call seen = w.call(asking("hi"));
    ASSERT_TRUE(seen.failure);
    EXPECT_EQ(seen.error()["status"].get_int64(), 502);
    EXPECT_EQ(seen.text, "par");
}

TEST(OpenaiStream, Case_A11_AnEndWithoutFramingInsideArgumentsIsNoCall)
{
    // The body ends with the connection, which looks like a clean end; the arguments are even whole.
    live_world w(
        byte_script()
            .request()
            .send(
                "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nConnection: close\r\n\r\n" +
                sse_event(R"({"choices":[{"index":0,"delta":{"tool_calls":[{"index":0,"id":"a","function":{"name":"rm","arguments":"{\"path\":\"/\"}"}}]}}]})"))
            .close());
    const observed_call seen = w.call(asking("hi"));
    ASSERT_TRUE(seen.failure);
    EXPECT_EQ(code_of(seen.failure), errc::stream_truncated);
    EXPECT_EQ(std::count(seen.kinds.begin(), seen.kinds.end(), event_kind::tool_end), 0);
}

TEST(OpenaiStream, Case_E5_AStreamIsBoundedByItsEventsAlone)
{
    std::vector<std::string> pieces;
    for (int i = 0; i < 40; ++i) pieces.push_back(std::string(500, 'x'));
    live_world w(byte_script().request().send(testing::sse_response(testing::openai_events(pieces, 9, 3))));
    response_limits limits;
    limits.max_body = limits.max_error_body = 2000;
    limits.max_event = 2000;
    openai_options o = w.options();
    const observed_call seen = w.call(openai_chat(w.http, o.limits(limits)), asking("hi"));
    ASSERT_TRUE(seen.result.has_value()) << seen.error().dump();
    EXPECT_EQ(seen.result->text.size(), 20'000U);
}

TEST(OpenaiStream, AResetAfterTheFinishReasonIsStillAnAnswer)
{
    live_world w(byte_script().request().send(sse_head() + chunked({delta_event("ab"), finish_event("stop")})).gate("go").reset());
    const provider_ptr p = w.provider();
    const model_call_ptr call = p->start(asking("hi"));
    std::string text;
    testing::complete(w.io, read_until(call.get(), 2, &text));
    w.server.open("go");
    event_batch batch;
    w.io.restart();
    EXPECT_FALSE(testing::complete(w.io, call->read(batch)));
    const generate_result r = call->take_result();
    EXPECT_EQ(r.text, "ab");
    EXPECT_FALSE(r.usage.has_value());
}

TEST(OpenaiStream, AResetBeforeItIsNot)
{
    live_world w(byte_script().request().send(sse_head() + chunked({delta_event("ab")})).gate("go").reset());
    const provider_ptr p = w.provider();
    const model_call_ptr call = p->start(asking("hi"));
    std::string text;
    testing::complete(w.io, read_until(call.get(), 2, &text));
    w.server.open("go");
    w.io.restart();
    event_batch batch;
    try {
        static_cast<void>(testing::complete(w.io, call->read(batch)));
        FAIL();
    } catch (const provider_error& e) {
        EXPECT_EQ(e.event, "aborted");
        EXPECT_EQ(e.partial->text, "ab");
    }
    EXPECT_EQ(call->partial_text(), "ab");
}

TEST(OpenaiStream, Case_C5_DroppingACallClosesItsConnection)
{
    live_world w(byte_script().request().send(sse_head() + chunked({delta_event("ab")})).stall());
    const provider_ptr p = w.provider();
    model_call_ptr call = p->start(asking("hi"));
    std::string text;
    testing::complete(w.io, read_until(call.get(), 2, &text));
    EXPECT_EQ(w.server.log().open(), 1U);
    call.reset();
    w.io.restart();
    EXPECT_TRUE(testing::run_until(w.io, [&] { return w.server.log().open() == 0; }));
}

}  // namespace openai_stream_test
}  // namespace

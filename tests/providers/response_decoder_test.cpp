#include <reagent/model/openai_codec.hpp>
#include <reagent/providers/response_decoder.hpp>
#include <reagent/testing/allocation_counter.hpp>

#include <gtest/gtest.h>

#include <cerrno>

namespace {
namespace response_decoder_test {

using namespace reagent;
namespace testing = reagent::testing;

const std::string stream_text = "data: {\"model\":\"m\",\"choices\":[{\"index\":0,\"delta\":{\"content\":\"H\xC3\xA9\"}}]}\r\n\r\n"
                                "data: {\"choices\":[{\"index\":0,\"delta\":{\"content\":\"llo \xF0\x9F\x8C\x8D \xE4\xBD\xA0\xE5\xA5\xBD\"}}]}\n\n"
                                "data: {\"choices\":[{\"index\":0,\"delta\":{},\"finish_reason\":\"stop\"}]}\n\ndata: [DONE]\n\n";
const std::string stream_answer = "H\xC3\xA9llo \xF0\x9F\x8C\x8D \xE4\xBD\xA0\xE5\xA5\xBD";

class decoding {
public:
    explicit decoding(unsigned status = 200, std::string_view type = "text/event-stream", bool stream = true, response_limits limits = {},
                      http_fields more = {})
        : fields(std::move(more))
    {
        if (!type.empty()) fields.add("Content-Type", type);
        decoder.emplace(codec, tool_list(), stream, status, fields, system_time(), limits);
    }
    decode_state feed(std::string_view bytes) { return decoder->feed(bytes, &events); }
    decode_state end(body_end how = body_end::complete) { return decoder->end(how, &events); }
    json failure() { return provider_error_to_json(std::make_exception_ptr(decoder->answer().take_failure())); }
    openai_codec codec{openai_codec_options()};
    http_fields fields;
    std::optional<response_decoder> decoder;
    event_batch events;
};

std::string deltas(const event_batch& batch)
{
    std::string out;
    for (const event& e : batch) out += e.text();
    return out;
}

TEST(ResponseDecoder, Case_A1_AnyCutOfTheBytesGivesTheSameText)
{
    for (std::size_t cut = 0; cut <= stream_text.size(); ++cut) {
        decoding d;
        d.feed(std::string_view(stream_text).substr(0, cut));
        d.feed(std::string_view(stream_text).substr(cut));
        ASSERT_EQ(d.decoder->state(), decode_state::done) << cut;
        ASSERT_EQ(deltas(d.events), stream_answer) << cut;
        ASSERT_EQ(d.decoder->take_result().text, stream_answer) << cut;
    }
    decoding bytes;
    for (const char c : stream_text) bytes.feed(std::string_view(&c, 1));
    EXPECT_EQ(bytes.decoder->take_result().text, stream_answer);
}

TEST(ResponseDecoder, Case_A2_ACutInsideACharacterAtABlockBoundaryLosesNothing)
{
    // The three bytes of a character straddle the 4,096th byte of the stream.
    const std::string head = R"(data: {"choices":[{"index":0,"delta":{"content":")";
    std::string text = head + std::string(4095 - head.size(), 'x') + "\xE4\xBD\xA0";
    text += R"("},"finish_reason":"stop"}]})"
            "\n\ndata: [DONE]\n\n";
    decoding d;
    d.feed(std::string_view(text).substr(0, 4096));
    d.feed(std::string_view(text).substr(4096));
    const generate_result r = d.decoder->take_result();
    EXPECT_TRUE(r.text.ends_with("x\xE4\xBD\xA0"));
    decoding bad;
    bad.feed("data: {\"choices\":[{\"index\":0,\"delta\":{\"content\":\"a\xFFz\"},\"finish_reason\":\"stop\"}]}\n\ndata: [DONE]\n\n");
    EXPECT_EQ(bad.decoder->take_result().text, "a\xEF\xBF\xBDz");
}

TEST(ResponseDecoder, Case_A5_AStreamThatEndsWithoutItsBlankLineLosesNothing)
{
    // No space after the colon, and the last event has neither a blank line nor a line end.
    const std::string text = R"(data:{"choices":[{"index":0,"delta":{"content":"ab"}}]})"
                             "\n\n";
    for (const char* last : {"data:[DONE]", "data: [DONE]\n", R"(data:{"choices":[{"index":0,"delta":{"content":"c"},"finish_reason":"stop"}]})"}) {
        decoding d;
        d.feed(text + last);
        const bool done = std::string_view(last).find("[DONE]") != std::string_view::npos;
        ASSERT_EQ(d.end(), decode_state::done) << last;
        EXPECT_EQ(d.decoder->take_result().text, done ? "ab" : "abc") << last;
    }
    // What is cut in the middle is a cut stream, whatever stood there, not a bad event.
    decoding cut;
    cut.feed(text + R"(data: {"choices":[{"index":0,"del)");
    ASSERT_EQ(cut.end(), decode_state::failed);
    EXPECT_EQ(cut.failure()["event"].as_string(), "premature-end");
}

TEST(ResponseDecoder, Case_A6_OneLargeEventInSmallPiecesIsPutTogetherOnce)
{
    const auto allocated = [](std::size_t size) {
        const std::string text = R"(data: {"choices":[{"index":0,"delta":{"content":")" + std::string(size, 'x') +
            R"("},"finish_reason":"stop"}]})"
            "\n\ndata: [DONE]\n\n";
        decoding d;
        const testing::allocation_counter heap;
        for (std::size_t at = 0; at < text.size(); at += 1024) d.feed(std::string_view(text).substr(at, 1024));
        EXPECT_EQ(d.decoder->state(), decode_state::done);
        EXPECT_EQ(d.decoder->take_result().text.size(), size);
        return static_cast<double>(heap.bytes());
    };
    allocated(1024);
    const double one = allocated(1024 * 1024), two = allocated(2 * 1024 * 1024);
    EXPECT_LE(one, 40.0 * 1024 * 1024);
    EXPECT_LE(two, 2.5 * one);
}

TEST(ResponseDecoder, TellsStreamsFromBodies)
{
    const std::string body = R"({"choices":[{"index":0,"message":{"content":"ok"},"finish_reason":"stop"}]})";
    for (const std::string& prefix : {std::string(), std::string("\xEF\xBB\xBF"), std::string(" \r\n\t"), std::string("\xEF\xBB\xBF ")}) {
        decoding d(200, "");
        for (const char c : prefix + body) d.feed(std::string_view(&c, 1));
        ASSERT_EQ(d.end(), decode_state::done) << prefix.size();
        EXPECT_EQ(d.decoder->take_result().text, "ok");
    }
    decoding blank(200, "text/event-stream");
    blank.feed(std::string(10'000, '\n'));
    blank.feed(stream_text);
    EXPECT_EQ(blank.decoder->take_result().text, stream_answer);
    decoding unasked(200, "text/event-stream", false);
    unasked.feed(stream_text);
    EXPECT_EQ(unasked.decoder->take_result().text, stream_answer);
    decoding page(200, "text/HTML; charset=utf-8");
    page.feed(R"({"choices":[{}]})");
    EXPECT_EQ(page.end(), decode_state::failed);
    EXPECT_EQ(page.failure()["bound"].as_string(), "invalid-json");
}

TEST(ResponseDecoder, NothingAfterTheLogicalEndIsLookedAt)
{
    decoding d;
    EXPECT_EQ(d.feed(stream_text + "data: {not json}\n\n"), decode_state::done);
    EXPECT_EQ(d.feed("data: {not json}\n\n"), decode_state::done);
    EXPECT_EQ(d.end(body_end::aborted), decode_state::done);
    EXPECT_TRUE(d.decoder->whole());
}

TEST(ResponseDecoder, Case_A9_ATruncatedStreamIsAnErrorOfItsOwnKind)
{
    for (const body_end how : {body_end::complete, body_end::aborted}) {
        decoding d;
        d.feed(std::string_view(stream_text).substr(0, stream_text.find("finish_reason")));
        ASSERT_EQ(d.end(how), decode_state::failed);
        const provider_error e = d.decoder->answer().take_failure();
        EXPECT_EQ(e.code(), errc::stream_truncated);
        EXPECT_EQ(e.event, how == body_end::complete ? "premature-end" : "aborted");
        ASSERT_TRUE(e.partial.has_value());
        EXPECT_EQ(e.partial->text, stream_answer);
        EXPECT_TRUE(e.retryable());
    }
}

TEST(ResponseDecoder, LimitsAreNamed)
{
    response_limits small;
    small.max_event = 100;
    small.max_body = 100;
    small.max_error_body = 100;
    decoding stream(200, "text/event-stream", true, small);
    ASSERT_EQ(stream.feed("data: " + std::string(101, 'x')), decode_state::failed);
    EXPECT_EQ(stream.failure()["bound"].as_string(), "event-too-large");
    decoding body(200, "application/json", false, small);
    ASSERT_EQ(body.feed(std::string(101, ' ')), decode_state::failed);
    EXPECT_EQ(body.failure()["bound"].as_string(), "body-too-large");
    http_fields announced;
    announced.add("content-length", "101");
    decoding early(200, "application/json", false, small, announced);
    EXPECT_EQ(early.decoder->state(), decode_state::failed);
    // An endless error page is judged by its status.
    decoding page(500, "text/html", true, small);
    EXPECT_EQ(page.feed(std::string(60, 'x')), decode_state::more);
    ASSERT_EQ(page.feed(std::string(60, 'x')), decode_state::failed);
    const json f = page.failure();
    EXPECT_EQ(f["message"].as_string(), "[OpenAIProvider] HTTP 500");
    EXPECT_TRUE(f["retryable"].as_bool());
    EXPECT_FALSE(page.decoder->whole());
}

TEST(ResponseDecoder, RedirectsEndAtTheHead)
{
    decoding d(302, "");
    EXPECT_EQ(d.decoder->state(), decode_state::failed);
    const json f = d.failure();
    EXPECT_EQ(f["status"].get_int64(), 302);
    EXPECT_FALSE(f["retryable"].as_bool());
}

TEST(ResponseDecoder, RequestIdAndRateLimitsAreKept)
{
    http_fields more;
    more.add("X-Request-Id", "req_9");
    more.add("x-ratelimit-limit-requests", "500");
    more.add("x-ratelimit-reset-requests", "1s");
    decoding d(200, "text/event-stream", true, {}, more);
    d.feed(stream_text);
    const generate_result r = d.decoder->take_result();
    EXPECT_EQ(r.request_id, "req_9");
    ASSERT_TRUE(r.rate_limit.has_value());
    EXPECT_EQ(r.rate_limit->requests.limit, 500U);
    EXPECT_EQ(r.rate_limit->requests.reset, system_time(std::chrono::seconds(1)));
    ASSERT_FALSE(d.events.empty());
    EXPECT_EQ(d.events[0].id, "req_9");
}

TEST(ResponseDecoder, AStreamMayNotGrowWithoutEnd)
{
    response_limits small;
    small.max_stream = 1000;
    const auto event = [](const std::string& member) { return R"(data: {"choices":[{"index":0,"delta":{)" + member + "}}]}\n\n"; };
    const std::string bits(100, 'x');
    for (const std::string& member : {R"("content":")" + bits + '"', R"("reasoning_content":")" + bits + '"', R"("refusal":")" + bits + '"',
                                      R"("tool_calls":[{"index":0,"id":"a","function":{"name":"f","arguments":")" + bits + R"("}}])",
                                      R"("tool_calls":[{"function":{"name":")" + bits + R"(","arguments":"{}"}}])"}) {
        decoding d(200, "text/event-stream", true, small);
        int fed = 0;
        while (fed < 50 && d.feed(event(member)) == decode_state::more) ++fed;
        ASSERT_EQ(d.decoder->state(), decode_state::failed) << member;
        EXPECT_GE(fed, 8) << member;
        EXPECT_LE(fed, 10) << member;
        const provider_error e = d.decoder->answer().take_failure();
        EXPECT_EQ(e.code(), errc::body_too_large);
        EXPECT_EQ(e.bound, "body-too-large");
        EXPECT_FALSE(e.retryable());
        EXPECT_NE(e.message().find("1000 bytes"), std::string::npos);
        EXPECT_TRUE(e.partial.has_value());
    }
    EXPECT_EQ(response_limits().max_stream, 64U * 1024 * 1024);
}

TEST(ResponseDecoder, AnErrorStatusIsKeptWhateverItsPageIs)
{
    for (const errc broken : {errc::bad_encoding, errc::body_too_large}) {
        decoding d(503, "text/html");
        d.feed("<p>half a pa");
        ASSERT_EQ(d.decoder->broken(error(broken, "the page cannot be read"), nullptr), decode_state::failed);
        const json f = d.failure();
        EXPECT_EQ(f["status"].get_int64(), 503);
        EXPECT_TRUE(f["retryable"].as_bool());
        EXPECT_EQ(f["message"].as_string(), "[OpenAIProvider] HTTP 503");
        EXPECT_FALSE(d.decoder->whole());
    }
    decoding ok(200, "application/json");
    ASSERT_EQ(ok.decoder->broken(error(errc::bad_encoding, "x"), nullptr), decode_state::failed);
    EXPECT_EQ(ok.failure()["bound"].as_string(), "bad-encoding");
}

TEST(ResponseDecoder, AnHtmlPageIsExposedOnlyWhenAsked)
{
    for (const bool expose : {false, true}) {
        openai_codec_options o;
        o.expose_error_body = expose;
        const openai_codec codec(o);
        http_fields fields;
        fields.add("content-type", "text/html");
        response_decoder d(codec, {}, true, 200, fields, system_time());
        d.feed("<p>no \xFF", nullptr);
        ASSERT_EQ(d.end(body_end::complete, nullptr), decode_state::failed);
        const provider_error e = d.answer().take_failure();
        EXPECT_EQ(e.body.value_or("hidden"), expose ? "<p>no \xEF\xBF\xBD" : "hidden");
    }
}

TEST(TransportFailure, KeepsTheSystemsWordAndTheVerdict)
{
    const error_code refused(ECONNREFUSED, boost::system::system_category());
    const auto failure_of = [](const error& e) { return transport_failure(e, "OpenAIProvider"); };
    const auto as_json = [](const provider_error& e) { return provider_error_to_json(std::make_exception_ptr(e)); };
    const provider_error a = failure_of(transport_error(errc::connect_failed, "[http] POST http://h/: cannot connect: no", true, refused));
    EXPECT_EQ(a.cause, refused);
    EXPECT_EQ(a.message(), "[OpenAIProvider] POST http://h/: cannot connect: no");
    EXPECT_EQ(as_json(a)["code"].as_string(), "ECONNREFUSED");
    EXPECT_TRUE(a.retryable());
    // A reset during the handshake may go better next time, a bad certificate will not.
    EXPECT_TRUE(failure_of(transport_error(errc::tls_failed, "[http] x", true, error_code(ECONNRESET, boost::system::system_category()))).retryable());
    EXPECT_FALSE(failure_of(transport_error(errc::tls_failed, "[http] x", false)).retryable());
    const provider_error b = failure_of(error(errc::resolve_failed, "[resolver] nowhere: no such name", true));
    EXPECT_EQ(b.message(), "[OpenAIProvider] nowhere: no such name");
    EXPECT_EQ(as_json(b)["code"].as_string(), "ENOTFOUND");
    EXPECT_EQ(failure_of(transport_error(errc::body_too_large, "[http] GET http://h/: big", false)).message(), "[OpenAIProvider] GET http://h/: big");
    EXPECT_EQ(as_json(failure_of(transport_error(errc::malformed_response, "[http] x", false))).find("code"), nullptr);
}

}  // namespace response_decoder_test
}  // namespace

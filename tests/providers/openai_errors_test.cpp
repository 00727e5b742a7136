#include "live_world.hpp"

#include <boost/asio/steady_timer.hpp>
#include <gtest/gtest.h>

namespace {
namespace openai_errors_test {

using namespace reagent;
namespace testing = reagent::testing;
using namespace reagent::live_world_detail;
using testing::http_response;
using namespace std::chrono_literals;

TEST(OpenaiErrors, Case_C2_LimitsSpeakOfWhatFired)
{
    live_world w(byte_script().request().stall());
    openai_options o = w.options();
    o.idle(120ms).total(3000ms);
    const json idle = w.error_of(openai_chat(w.http, o), asking("hi"));
    EXPECT_EQ(idle["kind"].as_string(), "timeout");
    EXPECT_EQ(idle["bound"].as_string(), "idle");
    EXPECT_TRUE(idle["retryable"].as_bool());
    EXPECT_EQ(idle["message"].as_string(), "[OpenAIProvider] request timed out after 120ms of socket inactivity");
    o.idle(time_limit::off()).total(400ms);
    const json deadline = w.error_of(openai_chat(w.http, o), asking("hi"));
    EXPECT_EQ(deadline["bound"].as_string(), "deadline");
    EXPECT_FALSE(deadline["retryable"].as_bool());
    EXPECT_EQ(deadline["message"].as_string(), "[OpenAIProvider] request exceeded its total deadline of 400ms");
    o.total(time_limit::off()).first_byte(250ms);
    const json head = w.error_of(openai_chat(w.http, o), asking("hi"));
    EXPECT_EQ(head["bound"].as_string(), "headers");
    EXPECT_TRUE(head["retryable"].as_bool());
}

TEST(OpenaiErrors, Case_C2_LongLimitsAreNotClamped)
{
    // Ten minutes of silence are legal when the caller says so, before the head and behind it, and no other limit cuts them short.
    for (const bool head : {false, true}) {
        byte_script script = byte_script().request();
        if (head) script.send(testing::sse_head());
        live_world w(script.stall());
        openai_options o = w.options();
        o.idle(1500s).total(2400s).first_byte(head ? 30s : 2000s).connect(1s);
        const steady_time before = w.clock->now();
        const json e = w.call(openai_chat(w.http, o), asking("hi")).error();
        EXPECT_EQ(e["bound"].as_string(), "idle");
        EXPECT_EQ(w.clock->now() - before, 1500s) << head;
        o.idle(time_limit::off());
        const steady_time again = w.clock->now();
        EXPECT_EQ(w.call(openai_chat(w.http, o), asking("hi")).error()["bound"].as_string(), head ? "deadline" : "headers");
        EXPECT_EQ(w.clock->now() - again, head ? 2400s : 2000s);
    }
}

TEST(OpenaiErrors, Case_C3_DefaultLimitsEndASilentService)
{
    for (const bool stream : {true, false}) {
        live_world w(byte_script().request().stall());
        const steady_time before = w.clock->now();
        const json e = w.call(asking("hi", stream)).error();
        EXPECT_EQ(e["bound"].as_string(), "idle");
        EXPECT_EQ(w.clock->now() - before, 600s);
    }
    live_world closed(byte_script().request().send(testing::sse_head()).half_close());
    const steady_time before = closed.clock->now();
    EXPECT_EQ(closed.call(asking("hi")).error()["event"].as_string(), "aborted");
    EXPECT_EQ(closed.clock->now(), before) << "the end is seen at once, no limit is waited for";
}

TEST(OpenaiErrors, Case_C1_ADripOfBytesIsNoSilence)
{
    byte_script script = byte_script().request().send(testing::sse_head());
    for (int i = 0; i < 11; ++i) script.gate(std::to_string(i)).send(testing::http_chunk("x"));
    live_world w(script.stall());
    openai_options o = w.options();
    o.idle(10s).total(95s);
    const provider_ptr p = openai_chat(w.http, o);
    testing::started<observed_call> op(w.io, observe(p, asking("hi")));
    testing::run_until_idle(w.io);
    for (int i = 0; i < 11 && !op.done(); ++i) {
        w.clock->advance(9s);
        testing::run_until_idle(w.io);
        w.server.open(std::to_string(i));
        testing::run_until_idle(w.io);
    }
    ASSERT_TRUE(op.done());
    EXPECT_EQ(op.get().error()["bound"].as_string(), "deadline") << "no single line ever ended, and yet it was not idle";
}

TEST(OpenaiErrors, Case_C2_ACallOverridesTheInstanceAndTheTighterDeadlineHolds)
{
    live_world w(byte_script().request().stall());
    openai_options o = w.options();
    o.total(time_limit::off()).idle(time_limit::off());
    generate_request request = asking("hi");
    request.options.total = 400ms;
    EXPECT_EQ(w.error_of(openai_chat(w.http, o), request)["message"].as_string(), "[OpenAIProvider] request exceeded its total deadline of 400ms");
    request.options.deadline = w.clock->now() + 300ms;
    EXPECT_EQ(w.error_of(openai_chat(w.http, o), request)["message"].as_string(), "[OpenAIProvider] request exceeded its total deadline of 300ms");
    // An inherited limit never shadows an instance that is off: only the call's own deadline ends it.
    request.options.idle = time_limit();
    EXPECT_EQ(w.error_of(openai_chat(w.http, o), request)["bound"].as_string(), "deadline");
}

TEST(OpenaiErrors, TheDeadlineCoversResends)
{
    live_world w({byte_script().request().send(http_response(400, error_body("temperature is deprecated"))).request().stall()});
    openai_options o = w.options();
    o.temperature(0.5).total(400ms);
    const steady_time before = w.clock->now();
    EXPECT_EQ(w.error_of(openai_chat(w.http, o), asking("hi"))["bound"].as_string(), "deadline");
    EXPECT_EQ(w.clock->now() - before, 400ms);
    EXPECT_EQ(w.server.log().requests(), 2U);
}

TEST(OpenaiErrors, RefusedAndUnresolvedAreTransport)
{
    live_world w(byte_script().close());
    const testing::refused_port closed;
    openai_options o = w.options();
    o.base_url(url::parse_or_throw("http://127.0.0.1:" + std::to_string(closed.port()), "test"));
    const json refused = w.error_of(openai_chat(w.http, o), asking("hi"));
    EXPECT_EQ(refused["kind"].as_string(), "provider");
    EXPECT_EQ(refused["bound"].as_string(), "transport");
    EXPECT_TRUE(refused["retryable"].as_bool());
    EXPECT_TRUE(refused["message"].as_string().starts_with("[OpenAIProvider] ")) << refused.dump();
    EXPECT_EQ(refused["code"].as_string(), "ECONNREFUSED");
    EXPECT_EQ(refused["message"].as_string().find("[http]"), std::string::npos) << refused.dump();
    const json cut = w.error_of(w.provider(), asking("hi"));
    EXPECT_EQ(cut["bound"].as_string(), "transport");
    class nameless final : public resolver {
    public:
        awaitable<std::vector<ip_address>> resolve(std::string host) override
        {
            if (!host.empty()) throw error(errc::resolve_failed, "[resolver] " + host + ": no such name", true);
            co_return std::vector<ip_address>();
        }
    };
    http_client_options nowhere;
    nowhere.clock = w.clock;
    nowhere.resolver = std::make_shared<nameless>();
    o.base_url("http://nowhere.test/v1");
    const json unresolved = w.error_of(openai_chat(http_client(w.io.get_executor(), nowhere), o), asking("hi"));
    EXPECT_EQ(unresolved["bound"].as_string(), "transport");
    EXPECT_EQ(unresolved["code"].as_string(), "ENOTFOUND");
    EXPECT_TRUE(unresolved["retryable"].as_bool());
    EXPECT_EQ(unresolved["message"].as_string(), "[OpenAIProvider] nowhere.test: no such name");
}

TEST(OpenaiErrors, ABodyCutShortIsRetryable)
{
    live_world w(
        byte_script().request().send(testing::http_head(200, {{"content-type", "application/json"}, {"content-length", "1000"}}) + "{\"choices\":").close());
    openai_options o = w.options();
    o.idle(time_limit::off());
    const json e = w.error_of(openai_chat(w.http, o), asking("hi"));
    EXPECT_EQ(e["bound"].as_string(), "transport");
    EXPECT_EQ(e["message"].as_string(), "[OpenAIProvider] response stream aborted before the body completed");
    EXPECT_TRUE(e["retryable"].as_bool());
}

TEST(OpenaiErrors, RedirectsAreNotFollowed)
{
    live_world other(byte_script().request().send(http_response(200, testing::openai_answer("no"))));
    live_world w(byte_script().request().send(http_response(302, "", {{"location", other.server.origin() + "/v1/chat/completions"}})));
    EXPECT_EQ(w.error_of(w.provider(), asking("hi"))["status"].get_int64(), 302);
    other.io.poll();
    EXPECT_TRUE(other.server.log().connections.empty());
}

TEST(OpenaiErrors, HeadsBeforeTheHeadAreSkipped)
{
    live_world w(byte_script().request().send("HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early Hints\r\nlink: x\r\n\r\n" +
                                              http_response(200, testing::openai_answer("ok"))));
    EXPECT_EQ(w.generate(w.provider(), asking("hi")).text, "ok");
}

TEST(OpenaiErrors, AnAnnouncedGiantIsRefusedUnread)
{
    live_world w(byte_script().request().send(testing::http_head(200, {{"content-type", "application/json"}, {"content-length", "68157440"}}) + "{").stall());
    const json e = w.error_of(w.provider(), asking("hi"));
    EXPECT_EQ(e["bound"].as_string(), "body-too-large");
    EXPECT_FALSE(e["retryable"].as_bool());
}

TEST(OpenaiErrors, Case_C4_AnEndlessErrorPageIsJudgedByItsStatus)
{
    live_world w(byte_script().request().send(testing::http_head(500, {{"content-type", "text/html"}})).send_forever(std::string(10'000, 'x')));
    const json e = w.error_of(w.provider(), asking("hi"));
    EXPECT_EQ(e["message"].as_string(), "[OpenAIProvider] HTTP 500");
    EXPECT_TRUE(e["retryable"].as_bool());
    EXPECT_TRUE(testing::run_until(w.io, [&] { return w.server.log().open() == 0; }));
    EXPECT_LT(w.server.log().connections[0].sent, 32U * 1024 * 1024) << "read up to its limit and left";
    // In time as well.
    for (const bool stream : {true, false}) {
        live_world slow(byte_script().request().send(testing::http_head(500, {{"content-type", "text/html"}})).stall());
        EXPECT_EQ(slow.call(asking("hi", stream)).error()["bound"].as_string(), "idle");
    }
}

TEST(OpenaiErrors, AQuotedKeyIsHidden)
{
    live_world w(byte_script().request().send(http_response(401, error_body("Incorrect API key provided: sk-very-secret-key. Try again."))));
    openai_options o = w.options();
    o.key(secret("sk-very-secret-key")).expose_error_body(true);
    const json e = w.error_of(openai_chat(w.http, o), asking("hi"));
    EXPECT_EQ(e["message"].as_string(), "[OpenAIProvider] Incorrect API key provided: ***. Try again.");
    EXPECT_EQ(e.dump().find("sk-very"), std::string::npos);
}

TEST(OpenaiErrors, WhatWeWereGivenIsNotBlamedOnTheTransport)
{
    live_world w(byte_script().close());
    openai_options o = w.options();
    generate_request request = asking("hi");
    request.options.idle = -1ms;
    const json e = w.error_of(openai_chat(w.http, o), request);
    EXPECT_EQ(e["kind"].as_string(), "validation");
    EXPECT_FALSE(e["retryable"].as_bool());
    w.io.poll();
    EXPECT_TRUE(w.server.log().connections.empty());
}

TEST(OpenaiErrors, TimesBeyondTheClockAreNoLimitAndNegativeOnesAreOver)
{
    live_world w(byte_script::answering(http_response(200, testing::openai_answer("ok"))));
    openai_options o = w.options();
    o.total(std::chrono::hours::max()).idle(std::chrono::nanoseconds::max()).connect(std::chrono::hours::max()).first_byte(std::chrono::hours::max());
    EXPECT_EQ(w.generate(openai_chat(w.http, o), asking("hi")).text, "ok");
    o.total(-1ms);
    const json e = w.error_of(openai_chat(w.http, o), asking("hi"));
    EXPECT_EQ(e["kind"].as_string(), "timeout");
    EXPECT_EQ(e["bound"].as_string(), "deadline");
    EXPECT_EQ(w.server.log().requests(), 1U);
}

TEST(OpenaiErrors, TheDeadlineCoversAdmission)
{
    class closed_gate final : public attempt_gate {
    public:
        explicit closed_gate(asio::io_context& io) : never_(io, asio::steady_timer::time_point::max()) {}
        awaitable<permit> admit(attempt_info) override
        {
            ++asked;
            co_await never_.async_wait(asio::use_awaitable);
            co_return permit();
        }
        int asked = 0;

    private:
        asio::steady_timer never_;
    };
    live_world w(byte_script().close());
    closed_gate gate(w.io);
    openai_options o = w.options();
    o.total(400ms);
    generate_request request = asking("hi");
    request.gate = &gate;
    const steady_time before = w.clock->now();
    const json e = w.error_of(openai_chat(w.http, o), request);
    EXPECT_EQ(gate.asked, 1);
    EXPECT_EQ(e["message"].as_string(), "[OpenAIProvider] request exceeded its total deadline of 400ms");
    EXPECT_EQ(w.clock->now() - before, 400ms);
    w.io.poll();
    EXPECT_TRUE(w.server.log().connections.empty());
}

TEST(OpenaiErrors, WarnsOnceOfAKeyInTheClear)
{
    std::vector<std::string> lines;
    const auto warnings = [&](const char* base) {
        lines.clear();
        live_world w(byte_script().close());
        openai_options o = w.options();
        o.base_url(url::parse_or_throw(base, "test")).log(log_sink([&](log_level, std::string_view line) { lines.emplace_back(line); }));
        const provider_ptr p = openai_chat(w.http, o);
        static_cast<void>(p->start(asking("a")));
        static_cast<void>(p->start(asking("b")));
        return lines.size();
    };
    EXPECT_EQ(warnings("http://10.0.0.9:1/v1"), 1U);
    EXPECT_EQ(lines.at(0).find("k;"), std::string::npos);
    EXPECT_EQ(warnings("http://127.0.0.1:1/v1"), 0U);
    EXPECT_EQ(warnings("http://[::1]:1/v1"), 0U);
    EXPECT_EQ(warnings("https://10.0.0.9:1/v1"), 0U);
}

TEST(OpenaiErrors, OptionsAreCheckedBeforeAnyConnection)
{
    live_world w(byte_script().close());
    openai_options o = w.options();
    o.mode(thinking_mode::off).thinking(json::object());
    const provider_ptr both = openai_chat(w.http, o);
    EXPECT_THROW(static_cast<void>(both->start(asking("hi"))), validation_error);
    generate_request request = asking("hi");
    request.options.thinking = json();
    EXPECT_NO_THROW(static_cast<void>(both->start(request)));  // as the call sees it, one is gone
    request.options.tool_choice = "banana";
    EXPECT_THROW(static_cast<void>(w.provider()->start(request)), provider_error);
    w.io.poll();
    EXPECT_TRUE(w.server.log().connections.empty());
}

TEST(OpenaiOptions, ReadsJsonByTheResolutionRules)
{
    const openai_options o = openai_options::from_json(json::parse_or_throw(
        R"({"apiKey":"  k\n","model":"x","baseUrl":"http://127.0.0.1:8/v1","legacyMaxTokens":true,"thinkingMode":"on","temperature":1,"maxTokens":5,"exposeErrorBody":true,)"
        R"("exposeMalformedArgs":true,"timeoutMs":"250","deadlineMs":0,"connectTimeoutMs":100,"headersTimeoutMs":7,"streamUsage":false,"systemRole":"developer"})",
        "test"));
    EXPECT_EQ(o.key().reveal(), "k");
    EXPECT_EQ(o.model(), "x");
    EXPECT_EQ(o.base_url().port(), 8);
    EXPECT_TRUE(o.legacy_max_tokens());
    EXPECT_EQ(o.mode(), thinking_mode::on);
    EXPECT_EQ(o.idle().span(), 250ms);
    EXPECT_EQ(o.total().or_else(1s), 0ns);
    EXPECT_EQ(o.connect().span(), 100ms);
    EXPECT_EQ(o.first_byte().span(), 7ms);
    EXPECT_FALSE(o.stream_usage());
    EXPECT_EQ(o.system_role(), "developer");
    const auto fault = [](const char* text) -> std::string {
        try {
            static_cast<void>(openai_options::from_json(json::parse_or_throw(text, "test")));
        } catch (const validation_error& e) {
            return e.what();
        }
        return "none";
    };
    EXPECT_EQ(fault(R"({"apiKey":["sk-shown"]})"), "[OpenAIProvider] apiKey must be a string; got array");
    EXPECT_EQ(fault(R"({"apiKey":12345678})"), "[OpenAIProvider] apiKey must be a string; got number");
    EXPECT_EQ(fault(R"("sk-shown")"), "[OpenAIProvider] options must be an object; got string");
    EXPECT_TRUE(openai_options::from_json(json::object().set("apiKey", "")).key().empty());  // keyless local servers
    EXPECT_NE(fault(R"({"modle":"x"})").find("unknown option modle"), std::string::npos);
    EXPECT_NE(fault(R"({"baseUrl":"ftp://x"})").find("baseUrl"), std::string::npos);
    EXPECT_NE(fault(R"({"model":""})").find("model must be a non-empty string"), std::string::npos);
    EXPECT_NE(fault(R"({"deadlineMs":-1})").find("deadlineMs"), std::string::npos);
    EXPECT_NE(fault(R"({"thinkingMode":"maybe"})").find("thinkingMode"), std::string::npos);
    EXPECT_NE(fault(R"({"streamUsage":"no"})").find("streamUsage must be true or false"), std::string::npos);
}

}  // namespace openai_errors_test
}  // namespace

// What the attempt gate is told on every way out of a call.
#include "live_world.hpp"

#include <reagent/model/encoded_prefix.hpp>
#include <reagent/testing/cancel_everywhere.hpp>

#include <boost/asio/bind_cancellation_slot.hpp>
#include <boost/asio/cancellation_signal.hpp>
#include <gtest/gtest.h>

namespace {
namespace openai_budget_test {

using namespace reagent;
namespace testing = reagent::testing;
using namespace reagent::live_world_detail;
using testing::http_chunk;
using testing::http_response;
using testing::sse_event;
using testing::sse_head;
using namespace std::chrono_literals;

std::string usage_event(int output, bool finished = false)
{
    return sse_event(R"({"choices":[{"index":0,"delta":{"content":"x"},"finish_reason":)" + std::string(finished ? "\"stop\"" : "null") +
                     R"(}],"usage":{"prompt_tokens":1,"completion_tokens":)" + std::to_string(output) + "}}");
}

/// `generate` against a server that answers, in a world of its own.
class generate_case final : public testing::cancel_case {
public:
    generate_case(asio::io_context& io, bool stream, std::string response)
        : server_(io.get_executor(), byte_script().request().send(std::move(response)).repeat()), http_(io.get_executor()), stream_(stream)
    {
        openai_options o("m");
        o.base_url(url::parse_or_throw(server_.origin() + "/v1", "test"));
        provider_ = openai_chat(http_, o);
    }
    awaitable<void> operation() override
    {
        generate_request request = asking("hi", stream_);
        request.gate = &gate_;
        if (stream_) {
            const observed_call seen = co_await observe(provider_, request);
            if (seen.failure) std::rethrow_exception(seen.failure);
        } else {
            generate_result r = co_await provider_->generate(std::move(request));
            text_ = r.text;
        }
    }
    void finish() override
    {
        http_.close_idle();
        server_.stop();
    }
    std::string verify(const testing::cancel_outcome& o) override
    {
        if (gate_.attempts.size() != gate_.outcomes.size()) return "an attempt was not settled";
        if (!o.failure && gate_.outcomes.size() == 1 && !gate_.outcomes[0].complete) return "a whole answer was settled as partial";
        if (o.failure && !is_cancellation(o.failure)) return "failed with " + message_of(o.failure);
        return {};
    }

private:
    testing::byte_server server_;
    http_client http_;
    provider_ptr provider_;
    recording_gate gate_;
    bool stream_;
    std::string text_;
};

TEST(OpenaiBudget, Case_C9_ACompleteAnswerSettlesItsUsage)
{
    live_world w(byte_script().request().send(http_response(200, testing::openai_answer("ok", 10, 5))));
    recording_gate gate;
    generate_request request = asking("hi");
    request.options.max_tokens = 77;
    request.gate = &gate;
    static_cast<void>(w.generate(w.provider(), request));
    ASSERT_EQ(gate.attempts.size(), 1U);
    EXPECT_EQ(gate.attempts[0].model, "m");
    EXPECT_EQ(gate.attempts[0].input_bound, w.server.log().request().body.size());
    EXPECT_EQ(gate.attempts[0].output_bound, 77U);
    ASSERT_EQ(gate.outcomes.size(), 1U);
    const attempt_outcome& o = gate.outcomes[0];
    EXPECT_TRUE(o.request_left);
    EXPECT_TRUE(o.complete);
    EXPECT_EQ(o.status, 200);
    EXPECT_EQ(o.usage->output, 5U);
    EXPECT_EQ(o.received_bytes, 2U);
}

TEST(OpenaiBudget, ARefusedConnectionReleases)
{
    live_world w(byte_script().close());
    const testing::refused_port closed;
    openai_options o = w.options();
    o.base_url(url::parse_or_throw("http://127.0.0.1:" + std::to_string(closed.port()), "test"));
    recording_gate gate;
    generate_request request = asking("hi");
    request.gate = &gate;
    static_cast<void>(w.error_of(openai_chat(w.http, o), request));
    ASSERT_EQ(gate.outcomes.size(), 1U);
    EXPECT_FALSE(gate.outcomes[0].request_left);
}

TEST(OpenaiBudget, ACutStreamSettlesWhatCame)
{
    live_world w(byte_script().request().send(sse_head() + http_chunk(delta_event("abc"))).close());
    recording_gate gate;
    generate_request request = asking("hi");
    request.gate = &gate;
    ASSERT_TRUE(w.call(w.provider(), request).failure);
    ASSERT_EQ(gate.outcomes.size(), 1U);
    EXPECT_TRUE(gate.outcomes[0].request_left);
    EXPECT_FALSE(gate.outcomes[0].complete);
    EXPECT_EQ(gate.outcomes[0].received_bytes, 3U);
}

TEST(OpenaiBudget, ADroppedCallSettlesToo)
{
    live_world w(byte_script().request().send(sse_head() + http_chunk(delta_event("abc"))).stall());
    recording_gate gate;
    generate_request request = asking("hi");
    request.gate = &gate;
    const provider_ptr p = w.provider();
    {
        const model_call_ptr call = p->start(request);
        event_batch batch;
        EXPECT_TRUE(testing::complete(w.io, call->read(batch)));
        EXPECT_TRUE(gate.outcomes.empty());
    }
    ASSERT_EQ(gate.outcomes.size(), 1U);
    EXPECT_TRUE(gate.outcomes[0].request_left);
    EXPECT_EQ(gate.outcomes[0].received_bytes, 3U);
}

TEST(OpenaiBudget, ReportedUsageCutsARunningStreamAndKeepsItsText)
{
    live_world w(byte_script().request().send(sse_head()).send(http_chunk(usage_event(1))).gate("go").send(http_chunk(usage_event(9))).stall());
    recording_gate gate;
    gate.most_output = 5;
    generate_request request = asking("hi");
    request.gate = &gate;
    w.server.open("go");
    const observed_call seen = w.call(w.provider(), request);
    ASSERT_TRUE(seen.failure);
    EXPECT_EQ(seen.error()["kind"].as_string(), "halt");
    EXPECT_EQ(seen.error()["rule"].as_string(), "budget.maxTokens");
    EXPECT_EQ(seen.text, "xx");
    EXPECT_EQ(seen.partial, "xx");
    ASSERT_EQ(gate.outcomes.size(), 1U);
    EXPECT_FALSE(gate.outcomes[0].complete);
    EXPECT_EQ(gate.outcomes[0].usage->output, 9U);
    EXPECT_TRUE(testing::run_until(w.io, [&] { return w.server.log().open() == 0; }));
}

TEST(OpenaiBudget, UsageOfAFinishedAnswerCutsNothing)
{
    live_world w(byte_script().request().send(sse_head() + http_chunk(usage_event(9, true)) + http_chunk(sse_event("[DONE]")) + http_chunk("")));
    recording_gate gate;
    gate.most_output = 5;
    generate_request request = asking("hi");
    request.gate = &gate;
    const observed_call seen = w.call(w.provider(), request);
    ASSERT_TRUE(seen.result.has_value());
    EXPECT_EQ(gate.outcomes.at(0).usage->output, 9U);
}

TEST(OpenaiBudget, Case_C9_ARefusedAdmissionSendsNothing)
{
    live_world w(byte_script().request().send(http_response(200, testing::openai_answer("ok"))));
    recording_gate gate;
    gate.most_attempts = 0;
    generate_request request = asking("hi");
    request.gate = &gate;
    EXPECT_EQ(w.error_of(w.provider(), request)["rule"].as_string(), "budget.maxTokens");
    w.io.restart();
    w.io.poll();
    EXPECT_TRUE(w.server.log().connections.empty());
    EXPECT_TRUE(gate.outcomes.empty());
}

TEST(OpenaiBudget, Case_C5_ACancelledStreamClosesItsConnectionAndSettles)
{
    live_world w(byte_script().request().send(sse_head() + http_chunk(delta_event("abc"))).stall());
    recording_gate gate;
    generate_request request = asking("hi");
    request.gate = &gate;
    asio::cancellation_signal stop;
    std::optional<observed_call> seen;
    asio::co_spawn(w.io, observe(w.provider(), request), asio::bind_cancellation_slot(stop.slot(), [&](std::exception_ptr e, observed_call o) {
                       if (!e) seen = std::move(o);
                   }));
    ASSERT_TRUE(testing::run_until(w.io, [&] { return w.server.log().saw("0 request"); }));
    testing::run_until_idle(w.io);
    stop.emit(asio::cancellation_type::terminal);
    ASSERT_TRUE(testing::run_until(w.io, [&] { return seen.has_value(); }));
    EXPECT_TRUE(is_cancellation(seen->failure));
    EXPECT_EQ(seen->partial, "abc");
    ASSERT_EQ(gate.outcomes.size(), 1U);
    EXPECT_EQ(gate.outcomes[0].received_bytes, 3U);
    EXPECT_TRUE(testing::run_until(w.io, [&] { return w.server.log().open() == 0; }));
}

TEST(OpenaiBudget, CancelledAnywhereNothingIsLeft)
{
    const auto json_call = testing::cancel_everywhere(
        [](asio::io_context& io) { return std::make_unique<generate_case>(io, false, http_response(200, testing::openai_answer("ok"))); });
    EXPECT_TRUE(json_call) << json_call;
    EXPECT_GT(json_call.points, 3U);
    const auto streamed = testing::cancel_everywhere([](asio::io_context& io) {
        return std::make_unique<generate_case>(io, true, testing::sse_response(testing::openai_events({"a", "b", "c"})));
    });
    EXPECT_TRUE(streamed) << streamed;
}

TEST(OpenaiBudget, ARequestThatLeavesASecondTimeIsAdmittedASecondTime)
{
    const std::string ok = http_response(200, testing::openai_answer("ok"));
    live_world w(std::vector<byte_script>{byte_script().request().send(ok).request().reset(), byte_script::answering(ok)});
    const provider_ptr p = w.provider();
    recording_gate gate;
    generate_request request = asking("hi");
    request.gate = &gate;
    static_cast<void>(w.generate(p, request));
    const generate_result second = w.generate(p, request);
    EXPECT_EQ(second.text, "ok");
    EXPECT_EQ(second.attempts, 2U);
    EXPECT_EQ(w.server.log().requests(), 3U);
    ASSERT_EQ(gate.outcomes.size(), 3U);
    EXPECT_EQ(gate.attempts[2].number, 2U);
    EXPECT_TRUE(gate.outcomes[1].request_left);
    EXPECT_FALSE(gate.outcomes[1].complete);
    EXPECT_FALSE(gate.outcomes[1].usage.has_value());
    EXPECT_TRUE(gate.outcomes[2].complete);
    EXPECT_EQ(w.http.stats().retried, 0U);
}

TEST(OpenaiBudget, OnlyOneMoreIsSentForAStaleConnection)
{
    const std::string ok = http_response(200, testing::openai_answer("ok"));
    live_world w(std::vector<byte_script>{byte_script().request().send(ok).request().reset(), byte_script().request().reset(), byte_script::answering(ok)});
    const provider_ptr p = w.provider();
    static_cast<void>(w.generate(p, asking("hi")));
    EXPECT_EQ(w.error_of(p, asking("hi"))["attempts"].get_int64(), 2);
    EXPECT_EQ(w.server.log().requests(), 3U);
}

TEST(OpenaiBudget, MoneyIsFreedWhenTheServerCanSeeThatTheRequestIsOver)
{
    // What follows the logical end never comes, so the connection has to be closed; and closed it must be before another may spend what is left.
    const std::string whole = sse_head() + http_chunk(usage_event(3, true)) + http_chunk(sse_event("[DONE]"));
    const std::string failed = sse_head() + http_chunk(sse_event(R"({"error":{"message":"no more"}})"));
    for (const std::string& answer : {whole, failed}) {
        live_world w(byte_script().request().send(answer).stall());
        recording_gate gate;
        std::size_t open_then = 99;
        gate.on_settle = [&] { open_then = w.http.stats().open; };
        generate_request request = asking("hi");
        request.gate = &gate;
        static_cast<void>(w.call(request));
        EXPECT_EQ(gate.outcomes.size(), 1U);
        EXPECT_EQ(open_then, 0U) << answer;
    }
}

TEST(OpenaiBudget, ThePrefixCarriesTheBodyFromRoundToRound)
{
    live_world w(byte_script().request().send(http_response(200, testing::openai_answer("ok"))).repeat());
    const provider_ptr p = w.provider();
    encoded_prefix prefix;
    generate_request request = asking("one");
    request.prefix = &prefix;
    static_cast<void>(w.generate(p, request));
    request.messages.push_back(message::assistant("ok"));
    request.messages.push_back(message::user("two"));
    static_cast<void>(w.generate(p, request));
    EXPECT_EQ(prefix.reused(), 1U);
    EXPECT_EQ(w.body(1)["messages"].dump(), R"([{"role":"user","content":"one"},{"role":"assistant","content":"ok"},{"role":"user","content":"two"}])");
}

}  // namespace openai_budget_test
}  // namespace

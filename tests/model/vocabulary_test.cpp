#include <reagent/base/error.hpp>
#include <reagent/model/attempt_gate.hpp>
#include <reagent/model/event.hpp>
#include <reagent/model/generate.hpp>
#include <reagent/model/provider_error.hpp>

#include <gtest/gtest.h>

#include <cmath>

namespace {
namespace vocabulary_test {

using namespace reagent;

generate_options read(std::string_view text)
{
    return generate_options::from_json(json::parse_or_throw(text, "test"), "X");
}

class recording_state final : public permit::state {
public:
    explicit recording_state(std::vector<attempt_outcome>& into) : into_(into) {}
    void settle(const attempt_outcome& o) noexcept override { into_.push_back(o); }
    bool observe(const usage&) noexcept override { return false; }
    std::string halt_rule() const override { return "rule"; }

private:
    std::vector<attempt_outcome>& into_;
};

TEST(EventBatch, ViewsHoldUntilTheNextClear)
{
    event_batch batch;
    std::vector<std::string> texts;
    for (int i = 0; i < 2000; ++i) texts.push_back(std::string(static_cast<std::size_t>(i % 97), static_cast<char>('a' + i % 26)));
    for (const std::string& t : texts) batch.push(event_kind::text, t);
    ASSERT_EQ(batch.size(), texts.size());
    std::size_t bytes = 0;
    for (std::size_t i = 0; i < texts.size(); ++i) {
        EXPECT_EQ(batch[i].text(), texts[i]);
        bytes += texts[i].size();
    }
    EXPECT_EQ(batch.bytes(), bytes);
    batch.clear();
    EXPECT_TRUE(batch.empty());
    EXPECT_EQ(batch.bytes(), 0U);
    EXPECT_EQ(batch.push(event_kind::text, "again").text(), "again");
}

TEST(EventBatch, KeepsBigTextAndData)
{
    event_batch batch;
    const std::string big(1 << 20, 'x');
    batch.push(event_kind::text, "a");
    batch.push(event_kind::text, big);
    const json* data = batch.keep(json::object().set("k", 1));
    for (int i = 0; i < 100; ++i) static_cast<void>(batch.keep(json(i)));
    EXPECT_EQ((*data)["k"].get_int64(), 1);
    EXPECT_EQ(batch[0].payload, "a");
    EXPECT_EQ(batch[1].payload, big);
}

TEST(Event, ProjectsDeltasAndRunEvents)
{
    event_batch batch;
    event& text = batch.push(event_kind::text, "hi");
    text.round = 2;
    EXPECT_EQ(text.to_json().dump(), R"({"type":"loop:delta","data":{"round":2,"kind":"text","delta":"hi"}})");
    event& call = batch.push(event_kind::tool_call);
    call.name = "find";
    const json* args = batch.keep(json::object().set("args", json::object().set("q", 1)));
    call.data = args;
    call.at = system_time(std::chrono::milliseconds(1764500000123));
    EXPECT_EQ(call.to_json().dump(), R"({"type":"loop:tool_call","data":{"tool":"find","args":{"q":1}},"ts":"2025-11-30T10:53:20.123Z"})");
    EXPECT_EQ(batch.push(event_kind::final_text, "t").to_json().dump(), R"({"type":"loop:text","data":{"text":"t"}})");
    EXPECT_EQ(batch.push(event_kind::stop, "end_turn").to_json().dump(), R"({"type":"loop:delta","data":{"round":0,"kind":"stop","stopReason":"end_turn"}})");
    EXPECT_TRUE(batch[1].text().empty());
}

TEST(GenerateOptions, ResolvesTimeLimits)
{
    using std::chrono::milliseconds;
    EXPECT_TRUE(read("{}").idle.inherits());
    EXPECT_TRUE(read(R"({"timeoutMs":null})").idle.inherits());
    EXPECT_EQ(read(R"({"timeoutMs":0})").idle.or_else(milliseconds(7)), milliseconds(0));
    EXPECT_EQ(read(R"({"timeoutMs":"Infinity"})").idle.or_else(milliseconds(7)), milliseconds(0));
    EXPECT_EQ(read(R"({"timeoutMs":1e999})").idle.or_else(milliseconds(7)), milliseconds(0));
    EXPECT_EQ(read(R"({"timeoutMs":"5000"})").idle.span(), milliseconds(5000));
    EXPECT_EQ(read(R"({"timeoutMs":0.5})").idle.span(), std::chrono::microseconds(500));
    for (const char* bad : {R"({"timeoutMs":-1})", R"({"timeoutMs":"nope"})", R"({"timeoutMs":"NaN"})", R"({"timeoutMs":true})"})
        EXPECT_EQ(read(bad).idle.span(), milliseconds(600000)) << bad;
    for (const char* bad : {R"({"deadlineMs":-1})", R"({"deadlineMs":"30s"})", R"({"deadlineMs":"NaN"})"}) {
        try {
            static_cast<void>(read(bad));
            FAIL() << bad;
        } catch (const validation_error& e) {
            EXPECT_NE(std::string(e.what()).find("deadlineMs"), std::string::npos);
        }
    }
}

TEST(GenerateOptions, WhatNoWireCarriesIsRefused)
{
    for (const char* bad : {R"({"stopSequences":["x"]})", R"({"responseSchema":{}})"}) EXPECT_THROW(static_cast<void>(read(bad)), validation_error) << bad;
    EXPECT_NO_THROW(static_cast<void>(read(R"({"stopSequences":null,"responseSchema":null})")));
}

TEST(TimeLimit, SaturatesAndKeepsItsSign)
{
    using std::chrono::nanoseconds;
    EXPECT_EQ(time_limit(std::chrono::hours::max()).span(), nanoseconds::max());
    EXPECT_EQ(time_limit(std::chrono::hours::min()).span(), nanoseconds::min());
    EXPECT_EQ(time_limit(std::chrono::duration<double>(1e300)).span(), nanoseconds::max());
    EXPECT_EQ(time_limit(nanoseconds::max()).span(), nanoseconds::max());
    EXPECT_EQ(time_limit(std::chrono::seconds(-1)).span(), std::chrono::seconds(-1));
    EXPECT_EQ(time_limit(std::chrono::duration<double>(0.25)).span(), std::chrono::milliseconds(250));
    EXPECT_FALSE(time_limit(std::chrono::seconds(0)).inherits());
}

TEST(GenerateOptions, ReadsTheRest)
{
    const generate_options o = read(R"({"temperature":0,"maxTokens":256,"toolChoice":"auto","thinking":null,"thinkingMode":"off"})");
    EXPECT_EQ(o.temperature, 0.0);
    EXPECT_EQ(o.max_tokens, 256U);
    ASSERT_TRUE(o.thinking.has_value());
    EXPECT_TRUE(o.thinking->is_null());
    ASSERT_TRUE(o.mode.has_value());
    EXPECT_EQ(*o.mode, thinking_mode::off);
    EXPECT_EQ(read(R"({"maxTokens":0})").max_tokens, 0U);  // unset but on wires that send it
    const generate_options marked = read(R"({"system":["x"],"cacheSystem":false,"cacheMessages":null})");
    EXPECT_EQ(marked.system->dump(), R"(["x"])");
    EXPECT_EQ(marked.cache_system, false);
    EXPECT_FALSE(marked.cache_messages.has_value());
    EXPECT_THROW(static_cast<void>(read(R"({"cacheSystem":"yes"})")), validation_error);
    EXPECT_THROW(static_cast<void>(read(R"({"system":7})")), validation_error);
    EXPECT_TRUE(read(R"({"thinkingMode":null})").mode.has_value());
    EXPECT_THROW(static_cast<void>(read(R"({"thinkingMode":"maybe"})")), validation_error);
    EXPECT_THROW(static_cast<void>(read(R"({"maxTokens":-5})")), validation_error);
    EXPECT_THROW(static_cast<void>(read(R"({"temperature":"warm"})")), validation_error);
}

TEST(GenerateResult, ProjectsOnlyWhatHappened)
{
    generate_result r;
    EXPECT_EQ(r.to_json().dump(), R"({"text":"","toolCalls":[],"usage":null,"model":null,"stopReason":null})");
    r.text = "t";
    r.tool_calls.emplace_back("a", "f", json::object().set("q", 1));
    r.usage.emplace();
    r.usage->input = 5;
    r.cost = usd("0.05");
    r.temperature_dropped = true;
    r.thinking = thinking_status::unknown;
    r.attempts = 2;
    EXPECT_EQ(r.to_json().dump(),
              R"({"text":"t","toolCalls":[{"id":"a","name":"f","arguments":{"q":1}}],"usage":{"inputTokens":5,"outputTokens":0},)"
              R"("model":null,"stopReason":null,"costUsd":0.05,"temperatureDropped":true,"thinkingStatus":"unknown","thinkingApplied":null,"attempts":2})");
}

TEST(ProviderError, ProjectsByKind)
{
    provider_error e(errc::rate_limited, "[X] slow", true);
    e.status = 429;
    e.retry_after = std::chrono::milliseconds(150);
    partial_output partial;
    partial.text = "p";
    partial.tool_calls_started = 1;
    e.partial = partial;
    EXPECT_EQ(provider_error_to_json(std::make_exception_ptr(e)).dump(),
              R"({"kind":"provider","status":429,"retryable":true,"message":"[X] slow","retryAfterMs":150,"partial":{"text":"p","toolCallsStarted":1}})");
    EXPECT_EQ(provider_error_to_json(std::make_exception_ptr(timeout_error(errc::idle_timeout, "[X] t"))).dump(),
              R"({"kind":"timeout","retryable":true,"message":"[X] t","bound":"idle"})");
    EXPECT_EQ(provider_error_to_json(std::make_exception_ptr(validation_error("v")))["kind"].as_string(), "validation");
    EXPECT_EQ(provider_error_to_json(std::make_exception_ptr(halt_error("budget.maxTokens")))["rule"].as_string(), "budget.maxTokens");
    EXPECT_EQ(provider_error_to_json(std::make_exception_ptr(cancelled_error()))["kind"].as_string(), "cancelled");
    EXPECT_EQ(provider_error_to_json(std::make_exception_ptr(std::runtime_error("r")))["message"].as_string(), "r");
}

TEST(Permit, SettlesOnceAndSpeaksForItselfWhenItDies)
{
    std::vector<attempt_outcome> seen;
    {
        permit released(std::make_unique<recording_state>(seen));
    }
    ASSERT_EQ(seen.size(), 1U);
    EXPECT_FALSE(seen[0].request_left);
    {
        permit sent(std::make_unique<recording_state>(seen));
        sent.mark_sent();
        permit moved(std::move(sent));
        EXPECT_FALSE(moved.observe(usage()));
        EXPECT_EQ(moved.halt_rule(), "rule");
    }
    ASSERT_EQ(seen.size(), 2U);
    EXPECT_TRUE(seen[1].request_left);
    EXPECT_FALSE(seen[1].complete);
    permit settled(std::make_unique<recording_state>(seen));
    attempt_outcome whole;
    whole.complete = true;
    settled.settle(whole);
    settled.settle(whole);
    settled = permit();
    EXPECT_EQ(seen.size(), 3U);
    EXPECT_TRUE(permit().observe(usage()));
}

}  // namespace vocabulary_test
}  // namespace

// Rows J of the specification that need more than one request.
#include "live_world.hpp"

#include <gtest/gtest.h>

namespace {
namespace openai_degrade_test {

using namespace reagent;
namespace testing = reagent::testing;
using namespace reagent::live_world_detail;
using testing::http_response;

/// A keep-alive server that answers one after another.
byte_script answers(std::initializer_list<std::string> responses)
{
    byte_script out;
    for (const std::string& r : responses) out.request().send(r);
    return out;
}

const std::string ok = http_response(200, testing::openai_answer("ok"));
const std::string no_temperature = http_response(400, error_body("`temperature` is deprecated for this model."));
const std::string no_shape = http_response(400, error_body("Unsupported parameter: reasoning_effort"));
const std::string ok_without_thought = http_response(
    200,
    R"({"model":"m","choices":[{"index":0,"message":{"content":"ok"},"finish_reason":"stop"}],"usage":{"prompt_tokens":1,"completion_tokens":1,"completion_tokens_details":{"reasoning_tokens":0}}})");
const std::string ok_with_thought =
    http_response(200, R"({"model":"m","choices":[{"index":0,"message":{"content":"ok","reasoning_content":"hm"},"finish_reason":"stop"}]})");

class warned_world : public live_world {
public:
    explicit warned_world(byte_script script) : live_world(std::move(script)) {}
    provider_ptr make(openai_options o)
    {
        o.log(log_sink([this](log_level, std::string_view line) { warnings.emplace_back(line); }));
        return openai_chat(http, o);
    }
    std::vector<std::string> warnings;
};

TEST(OpenaiDegrade, DropsARefusedTemperatureOnceAndWarnsOnce)
{
    warned_world w(answers({no_temperature, ok, no_temperature, ok}));
    openai_options o = w.options();
    o.temperature(0.2);
    const provider_ptr p = w.make(o);
    for (int i = 0; i < 2; ++i) {
        recording_gate gate;
        generate_request request = asking("hi");
        request.gate = &gate;
        const generate_result r = w.generate(p, request);
        EXPECT_TRUE(r.temperature_dropped);
        EXPECT_EQ(r.attempts, 2U);
        ASSERT_EQ(gate.attempts.size(), 2U);
        EXPECT_EQ(gate.attempts[1].number, 2U);
        ASSERT_EQ(gate.outcomes.size(), 2U);
        EXPECT_EQ(gate.outcomes[0].status, 400);
        EXPECT_TRUE(gate.outcomes[0].complete);
        EXPECT_FALSE(gate.outcomes[0].usage.has_value());
        EXPECT_EQ(gate.outcomes[1].status, 200);
        EXPECT_TRUE(gate.outcomes[1].usage.has_value());
    }
    EXPECT_EQ(w.body(0)["temperature"].get_double(), 0.2);
    EXPECT_EQ(w.body(1).find("temperature"), nullptr);
    EXPECT_EQ(w.server.log().requests(), 4U);
    EXPECT_EQ(w.server.log().connections.size(), 1U);
    EXPECT_EQ(w.warnings.size(), 1U);
}

TEST(OpenaiDegrade, WorksTheSameOnStreams)
{
    warned_world w(answers({no_temperature, testing::sse_response(testing::openai_events({"ok"}))}));
    openai_options o = w.options();
    o.temperature(0.2);
    const observed_call seen = w.call(w.make(o), asking("hi"));
    ASSERT_TRUE(seen.result.has_value()) << seen.error().dump();
    EXPECT_TRUE(seen.result->temperature_dropped);
    EXPECT_EQ(seen.text, "ok");
}

TEST(OpenaiDegrade, AValueOutOfRangeIsTheCallersFault)
{
    warned_world w(answers({http_response(400, error_body("temperature must be <= 2"))}));
    openai_options o = w.options();
    o.temperature(3.0);
    EXPECT_EQ(w.error_of(w.make(o), asking("hi"))["message"].as_string(), "[OpenAIProvider] temperature must be <= 2");
    EXPECT_EQ(w.server.log().requests(), 1U);
}

TEST(OpenaiDegrade, ALadderWithoutAStepRunsPlainEveryTime)
{
    warned_world w(answers({no_shape, no_shape, ok, no_shape, no_shape, ok}));
    openai_options o = w.options();
    o.mode(thinking_mode::off);
    const provider_ptr p = w.make(o);
    for (int i = 0; i < 2; ++i) {
        const generate_result r = w.generate(p, asking("hi"));
        EXPECT_EQ(r.thinking, thinking_status::unsupported);
        EXPECT_EQ(r.attempts, 3U);
    }
    EXPECT_EQ(w.body(0)["reasoning_effort"].as_string(), "none");
    EXPECT_EQ(w.body(1)["reasoning_effort"].as_string(), "minimal");
    EXPECT_EQ(w.body(2).find("reasoning_effort"), nullptr);
    EXPECT_EQ(w.server.log().requests(), 6U);
    EXPECT_EQ(w.warnings.size(), 1U);
}

TEST(OpenaiDegrade, ThePlainRequestsOwnErrorIsThrown)
{
    warned_world w(answers({no_shape, no_shape, http_response(400, error_body("bad model"))}));
    openai_options o = w.options();
    o.mode(thinking_mode::off);
    const json e = w.error_of(w.make(o), asking("hi"));
    EXPECT_EQ(e["kind"].as_string(), "provider");
    EXPECT_EQ(e["message"].as_string(), "[OpenAIProvider] bad model");
    EXPECT_EQ(e["attempts"].get_int64(), 3);
}

TEST(OpenaiDegrade, OtherFailuresEndTheLadderAtOnce)
{
    warned_world w(answers({http_response(429, error_body("slow"))}));
    openai_options o = w.options();
    o.mode(thinking_mode::on);
    EXPECT_EQ(w.error_of(w.make(o), asking("hi"))["status"].get_int64(), 429);
    EXPECT_EQ(w.server.log().requests(), 1U);
    EXPECT_EQ(w.body(0)["reasoning_effort"].as_string(), "medium");
}

TEST(OpenaiDegrade, TheShapeThatWorkedIsRememberedUntilItFails)
{
    warned_world w(answers({no_shape, ok_without_thought, ok_without_thought, no_shape, ok_without_thought}));
    openai_options o = w.options();
    o.mode(thinking_mode::off);
    const provider_ptr p = w.make(o);
    EXPECT_EQ(w.generate(p, asking("hi")).attempts, 2U);
    const generate_result second = w.generate(p, asking("hi"));
    EXPECT_EQ(second.attempts, 1U);
    EXPECT_EQ(second.thinking, thinking_status::applied);
    EXPECT_EQ(w.body(2)["reasoning_effort"].as_string(), "minimal");
    EXPECT_EQ(w.generate(p, asking("hi")).attempts, 2U);
    EXPECT_EQ(w.body(4)["reasoning_effort"].as_string(), "none");
}

TEST(OpenaiDegrade, ThinkingThatShowsAnywayIsIgnoredMode)
{
    warned_world w(answers({ok_with_thought, ok_with_thought, ok}));
    openai_options o = w.options();
    o.mode(thinking_mode::off);
    const provider_ptr p = w.make(o);
    for (int i = 0; i < 2; ++i) {
        const generate_result r = w.generate(p, asking("hi"));
        EXPECT_EQ(r.thinking, thinking_status::ignored);
        EXPECT_EQ(r.text, "ok");
    }
    EXPECT_EQ(w.warnings.size(), 1U);
    EXPECT_EQ(w.generate(p, asking("hi")).thinking, thinking_status::unknown);
}

TEST(OpenaiDegrade, TemperatureIsJudgedBeforeTheShape)
{
    warned_world w(answers({no_temperature, ok_without_thought}));
    openai_options o = w.options();
    o.mode(thinking_mode::off).temperature(0.2);
    const generate_result r = w.generate(w.make(o), asking("hi"));
    EXPECT_EQ(r.thinking, thinking_status::applied);
    EXPECT_TRUE(r.temperature_dropped);
    EXPECT_EQ(w.body(1)["reasoning_effort"].as_string(), "none");
}

}  // namespace openai_degrade_test
}  // namespace

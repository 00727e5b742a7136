// `--retry` and `--fallback` of `reagent run`, against the mock.
#include "program.hpp"

#include <reagent/base/json.hpp>

#include <gmock/gmock.h>

namespace reagent::apps_test {
namespace {
namespace retry_test {

using ::testing::HasSubstr;
using ::testing::Not;

constexpr std::string_view fixtures = R"({"fixtures":[
  {"match":{"model":"flaky"},"response":{"content":"At last."},"fault":{"kind":"status","status":503,"retry_after_s":0,"times":2}},
  {"match":{"model":"down"},"response":{"content":"Never."},"fault":{"kind":"status","status":500}},
  {"match":{"model":"cut"},"response":{"content":"Half an answer, and so much more of it that the connection breaks before its end, which this sentence puts off for as long as it can, and then a little longer, and a little more."},"fault":{"kind":"reset","after_bytes":900}},
  {"match":{"model":"gpt-4o-mini"},"response":{"content":"Here."}}
]})";

class RunRetry : public ::testing::Test {
protected:
    program_result ask(std::string model, std::vector<std::string> more)
    {
        std::vector<std::string> all{"run", "hi", "--base-url", mock_.base_url(), "--model", std::move(model)};
        for (std::string& m : more) all.push_back(std::move(m));
        return reagent_run(std::move(all));
    }
    mock_process mock_{fixtures};
};

TEST_F(RunRetry, SendsAFailedCallAgain)
{
    const program_result r = ask("flaky", {"--retry", "2", "--json"});
    EXPECT_EQ(r.status, 0) << r.err;
    EXPECT_THAT(r.err, HasSubstr("attempt 3 of 3 in "));
    const json result = json::parse_or_throw(r.out, "result");
    EXPECT_EQ(result["text"].as_string(), "At last.");
    EXPECT_EQ(result["metrics"]["attempts"].get_int64(), 3);
}

TEST_F(RunRetry, NotUnlessToldAndNotMoreThanTold)
{
    EXPECT_EQ(ask("flaky", {}).status, 1);
    const program_result r = ask("down", {"--retry", "1", "--quiet"});
    EXPECT_EQ(r.status, 1);
    EXPECT_THAT(r.err, Not(HasSubstr("attempt 2")));
    EXPECT_EQ(ask("down", {"--retry", "101"}).status, 2);
}

TEST_F(RunRetry, FallsBackToAnotherModel)
{
    const program_result r = ask("down", {"--fallback", "openai:down,openai:gpt-4o-mini"});
    EXPECT_EQ(r.status, 0) << r.err;
    EXPECT_EQ(r.out, "Here.\n");
    EXPECT_THAT(r.err, HasSubstr("falling back to gpt-4o-mini: "));
    const scratch_file config(R"({"model":"down","retry":1,"fallback":["openai:gpt-4o-mini"],"baseUrl":")" + mock_.base_url() + R"("})");
    EXPECT_EQ(reagent_run({"run", "hi", "-c", config.path()}).out, "Here.\n");
}

TEST_F(RunRetry, Case_C8_APipeNeverGetsTwoAnswersStitchedTogether)
{
    const program_result r = ask("cut", {"--fallback", "openai:gpt-4o-mini"});
    EXPECT_EQ(r.status, 1);
    EXPECT_THAT(r.out, HasSubstr("Half"));
    EXPECT_THAT(r.out, Not(HasSubstr("Here")));
    // The result alone may come from the second.
    const program_result json_result = ask("cut", {"--fallback", "openai:gpt-4o-mini", "--json"});
    EXPECT_EQ(json::parse_or_throw(json_result.out, "result")["text"].as_string(), "Here.");
}

TEST_F(RunRetry, WhatCannotBeIsToldBeforeTheRun)
{
    const std::vector<std::pair<std::vector<std::string>, std::string>> rows = {
        {{"--fallback", "nope:x"}, "fallback \"nope\" is not known"},
        {{"--fallback", "openai:"}, "fallback must be PROVIDER or PROVIDER:MODEL"},
        {{"--fallback", ":x"}, "fallback must be PROVIDER or PROVIDER:MODEL"},
        {{"--fallback", "openai:unheard-of", "--max-cost-usd", "1"}, "fallback \"openai:unheard-of\": no price is known"},
    };
    for (const auto& [flags, message] : rows) {
        const program_result r = ask("gpt-4o-mini", flags);
        EXPECT_EQ(r.status, 2) << r.err;
        EXPECT_THAT(r.err, HasSubstr(message));
    }
    const scratch_file twice(R"({"fallback":["openai","openai"]})");
    EXPECT_THAT(reagent_run({"run", "hi", "-c", twice.path()}).err, HasSubstr("fallback[1] repeats"));
}

}  // namespace retry_test
}  // namespace
}  // namespace reagent::apps_test

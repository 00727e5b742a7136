#include "program.hpp"

#include <gmock/gmock.h>

namespace reagent::apps_test {
namespace {
namespace config_test {

using ::testing::HasSubstr;
using ::testing::StartsWith;

class bad_config {
public:
    const char* text;
    const char* part;
};

TEST(Config, EveryMistakeIsOneLineThatNamesFileAndKey)
{
    const std::vector<bad_config> table{
        {"{", "not JSON at byte 1"},
        {"{\n\"a\" 1}", "not JSON at byte 6, line 2"},
        {"{\"budget\":{\n\"maxCostUsd\":0.1,\n\"maxCostUsd\":5}}", "a key stands twice in the object that ends in line 3"},
        {R"({"gate":{},"ungoverned":true})", "config has a `gate` block and says that the run is ungoverned"},
        {"[]", "must be an object, got array"},
        {R"({"modle":"x"})", "unknown key \"modle\", did you mean \"model\"?"},
        {R"({"baseurl":"x"})", "did you mean \"baseUrl\"?"},
        {R"({"zzz":1})", "unknown key \"zzz\""},
        {R"({"apiKey":"k"})", "unknown key \"apiKey\""},
        {R"({"provider":"palm"})", "provider \"palm\" is not known"},
        {R"({"provider":7})", "provider must be a string that is not empty, got 7"},
        {R"({"model":""})", "model must be a string that is not empty"},
        {R"({"systemPrompt":["x"]})", "systemPrompt must be a string"},
        {R"({"tools":"calculate"})", "tools must be a list of tool names"},
        {R"({"tools":["think",1],"ungoverned":true})", "tools[1] must be the name of a tool, got 1"},
        {R"({"tools":["think","think"],"ungoverned":true})", "tools[1] repeats \"think\""},
        {R"({"tools":["thnk"],"ungoverned":true})", "did you mean \"think\"?"},
        {R"({"tools":["think"]})", "config has no `gate` block"},
        {R"({"tools":["think"],"ungoverned":"yes"})", "ungoverned must be true or false"},
        {R"({"tools":["think"],"ungoverned":false})", "config has no `gate` block"},
        {R"({"gate":{"tool":{}}})", "gate"},
        {R"({"gate":{"tools":{"allowlist":"think"}}})", "tools.allowlist"},
        {R"({"gate":{"limits":{"maxTurns":-1}}})", "limits.maxTurns"},
        {R"({"gate":{"fs":{"deny":["/etc"]}}})", "fs"},
        {R"({"budget":5})", "budget must be an object"},
        {R"({"budget":{"maxCost":1}})", "budget: unknown key \"maxCost\", did you mean \"maxCostUsd\"?"},
        {R"({"budget":{"maxCostUsd":-1}})", "budget: maxCostUsd must be an amount of dollars"},
        {R"({"budget":{"maxCostUsd":"1"}})", "budget: maxCostUsd must be an amount of dollars"},
        {R"({"budget":{"maxTokens":1.5}})", "budget: maxTokens must be a whole number"},
        {R"({"rates":{"in":1}})", "rates"},
        {R"({"rates":{"in":-1,"out":1}})", "rates"},
        {R"({"maxTokens":0})", "maxTokens must be a whole number from 1"},
        {R"({"timeoutMs":"30s"})", "timeoutMs must be a whole number"},
        {R"({"deadlineMs":-5})", "deadlineMs must be a whole number"},
        {R"({"toolConcurrency":0})", "toolConcurrency must be a whole number from 1 to 1024, got 0"},
    };
    for (const bad_config& bad : table) {
        const scratch_file file(bad.text);
        const program_result r = reagent_run({"run", "-c", file.path(), "hello", "--base-url", "http://127.0.0.1:9/v1"});
        EXPECT_EQ(r.status, 2) << bad.text << "\n" << r.err;
        EXPECT_EQ(r.out, "") << bad.text;
        EXPECT_EQ(r.messages().size(), 1U) << bad.text << "\n" << r.err;
        EXPECT_THAT(r.err, HasSubstr(bad.part)) << bad.text;
    }
}

TEST(Config, TheMessageStartsWithTheFile)
{
    const scratch_file file(R"({"maxTokens":"x"})");
    const program_result r = reagent_run({"run", "-c", file.path(), "hello"});
    EXPECT_THAT(r.err, StartsWith("reagent: " + file.path() + ": maxTokens "));
    const program_result missing = reagent_run({"run", "-c", "/no/such/agent.json", "hello"});
    EXPECT_EQ(missing.status, 2);
    EXPECT_THAT(missing.err, HasSubstr("/no/such/agent.json: cannot be read: No such file"));
}

TEST(Config, NullCountsAsAbsent)
{
    const scratch_file file(R"({"tools":null,"gate":null,"budget":null,"maxTokens":null,"rates":null})");
    const program_result r = reagent_run({"run", "-c", file.path(), "hello"});
    EXPECT_THAT(r.err, HasSubstr("OPENAI_API_KEY is not set")) << "the file itself is fine";
}

}  // namespace config_test
}  // namespace
}  // namespace reagent::apps_test

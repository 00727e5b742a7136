#include "program.hpp"

#include <reagent/base/json.hpp>

#include <gmock/gmock.h>

#include <algorithm>

namespace reagent::apps_test {
namespace {
namespace run_test {

using ::testing::HasSubstr;
using ::testing::Not;

constexpr std::string_view fixtures = R"({"fixtures":[
  {"match":{"userMessage":"sum","turnIndex":0},"response":{"content":"Adding. ","toolCalls":[{"name":"calculate","arguments":{"expression":"17*23"}}]},
   "usage":{"prompt_tokens":100,"completion_tokens":10}},
  {"match":{"userMessage":"sum","hasToolResult":true},"response":{"content":"It is 391."},"usage":{"prompt_tokens":120,"completion_tokens":5}},
  {"match":{"userMessage":"finish"},"response":{"toolCalls":[{"name":"finish","arguments":{"answer":"All done."}}]}},
  {"match":{"userMessage":"denied"},"response":{"toolCalls":[{"name":"think","arguments":{"thought":"x"}}]}},
  {"match":{"userMessage":"cut"},"response":{"content":"Half an ans","finishReason":"length"}},
  {"match":{"userMessage":"broken"},"response":{"error":{"status":500,"message":"the server is unwell"}}},
  {"match":{"userMessage":"escape"},"response":{"content":"a\u001b[31mb"}},
  {"match":{"userMessage":"hello"},"response":{"content":"Hello to you."},"usage":{"prompt_tokens":1000,"completion_tokens":100}}
]})";

class Run : public ::testing::Test {
protected:
    static void SetUpTestSuite() { mock_ = std::make_unique<mock_process>(fixtures); }
    static void TearDownTestSuite() { mock_.reset(); }
    static program_result ask(std::string question, std::vector<std::string> more = {}, std::string input = {})
    {
        std::vector<std::string> all{"run", std::move(question), "--base-url", mock_->base_url()};
        if (std::find(more.begin(), more.end(), "--model") == more.end()) more.insert(more.end(), {"--model", "gpt-4o-mini"});
        for (std::string& m : more) all.push_back(std::move(m));
        return reagent_run(std::move(all), std::move(input));
    }
    static std::unique_ptr<mock_process> mock_;
};
std::unique_ptr<mock_process> Run::mock_;

TEST_F(Run, TextGoesToOutputAndFiguresToMessages)
{
    for (const bool stream : {true, false}) {
        const program_result r = ask("hello", stream ? std::vector<std::string>{} : std::vector<std::string>{"--no-stream"});
        EXPECT_EQ(r.status, 0) << r.err;
        EXPECT_EQ(r.out, "Hello to you.\n") << stream;
        // gpt-4o-mini: 1000 × 0.15 + 100 × 0.60 dollars per million.
        EXPECT_THAT(r.err, HasSubstr("1 turn, 1,000 tokens in, 100 out, $0.00021")) << stream;
        EXPECT_THAT(r.err, Not(HasSubstr("\x1b"))) << "no colour in a pipe";
    }
}

TEST_F(Run, Case_E8_ProxiesComeFromTheEnvironment)
{
    const auto ask_through = [](const std::string& variable, const std::string& value, const std::string& base_url) {
        program p({"run", "hello", "--base-url", base_url, "--model", "gpt-4o-mini"});
        return p.set(variable, value).run();
    };
    // Port 1 of the loopback refuses.
    for (const auto& [variable, scheme] : {std::pair{"HTTP_PROXY", "http"}, std::pair{"https_proxy", "https"}, std::pair{"ALL_PROXY", "https"}}) {
        const program_result r = ask_through(variable, "http://me:hunter22@127.0.0.1:1", std::string(scheme) + "://api.test/v1");
        EXPECT_EQ(r.status, 1) << variable;
        EXPECT_THAT(r.err, HasSubstr("cannot connect to the proxy http://127.0.0.1:1: 127.0.0.1: Connection refused")) << variable;
        EXPECT_THAT(r.err, Not(HasSubstr("hunter22")));
    }
    EXPECT_EQ(ask_through("ALL_PROXY", "http://127.0.0.1:1", mock_->base_url()).out, "Hello to you.\n") << "the loopback is reached straight";
    const program_result bad = ask_through("HTTPS_PROXY", "socks5://127.0.0.1:1", mock_->base_url());
    EXPECT_EQ(bad.status, 2);
    EXPECT_THAT(bad.err, HasSubstr("HTTPS_PROXY: "));
}

TEST_F(Run, ToolCallsAreShownOnStandardError)
{
    const program_result r = ask("sum", {"--tools", "calculate"});
    EXPECT_EQ(r.status, 0) << r.err;
    EXPECT_EQ(r.out, "Adding. \nIt is 391.\n");
    EXPECT_THAT(r.err, HasSubstr("-> calculate {\"expression\":\"17*23\"}"));
    EXPECT_THAT(r.err, HasSubstr("<- calculate 391"));
    EXPECT_THAT(r.err, HasSubstr("2 turns, 1 tool call, 220 tokens in, 15 out"));
}

TEST_F(Run, QuietLeavesOnlyTheAnswer)
{
    const program_result r = ask("sum", {"--tools", "calculate", "--quiet"});
    EXPECT_EQ(r.status, 0);
    EXPECT_EQ(r.err, "");
}

TEST_F(Run, JsonPrintsOneObject)
{
    for (const bool stream : {true, false}) {
        const program_result r = ask("sum",
                                     stream ? std::vector<std::string>{"--json", "--tools", "calculate"}
                                            : std::vector<std::string>{"--json", "--no-stream", "--tools", "calculate"});
        EXPECT_EQ(r.status, 0) << r.err;
        const json out = json::parse_or_throw(r.out, "the output");
        EXPECT_EQ(out["outcome"], json("completed"));
        EXPECT_TRUE(out["error"].is_null());
        EXPECT_EQ(out["text"], json("It is 391."));
        EXPECT_EQ(out["toolCalls"], json::array());
        EXPECT_EQ(out["metrics"]["turns"].get_int64(), 2);
        EXPECT_EQ(out["metrics"]["toolCalls"].get_int64(), 1);
        EXPECT_EQ(out["metrics"]["tokens"]["input"].get_int64(), 220);
        EXPECT_EQ(out["msgs"].size(), 4U) << "user, assistant with call, tool, assistant";
        EXPECT_EQ(out["msgs"][2]["content"], json("391"));
    }
}

TEST_F(Run, AnswersOfFinishArePrinted)
{
    const program_result r = ask("finish", {"--tools", "finish"});
    EXPECT_EQ(r.status, 0) << r.err;
    EXPECT_EQ(r.out, "All done.\n");
}

TEST_F(Run, OnlyCompletedExitsZero)
{
    const program_result cut = ask("cut", {"--json"});
    EXPECT_EQ(cut.status, 1);
    const json cut_json = json::parse_or_throw(cut.out, "the output");
    EXPECT_EQ(cut_json["outcome"], json("incomplete"));
    EXPECT_EQ(cut_json["error"], json("truncated:max_tokens"));
    EXPECT_THAT(cut.err, HasSubstr("reagent run: incomplete: truncated:max_tokens"));

    const program_result broken = ask("broken");
    EXPECT_EQ(broken.status, 1);
    EXPECT_EQ(broken.out, "");
    EXPECT_EQ(broken.messages().size(), 1U) << broken.err;
    EXPECT_THAT(broken.err, HasSubstr("reagent run: failed: "));
    EXPECT_THAT(broken.err, HasSubstr("the server is unwell"));
}

TEST_F(Run, NoFixtureIsAFailureOfTheServer)
{
    const program_result r = ask("something else");
    EXPECT_EQ(r.status, 1);
    EXPECT_THAT(r.err, HasSubstr("no fixture matches"));
    EXPECT_EQ(r.messages().size(), 1U);
}

TEST_F(Run, TheGateOfTheFileHolds)
{
    const scratch_file file(R"({"tools":["think","calculate"],"gate":{"tools":{"denylist":["think"]}}})");
    const program_result r = ask("denied", {"-c", file.path(), "--json"});
    EXPECT_EQ(r.status, 1);
    EXPECT_EQ(json::parse_or_throw(r.out, "the output")["error"], json("denied:think"));
    EXPECT_THAT(r.err, HasSubstr("<- think denied: "));
}

TEST_F(Run, ToolsOfTheCommandLineAreTheAllowedOnes)
{
    const program_result r = ask("denied", {"--tools", "calculate", "--json"});
    EXPECT_EQ(r.status, 1) << "think is not offered, so it is unknown";
    EXPECT_EQ(json::parse_or_throw(r.out, "the output")["error"], json("stuck:think"));
}

TEST_F(Run, ToolsTakeOneArgument)
{
    const program_result r = reagent_run({"run", "--base-url", mock_->base_url(), "--tools", "calculate,think", "sum"});
    EXPECT_EQ(r.status, 0) << r.err;
}

TEST_F(Run, UngovernedSaysSo)
{
    const scratch_file file(R"({"tools":["calculate"],"ungoverned":true})");
    const program_result r = ask("sum", {"-c", file.path()});
    EXPECT_EQ(r.status, 0) << r.err;
    EXPECT_THAT(r.err, HasSubstr("UNGOVERNED"));
}

TEST_F(Run, ADeniedNameThatIsNoToolIsTold)
{
    const scratch_file file(R"({"gate":{"tools":{"denylist":["calculat","think","shell","cur*"]}}})");
    const program_result r = ask("hello", {"-c", file.path()});
    EXPECT_EQ(r.status, 0) << r.err;
    const std::string tools = "; the tools are calculate, current_time, finish, think";
    EXPECT_THAT(r.err, HasSubstr("warning: gate.tools.denylist: there is no tool \"calculat\", did you mean \"calculate\"" + tools));
    EXPECT_THAT(r.err, HasSubstr("warning: gate.tools.denylist: there is no tool \"shell\"" + tools));
    EXPECT_EQ(r.messages().size(), 3U) << r.err;
    EXPECT_EQ(ask("hello", {"-c", file.path(), "--quiet"}).err, "");
}

TEST_F(Run, ABudgetHaltsBeforeTheRequestLeaves)
{
    const program_result r = ask("hello", {"--max-cost-usd", "0.0000001", "--max-tokens", "50", "--json"});
    EXPECT_EQ(r.status, 1);
    const json out = json::parse_or_throw(r.out, "the output");
    EXPECT_EQ(out["outcome"], json("halted"));
    EXPECT_EQ(out["error"], json("halt:budget.maxCostUsd"));
    EXPECT_EQ(out["metrics"]["turns"].get_int64(), 0);
    EXPECT_THAT(r.err, HasSubstr("$0 of $0.0000001 spent in budget \"run\", $0.0000001 left; the next attempt would reserve $0.0000"));
}

TEST_F(Run, FlagsWinOverTheFile)
{
    const scratch_file file(R"({"model":"wrong","baseUrl":"http://127.0.0.1:9/v1","budget":{"maxTokens":1}})");
    const program_result r = ask("hello", {"-c", file.path(), "--max-total-tokens", "1000000", "--max-tokens", "10"});
    EXPECT_EQ(r.status, 0) << r.err;
}

TEST_F(Run, TheQuestionMayComeFromStandardInput)
{
    const program_result r = ask("-", {}, "say hello\n");
    EXPECT_EQ(r.status, 0) << r.err;
    EXPECT_EQ(r.out, "Hello to you.\n");
}

TEST_F(Run, RatesPriceUnknownModels)
{
    const program_result unknown = ask("hello", {"--model", "llama"});
    EXPECT_EQ(unknown.status, 0) << unknown.err;
    const program_result rated = ask("hello", {"--model", "llama", "--rates", "0.001", "0.002", "--max-cost-usd", "1", "--max-tokens", "200"});
    EXPECT_EQ(rated.status, 0) << rated.err;
    EXPECT_THAT(rated.err, HasSubstr("$0.0012"));
    for (const auto& [in, out] : {std::pair("0.001/k", "0.002/k"), std::pair("1/M", "2/M")})
        EXPECT_EQ(ask("hello", {"--model", "llama", "--rates", in, out, "--max-cost-usd", "1", "--max-tokens", "200"}).err, rated.err) << in;
}

TEST_F(Run, TextIsPassedThroughUnchangedInAPipe)
{
    const program_result r = ask("escape");
    EXPECT_EQ(r.out, "a\x1b[31mb\n");
}

}  // namespace run_test
}  // namespace
}  // namespace reagent::apps_test

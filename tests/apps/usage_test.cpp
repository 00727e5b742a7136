#include "program.hpp"

#include <gmock/gmock.h>

namespace reagent::apps_test {
namespace {
namespace usage_test {

using ::testing::HasSubstr;

/// One line on standard error, nothing on standard output, this exit status.
void expect_refused(const program_result& r, int status, const std::string& part, const std::string& about)
{
    EXPECT_EQ(r.status, status) << about << "\n" << r.err;
    EXPECT_EQ(r.out, "") << about;
    ASSERT_EQ(r.messages().size(), 1U) << about << "\n" << r.err;
    EXPECT_THAT(r.err, HasSubstr(part)) << about;
}

TEST(Usage, BadCommandLinesAreOneLineAndStatusTwo)
{
    const std::vector<std::pair<std::vector<std::string>, std::string>> table{
        {{"runn"}, "there is no command \"runn\", did you mean \"run\"?"},
        {{"run", "q", "--modle", "x"}, "--modle"},
        {{"run", "q", "--model"}, "--model"},
        {{"run", "q", "--max-tokens", "0"}, "--max-tokens"},
        {{"run", "q", "--max-tokens", "many"}, "--max-tokens"},
        {{"run", "q", "--max-cost-usd", "cheap"}, "--max-cost-usd must be an amount of dollars"},
        {{"run", "q", "--rates", "-1", "2"}, "--rates"},
        {{"run", "q", "--rates", "0.15/M", "0.6/G"},
         "--rates must be two prices in USD per 1,000 tokens such as 0.00015, or per million tokens such as 0.15/M, got 0.6/G"},
        {{"run", "q", "--tool-concurrency", "5000"}, "--tool-concurrency"},
        {{"tools"}, "reagent tools: "},
        {{"tools", "shw", "calculate"}, "shw"},
        {{"tools", "show", "calculat"}, "did you mean \"calculate\"?"},
        {{"tools", "invoke", "think", "{"}, "ARGS: not JSON at byte"},
        {{"tools", "invoke"}, "name a tool"},
        {{"tools", "invoke", "nosuch"}, "there is no tool \"nosuch\""},
        {{"tools", "invoke", "think", "@/no/such/file"}, "/no/such/file: cannot be read"},
        {{"tools", "invoke", "current_time", "{}", "--options", "{\"defaultTimeZone\":\"Mars/Base\"}"}, "Mars/Base"},
        {{"provider", "decode", "/no/such/file"}, "/no/such/file: cannot be read"},
        {{"demo", "--agents", "3"}, "--agents"},
        {{"mock", "--fixtures", "/no/such/file"}, "/no/such/file"},
        {{"models", "extra"}, "extra"},
    };
    for (const auto& [arguments, part] : table) expect_refused(reagent_run(arguments), 2, part, ::testing::PrintToString(arguments));
}

TEST(Usage, NoCommandIsAnErrorToo)
{
    expect_refused(reagent_run({}), 2, "reagent --help", "no arguments");
}

TEST(Usage, WhatARunNeedsBeforeItStarts)
{
    expect_refused(reagent_run({"run", "hello"}), 2, "OPENAI_API_KEY is not set", "no key");
    expect_refused(reagent_run({"run", "hello", "--base-url", "not a url"}), 2, "baseUrl", "bad base URL");
    expect_refused(reagent_run({"run", "hello", "--base-url", "ftp://example.org/"}), 2, "baseUrl", "no http URL");
    expect_refused(reagent_run({"run", "hello", "--provider", "opnai"}), 2, "provider \"opnai\" is not known", "unknown provider");
    expect_refused(reagent_run({"run", "hello", "--provider", "anthropic", "--base-url", "http://127.0.0.1:9/v1"}), 2, "ANTHROPIC_API_KEY is not set",
                   "a wire that never does without a key");
    expect_refused(reagent_run({"run", "hello", "--base-url", "http://127.0.0.1:9/v1", "--fallback", "anthropic"}), 2, "ANTHROPIC_API_KEY is not set",
                   "a fallback without its key");
    expect_refused(reagent_run({"run", "hello", "--tools", "calculat", "--base-url", "http://127.0.0.1:9/v1"}), 2, "did you mean \"calculate\"?",
                   "unknown tool");
    expect_refused(reagent_run({"run", "hello", "--key-file", "/no/such/key"}), 2, "/no/such/key", "no key file");
    expect_refused(reagent_run({"run", "--base-url", "http://127.0.0.1:9/v1"}, ""), 2, "the question is empty", "empty standard input");
    expect_refused(reagent_run({"run", "hello", "--base-url", "http://127.0.0.1:9/v1", "--ca-file", "/no/such/ca.pem"}), 2, "/no/such/ca.pem", "no CA file");
    const scratch_file junk("this is no certificate", ".pem");
    expect_refused(reagent_run({"run", "hello", "--base-url", "https://127.0.0.1:9/v1", "--ca-file", junk.path()}), 2, junk.path(),
                   "CA file without a certificate");
}

TEST(Usage, ACapInDollarsNeedsAKnownPrice)
{
    expect_refused(
        reagent_run({"run", "hello", "--base-url", "http://127.0.0.1:9/v1", "--model", "nobody-knows-me", "--max-cost-usd", "1", "--max-tokens", "10"}), 2,
        "nobody-knows-me", "unknown model under a cap");
    expect_refused(reagent_run({"run", "hello", "--base-url", "http://127.0.0.1:9/v1", "--model", "nobody-knows-me", "--max-total-tokens", "1000"}), 2,
                   "budget.unbounded", "no bound on the answer under a cap");
}

TEST(Usage, ARefusedConnectionIsFailedWork)
{
    // Port 9 (discard) has no listener on a test machine; nothing answers on loopback.
    expect_refused(reagent_run({"run", "hello", "--base-url", "http://127.0.0.1:9/v1", "--model", "m"}), 1, "127.0.0.1:9", "refused connection");
}

TEST(Usage, ABadFixtureFileIsNamedWithThePlace)
{
    const scratch_file fixtures(R"({"fixtures":[{"match":{"turnIndx":0},"response":{"content":"x"}}]})");
    const program_result r = reagent_run({"mock", "--port", "0", "--fixtures", fixtures.path()});
    expect_refused(r, 2, "turnIndx", "bad fixture");
    EXPECT_THAT(r.err, HasSubstr(fixtures.path()));
}

}  // namespace usage_test
}  // namespace
}  // namespace reagent::apps_test

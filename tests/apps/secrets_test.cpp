#include "program.hpp"

#include <gmock/gmock.h>

namespace reagent::apps_test {
namespace {
namespace secrets_test {

using ::testing::HasSubstr;
using ::testing::Not;

constexpr const char* canary = "sk-canary-7f3a9c1e5b";

/// An error body that quotes the key, as some services do.
constexpr std::string_view fixtures = R"({"fixtures":[
  {"match":{"userMessage":"refuse"},"response":{"error":{"status":401,"message":"Incorrect API key provided: sk-canary-7f3a9c1e5b"}}},
  {"match":{},"response":{"content":"fine"}}]})";

TEST(Secrets, TheKeyIsNeverPrintedAtAnyLevel)
{
    const mock_process mock(fixtures);
    const scratch_file key_file(std::string(canary) + "\n", ".key");
    const std::vector<std::vector<std::string>> lines{
        {"run", "hello", "--base-url", mock.base_url(), "-v"},
        {"run", "hello", "--base-url", mock.base_url(), "--json", "-v"},
        {"run", "refuse", "--base-url", mock.base_url(), "-v"},
        {"run", "refuse", "--base-url", mock.base_url(), "--json", "-v"},
        {"run", "hello", "--base-url", mock.base_url(), "--key-file", key_file.path(), "-v"},
        {"run", "hello", "--base-url", "http://127.0.0.1:9/v1", "-v"},
        {"run", "hello", "--base-url", "https://127.0.0.1:9/v1", "-v"},
        {"run", "hello", "--base-url", mock.base_url(), "--model", "unknown", "--max-cost-usd", "1"},
        {"doctor"},
        {"doctor", "--json"},
        {"models"},
    };
    for (const std::vector<std::string>& line : lines) {
        program p(line);
        p.set("OPENAI_API_KEY", canary);
        const program_result r = p.run();
        EXPECT_THAT(r.out, Not(HasSubstr("canary"))) << ::testing::PrintToString(line);
        EXPECT_THAT(r.err, Not(HasSubstr("canary"))) << ::testing::PrintToString(line);
        EXPECT_FALSE(r.out.empty() && r.err.empty()) << ::testing::PrintToString(line);
    }
}

TEST(Secrets, AKeyIsNoFlag)
{
    const program_result r = reagent_run({"run", "hello", "--api-key", canary});
    EXPECT_EQ(r.status, 2);
    EXPECT_THAT(reagent_run({"run", "--help"}).out, Not(HasSubstr("--api-key")));
}

}  // namespace secrets_test
}  // namespace
}  // namespace reagent::apps_test

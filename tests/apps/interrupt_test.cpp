#include "program.hpp"

#include <reagent/base/json.hpp>

#include <gmock/gmock.h>

#include <csignal>

namespace reagent::apps_test {
namespace {
namespace interrupt_test {

/// Text comes, then silence until the client goes.
constexpr std::string_view fixtures = R"({"fixtures":[{"match":{},"response":{"content":"The first words of an answer that never ends"},
  "chunkSize":4,"fault":{"kind":"stall","after_bytes":900}}]})";

TEST(Interrupt, TheFirstCancelsAndTheResultIsStillPrinted)
{
    const mock_process mock(fixtures);
    program p({"run", "go on", "--base-url", mock.base_url(), "--model", "m"});
    p.start();
    ASSERT_TRUE(p.wait_for_output("The"));
    p.signal(SIGINT);
    const program_result r = p.wait();
    EXPECT_EQ(r.status, 1) << r.err;
    EXPECT_THAT(r.out, ::testing::EndsWith("\n"));
    EXPECT_THAT(r.err, ::testing::HasSubstr("reagent run: cancelled"));
}

TEST(Interrupt, TheJsonHoldsTheTranscript)
{
    // The tool call is shown when the first round is over; the second round is silent.
    const mock_process mock(R"({"fixtures":[
      {"match":{"turnIndex":0},"response":{"toolCalls":[{"name":"think","arguments":{"thought":"hm"}}]}},
      {"match":{},"response":{"content":"never"},"fault":{"kind":"stall","after_bytes":0}}]})");
    program p({"run", "go on", "--base-url", mock.base_url(), "--model", "m", "--tools", "think", "--json"});
    p.start();
    ASSERT_TRUE(p.wait_for_messages("<- think noted"));
    p.signal(SIGTERM);
    const program_result r = p.wait();
    EXPECT_EQ(r.status, 1) << r.err;
    const json out = json::parse_or_throw(r.out, "the output");
    EXPECT_EQ(out["outcome"], json("cancelled"));
    EXPECT_EQ(out["error"], json("cancelled"));
    EXPECT_EQ(out["msgs"].size(), 3U);
    EXPECT_EQ(out["msgs"][2]["content"], json("noted"));
}

}  // namespace interrupt_test
}  // namespace
}  // namespace reagent::apps_test

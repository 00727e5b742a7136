#include "program.hpp"

#include <reagent/base/json.hpp>

#include <gmock/gmock.h>

#include <csignal>
#include <filesystem>
#include <thread>

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
    EXPECT_EQ(r.err, "reagent run: cancelled\n");
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

std::ptrdiff_t open_files(pid_t id)
{
    std::error_code gone;
    return std::distance(std::filesystem::directory_iterator("/proc/" + std::to_string(id) + "/fd", gone), std::filesystem::directory_iterator());
}

TEST(Interrupt, TheDemoCancelsItsAgentsAndSaysSo)
{
    program p({"demo", "--agents", "2000"});
    p.start();
    // With this many sockets its agents are at work.
    const auto until = std::chrono::steady_clock::now() + std::chrono::seconds(30);
    while (open_files(p.id()) < 100 && std::chrono::steady_clock::now() < until) std::this_thread::yield();
    p.signal(SIGINT);
    const program_result r = p.wait();
    EXPECT_EQ(r.status, 1);
    EXPECT_EQ(r.out, "");
    ASSERT_EQ(r.messages().size(), 1U) << r.err;
    EXPECT_THAT(r.err, ::testing::HasSubstr("reagent demo: interrupted: "));
}

}  // namespace interrupt_test
}  // namespace
}  // namespace reagent::apps_test

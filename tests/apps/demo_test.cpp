#include "program.hpp"

#include <reagent/base/json.hpp>

#include <gmock/gmock.h>

#include <dirent.h>
#include <fstream>

namespace reagent::apps_test {
namespace {
namespace demo_test {

std::int64_t whole(const json& j)
{
    return j.get_int64().value_or(-1);
}

/// What everyone may rely on, whatever the number of agents.
void expect_promises(const program_result& r, std::int64_t agents)
{
    ASSERT_EQ(r.status, 0) << r.err;
    EXPECT_EQ(r.err, "") << "no progress in a pipe";
    const json out = json::parse_or_throw(r.out, "the output");
    EXPECT_EQ(whole(out["agents"]), agents);
    const json& outcomes = out["outcomes"];
    EXPECT_EQ(outcomes.size(), 3U);
    EXPECT_GE(whole(outcomes["completed"]), 1);
    EXPECT_GE(whole(outcomes["halted"]), 1);
    EXPECT_GE(whole(outcomes["failed"]), 1);
    EXPECT_EQ(whole(outcomes["completed"]) + whole(outcomes["halted"]) + whole(outcomes["failed"]), agents);
    EXPECT_GE(whole(out["turns"]), agents);
    EXPECT_GT(whole(out["tokens"]["input"]), 0);
    EXPECT_GT(whole(out["tokens"]["output"]), 0);
    const double spent = out["spent_usd"].get_double().value_or(-1), cap = out["cap_usd"].get_double().value_or(-1);
    EXPECT_GT(cap, 0);
    EXPECT_LE(spent, cap);
    EXPECT_GE(spent, 0.6 * cap);
    const double p50 = out["latency_ms"]["p50"].get_double().value_or(-1), p90 = out["latency_ms"]["p90"].get_double().value_or(-1),
                 p99 = out["latency_ms"]["p99"].get_double().value_or(-1);
    EXPECT_GT(p50, 0);
    EXPECT_LE(p50, p90);
    EXPECT_LE(p90, p99);
    EXPECT_LE(p99, 30'000);
    EXPECT_GT(out["agents_per_s"].get_double().value_or(0), 0);
    EXPECT_GT(out["peak_rss_mb"].get_double().value_or(0), 0);
}

TEST(Demo, FewAgents)
{
    expect_promises(reagent_run({"demo", "--agents", "20", "--json"}), 20);
}
TEST(Demo, SomeMore)
{
    expect_promises(reagent_run({"demo", "--agents", "137", "--json"}), 137);
}
TEST(Demo, FiveHundred)
{
    expect_promises(reagent_run({"demo", "--json"}), 500);
}

TEST(Demo, TheTableNamesOutcomesCostAndPercentiles)
{
    const program_result r = reagent_run({"demo", "--agents", "40"});
    ASSERT_EQ(r.status, 0) << r.err;
    for (const char* word : {"agents", "completed", "halted", "failed", "turns", "tokens", "spent $", "p50", "p90", "p99", "agents/s", "peak memory MB"})
        EXPECT_THAT(r.out, ::testing::HasSubstr(word));
}

/// Processes whose command line holds `word`.
std::size_t processes_with(const std::string& word)
{
    std::size_t count = 0;
    DIR* all = ::opendir("/proc");
    while (const dirent* entry = ::readdir(all)) {
        std::ifstream file("/proc/" + std::string(entry->d_name) + "/cmdline");
        std::string line((std::istreambuf_iterator<char>(file)), {});
        if (line.find(word) != std::string::npos) ++count;
    }
    ::closedir(all);
    return count;
}

TEST(Demo, NothingIsLeftBehind)
{
    program p({"demo", "--agents", "20", "--json"});
    p.start();
    const std::string child = "--die-with-parent" + std::string(1, '\0') + std::to_string(p.id());
    EXPECT_EQ(p.wait().status, 0);
    EXPECT_EQ(processes_with(child), 0U);
}

}  // namespace demo_test
}  // namespace
}  // namespace reagent::apps_test

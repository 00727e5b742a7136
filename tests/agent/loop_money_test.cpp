#include "agent_fixture.hpp"

namespace {
namespace loop_money_test {

using namespace reagent;
using agent_test::any_tool;
using ::testing::SizeIs;

class LoopMoney : public agent_test::fixture {
protected:
    run_hooks watching()
    {
        run_hooks hooks;
        hooks.on_llm_result = [this](llm_report r) { reports.push_back(std::move(r)); };
        return hooks;
    }
    log_sink counting()
    {
        return log_sink([this](log_level, std::string_view line) { warnings.emplace_back(line); });
    }
    std::vector<llm_report> reports;
    std::vector<std::string> warnings;
};

usage tokens(std::uint64_t in, std::uint64_t out, std::uint64_t read, std::uint64_t created)
{
    usage u;
    u.input = in;
    u.output = out;
    u.cache_read = read;
    u.cache_creation = created;
    return u;
}

TEST_F(LoopMoney, K32_TierPriceIsAGuessThatWarnsOnce)
{
    script({scripted_round("a").usage(tokens(1000, 1000, 10000, 2000)).model("claude-haiku-4-5").times(0)});
    const agent a = make(agent_options().hooks(watching()).log(counting()));
    const run_result r = go(a);
    EXPECT_EQ(r.cost(), usd("0.0095"));
    EXPECT_EQ(reports.at(0).rate_source, "tier");
    EXPECT_EQ(r.metrics().estimated_rounds, 1u);
    go(a);
    EXPECT_THAT(warnings, SizeIs(1));
}

TEST_F(LoopMoney, K33_DefaultAndCallerRates)
{
    script({scripted_round("a").usage(tokens(1000, 500, 0, 0)).model("gpt-x")});
    EXPECT_EQ(go(make(agent_options().hooks(watching()))).cost(), usd("0.0105"));
    EXPECT_EQ(reports.at(0).rate_source, "default");
    script({scripted_round("a").usage(tokens(1000, 1000, 1000, 1000)).model("gpt-x")});
    rates mine(1'000, 2'000);
    mine.cache_read_mult = 0.5;
    EXPECT_EQ(go(make(agent_options().hooks(watching()).rates(mine).log(counting()))).cost(), usd("0.00475"));
    EXPECT_EQ(reports.at(1).rate_source, "caller");
    EXPECT_THAT(warnings, SizeIs(0));
}

TEST_F(LoopMoney, K34_AnAuthoritativePriceWinsZeroIncluded)
{
    script({scripted_round("a").usage(1, 1).cost(usd())});
    const run_result r = go(make(agent_options().hooks(watching())));
    ASSERT_TRUE(r.metrics().cost);
    EXPECT_EQ(*r.metrics().cost, usd());
    EXPECT_EQ(reports.at(0).rate_source, "provider");
    script({scripted_round("a").usage(1, 1)}, "");
    EXPECT_EQ(go(make()).cost(), usd("0.000018"));
}

TEST_F(LoopMoney, K35_ARoundWithoutUsageIsUnpriced)
{
    script({scripted_round().usage(10, 10).call("a", "x"), scripted_round("end")});
    const run_result r = go(make(agent_options().hooks(watching()).tool(any_tool("x", [](const json&) { return json(); }))));
    EXPECT_EQ(r.usage().input, 10u);
    EXPECT_EQ(r.metrics().unpriced_rounds, 1u);
    ASSERT_THAT(reports, SizeIs(2));
    EXPECT_FALSE(reports[1].usage);
    EXPECT_FALSE(reports[1].cost);
    EXPECT_FALSE(reports[1].priced);
}

TEST_F(LoopMoney, NothingPricedIsNullInTheMetrics)
{
    script({scripted_round("end")});
    const run_result r = go(make());
    EXPECT_FALSE(r.metrics().cost);
    EXPECT_EQ(r.cost(), usd());
    EXPECT_TRUE(r.to_json()["metrics"]["costUsd"].is_null());
}

TEST_F(LoopMoney, MetricsAddUpOverRounds)
{
    script({scripted_round().usage(tokens(10, 2, 3, 4)).call("a", "x"), scripted_round("end").usage(tokens(20, 5, 6, 7))});
    const run_result r = go(make(agent_options().tool(any_tool("x", [](const json&) { return json(); }))));
    const json m = r.metrics().to_json();
    EXPECT_EQ(m["turns"].get_int64(), 2);
    EXPECT_EQ(m["toolCalls"].get_int64(), 1);
    EXPECT_EQ(m["byTool"]["x"].get_int64(), 1);
    EXPECT_EQ(m["tokens"].dump(), R"({"input":30,"output":7,"cacheCreation":11,"cacheRead":9})");
}

}  // namespace loop_money_test
}  // namespace

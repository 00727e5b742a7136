// The budget judged from outside: the server adds the worst case of its open requests and the usage of its answered ones at each arrival, from the
// bytes it received. A thousand whole agents over real sockets, on a cap that fits ten.
#include "fleet.hpp"

#include <reagent/testing/mock_server.hpp>

#include <gtest/gtest.h>

#include <memory>

namespace {
namespace budget_outside_test {

using namespace reagent;
using namespace reagent::fleet_detail;
namespace testing = reagent::testing;

testing::mock_fixtures fixtures(std::string_view text)
{
    return testing::parse_mock_fixtures(text, "fixtures");
}

constexpr std::string_view worst_case = R"({"fixtures":[{"response":{"content":"Three are left, as far as I can see."},"usage":"worst_case"}]})";
constexpr std::string_view small_usage = R"({"fixtures":[{"response":{"content":"Three."},"usage":{"prompt_tokens":21,"completion_tokens":3}}]})";
constexpr std::string_view two_rounds = R"({"fixtures":[
  {"match":{"turnIndex":0},"response":{"content":"Looking. ","toolCalls":[{"name":"stock","arguments":{"name":"nuts"}},{"name":"stock","arguments":{"name":"bolts"}}]}},
  {"match":{"hasToolResult":true},"response":{"content":"Three of each."}}]})";

/// Threads, streaming, and whether the cap is one of tokens.
class Outside : public ::testing::TestWithParam<std::tuple<unsigned, bool, bool>> {
protected:
    unsigned threads() const { return std::get<0>(GetParam()); }
    bool stream() const { return std::get<1>(GetParam()); }
    bool tokens() const { return std::get<2>(GetParam()); }
    std::string rule() const { return tokens() ? "halted halt:budget.maxTokens" : "halted halt:budget.maxCostUsd"; }

    testing::mock_options options(std::string_view text) const
    {
        testing::mock_options o;
        o.fixtures(fixtures(text));
        // A cap of tokens is judged in tokens: both cost a nano-dollar, a million of them a thousandth of a dollar.
        if (tokens()) o.rates(usd::from_nanos(1'000'000), usd::from_nanos(1'000'000));
        else o.rates(usd::from_nanos(input_price * 1'000'000), usd::from_nanos(output_price * 1'000'000));
        return o;
    }
    /// What the server reckons for so many tokens.
    usd judged(std::uint64_t input, std::uint64_t output) const
    {
        return tokens() ? usd::from_nanos(static_cast<std::int64_t>(input + output)) : price(input, output);
    }
    budget capped_at(usd cap) const { return budget("team", tokens() ? budget_caps({}, static_cast<std::uint64_t>(cap.nanos())) : budget_caps(cap)); }
    usd spent(const budget_state& s) const { return tokens() ? usd::from_nanos(static_cast<std::int64_t>(s.spent.tokens)) : s.spent.cost; }

    fleet agents(std::string base_url) const
    {
        fleet f;
        f.base_url = std::move(base_url);
        f.threads = threads();
        f.stream = stream();
        return f;
    }
    /// The worst case of the first request of a run, as a server sees it that is asked once.
    usd worst_of_one(std::string_view text, bool with_tools = false) const
    {
        testing::mock_server probe(options(text));
        fleet one = agents(probe.base_url());
        one.threads = one.runs = 1;
        one.with_tools = with_tools;
        static_cast<void>(one.go());
        const std::vector<testing::mock_entry> seen = probe.journal();
        EXPECT_EQ(seen.at(0).worst_input, seen.at(0).body.size());
        EXPECT_EQ(seen.at(0).worst_output, one.max_tokens);
        return judged(seen.at(0).body.size(), one.max_tokens);
    }

    /// What must hold at the end of every party.
    void check(const testing::mock_server& server, const fleet& f, const fleet_report& report, usd cap) const
    {
        const testing::mock_stats seen = server.stats();
        const budget_state s = f.money.state();
        RecordProperty("arrived", std::to_string(seen.requests));
        RecordProperty("most_of_cap", std::to_string(seen.max_exposure.to_double() / cap.to_double()));
        EXPECT_LE(seen.max_exposure, cap) << "the server was told to do more than was paid for";
        EXPECT_EQ(report.runs, static_cast<int>(f.runs));
        EXPECT_TRUE(report.threw.empty()) << report.threw.front();
        EXPECT_TRUE(report.unsound.empty()) << report.unsound.front();
        EXPECT_EQ(report.of("completed") + report.of(rule()), report.runs) << report.shown();
        EXPECT_EQ(spent(s), judged(seen.input_tokens, seen.output_tokens)) << "the budget's books and the server's differ";
        EXPECT_EQ(s.reserved.cost, usd());
        EXPECT_EQ(s.reserved.tokens, 0U);
        EXPECT_EQ(s.waiting, 0U);
        EXPECT_FALSE(s.overrun);
        EXPECT_EQ(seen.open, 0U);
    }
};

TEST_P(Outside, Case_C9_ExactlyTenOfAThousandArriveWhenUsageIsTheWorstCase)
{
    const usd worst = worst_of_one(worst_case);
    const usd cap = usd::from_nanos(10 * worst.nanos());
    testing::mock_server server(options(worst_case));
    fleet f = agents(server.base_url());
    f.money = capped_at(cap);
    const fleet_report report = f.go();
    check(server, f, report, cap);
    EXPECT_EQ(server.stats().requests, 10U);
    EXPECT_EQ(server.stats().max_exposure, cap);
    EXPECT_EQ(report.of("completed"), 10) << report.shown();
    EXPECT_EQ(spent(f.money.state()), cap);
}

TEST_P(Outside, SmallerUsageLetsMoreArriveAndTheSumHolds)
{
    const usd worst = worst_of_one(small_usage);
    const usd cap = usd::from_nanos(10 * worst.nanos());
    testing::mock_server server(options(small_usage));
    fleet f = agents(server.base_url());
    f.money = capped_at(cap);
    const fleet_report report = f.go();
    check(server, f, report, cap);
    EXPECT_GT(server.stats().requests, 10U);
    EXPECT_GT(report.of(rule()), 0) << "the cap has to bite";
    EXPECT_GT(spent(f.money.state()) + worst, cap) << "nobody is refused what would have fitted";
}

TEST_P(Outside, RunsOfTwoRoundsWithToolsKeepTheSum)
{
    const usd worst = worst_of_one(two_rounds, true);
    // Waiting is first come, first served: what is left after a thousand first rounds pays for some second ones.
    const usd cap = usd::from_nanos(400 * worst.nanos());
    testing::mock_server server(options(two_rounds));
    fleet f = agents(server.base_url());
    f.money = capped_at(cap);
    f.with_tools = true;
    const fleet_report report = f.go();
    check(server, f, report, cap);
    EXPECT_GT(server.stats().requests, 1000U);
    EXPECT_GT(report.of("completed"), 0) << report.shown();
    EXPECT_GT(report.of(rule()), 0) << "the cap has to bite";
}

std::string shape(const ::testing::TestParamInfo<Outside::ParamType>& info)
{
    return std::string(std::get<0>(info.param) == 1 ? "OneThread" : "FourThreads") + (std::get<1>(info.param) ? "Sse" : "Json") +
        (std::get<2>(info.param) ? "Tokens" : "Usd");
}
INSTANTIATE_TEST_SUITE_P(Budget, Outside, ::testing::Combine(::testing::Values(1U, 4U), ::testing::Bool(), ::testing::Bool()), shape);

}  // namespace budget_outside_test
}  // namespace

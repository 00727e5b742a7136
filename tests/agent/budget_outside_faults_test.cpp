// The same judge while servers fail and callers go away: an attempt whose request left and that brought no usage stands for its input bound plus what
// was received (design §4), so the sum holds as long as the server's tokens are longer than a byte.
#include "fleet.hpp"

#include <reagent/testing/mock_server.hpp>

#include <gtest/gtest.h>

namespace {
namespace budget_outside_faults_test {

using namespace reagent;
using namespace reagent::fleet_detail;
namespace testing = reagent::testing;
using testing::mock_fault;
using testing::mock_fault_kind;

constexpr std::string_view two_rounds = R"({"fixtures":[
  {"match":{"turnIndex":0},"response":{"content":"Looking. ","toolCalls":[{"name":"stock","arguments":{"name":"nuts"}},{"name":"stock","arguments":{"name":"bolts"}}]}},
  {"match":{"hasToolResult":true},"response":{"content":"Three of each, and nothing more to say of them."}}]})";
constexpr std::string_view one_round = R"({"fixtures":[{"response":{"content":"Three are left, as far as I can see."},"chunkSize":3}]})";

mock_fault cut(mock_fault_kind kind, std::uint64_t after)
{
    mock_fault f(kind);
    f.after_bytes = after;
    return f;
}

/// Threads, streaming, and what the requests are for.
class OutsideFaults : public ::testing::TestWithParam<std::tuple<unsigned, bool, bool>> {
protected:
    static testing::mock_options options(std::string_view text)
    {
        testing::mock_options o;
        o.fixtures(testing::parse_mock_fixtures(text, "fixtures"));
        o.rates(usd::from_nanos(input_price * 1'000'000), usd::from_nanos(output_price * 1'000'000));
        return o;
    }
};

TEST_P(OutsideFaults, TheSumHoldsWhateverGoesWrong)
{
    const auto [threads, stream, with_tools] = GetParam();
    const std::string_view text = with_tools ? two_rounds : one_round;
    testing::mock_options o = options(text);
    for (const int status : {429, 500, 503}) o.fault_rate(mock_fault(mock_fault_kind::status, status), 0.05);
    o.fault_rate(mock_fault(mock_fault_kind::html, 502), 0.03);
    for (const std::uint64_t after : {0U, 20U, 200U, 700U}) {
        o.fault_rate(cut(mock_fault_kind::reset, after), 0.02);
        o.fault_rate(cut(mock_fault_kind::close, after), 0.02);
        o.fault_rate(cut(mock_fault_kind::stall, after), 0.01);
    }
    for (const mock_fault_kind kind : {mock_fault_kind::trickle, mock_fault_kind::malformed_json, mock_fault_kind::truncated_arguments,
                                       mock_fault_kind::missing_done, mock_fault_kind::missing_finish, mock_fault_kind::error_event})
        o.fault_rate(mock_fault(kind), 0.03);
    const testing::mock_server server(std::move(o));

    fleet f;
    f.base_url = server.base_url();
    f.threads = threads;
    f.stream = stream;
    f.with_tools = with_tools;
    f.idle = std::chrono::milliseconds(1500);  // longer than a busy loop keeps bytes waiting
    f.cancel_every = 5;
    // Waiting is first come, first served: a thousand first rounds would leave nothing for a second one.
    if (with_tools) f.runs = 300;
    const usd cap = usd::from_nanos((with_tools ? 160 : 30) * price(400, f.max_tokens).nanos());
    f.money = budget("team", cap);
    const fleet_report report = f.go();

    const testing::mock_stats seen = server.stats();
    const budget_state s = f.money.state();
    RecordProperty("arrived", std::to_string(seen.requests));
    RecordProperty("most_of_cap", std::to_string(seen.max_exposure.to_double() / cap.to_double()));
    EXPECT_LE(seen.max_exposure, cap) << seen.to_json().dump();
    EXPECT_GT(seen.requests, 30U);
    EXPECT_EQ(report.runs, static_cast<int>(f.runs));
    EXPECT_TRUE(report.threw.empty() || report.threw.front().find("cancel") != std::string::npos) << report.threw.front();
    EXPECT_TRUE(report.unsound.empty()) << report.unsound.front();
    EXPECT_LE(s.spent.cost, cap);
    EXPECT_GE(s.spent.cost, price(seen.input_tokens, seen.output_tokens)) << "an estimate is never less than what a server can have done";
    EXPECT_EQ(s.reserved.cost, usd());
    EXPECT_EQ(s.reserved.tokens, 0U);
    EXPECT_EQ(s.waiting, 0U);
    EXPECT_GT(report.of("completed"), 0) << report.shown();
    EXPECT_GT(report.like("failed"), 0) << report.shown();
    EXPECT_GT(report.like("cancelled"), 0) << report.shown();
    // How many of the longer runs are cancelled before the money is gone, time decides.
    if (!with_tools) { EXPECT_GT(report.of("halted halt:budget.maxCostUsd"), 0) << report.shown(); }
}

std::string shape(const ::testing::TestParamInfo<OutsideFaults::ParamType>& info)
{
    return std::string(std::get<0>(info.param) == 1 ? "OneThread" : "FourThreads") + (std::get<1>(info.param) ? "Sse" : "Json") +
        (std::get<2>(info.param) ? "WithTools" : "OneRound");
}
INSTANTIATE_TEST_SUITE_P(Budget, OutsideFaults, ::testing::Combine(::testing::Values(1U, 4U), ::testing::Bool(), ::testing::Bool()), shape);

}  // namespace budget_outside_faults_test
}  // namespace

// The budget judged by another process: a thousand agents here, `reagent mock` there, and its own books at the end.
#include "fleet.hpp"
#include "program.hpp"

#include <reagent/base/json.hpp>
#include <reagent/net/http_client.hpp>
#include <reagent/testing/run.hpp>

#include <gtest/gtest.h>

namespace reagent::apps_test {
namespace {
namespace budget_process_test {

using namespace reagent::fleet_detail;

awaitable<std::string> get(http_client http, std::string address)
{
    http_request request("GET", url::parse_or_throw(address, "the mock"));
    http_exchange exchange = co_await http.open(std::move(request));
    std::string body;
    for (;;) {
        const std::span<const char> bytes = co_await exchange.read_some();
        if (bytes.empty()) break;
        body.append(bytes.data(), bytes.size());
    }
    co_return body;
}

std::string fetch(const mock_process& mock, const std::string& path)
{
    asio::io_context io{1};
    const http_client http(io.get_executor());
    const std::string& base = mock.base_url();
    return testing::complete(io, get(http, base.substr(0, base.rfind("/v1")) + path));
}

usd dollars(const json& j)
{
    return usd::from_double(j.get_double().value());
}

class BudgetProcess : public ::testing::TestWithParam<std::tuple<unsigned, bool>> {};

TEST_P(BudgetProcess, Case_C9_TenOfAThousandArriveAtAServerInAnotherProcess)
{
    const auto [threads, stream] = GetParam();
    constexpr std::string_view fixtures = R"({"fixtures":[{"response":{"content":"Three are left."},"usage":"worst_case"}]})";
    const std::vector<std::string> rates{"--input-rate", "2", "--output-rate", "7"};
    fleet f;
    f.stream = stream;
    usd worst;
    {
        const mock_process probe(fixtures, rates);
        f.base_url = probe.base_url();
        f.runs = 1;
        static_cast<void>(f.go());
        const json entry = json::parse_or_throw(fetch(probe, "/__journal"), "the journal");
        worst = price(entry["worst_input_tokens"].get_uint64().value(), entry["worst_output_tokens"].get_uint64().value());
        EXPECT_EQ(entry["worst_output_tokens"].get_uint64(), f.max_tokens);
    }
    const mock_process mock(fixtures, rates);
    const usd cap = usd::from_nanos(10 * worst.nanos());
    f.base_url = mock.base_url();
    f.runs = 1000;
    f.threads = threads;
    f.money = budget("team", cap);
    const fleet_report report = f.go();
    const json seen = json::parse_or_throw(fetch(mock, "/__stats"), "the stats");
    EXPECT_EQ(seen["requests"].get_uint64(), 10U) << seen.dump();
    EXPECT_EQ(dollars(seen["max_exposure_usd"]), cap);
    EXPECT_EQ(report.of("completed"), 10) << report.shown();
    EXPECT_EQ(report.of("halted halt:budget.maxCostUsd"), 990) << report.shown();
    EXPECT_TRUE(report.unsound.empty()) << report.unsound.front();
    EXPECT_EQ(f.money.state().spent.cost, cap);
    EXPECT_EQ(f.money.state().reserved.cost, usd());
}
INSTANTIATE_TEST_SUITE_P(Program, BudgetProcess, ::testing::Combine(::testing::Values(1U, 4U), ::testing::Bool()));

}  // namespace budget_process_test
}  // namespace
}  // namespace reagent::apps_test

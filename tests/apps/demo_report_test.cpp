#include "demo_report.hpp"

#include <gmock/gmock.h>

namespace reagent::apps_test {
namespace {
namespace demo_report_test {

using reagent_app::demo_report;
using ::testing::Contains;
using ::testing::HasSubstr;

TEST(DemoReport, NamesEveryPromiseThatIsNotKept)
{
    demo_report r(3, usd("1"));
    r.add_refused("no price");
    r.close(usd("1.5"), std::chrono::seconds(31), 10);
    const std::vector<std::string> broken = r.broken_promises();
    for (const char* part : {"a run did not start: no price", "1 of 3 runs ended", "no run completed", "no run was halted with partial text",
                             "$1.5 was spent, the cap is $1", "more than 30 s"})
        EXPECT_THAT(broken, Contains(HasSubstr(part)));
    EXPECT_EQ(broken.size(), 6U);
}

TEST(DemoReport, TooLittleSpentIsAFailureToo)
{
    demo_report r(1, usd("1"));
    r.close(usd("0.59"), std::chrono::seconds(1), 10);
    EXPECT_THAT(r.broken_promises(), Contains("only $0.59 of $1 was spent"));
    demo_report enough(1, usd("1"));
    enough.close(usd("0.6"), std::chrono::seconds(1), 10);
    EXPECT_THAT(enough.broken_promises(), ::testing::Not(Contains(HasSubstr("was spent"))));
}

TEST(DemoReport, JsonHasTheNamesOthersRead)
{
    demo_report r(1, usd("0.25"));
    r.add(run_result());
    r.close(usd("0.2"), std::chrono::milliseconds(500), 12.34);
    const json out = r.to_json();
    for (const char* key : {"agents", "outcomes", "turns", "tokens", "spent_usd", "cap_usd", "latency_ms", "agents_per_s", "peak_rss_mb"})
        EXPECT_NE(out.find(key), nullptr) << key;
    EXPECT_EQ(out["spent_usd"].dump(), "0.2");
    EXPECT_EQ(out["agents_per_s"].get_double(), 2.0);
    EXPECT_EQ(out["peak_rss_mb"].get_double(), 12.3);
}

}  // namespace demo_report_test
}  // namespace
}  // namespace reagent::apps_test

#include "time_zone.hpp"

#include <gtest/gtest.h>

namespace reagent {
namespace {
namespace time_zone_test {

using namespace builtins_detail;

TEST(TimeZone, NamesMatchInAnyCaseAndPrintCanonically)
{
    EXPECT_EQ(canonical_zone("europe/LONDON"), "Europe/London");
    EXPECT_EQ(canonical_zone("UTC"), "UTC");
    EXPECT_EQ(canonical_zone("utc"), "UTC");
    EXPECT_EQ(canonical_zone("etc/gmt+5"), "Etc/GMT+5");
    EXPECT_EQ(canonical_zone("asia/calcutta"), "Asia/Calcutta") << "links count";
}

TEST(TimeZone, EverythingElseIsNoZone)
{
    for (const char* name :
         {"", " ", "Europe", "Europe/", "/Europe/London", "../UTC", "localtime", "posixrules", "GMT+1", "BST", "+02:00", "UTC ", "Europe/Londo"})
        EXPECT_FALSE(canonical_zone(name).has_value()) << name;
}

TEST(TimeZone, FormatsOffsetsOfBothSigns)
{
    const auto when = parse_instant("2026-01-01T00:00:00Z");
    ASSERT_TRUE(when.has_value());
    EXPECT_EQ(format_in_zone(*when, "America/St_Johns"), "2025-12-31T20:30:00-03:30 (Wednesday, America/St_Johns)");
    EXPECT_EQ(format_in_zone(*when, "Asia/Kathmandu"), "2026-01-01T05:45:00+05:45 (Thursday, Asia/Kathmandu)");
    EXPECT_EQ(format_in_zone(*when, "UTC"), "2026-01-01T00:00:00+00:00 (Thursday, UTC)");
}

TEST(TimeZone, SubSecondsAreDroppedBeforeTheEpochToo)
{
    const auto when = parse_instant("1969-12-31T23:59:59.900Z");
    ASSERT_TRUE(when.has_value());
    EXPECT_EQ(format_in_zone(*when, "UTC"), "1969-12-31T23:59:59+00:00 (Wednesday, UTC)");
}

TEST(TimeZone, InstantsAreStrict)
{
    for (const char* text : {"", "2026-01-01", "2026-13-01T00:00:00Z", "2026-01-01T00:00:00", "2026-01-01T00:00:00Z ", "2026-01-01T00:00:00+01:00", "now"})
        EXPECT_FALSE(parse_instant(text).has_value()) << text;
}

}  // namespace time_zone_test
}  // namespace
}  // namespace reagent

#include <reagent/base/error.hpp>
#include <reagent/base/usd.hpp>

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

namespace {
namespace usd_test {
using reagent::errc;
using reagent::usd;

constexpr std::int64_t bad = INT64_MIN;

TEST(Usd, ParsesDecimalsAndRoundsHalfAwayFromZero)
{
    struct row {
        const char* text;
        std::int64_t nanos;
    };
    const row rows[] = {
        {"0", 0},
        {"-0", 0},
        {"0.05", 50'000'000},
        {"+1", 1'000'000'000},
        {"-1.5", -1'500'000'000},
        {"007", 7'000'000'000},
        {"0.0000000004", 0},
        {"0.0000000005", 1},
        {"-0.0000000005", -1},
        {"0.00000000049999999999999999999999", 0},
        {"0.9999999995", 1'000'000'000},
        {"1e-3", 1'000'000},
        {"1E2", 100'000'000'000},
        {"25e-1", 2'500'000'000},
        {"5e-10", 1},
        {"4e-10", 0},
        {"1e-999999999999", 0},
        {"0e999999999999", 0},
        {"0.00000000000000000000001e20", 1'000'000},
        {"9223372036.854775807", INT64_MAX},
        {"9223372036.8547758074", INT64_MAX},
        {"-9223372036.854775807", -INT64_MAX},
        {"9223372036.8547758075", bad},
        {"9223372036.854775808", bad},
        {"1e10", bad},
        {"1e999999999999", bad},
        {"", bad},
        {"-", bad},
        {".5", bad},
        {"1.", bad},
        {"1e", bad},
        {"1e+", bad},
        {"1,5", bad},
        {" 1", bad},
        {"1 ", bad},
        {"0x1", bad},
        {"NaN", bad},
        {"1.2.3", bad},
    };
    for (const row& r : rows) {
        const boost::system::result<usd> parsed = usd::parse(r.text);
        if (r.nanos == bad) {
            ASSERT_FALSE(parsed.has_value()) << r.text;
            EXPECT_EQ(parsed.error(), errc::invalid_number);
        } else {
            ASSERT_TRUE(parsed.has_value()) << r.text;
            EXPECT_EQ(parsed->nanos(), r.nanos) << r.text;
        }
    }
}

TEST(Usd, ConstructorThrowsNamingTheText)
{
    EXPECT_EQ(usd("0.05").nanos(), 50'000'000);
    try {
        const usd never("lots");
        FAIL();
    } catch (const reagent::validation_error& e) {
        EXPECT_NE(e.message().find("lots"), std::string::npos);
    }
}

TEST(Usd, PrintsPlainDecimalsThatReadBack)
{
    for (const char* text : {"0", "0.05", "-1.5", "1", "0.000000001", "-0.000000001", "9223372036.854775807", "12.34"}) EXPECT_EQ(usd(text).to_string(), text);
    EXPECT_EQ(usd::from_nanos(INT64_MIN).to_string(), "-9223372036.854775808");
}

TEST(Usd, FromDoubleRoundsAndSaturates)
{
    EXPECT_EQ(usd::from_double(0.05).nanos(), 50'000'000);
    EXPECT_EQ(usd::from_double(0.1 + 0.2).nanos(), 300'000'000);
    EXPECT_EQ(usd::from_double(5e-10).nanos(), 1);
    EXPECT_EQ(usd::from_double(-5e-10).nanos(), -1);
    EXPECT_EQ(usd::from_double(std::nan("")).nanos(), 0);
    EXPECT_EQ(usd::from_double(std::numeric_limits<double>::infinity()), usd::max());
    EXPECT_EQ(usd::from_double(-std::numeric_limits<double>::infinity()).nanos(), INT64_MIN);
    EXPECT_EQ(usd::from_double(1e300), usd::max());
}

TEST(Usd, SumsSaturateInsteadOfWrapping)
{
    const usd least = usd::from_nanos(INT64_MIN), one = usd::from_nanos(1);
    EXPECT_EQ(usd::max() + one, usd::max());
    EXPECT_EQ(least - one, least);
    EXPECT_EQ(least + usd::from_nanos(-1), least);
    EXPECT_EQ(usd::max() - usd::from_nanos(-1), usd::max());
    EXPECT_EQ(usd("1.5") + usd("0.25") - usd("2"), usd("-0.25"));
    usd sum("1");
    sum += usd("2");
    sum -= usd("0.5");
    EXPECT_EQ(sum, usd("2.5"));
    EXPECT_LT(usd("0.1"), usd("0.2"));
}

}  // namespace usd_test
}  // namespace

#include <reagent/base/untrusted_text.hpp>
#include <reagent/base/utf8.hpp>

#include <gtest/gtest.h>

namespace {
namespace utf8_test {
using namespace reagent;
using namespace std::string_literals;

const std::string R = "\xEF\xBF\xBD";

struct row {
    std::string bytes;
    std::string repaired;
};

// Unicode 15, table 3-8 and its neighbours: one U+FFFD per maximal subpart.
const std::vector<row> rows = {
    {"", ""},
    {"plain", "plain"},
    {"\xC3\xA9\xE2\x82\xAC\xF0\x9F\x98\x80", "\xC3\xA9\xE2\x82\xAC\xF0\x9F\x98\x80"},
    {"\xFF", R},
    {"a\xFFz", "a" + R + "z"},
    {"\x80\x80", R + R},
    {"\xC0\xAF", R + R},
    {"\xC1\x81", R + R},
    {"\xC2", R},
    {"\xC2"
     "A",
     R + "A"},
    {"\xE0\x80\xAF", R + R + R},
    {"\xE0\xA0", R},
    {"\xED\xA0\x80", R + R + R},
    {"\xED\x9F\xBF", "\xED\x9F\xBF"},
    {"\xEF\xBF\xBE", "\xEF\xBF\xBE"},
    {"\xF0\x80\x80\x80", R + R + R + R},
    {"\xF0\x90\x80", R},
    {"\xF0\x9F\x98", R},
    {"\xF0\x9F\x98x", R + "x"},
    {"\xF4\x8F\xBF\xBF", "\xF4\x8F\xBF\xBF"},
    {"\xF4\x90\x80\x80", R + R + R + R},
    {"\xF5\x80", R + R},
    {"\xF1\x80\xE1\x80\xC2", R + R + R},
    {"a\xF1\x80\x80\xE1\x80\xC2"
     "b\x80"
     "c\x80\xBF"
     "d",
     "a" + R + R + R + "b" + R + "c" + R + R + "d"},
};

TEST(Utf8, RepairsOnePerMaximalSubpart)
{
    for (const row& r : rows) {
        EXPECT_EQ(repair_utf8(r.bytes), r.repaired) << ::testing::PrintToString(r.bytes);
        EXPECT_EQ(is_utf8(r.bytes), r.bytes == r.repaired) << ::testing::PrintToString(r.bytes);
        EXPECT_TRUE(is_utf8(repair_utf8(r.bytes)));
    }
}

TEST(Utf8, LongTextIsJudgedAsShortText)
{
    // Past the size at which the vectorised check takes over, at every alignment.
    for (std::size_t lead = 120; lead < 140; ++lead) {
        for (const row& r : rows) {
            const std::string text = std::string(lead, 'x') + r.bytes + std::string(70, 'y');
            EXPECT_EQ(is_utf8(text), r.bytes == r.repaired);
            EXPECT_EQ(repair_utf8(text), std::string(lead, 'x') + r.repaired + std::string(70, 'y'));
        }
    }
}

TEST(Utf8, CountsAndCutsByScalarValue)
{
    const std::string text = "a\xC3\xA9\xE2\x82\xAC\xF0\x9F\x98\x80z";
    EXPECT_EQ(utf8_length(text), 5u);
    const std::size_t ends[] = {0, 1, 3, 6, 10, 11, 11};
    for (std::size_t n = 0; n < 7; ++n) EXPECT_EQ(utf8_prefix(text, n).size(), ends[n]) << n;
}

TEST(Utf8, IncompleteTailIsWhatMayStillBecomeACharacter)
{
    const std::string euro = "\xE2\x82\xAC", face = "\xF0\x9F\x98\x80";
    for (std::size_t cut = 0; cut < 3; ++cut) EXPECT_EQ(utf8_incomplete_tail("abc" + euro.substr(0, cut)), cut);
    for (std::size_t cut = 0; cut < 4; ++cut) EXPECT_EQ(utf8_incomplete_tail(face.substr(0, cut)), cut);
    EXPECT_EQ(utf8_incomplete_tail(euro), 0u);
    EXPECT_EQ(utf8_incomplete_tail(face), 0u);
    EXPECT_EQ(utf8_incomplete_tail("\xE0\x80"), 0u);  // overlong: it will never be one
    EXPECT_EQ(utf8_incomplete_tail("\x80\x80\x80\x80"), 0u);
    EXPECT_EQ(utf8_incomplete_tail("\xFF"), 0u);
}

TEST(Utf8, AppendsScalarsAndReplacesTheRest)
{
    const auto made = [](char32_t c) {
        std::string out;
        append_utf8(out, c);
        return out;
    };
    EXPECT_EQ(made(0), "\0"s);
    EXPECT_EQ(made(0x7F), "\x7F");
    EXPECT_EQ(made(0x80), "\xC2\x80");
    EXPECT_EQ(made(0x7FF), "\xDF\xBF");
    EXPECT_EQ(made(0x800), "\xE0\xA0\x80");
    EXPECT_EQ(made(0xFFFF), "\xEF\xBF\xBF");
    EXPECT_EQ(made(0x10000), "\xF0\x90\x80\x80");
    EXPECT_EQ(made(0x10FFFF), "\xF4\x8F\xBF\xBF");
    EXPECT_EQ(made(0xD800), R);
    EXPECT_EQ(made(0xDFFF), R);
    EXPECT_EQ(made(0x110000), R);
}

TEST(UntrustedText, DropsControlsRepairsAndCuts)
{
    EXPECT_EQ(untrusted_text("a\x01\x1B[31m\x7F\nb\xC2\x85"), "a[31m b");
    EXPECT_EQ(untrusted_text("\n one\r\n\ttwo \nthree\n"), " one two three");
    EXPECT_EQ(untrusted_text("ab\ncd", 3), "ab ");
    EXPECT_EQ(untrusted_text("x\xFFy"), "x" + R + "y");
    EXPECT_EQ(untrusted_text("\xE2\x82\xAC\xE2\x82\xAC\xE2\x82\xAC", 2), "\xE2\x82\xAC\xE2\x82\xAC");
    EXPECT_EQ(untrusted_text(std::string(1000, 'a')).size(), 300u);
    EXPECT_EQ(untrusted_text("abc", 0), "");
}

TEST(UntrustedText, APieceBorderSplitsNoCharacter)
{
    for (std::size_t lead = 4090; lead < 4100; ++lead) {
        const std::string text = std::string(lead, '\x01') + "\xF0\x9F\x98\x80";
        EXPECT_EQ(untrusted_text(text), "\xF0\x9F\x98\x80") << lead;
    }
}

}  // namespace utf8_test
}  // namespace

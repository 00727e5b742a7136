#include "calculator.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <random>
#include <string>

namespace reagent {
namespace {
namespace calculator_test {

using builtins_detail::calculate_expression;
using builtins_detail::calculator_error;

std::string answer(const std::string& expression)
{
    try {
        return calculate_expression(expression);
    } catch (const calculator_error& e) {
        return "!" + e.code;
    }
}
std::string complaint(const std::string& expression)
{
    try {
        return "no error: " + calculate_expression(expression);
    } catch (const calculator_error& e) {
        return e.message;
    }
}
std::string repeat(std::string_view part, std::size_t n)
{
    std::string text;
    for (std::size_t i = 0; i < n; ++i) text += part;
    return text;
}

TEST(Calculator, BindingAndSigns)
{
    EXPECT_EQ(answer("-2^2"), "-4");
    EXPECT_EQ(answer("2^-2^2"), "0.0625");
    EXPECT_EQ(answer("2 * -3 + 4"), "-2");
    EXPECT_EQ(answer("-7.5%2"), "-1.5");
    EXPECT_EQ(answer("7.5%-2"), "1.5");
    EXPECT_EQ(answer("100/10/5*2"), "4");
}

TEST(Calculator, ExactWhereDoublesAreNot)
{
    EXPECT_EQ(answer("1e400/1e399"), "10");
    EXPECT_EQ(answer("(1/3)^-3"), "27");
    EXPECT_EQ(answer("(-2/3)^-3"), "-3.375");
    EXPECT_EQ(answer("sqrt(4/9)*3"), "2");
    EXPECT_EQ(answer("log(0.001)"), "-3");
    EXPECT_EQ(answer("010 + 0.10"), "10.1") << "a leading zero is no octal";
}

TEST(Calculator, BeyondTheRangeOfADouble)
{
    EXPECT_EQ(answer("ln(1e400)"), "921.034037197618");
    EXPECT_EQ(answer("ln(1e-400)"), "-921.034037197618");
    EXPECT_EQ(answer("log(2e400)"), "400.301029995664");
    EXPECT_EQ(answer("sqrt(2e400)"), "!past_2_53");
    EXPECT_EQ(answer("sqrt(2)*1e400"), "!too_large");
    EXPECT_EQ(answer("1e-4000"), "1e-4000");
}

TEST(Calculator, DigitsNeverLoseTheFraction)
{
    EXPECT_EQ(answer("123456789012345.678"), "123456789012345.68");
    EXPECT_EQ(answer("9007199254740991.94"), "9007199254740991.9");
    EXPECT_EQ(answer("0.00000099999999999999999"), "9.9999999999999999e-7");
    EXPECT_EQ(answer("1/1000000"), "0.000001");
    EXPECT_EQ(answer("1/10000000"), "1e-7");
    EXPECT_EQ(answer("ceil(-0.5)"), "0");
}

TEST(Calculator, MessagesNameCharacterAndPosition)
{
    EXPECT_EQ(complaint("1 + $"), "unexpected $ at position 4");
    EXPECT_EQ(complaint("é"), "unexpected é at position 0");
    EXPECT_EQ(complaint("1\xC2\xA0+2"), "unexpected \xC2\xA0 at position 1");
    EXPECT_EQ(complaint("1+"), "the expression ends at position 2 where a value or ) is missing");
    EXPECT_EQ(complaint("2 + pi"), "unexpected p at position 4: the only names are sqrt, abs, round, floor, ceil, ln and log");
    EXPECT_EQ(complaint("1_000"), "unexpected _ at position 1: it is glued to a number");
    EXPECT_EQ(complaint(std::string("1+\0", 3)), std::string("unexpected \0 at position 2", 26));
}

TEST(Calculator, LengthCountsCharacters)
{
    EXPECT_EQ(answer(repeat("-", 4095) + "1"), "-1");
    EXPECT_EQ(answer(repeat("-", 4096) + "1"), "!too_long");
    EXPECT_EQ(answer(repeat("é", 4096)), "!syntax");
    EXPECT_EQ(answer(repeat("é", 4097)), "!too_long");
}

TEST(Calculator, LevelsCountBracketsCallsAndRightSidesOfPowers)
{
    EXPECT_EQ(answer(repeat("(", 199) + "1" + repeat(")", 199)), "1");
    EXPECT_EQ(answer(repeat("(", 200) + "1" + repeat(")", 200)), "!too_deep");
    EXPECT_EQ(answer(repeat("abs(", 199) + "1" + repeat(")", 199)), "1");
    EXPECT_EQ(answer(repeat("abs(", 200) + "1" + repeat(")", 200)), "!too_deep");
    EXPECT_EQ(answer(repeat("1^", 199) + "1"), "1");
    EXPECT_EQ(answer(repeat("1^", 200) + "1"), "!too_deep");
    EXPECT_EQ(answer(repeat("1^(", 99) + "1^1" + repeat(")", 99)), "1");
    EXPECT_EQ(answer(repeat("(1)+", 300) + "1"), "301") << "closed levels do not count";
}

TEST(Calculator, SizeIsBounded)
{
    EXPECT_EQ(answer("(2^4096)^15/(2^4096)^15"), "1");
    EXPECT_EQ(answer("(2^4096)^16"), "!too_large") << "65537 bits";
    EXPECT_EQ(answer("(2^-4096)^17"), "!too_large");
    EXPECT_EQ(answer("(sqrt(2)/sqrt(2))^99999999"), "1") << "a double of one";
    EXPECT_EQ(answer("sqrt(2)^4097"), "!too_large");
    EXPECT_EQ(answer("1e99999999999999999999"), "!too_large");
}

TEST(Calculator, RandomExpressionsAgreeWithDoubles)
{
    std::mt19937 random(17);
    for (int n = 0; n < 500; ++n) {
        const int a = static_cast<int>(random() % 2000) - 1000, b = static_cast<int>(random() % 999) + 1, c = static_cast<int>(random() % 99) + 1;
        const std::string expression =
            "(" + std::to_string(a) + "/" + std::to_string(b) + "-" + std::to_string(c) + ".5)*" + std::to_string(b) + "%" + std::to_string(c);
        const double exact = std::fmod((static_cast<double>(a) / b - (c + 0.5)) * b, c);
        const double told = std::stod(answer(expression));
        const double apart = std::fabs(told - exact);
        // A remainder may land on the other side of zero when doubles round.
        EXPECT_TRUE(apart < 1e-7 || std::fabs(apart - c) < 1e-7) << expression << " " << told << " " << exact;
    }
}

TEST(Calculator, AnyBytesGiveAnAnswerOrAnError)
{
    std::mt19937 random(5);
    const std::string alphabet = "0123456789.eE+-*/%^() \tsqrtabslnogfceiud\xC3\xA9\xFF$";
    for (int n = 0; n < 20000; ++n) {
        std::string text;
        for (std::size_t i = 0, length = random() % 24; i < length; ++i) text.push_back(alphabet[random() % alphabet.size()]);
        const std::string told = answer(text);
        EXPECT_FALSE(told.empty());
    }
}

}  // namespace calculator_test
}  // namespace
}  // namespace reagent

#include "calculator.hpp"

#include <gtest/gtest.h>

namespace reagent {
namespace {
namespace calculator_value_test {

using namespace builtins_detail;

fraction half()
{
    return fraction(1, 2);
}
std::string code_of_refusal(auto&& operation)
{
    try {
        operation();
        return "none";
    } catch (const calculator_error& e) {
        return e.code;
    }
}

TEST(CalculatorValue, FractionsAreReduced)
{
    const fraction f(big_int(-6), big_int(8));
    EXPECT_EQ(f.top, -3);
    EXPECT_EQ(f.bottom, 4);
    EXPECT_TRUE(fraction(big_int(8), big_int(4)).whole());
    EXPECT_EQ(std::get<fraction>(subtract(half(), half())).bottom, 1) << "zero is 0/1";
    const auto negative = std::get<fraction>(divide(half(), fraction(big_int(-2))));
    EXPECT_EQ(negative.top, -1);
    EXPECT_EQ(negative.bottom, 4) << "the sign is on top";
}

TEST(CalculatorValue, MixingWithADoubleGivesADouble)
{
    EXPECT_TRUE(std::holds_alternative<double>(add(half(), calculator_value(0.5))));
    EXPECT_TRUE(std::holds_alternative<double>(square_root(fraction(2))));
    EXPECT_TRUE(std::holds_alternative<fraction>(square_root(fraction(big_int(9), big_int(16)))));
    EXPECT_TRUE(std::holds_alternative<double>(power(fraction(4), half())));
    EXPECT_TRUE(std::holds_alternative<fraction>(round_away(half())));
}

TEST(CalculatorValue, LiteralsAreExact)
{
    const auto tenth = std::get<fraction>(literal_value("0.10e0"));
    EXPECT_EQ(tenth.top, 1);
    EXPECT_EQ(tenth.bottom, 10);
    EXPECT_EQ(std::get<fraction>(literal_value("00.e5")).top, 0);
    EXPECT_EQ(std::get<fraction>(literal_value(".25E+2")).top, 25);
    EXPECT_EQ(code_of_refusal([] { literal_value("1e4097"); }), "too_large");
    EXPECT_EQ(code_of_refusal([] { literal_value("0e-4097"); }), "too_large");
}

TEST(CalculatorValue, Refusals)
{
    EXPECT_EQ(code_of_refusal([] { divide(half(), calculator_value(0.0)); }), "div_zero");
    EXPECT_EQ(code_of_refusal([] { remainder(half(), fraction(0)); }), "div_zero");
    EXPECT_EQ(code_of_refusal([] { power(fraction(0), fraction(-1)); }), "div_zero");
    EXPECT_EQ(code_of_refusal([] { power(fraction(-8), fraction(1, 3)); }), "domain");
    EXPECT_EQ(code_of_refusal([] { natural_log(calculator_value(0.0)); }), "domain");
    EXPECT_EQ(code_of_refusal([] { square_root(calculator_value(-1.0)); }), "domain");
    EXPECT_EQ(code_of_refusal([] { multiply(calculator_value(1e300), calculator_value(1e300)); }), "too_large");
}

TEST(CalculatorValue, RoundingOfNegatives)
{
    EXPECT_EQ(std::get<fraction>(round_down(fraction(-1, 3))).top, -1);
    EXPECT_EQ(std::get<fraction>(round_up(fraction(-1, 3))).top, 0);
    EXPECT_EQ(std::get<fraction>(round_away(fraction(-5, 2))).top, -3);
    EXPECT_EQ(std::get<double>(round_away(calculator_value(-2.5))), -3.0);
}

TEST(CalculatorValue, DoublesAtTheLimitAreRefusedAndExactOnesAreNot)
{
    const double limit = 9007199254740992.0;
    EXPECT_EQ(code_of_refusal([&] { format_value(calculator_value(limit)); }), "past_2_53");
    EXPECT_EQ(format_value(calculator_value(limit - 1)), "9007199254740991");
    EXPECT_EQ(format_value(fraction(big_int(1) << 53U)), "9007199254740992");
    EXPECT_EQ(code_of_refusal([&] { format_value(fraction((big_int(1) << 53U) + 1)); }), "past_2_53");
    EXPECT_EQ(format_value(calculator_value(-0.0)), "0");
}

}  // namespace calculator_value_test
}  // namespace
}  // namespace reagent

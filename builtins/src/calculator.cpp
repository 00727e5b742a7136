#include "calculator.hpp"

#include <cmath>

namespace reagent::inline v0::builtins_detail {
namespace {

namespace mp = boost::multiprecision;

const big_int& limit()
{
    static const big_int two_53 = big_int(1) << 53U;
    return two_53;
}

fraction exact_double(double d)
{
    int exponent = 0;
    const double m = std::frexp(d, &exponent);
    const auto whole = static_cast<std::int64_t>(std::ldexp(m, 53));
    exponent -= 53;
    if (exponent >= 0) return fraction(big_int(whole) << static_cast<unsigned>(exponent));
    return fraction(big_int(whole), big_int(1) << static_cast<unsigned>(-exponent));
}

/// `digits` (no sign, no leading zero) times ten to `exponent`, as text.
std::string place_point(std::string digits, long exponent, bool negative)
{
    while (digits.size() > 1 && digits.back() == '0') {
        digits.pop_back();
        ++exponent;
    }
    const long leading = static_cast<long>(digits.size()) - 1 + exponent;  // power of ten of the first digit
    std::string text;
    if (negative) text.push_back('-');
    if (leading < -6 || leading >= 21) {
        text.push_back(digits[0]);
        if (digits.size() > 1) text.append(".").append(digits, 1);
        text.append("e").append(leading < 0 ? "-" : "+").append(std::to_string(leading < 0 ? -leading : leading));
    } else if (leading < 0) {
        text.append("0.").append(static_cast<std::size_t>(-leading - 1), '0').append(digits);
    } else if (exponent >= 0) {
        text.append(digits).append(static_cast<std::size_t>(exponent), '0');
    } else {
        const auto before = static_cast<std::size_t>(leading + 1);
        text.append(digits, 0, before).append(".").append(digits, before);
    }
    return text;
}

/// Whether the decimal expansion ends within `most` significant digits; then those digits and the power of ten they stand at.
bool ends_within(const fraction& f, std::size_t most, std::string& digits, long& exponent)
{
    big_int rest = f.bottom;
    const auto twos = static_cast<unsigned>(mp::lsb(rest));
    rest >>= twos;
    unsigned fives = 0;
    while (rest % 5 == 0) {
        rest /= 5;
        ++fives;
    }
    if (rest != 1) return false;
    const unsigned scale = std::max(twos, fives);
    const big_int shifted = mp::abs(f.top) * power_of_ten(scale) / f.bottom;
    if (shifted >= power_of_ten(static_cast<unsigned>(most))) return false;
    digits = shifted.str();
    exponent = -static_cast<long>(scale);
    return true;
}

/// `significant` digits of |f|, half even.
void round_digits(const fraction& f, unsigned significant, std::string& digits, long& exponent)
{
    const big_int magnitude = mp::abs(f.top);
    // The power of ten of the leading digit, first guessed from the bit lengths.
    long leading = static_cast<long>(std::floor((static_cast<double>(mp::msb(magnitude)) - static_cast<double>(mp::msb(f.bottom))) * 0.30102999566398119521));
    big_int quotient, rest, bottom;
    for (;;) {
        exponent = leading - static_cast<long>(significant) + 1;
        big_int top = magnitude;
        bottom = f.bottom;
        if (exponent < 0) top *= power_of_ten(static_cast<unsigned>(-exponent));
        else bottom *= power_of_ten(static_cast<unsigned>(exponent));
        mp::divide_qr(top, bottom, quotient, rest);
        if (quotient >= power_of_ten(significant)) ++leading;
        else if (quotient < power_of_ten(significant - 1)) --leading;
        else break;
    }
    const big_int twice = rest * 2;
    if (twice > bottom || (twice == bottom && (quotient & 1) != 0)) ++quotient;
    digits = quotient.str();
}

}  // namespace

std::string format_value(const calculator_value& value)
{
    const bool computed = std::holds_alternative<double>(value);
    const fraction f = computed ? exact_double(std::get<double>(value)) : std::get<fraction>(value);
    const big_int magnitude = mp::abs(f.top);
    // A double at 2^53 may stand for any of its neighbours; an exact 2^53 is itself.
    if (magnitude > limit() * f.bottom || (computed && magnitude >= limit() * f.bottom))
        throw calculator_error("past_2_53", "the result is beyond 2^53 = 9007199254740992, where digits would be lost");
    if (f.whole()) return f.top.str();
    std::string digits;
    long exponent = 0;
    if (computed || !ends_within(f, 17, digits, exponent)) round_digits(f, magnitude < power_of_ten(14) * f.bottom ? 15 : 17, digits, exponent);
    return place_point(std::move(digits), exponent, f.top < 0);
}

calculator_value evaluate_steps(const std::vector<calculator_step>& steps)
{
    std::vector<calculator_value> stack;
    for (const calculator_step& step : steps) {
        if (step.op == calculator_op::literal) {
            stack.push_back(literal_value(step.digits));
            continue;
        }
        const calculator_value last = std::move(stack.back());
        stack.pop_back();
        const auto first = [&stack] {
            calculator_value v = std::move(stack.back());
            stack.pop_back();
            return v;
        };
        switch (step.op) {
        case calculator_op::add: stack.push_back(add(first(), last)); break;
        case calculator_op::subtract: stack.push_back(subtract(first(), last)); break;
        case calculator_op::multiply: stack.push_back(multiply(first(), last)); break;
        case calculator_op::divide: stack.push_back(divide(first(), last)); break;
        case calculator_op::remainder: stack.push_back(remainder(first(), last)); break;
        case calculator_op::power: stack.push_back(power(first(), last)); break;
        case calculator_op::negate: stack.push_back(negate(last)); break;
        case calculator_op::sqrt: stack.push_back(square_root(last)); break;
        case calculator_op::abs: stack.push_back(absolute(last)); break;
        case calculator_op::round: stack.push_back(round_away(last)); break;
        case calculator_op::floor: stack.push_back(round_down(last)); break;
        case calculator_op::ceil: stack.push_back(round_up(last)); break;
        case calculator_op::ln: stack.push_back(natural_log(last)); break;
        case calculator_op::log: stack.push_back(decimal_log(last)); break;
        case calculator_op::literal: break;
        }
    }
    return std::move(stack.back());
}

std::string calculate_expression(std::string_view expression)
{
    return format_value(evaluate_steps(parse_expression(expression)));
}

}  // namespace reagent::inline v0::builtins_detail

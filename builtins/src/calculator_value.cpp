#include "calculator_value.hpp"

#include "calculator.hpp"

#include <cmath>
#include <cstdint>
#include <optional>
#include <string>

namespace reagent::inline v0::builtins_detail {
namespace {

namespace mp = boost::multiprecision;

[[noreturn]] void refuse(const char* code, const char* message)
{
    throw calculator_error(code, message);
}

unsigned bits(const big_int& n)
{
    if (n == 0) return 0;
    const big_int magnitude = mp::abs(n);
    return static_cast<unsigned>(mp::msb(magnitude)) + 1;
}

calculator_value checked(fraction f)
{
    if (bits(f.top) > max_value_bits || bits(f.bottom) > max_value_bits) refuse("too_large", "a value needs more than 65536 bits");
    return f;
}
calculator_value checked(double d)
{
    if (std::isnan(d)) refuse("domain", "the operation has no real result");
    if (std::isinf(d)) refuse("too_large", "a value is larger than a double holds");
    return d;
}

/// `mantissa * 2^exponent`, correctly rounded to 53 bits, for values far beyond a double's range too.
class scaled {
public:
    double mantissa = 0;
    long exponent = 0;
};
scaled scale(const fraction& f)
{
    scaled s;
    if (f.top == 0) return s;
    const big_int magnitude = mp::abs(f.top);
    const long shift = 58L - (static_cast<long>(bits(magnitude)) - static_cast<long>(bits(f.bottom)));
    big_int top = magnitude, bottom = f.bottom;
    if (shift >= 0) top <<= static_cast<unsigned>(shift);
    else bottom <<= static_cast<unsigned>(-shift);
    big_int quotient, rest;
    mp::divide_qr(top, bottom, quotient, rest);
    auto q = static_cast<std::uint64_t>(quotient);
    if (rest != 0) q |= 1U;  // below the rounding bit: makes ties exact
    s.mantissa = static_cast<double>(q);
    if (f.top < 0) s.mantissa = -s.mantissa;
    s.exponent = -shift;
    return s;
}
double to_double(const calculator_value& v)
{
    if (const double* d = std::get_if<double>(&v)) return *d;
    const scaled s = scale(std::get<fraction>(v));
    const double d = std::ldexp(s.mantissa, static_cast<int>(s.exponent));
    if (std::isinf(d)) refuse("too_large", "a value is larger than a double holds");
    return d;
}

const fraction* exact(const calculator_value& v)
{
    return std::get_if<fraction>(&v);
}
bool is_zero(const calculator_value& v)
{
    const fraction* f = exact(v);
    return f ? f->top == 0 : std::get<double>(v) == 0;
}
bool is_negative(const calculator_value& v)
{
    const fraction* f = exact(v);
    return f ? f->top < 0 : std::get<double>(v) < 0;
}

fraction sum(const fraction& a, const fraction& b, int sign)
{
    if (a.whole() && b.whole()) return fraction(sign > 0 ? big_int(a.top + b.top) : big_int(a.top - b.top));
    const big_int left = a.top * b.bottom, right = b.top * a.bottom;
    return fraction(sign > 0 ? big_int(left + right) : big_int(left - right), a.bottom * b.bottom);
}

fraction quotient(const fraction& a, const fraction& b)
{
    big_int top = a.top * b.bottom, bottom = a.bottom * b.top;
    if (bottom < 0) {
        top = -top;
        bottom = -bottom;
    }
    return fraction(std::move(top), std::move(bottom));
}

big_int floor_of(const fraction& f)
{
    if (f.whole()) return f.top;
    big_int q = f.top / f.bottom;  // truncates toward zero
    if (f.top < 0) --q;
    return q;
}

/// `base` to a whole `exponent` that is known to be in range.
fraction whole_power(const fraction& base, int exponent)
{
    const auto n = static_cast<unsigned>(exponent < 0 ? -exponent : exponent);
    // The result has at least (bits - 1) * n bits: refused before the work is done.
    if (static_cast<std::uint64_t>(bits(base.top) - 1) * n > max_value_bits || static_cast<std::uint64_t>(bits(base.bottom) - 1) * n > max_value_bits)
        refuse("too_large", "a power needs more than 65536 bits");
    big_int top = mp::pow(base.top, n), bottom = mp::pow(base.bottom, n);
    fraction f;
    if (exponent >= 0) {
        f.top = std::move(top);
        f.bottom = std::move(bottom);
    } else {
        f.top = std::move(bottom);
        f.bottom = std::move(top);
        if (f.bottom < 0) {
            f.top = -f.top;
            f.bottom = -f.bottom;
        }
    }
    return f;
}

std::optional<big_int> perfect_root(const big_int& n)
{
    big_int rest;
    big_int root = mp::sqrt(n, rest);
    if (rest != 0) return std::nullopt;
    return root;
}

/// The exponent when `n` is an exact power of ten.
std::optional<unsigned> ten_exponent(const big_int& n)
{
    const unsigned trailing = n > 0 ? static_cast<unsigned>(mp::lsb(n)) : 0;
    if (n <= 0 || power_of_ten(trailing) != n) return std::nullopt;  // 10^k has exactly k factors of two
    return trailing;
}

}  // namespace

fraction::fraction(big_int t, big_int b) : top(std::move(t)), bottom(std::move(b))
{
    if (bottom == 1) return;
    const big_int common = mp::gcd(top, bottom);
    if (common != 1) {
        top /= common;
        bottom /= common;
    }
}

big_int power_of_ten(unsigned exponent)
{
    return mp::pow(big_int(10), exponent);
}

calculator_value literal_value(std::string_view digits)
{
    std::string mantissa;
    long point = 0;  // digits behind the dot
    bool behind = false;
    std::size_t i = 0;
    for (; i < digits.size() && digits[i] != 'e' && digits[i] != 'E'; ++i) {
        if (digits[i] == '.') {
            behind = true;
            continue;
        }
        // A leading zero would read as octal.
        if (!(mantissa.empty() && digits[i] == '0')) mantissa.push_back(digits[i]);
        if (behind) ++point;
    }
    long exponent = 0;
    if (i < digits.size()) {
        ++i;
        const bool negative = digits[i] == '-';
        if (digits[i] == '-' || digits[i] == '+') ++i;
        for (; i < digits.size(); ++i) exponent = std::min(exponent * 10 + (digits[i] - '0'), 1'000'000L);
        if (exponent > max_exponent) refuse("too_large", "the exponent of a number is beyond 4096");
        if (negative) exponent = -exponent;
    }
    big_int whole = mantissa.empty() ? big_int(0) : big_int(mantissa);
    const long shift = exponent - point;
    if (shift >= 0) return checked(fraction(whole * power_of_ten(static_cast<unsigned>(shift))));
    return checked(fraction(std::move(whole), power_of_ten(static_cast<unsigned>(-shift))));
}

calculator_value add(const calculator_value& a, const calculator_value& b)
{
    if (exact(a) && exact(b)) return checked(sum(*exact(a), *exact(b), 1));
    return checked(to_double(a) + to_double(b));
}
calculator_value subtract(const calculator_value& a, const calculator_value& b)
{
    if (exact(a) && exact(b)) return checked(sum(*exact(a), *exact(b), -1));
    return checked(to_double(a) - to_double(b));
}
calculator_value multiply(const calculator_value& a, const calculator_value& b)
{
    if (exact(a) && exact(b)) return checked(fraction(exact(a)->top * exact(b)->top, exact(a)->bottom * exact(b)->bottom));
    return checked(to_double(a) * to_double(b));
}
calculator_value divide(const calculator_value& a, const calculator_value& b)
{
    if (is_zero(b)) refuse("div_zero", "division by zero");
    if (exact(a) && exact(b)) return checked(quotient(*exact(a), *exact(b)));
    const double divisor = to_double(b);
    if (divisor == 0) refuse("div_zero", "division by a number too close to zero");
    return checked(to_double(a) / divisor);
}
calculator_value remainder(const calculator_value& a, const calculator_value& b)
{
    if (is_zero(b)) refuse("div_zero", "remainder of a division by zero");
    if (exact(a) && exact(b)) {
        const fraction ratio = quotient(*exact(a), *exact(b));
        const fraction part(ratio.top / ratio.bottom);
        return checked(sum(*exact(a), fraction(exact(b)->top * part.top, exact(b)->bottom), -1));
    }
    const double divisor = to_double(b);
    if (divisor == 0) refuse("div_zero", "remainder of a division by a number too close to zero");
    return checked(std::fmod(to_double(a), divisor));
}

calculator_value power(const calculator_value& base, const calculator_value& exponent)
{
    if (is_zero(exponent)) return fraction(1);
    if (is_zero(base)) {
        if (is_negative(exponent)) refuse("div_zero", "zero to a negative power");
        return fraction(0);
    }
    const fraction* e = exact(exponent);
    const fraction* b = exact(base);
    if (e && e->whole()) {
        const bool odd = (e->top & 1) != 0;  // a negative cpp_int answers its magnitude's bits here
        if (b && b->whole() && (b->top == 1 || b->top == -1)) return fraction(b->top == -1 && odd ? -1 : 1);
        if (const double* d = std::get_if<double>(&base); d && (*d == 1 || *d == -1)) return *d == -1 && odd ? -1.0 : 1.0;
        if (e->top > max_exponent || e->top < -max_exponent) refuse("too_large", "an exponent is beyond 4096");
        const int n = static_cast<int>(e->top);
        if (b) return checked(whole_power(*b, n));
        return checked(std::pow(to_double(base), n));
    }
    const double x = to_double(exponent);
    if (is_negative(base) && std::trunc(x) != x) refuse("domain", "a negative number to a fractional power");
    return checked(std::pow(to_double(base), x));
}

calculator_value negate(const calculator_value& a)
{
    if (const fraction* f = exact(a)) {
        fraction r = *f;
        r.top = -r.top;
        return r;
    }
    return -std::get<double>(a);
}
calculator_value absolute(const calculator_value& a)
{
    return is_negative(a) ? negate(a) : a;
}

calculator_value square_root(const calculator_value& a)
{
    if (is_negative(a)) refuse("domain", "the square root of a negative number");
    const fraction* f = exact(a);
    if (!f) return checked(std::sqrt(std::get<double>(a)));
    const std::optional<big_int> top = perfect_root(f->top);
    if (top) {
        const std::optional<big_int> bottom = perfect_root(f->bottom);
        if (bottom) {
            fraction root;
            root.top = *top;
            root.bottom = *bottom;
            return root;
        }
    }
    scaled s = scale(*f);
    if (s.exponent % 2 != 0) {
        s.mantissa *= 2;
        --s.exponent;
    }
    return checked(std::ldexp(std::sqrt(s.mantissa), static_cast<int>(s.exponent / 2)));
}

calculator_value round_down(const calculator_value& a)
{
    if (const fraction* f = exact(a)) return fraction(floor_of(*f));
    return std::floor(std::get<double>(a));
}
calculator_value round_up(const calculator_value& a)
{
    return negate(round_down(negate(a)));
}
calculator_value round_away(const calculator_value& a)
{
    if (!exact(a)) return std::round(std::get<double>(a));
    if (is_negative(a)) return negate(round_away(negate(a)));
    return fraction(floor_of(sum(*exact(a), fraction(1, 2), 1)));
}

calculator_value natural_log(const calculator_value& a)
{
    if (is_zero(a) || is_negative(a)) refuse("domain", "the logarithm of a number that is not positive");
    const fraction* f = exact(a);
    if (!f) return checked(std::log(std::get<double>(a)));
    if (f->top == 1 && f->whole()) return fraction(0);
    const double d = std::ldexp(scale(*f).mantissa, static_cast<int>(scale(*f).exponent));
    if (std::isnormal(d)) return checked(std::log(d));
    const scaled s = scale(*f);
    return checked(std::log(s.mantissa) + static_cast<double>(s.exponent) * 0.69314718055994530942);
}
calculator_value decimal_log(const calculator_value& a)
{
    if (is_zero(a) || is_negative(a)) refuse("domain", "the logarithm of a number that is not positive");
    const fraction* f = exact(a);
    if (!f) return checked(std::log10(std::get<double>(a)));
    if (f->whole()) {
        if (const auto n = ten_exponent(f->top)) return fraction(*n);
    } else if (f->top == 1) {
        if (const auto n = ten_exponent(f->bottom)) return fraction(-big_int(*n));
    }
    const scaled s = scale(*f);
    const double d = std::ldexp(s.mantissa, static_cast<int>(s.exponent));
    if (std::isnormal(d)) return checked(std::log10(d));
    return checked(std::log10(s.mantissa) + static_cast<double>(s.exponent) * 0.30102999566398119521);
}

}  // namespace reagent::inline v0::builtins_detail

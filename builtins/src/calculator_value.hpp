#pragma once
#include <boost/multiprecision/cpp_int.hpp>

#include <string_view>
#include <variant>

namespace reagent::inline v0::builtins_detail {

using big_int = boost::multiprecision::cpp_int;

/// An exact fraction in lowest terms, denominator positive. Kept by hand rather than as `cpp_rational`: whole numbers, the common case,
/// then never pay for a greatest common divisor.
class fraction {
public:
    fraction() = default;
    explicit fraction(big_int whole) : top(std::move(whole)) {}
    fraction(big_int t, big_int b);  ///< reduces; `b` must not be zero
    bool whole() const { return bottom == 1; }
    big_int top = 0, bottom = 1;
};

/// Exact as long as the operations allow it, else a double; mixing gives a double.
using calculator_value = std::variant<fraction, double>;

inline constexpr unsigned max_value_bits = 65536;
inline constexpr int max_exponent = 4096;

/// All throw `calculator_error` where the answer is refused (spec/tools.md §5.1).
calculator_value literal_value(std::string_view digits);
calculator_value add(const calculator_value& a, const calculator_value& b);
calculator_value subtract(const calculator_value& a, const calculator_value& b);
calculator_value multiply(const calculator_value& a, const calculator_value& b);
calculator_value divide(const calculator_value& a, const calculator_value& b);
calculator_value remainder(const calculator_value& a, const calculator_value& b);
calculator_value power(const calculator_value& base, const calculator_value& exponent);
calculator_value negate(const calculator_value& a);
calculator_value square_root(const calculator_value& a);
calculator_value absolute(const calculator_value& a);
calculator_value round_away(const calculator_value& a);
calculator_value round_down(const calculator_value& a);
calculator_value round_up(const calculator_value& a);
calculator_value natural_log(const calculator_value& a);
calculator_value decimal_log(const calculator_value& a);

/// 10 to a power of at least zero.
big_int power_of_ten(unsigned exponent);

}  // namespace reagent::inline v0::builtins_detail

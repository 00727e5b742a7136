#pragma once
#include "calculator_value.hpp"

#include <string>
#include <string_view>
#include <vector>

namespace reagent::inline v0::builtins_detail {

/// Why an expression has no answer: `code` is one of `empty`, `too_long`, `too_deep`, `syntax`, `div_zero`, `domain`, `past_2_53`, `too_large`.
class calculator_error {
public:
    calculator_error(std::string c, std::string m) : code(std::move(c)), message(std::move(m)) {}
    std::string code, message;
};

enum class calculator_op : std::uint8_t { literal, add, subtract, multiply, divide, remainder, power, negate, sqrt, abs, round, floor, ceil, ln, log };

/// One step of a parsed expression: push a number, or apply an operation to the top of the stack.
class calculator_step {
public:
    calculator_op op = calculator_op::literal;
    std::string_view digits;  ///< literal only: its text, a view of the expression
};

inline constexpr std::size_t max_expression_characters = 4096;
inline constexpr std::size_t max_expression_levels = 199;

/// Parses by the grammar of spec/tools.md §5.1 into postfix order, so that evaluation needs no recursion. The steps view `expression`.
/// Throws `calculator_error`.
std::vector<calculator_step> parse_expression(std::string_view expression);
/// Throws `calculator_error`.
calculator_value evaluate_steps(const std::vector<calculator_step>& steps);
/// Digits by the output rule of spec/tools.md §5.1. Throws `calculator_error` for what cannot be shown exactly enough.
std::string format_value(const calculator_value& value);

/// Parse, evaluate, format. Throws `calculator_error`.
std::string calculate_expression(std::string_view expression);

}  // namespace reagent::inline v0::builtins_detail

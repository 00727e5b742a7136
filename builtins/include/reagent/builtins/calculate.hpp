#pragma once
#include <reagent/agent/tool.hpp>
#include <reagent/builtins/builtin_options.hpp>

namespace reagent::inline v0 {

/// `calculate(expression)`: exact arithmetic on fractions of any size, no evaluation by a host. Answers the digits as text.
/// Failures carry `empty`, `too_long`, `too_deep`, `syntax`, `div_zero`, `domain`, `past_2_53` or `too_large`. Source: spec/tools.md §5.1.
tool calculate(builtin_options options = {});

}  // namespace reagent::inline v0

#pragma once
#include <reagent/base/json.hpp>
#include <reagent/builtins/builtin_registry.hpp>

namespace reagent::inline v0 {

/// One line of `reagent tools invoke --batch`: `{"tool", "options"?, "args", "now"?, "tz"?}` makes the tool anew, runs it on a context of its own with
/// a clock that stands at `now` (ISO 8601, UTC; else the system's), and answers the result's members plus `value`.
/// An unknown name is a failed result with the code `unknown_tool`. A refusal of the factory: `{"error":{"kind":"tool","code","message"}}`; a line that is no such object: `{"error":{"kind":"usage","message"}}`. Never throws.
json invoke_case(const json& in, const builtin_registry& registry);
/// The same with the standard registry.
json invoke_case(const json& in);

}  // namespace reagent::inline v0

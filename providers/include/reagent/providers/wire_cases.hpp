#pragma once
#include <reagent/base/json.hpp>

namespace reagent::inline v0 {

/// Answers one line of `reagent provider decode --batch`: the response an `in` object writes out, read by the objects of the live path.
/// `{"id"?, "result"}` or `{"id"?, "error"}`; a line that cannot be read gives an error of kind `usage`. Never throws but for memory.
json decode_case(const json& in);

/// Answers one line of `reagent provider encode --batch`: the first request that options, messages, tools and call options lead to, as `{"id"?, "method", "url",
/// "headers", "body"}`, or `{"id"?, "error"}`. Never throws but for memory.
json encode_case(const json& in);

}  // namespace reagent::inline v0

#pragma once
#include <string_view>

namespace reagent::inline v0::governance_detail {

/// `*` is any run of characters, `/` and line breaks included; all else literal; anchored; case-sensitive. Linear in practice, never
/// exponential. spec/governance.md §4.1.
bool glob_matches(std::string_view pattern, std::string_view text) noexcept;

}  // namespace reagent::inline v0::governance_detail

#pragma once
#include <cstddef>
#include <string>
#include <string_view>

namespace reagent::inline v0::base_detail {

/// Reads the inside of a JSON string that starts at `at` (after its opening quote) and leaves `at` behind the closing quote. On failure
/// returns false with `at` on the byte that cannot stand there. Ill-formed UTF-8 and lone surrogate escapes become U+FFFD.
bool read_json_string(std::string_view text, std::size_t& at, std::string& out);

}  // namespace reagent::inline v0::base_detail

#pragma once
#include <cstddef>
#include <string>
#include <string_view>

namespace reagent::inline v0 {

/// Text of a peer on its way into a message of ours: control characters dropped, ill-formed UTF-8 repaired, cut to `max` characters.
std::string untrusted_text(std::string_view foreign, std::size_t max = 300);

}  // namespace reagent::inline v0

#pragma once
#include <cstddef>
#include <string>
#include <string_view>

namespace reagent::inline v0 {

/// Text of a peer on its way into a message of ours: line breaks and tabs as one space, other control characters dropped, ill-formed UTF-8 repaired, cut to `max` characters.
std::string untrusted_text(std::string_view foreign, std::size_t max = 300);
/// `foreign` with every appearance of `secret` as `***`; before any cut, which would leave a part of it. Secrets of fewer than eight characters are stand-ins
/// and common words: they stay.
std::string hide_secret(std::string_view foreign, std::string_view secret);

}  // namespace reagent::inline v0

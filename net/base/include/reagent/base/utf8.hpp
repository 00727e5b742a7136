#pragma once
#include <cstddef>
#include <string>
#include <string_view>

namespace reagent::inline v0 {

/// Whether the bytes are well-formed UTF-8 (Unicode table 3-7; surrogates and overlong forms are not).
bool is_utf8(std::string_view bytes) noexcept;
/// Ill-formed bytes become U+FFFD, one per maximal subpart (WHATWG Encoding).
std::string repair_utf8(std::string_view bytes);
void repair_utf8_to(std::string& out, std::string_view bytes);
/// Number of Unicode scalar values of well-formed text.
std::size_t utf8_length(std::string_view text) noexcept;
/// The longest prefix of at most `max` scalar values.
std::string_view utf8_prefix(std::string_view text, std::size_t max) noexcept;
/// Bytes at the end that start a character without finishing it (0 to 3).
std::size_t utf8_incomplete_tail(std::string_view bytes) noexcept;
/// Appends one scalar value; a surrogate or a value above U+10FFFF is written as U+FFFD.
void append_utf8(std::string& out, char32_t scalar);

}  // namespace reagent::inline v0

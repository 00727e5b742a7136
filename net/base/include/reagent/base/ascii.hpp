/// ASCII as protocols use it: no locale, bytes above 127 stand for themselves.
#pragma once
#include <algorithm>
#include <string>
#include <string_view>

namespace reagent::inline v0 {

constexpr bool is_digit(char c) noexcept
{
    return c >= '0' && c <= '9';
}

constexpr char to_lower(char c) noexcept
{
    return c >= 'A' && c <= 'Z' ? static_cast<char>(c + ('a' - 'A')) : c;
}

inline std::string to_lower(std::string_view text)
{
    std::string out(text);
    for (char& c : out) c = to_lower(c);
    return out;
}

/// The value of a hexadecimal digit, -1 for any other character.
constexpr int hex_value(char c) noexcept
{
    if (is_digit(c)) return c - '0';
    c = to_lower(c);
    return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

/// Equality but for case, as of header field names (RFC 9110 §5.1) and host names.
constexpr bool equal_but_case(std::string_view a, std::string_view b) noexcept
{
    return a.size() == b.size() && std::equal(a.begin(), a.end(), b.begin(), [](char x, char y) { return to_lower(x) == to_lower(y); });
}

/// Whether `text` begins with `prefix` but for case.
constexpr bool starts_but_case(std::string_view text, std::string_view prefix) noexcept
{
    return text.size() >= prefix.size() && equal_but_case(text.substr(0, prefix.size()), prefix);
}

}  // namespace reagent::inline v0

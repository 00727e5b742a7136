#pragma once
#include <cstdint>
#include <string>
#include <string_view>

namespace reagent::inline v0::base_detail {

/// Length of the longest JSON number at the start of `text`, 0 when there is none; `stopped` tells where a broken one stopped being a number.
std::size_t scan_number(std::string_view text, std::size_t& stopped) noexcept;

/// A decimal taken apart: value = ±0.d1d2d3… × 10^point. Digits are the significant ones, read in place from the source text.
struct decimal {
    static constexpr std::int64_t widest_integer = 40;

    explicit decimal(std::string_view json_number) noexcept;

    std::string_view text;   // from the first significant digit to the last, may hold the '.'
    std::size_t digits = 0;  // significant digits, 0 for zero
    std::int64_t point = 0;
    bool negative = false;
    bool huge_exponent = false;  // the exponent does not fit: compare by text

    bool zero() const noexcept { return digits == 0; }
    bool integral() const noexcept { return zero() || (!huge_exponent && point >= static_cast<std::int64_t>(digits)); }
    /// The absolute value when integral and below 2^64.
    bool magnitude(std::uint64_t& out) const noexcept;
    /// Equal values give equal text: integers up to `widest` digits as such, else as in ECMAScript.
    void append_canonical(std::string& out, std::int64_t widest = widest_integer) const;
    friend bool same_value(const decimal& a, const decimal& b) noexcept;
};

bool same_value(const decimal& a, const decimal& b) noexcept;

}  // namespace reagent::inline v0::base_detail

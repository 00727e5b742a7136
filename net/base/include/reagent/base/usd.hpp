#pragma once
#include <boost/system/result.hpp>

#include <compare>
#include <cstdint>
#include <string>
#include <string_view>

namespace reagent::inline v0 {

/// Money: a signed 64-bit count of nano-dollars. Sums saturate instead of wrapping. design: money is `usd` everywhere.
class usd {
public:
    constexpr usd() noexcept = default;
    /// A decimal literal such as `"0.05"`; at most nine decimals count, more round half away from zero. Throws `validation_error`.
    explicit usd(std::string_view decimal);
    static constexpr usd from_nanos(std::int64_t n) noexcept { return usd(n, 0); }
    /// Half away from zero; NaN gives zero, infinities saturate.
    static usd from_double(double dollars) noexcept;
    /// Digits with an optional sign, fraction and exponent, as in JSON. Errors: `errc::invalid_number`, also for an amount out of range.
    static boost::system::result<usd> parse(std::string_view decimal) noexcept;
    static constexpr usd max() noexcept { return from_nanos(INT64_MAX); }

    constexpr std::int64_t nanos() const noexcept { return nanos_; }
    double to_double() const noexcept { return static_cast<double>(nanos_) / 1e9; }
    /// Plain decimal without trailing zeros: `0.05`, `0`, `-1.5`.
    std::string to_string() const;

    friend usd operator+(usd a, usd b) noexcept;
    friend usd operator-(usd a, usd b) noexcept;
    usd& operator+=(usd b) noexcept { return *this = *this + b; }
    usd& operator-=(usd b) noexcept { return *this = *this - b; }
    friend constexpr auto operator<=>(usd, usd) noexcept = default;

private:
    constexpr usd(std::int64_t n, int) noexcept : nanos_(n) {}
    std::int64_t nanos_ = 0;
};

}  // namespace reagent::inline v0

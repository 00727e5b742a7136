#include <reagent/base/ascii.hpp>
#include <reagent/base/error.hpp>
#include <reagent/base/untrusted_text.hpp>
#include <reagent/base/usd.hpp>

#include <algorithm>
#include <cmath>

namespace reagent::inline v0 {
namespace {

constexpr std::int64_t nanos_per_dollar = 1'000'000'000;
constexpr std::int64_t largest_exponent = 1'000'000'000;  // beyond it only the sign matters
std::int64_t saturated(bool negative) noexcept
{
    return negative ? INT64_MIN : INT64_MAX;
}

}  // namespace

// [sign] digits [. digits] [e [sign] digits], each digit weighed by its place in nano-dollars.
boost::system::result<usd> usd::parse(std::string_view text) noexcept
{
    const boost::system::error_code bad = errc::invalid_number;
    std::size_t i = 0;
    const bool negative = !text.empty() && text[0] == '-';
    if (negative || (!text.empty() && text[0] == '+')) ++i;
    const std::size_t whole = i;
    while (i < text.size() && is_digit(text[i])) ++i;
    const std::size_t point = i;
    if (point == whole) return bad;
    if (i < text.size() && text[i] == '.') {
        ++i;
        while (i < text.size() && is_digit(text[i])) ++i;
        if (i == point + 1) return bad;
    }
    const std::size_t end = i;
    std::int64_t exponent = 0;
    if (i < text.size() && (text[i] == 'e' || text[i] == 'E')) {
        ++i;
        const bool down = i < text.size() && text[i] == '-';
        if (down || (i < text.size() && text[i] == '+')) ++i;
        if (i == text.size()) return bad;
        for (; i < text.size() && is_digit(text[i]); ++i) exponent = std::min(exponent * 10 + (text[i] - '0'), largest_exponent);
        if (down) exponent = -exponent;
    }
    if (i != text.size()) return bad;

    std::int64_t power = static_cast<std::int64_t>(point - whole) - 1 + exponent + 9;
    std::int64_t nanos = 0;
    const auto append = [&](int d) { return !__builtin_mul_overflow(nanos, 10, &nanos) && !__builtin_add_overflow(nanos, d, &nanos); };
    for (std::size_t at = whole; at < end && power >= -1; ++at) {
        if (text[at] == '.') continue;
        const int d = text[at] - '0';
        if (power >= 0 && !append(d)) return bad;
        if (power == -1 && d >= 5 && __builtin_add_overflow(nanos, 1, &nanos)) return bad;
        --power;
    }
    for (; power >= 0 && nanos != 0; --power) {
        if (!append(0)) return bad;
    }
    return from_nanos(negative ? -nanos : nanos);
}

usd::usd(std::string_view decimal)
{
    const boost::system::result<usd> parsed = parse(decimal);
    if (!parsed) throw validation_error("[usd] not an amount of dollars: \"" + untrusted_text(decimal, 40) + "\"; write it like 0.05");
    *this = *parsed;
}

usd usd::from_double(double dollars) noexcept
{
    if (std::isnan(dollars)) return usd();
    const long double n = std::round(static_cast<long double>(dollars) * nanos_per_dollar);
    if (n >= 9223372036854775807.0L) return from_nanos(INT64_MAX);
    if (n <= -9223372036854775808.0L) return from_nanos(INT64_MIN);
    return from_nanos(static_cast<std::int64_t>(n));
}

std::string usd::to_string() const
{
    const std::uint64_t n = nanos_ < 0 ? std::uint64_t(0) - static_cast<std::uint64_t>(nanos_) : static_cast<std::uint64_t>(nanos_);
    std::string out = (nanos_ < 0 ? "-" : "") + std::to_string(n / nanos_per_dollar);
    std::uint64_t rest = n % nanos_per_dollar;
    if (rest == 0) return out;
    std::string decimals = std::to_string(rest);
    decimals.insert(0, 9 - decimals.size(), '0');
    decimals.erase(decimals.find_last_not_of('0') + 1);
    return out + "." + decimals;
}

usd operator+(usd a, usd b) noexcept
{
    std::int64_t sum = 0;
    if (__builtin_add_overflow(a.nanos_, b.nanos_, &sum)) sum = saturated(b.nanos_ < 0);
    return usd::from_nanos(sum);
}

usd operator-(usd a, usd b) noexcept
{
    std::int64_t difference = 0;
    if (__builtin_sub_overflow(a.nanos_, b.nanos_, &difference)) difference = saturated(b.nanos_ > 0);
    return usd::from_nanos(difference);
}

}  // namespace reagent::inline v0

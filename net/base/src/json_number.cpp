#include "json_number.hpp"

#include <reagent/base/ascii.hpp>
#include <reagent/base/json.hpp>

#include <charconv>
#include <cmath>
#include <limits>

namespace reagent::inline v0 {
namespace base_detail {
namespace {

// Walks the significant digits of a decimal, skipping its point.
struct digit_walk {
    std::string_view text;
    std::size_t at = 0;
    char next() noexcept
    {
        if (text[at] == '.') ++at;
        return text[at++];
    }
};

}  // namespace

std::size_t scan_number(std::string_view text, std::size_t& stopped) noexcept
{
    std::size_t i = 0;
    const auto at = [&] { return i < text.size() ? text[i] : '\0'; };
    const auto run = [&] {
        const std::size_t from = i;
        while (is_digit(at())) ++i;
        return i != from;
    };
    stopped = 0;
    if (at() == '-') ++i;
    if (at() == '0') ++i;
    else if (!run()) {
        stopped = i;
        return 0;
    }
    if (at() == '.') {
        ++i;
        if (!run()) {
            stopped = i;
            return 0;
        }
    }
    if (at() == 'e' || at() == 'E') {
        ++i;
        if (at() == '+' || at() == '-') ++i;
        if (!run()) {
            stopped = i;
            return 0;
        }
    }
    stopped = i;
    return i;
}

decimal::decimal(std::string_view number) noexcept
{
    negative = !number.empty() && number[0] == '-';
    if (negative) number.remove_prefix(1);
    std::int64_t exponent = 0;
    const std::size_t e = number.find_first_of("eE");
    if (e != std::string_view::npos) {
        std::string_view tail = number.substr(e + 1);
        if (!tail.empty() && tail[0] == '+') tail.remove_prefix(1);
        const auto [end, failure] = std::from_chars(tail.data(), tail.data() + tail.size(), exponent);
        // The margin keeps sums with digit counts inside 64 bits.
        huge_exponent = failure != std::errc() || exponent > INT64_MAX / 2 || exponent < INT64_MIN / 2;
        if (huge_exponent) exponent = 0;
        number = number.substr(0, e);
    }
    const std::size_t dot = std::min(number.find('.'), number.size());
    std::size_t first = 0;
    while (first < number.size() && (number[first] == '0' || number[first] == '.')) ++first;
    if (first == number.size()) {
        huge_exponent = false;
        return;
    }
    std::size_t last = number.size();
    while (number[last - 1] == '0' || number[last - 1] == '.') --last;
    text = number.substr(first, last - first);
    digits = text.size() - (first < dot && dot < last ? 1 : 0);
    // Leading zeros after the point move it left: 0.05 is 0.5e-1.
    point = static_cast<std::int64_t>(dot) - static_cast<std::int64_t>(first) + (first > dot ? 1 : 0) + exponent;
}

bool decimal::magnitude(std::uint64_t& out) const noexcept
{
    out = 0;
    if (zero()) return true;
    if (!integral() || point > 20) return false;
    digit_walk walk{text};
    for (std::int64_t i = 0; i < point; ++i) {
        const auto d = static_cast<std::uint64_t>(static_cast<std::size_t>(i) < digits ? walk.next() - '0' : 0);
        if (__builtin_mul_overflow(out, std::uint64_t(10), &out) || __builtin_add_overflow(out, d, &out)) return false;
    }
    return true;
}

void decimal::append_canonical(std::string& out, std::int64_t widest) const
{
    if (zero()) {
        out.push_back('0');
        return;
    }
    if (negative) out.push_back('-');
    digit_walk walk{text};
    const auto n = static_cast<std::int64_t>(digits);
    const auto put = [&](std::int64_t count) {
        for (; count > 0; --count) out.push_back(walk.next());
    };
    if (point >= n && point <= widest) {
        put(n);
        out.append(static_cast<std::size_t>(point - n), '0');
    } else if (point > 0 && point < n && point <= widest) {
        put(point);
        out.push_back('.');
        put(n - point);
    } else if (point <= 0 && point > -6) {
        out.append("0.");
        out.append(static_cast<std::size_t>(-point), '0');
        put(n);
    } else {
        put(1);
        if (n > 1) out.push_back('.');
        put(n - 1);
        const std::int64_t exponent = point - 1;
        out.append(exponent < 0 ? "e-" : "e+");
        out.append(std::to_string(exponent < 0 ? -exponent : exponent));
    }
}

bool same_value(const decimal& a, const decimal& b) noexcept
{
    if (a.zero() || b.zero()) return a.zero() && b.zero();
    if (a.negative != b.negative || a.digits != b.digits || a.point != b.point) return false;
    digit_walk left{a.text}, right{b.text};
    for (std::size_t i = 0; i < a.digits; ++i) {
        if (left.next() != right.next()) return false;
    }
    return true;
}

}  // namespace base_detail

namespace {

using base_detail::decimal;

// The JSON text of a number without an allocation: its source, or digits written into `room`.
struct number_text {
    char room[32];
    std::string_view view;
};

template <class T>
std::string_view print(number_text& t, T value) noexcept
{
    const auto [end, failure] = std::to_chars(t.room, t.room + sizeof t.room, value);
    return {t.room, static_cast<std::size_t>(end - t.room)};
}

// Shortest digits that read back equal, laid out as ECMAScript does: to_chars alone would print 100000 as 1e+05.
void append_double(std::string& out, double value)
{
    constexpr std::int64_t widest = 21;
    if (!std::isfinite(value)) out.append("null");
    else if (value == 0) out.append(std::signbit(value) ? "-0" : "0");
    else {
        number_text t;
        decimal(print(t, value)).append_canonical(out, widest);
    }
}

}  // namespace

json::number json::number::from_text(std::string text)
{
    number n;
    n.form_ = form::text;
    n.text_ = std::move(text);
    return n;
}

void json::number::append_to(std::string& out) const
{
    number_text t;
    switch (form_) {
    case form::int64: out.append(print(t, i_)); break;
    case form::uint64: out.append(print(t, u_)); break;
    case form::real: append_double(out, d_); break;
    case form::text: out.append(text_); break;
    }
}

std::string json::number::text() const
{
    std::string out;
    append_to(out);
    return out;
}

double json::number::as_double() const noexcept
{
    switch (form_) {
    case form::int64: return static_cast<double>(i_);
    case form::uint64: return static_cast<double>(u_);
    case form::real: return d_;
    case form::text: break;
    }
    double value = 0;
    const auto [end, failure] = std::from_chars(text_.data(), text_.data() + text_.size(), value);
    if (failure != std::errc::result_out_of_range) return value;
    const decimal d(text_);
    const bool tiny = d.huge_exponent ? text_.find("e-") != std::string::npos || text_.find("E-") != std::string::npos : d.point < 0;
    return std::copysign(tiny ? 0.0 : std::numeric_limits<double>::infinity(), d.negative ? -1.0 : 1.0);
}

std::optional<std::int64_t> json::number::as_int64() const noexcept
{
    switch (form_) {
    case form::int64: return i_;
    case form::uint64:
        if (u_ > static_cast<std::uint64_t>(INT64_MAX)) return {};
        return static_cast<std::int64_t>(u_);
    case form::real:
        if (!(d_ >= -0x1p63 && d_ < 0x1p63) || d_ != std::trunc(d_)) return {};
        return static_cast<std::int64_t>(d_);
    case form::text: break;
    }
    const decimal d(text_);
    std::uint64_t m = 0;
    if (!d.magnitude(m) || m > (d.negative ? std::uint64_t(1) << 63 : static_cast<std::uint64_t>(INT64_MAX))) return {};
    return static_cast<std::int64_t>(d.negative ? std::uint64_t(0) - m : m);
}

std::optional<std::uint64_t> json::number::as_uint64() const noexcept
{
    switch (form_) {
    case form::int64:
        if (i_ < 0) return {};
        return static_cast<std::uint64_t>(i_);
    case form::uint64: return u_;
    case form::real:
        if (!(d_ >= 0 && d_ < 0x1p64) || d_ != std::trunc(d_)) return {};
        return static_cast<std::uint64_t>(d_);
    case form::text: break;
    }
    const decimal d(text_);
    std::uint64_t m = 0;
    if (!d.magnitude(m) || (d.negative && m != 0)) return {};
    return m;
}

void json::number::append_canonical_to(std::string& out) const
{
    const std::string plain = text();
    if (plain == "null") out.append(plain);
    else {
        const decimal d(plain);
        if (d.huge_exponent) out.append(plain);
        else d.append_canonical(out);
    }
}

bool operator==(const json::number& a, const json::number& b) noexcept
{
    using form = json::number::form;
    if (a.form_ == form::int64 && b.form_ == form::int64) return a.i_ == b.i_;
    number_text left, right;
    const auto view = [](const json::number& n, number_text& t) {
        switch (n.form_) {
        case form::int64: return print(t, n.i_);
        case form::uint64: return print(t, n.u_);
        case form::real: return std::isfinite(n.d_) ? print(t, n.d_) : std::string_view("null");
        case form::text: break;
        }
        return std::string_view(n.text_);
    };
    const std::string_view x = view(a, left), y = view(b, right);
    if (x == y) return true;
    if (x == "null" || y == "null") return false;
    const decimal p(x), q(y);
    return !p.huge_exponent && !q.huge_exponent && same_value(p, q);
}

}  // namespace reagent::inline v0

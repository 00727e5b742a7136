#include "iso_time.hpp"

#include <array>
#include <charconv>
#include <cmath>
#include <cstdio>

namespace reagent::inline v0::model_detail {

namespace {

using std::chrono::days;
using std::chrono::milliseconds;
using std::chrono::nanoseconds;
using std::chrono::seconds;

/// Reads fixed-width digits and literal characters; any mismatch makes `ok` false.
class scanner {
public:
    explicit scanner(std::string_view t) noexcept : text(t) {}
    int number(std::size_t least, std::size_t most)
    {
        int value = 0;
        std::size_t n = 0;
        while (n < most && n < text.size() && text[n] >= '0' && text[n] <= '9') value = value * 10 + (text[n++] - '0');
        if (n < least) ok = false;
        text.remove_prefix(n);
        return value;
    }
    bool skip(std::string_view literal) noexcept
    {
        const bool here = text.starts_with(literal);
        if (here) text.remove_prefix(literal.size());
        return here;
    }
    void want(std::string_view literal) noexcept { ok = skip(literal) && ok; }
    int month()
    {
        constexpr std::array<std::string_view, 12> names = {"Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"};
        for (std::size_t i = 0; i < names.size(); ++i)
            if (skip(names[i])) return static_cast<int>(i) + 1;
        ok = false;
        return 1;
    }
    std::string_view text;
    bool ok = true;
};

std::optional<system_time> moment(int y, int mo, int d, int h, int mi, int s) noexcept
{
    const std::chrono::year_month_day date{std::chrono::year(y), std::chrono::month(static_cast<unsigned>(mo)), std::chrono::day(static_cast<unsigned>(d))};
    if (!date.ok() || h > 23 || mi > 59 || s > 60) return std::nullopt;
    return std::chrono::sys_days(date) + seconds(h * 3600 + mi * 60 + s);
}

}  // namespace

std::string iso_utc(system_time t)
{
    const auto ms = std::chrono::floor<milliseconds>(t);
    const auto day = std::chrono::floor<days>(ms);
    const std::chrono::year_month_day date(day);
    const auto rest = (ms - day).count();
    std::array<char, 48> buffer{};
    const int n = std::snprintf(buffer.data(), buffer.size(), "%04d-%02u-%02uT%02d:%02d:%02d.%03dZ", static_cast<int>(date.year()),
                                static_cast<unsigned>(date.month()), static_cast<unsigned>(date.day()), static_cast<int>(rest / 3600000),
                                static_cast<int>(rest / 60000 % 60), static_cast<int>(rest / 1000 % 60), static_cast<int>(rest % 1000));
    return std::string(buffer.data(), static_cast<std::size_t>(n));
}

std::optional<system_time> parse_rfc3339(std::string_view text) noexcept
{
    scanner in(text);
    const int y = in.number(4, 4);
    in.want("-");
    const int mo = in.number(2, 2);
    in.want("-");
    const int d = in.number(2, 2);
    if (!in.skip("T") && !in.skip("t") && !in.skip(" ")) return std::nullopt;
    const int h = in.number(2, 2);
    in.want(":");
    const int mi = in.number(2, 2);
    in.want(":");
    const int s = in.number(2, 2);
    nanoseconds fraction{0};
    if (in.skip(".")) {
        std::int64_t unit = 100'000'000;
        bool any = false;
        while (!in.text.empty() && in.text[0] >= '0' && in.text[0] <= '9') {
            fraction += nanoseconds(unit * (in.text[0] - '0'));
            unit /= 10;
            any = true;
            in.text.remove_prefix(1);
        }
        if (!any) return std::nullopt;
    }
    seconds offset{0};
    if (!in.skip("Z") && !in.skip("z")) {
        const bool minus = in.skip("-");
        if (!minus && !in.skip("+")) return std::nullopt;
        const int oh = in.number(2, 2);
        in.want(":");
        const int om = in.number(2, 2);
        offset = seconds((oh * 60 + om) * 60) * (minus ? -1 : 1);
    }
    if (!in.ok || !in.text.empty()) return std::nullopt;
    const auto at = moment(y, mo, d, h, mi, s);
    if (!at) return std::nullopt;
    return *at - offset + std::chrono::duration_cast<system_time::duration>(fraction);
}

std::optional<system_time> parse_http_date(std::string_view text) noexcept
{
    scanner in(text);
    std::size_t letters = 0;
    while (letters < in.text.size() && ((in.text[letters] | 0x20) >= 'a' && (in.text[letters] | 0x20) <= 'z')) ++letters;
    if (letters < 3) return std::nullopt;
    in.text.remove_prefix(letters);
    int y = 0, mo = 0, d = 0, h = 0, mi = 0, s = 0;
    const auto time = [&] {
        h = in.number(2, 2);
        in.want(":");
        mi = in.number(2, 2);
        in.want(":");
        s = in.number(2, 2);
    };
    if (in.skip(", ")) {
        d = in.number(1, 2);
        const bool old = in.skip("-");
        if (!old) in.want(" ");
        mo = in.month();
        in.want(old ? "-" : " ");
        y = old ? in.number(2, 4) : in.number(4, 4);
        if (old && y < 100) y += y < 70 ? 2000 : 1900;
        in.want(" ");
        time();
        in.want(" GMT");
    } else {
        in.want(" ");
        mo = in.month();
        in.want(" ");
        static_cast<void>(in.skip(" "));
        d = in.number(1, 2);
        in.want(" ");
        time();
        in.want(" ");
        y = in.number(4, 4);
    }
    if (!in.ok || !in.text.empty()) return std::nullopt;
    return moment(y, mo, d, h, mi, s);
}

std::optional<std::chrono::nanoseconds> parse_go_duration(std::string_view text) noexcept
{
    class unit {
    public:
        std::string_view name;
        double nanos = 0;
    };
    constexpr std::array<unit, 7> units = {unit{"ns", 1}, unit{"us", 1e3}, unit{"µs", 1e3}, unit{"ms", 1e6}, unit{"s", 1e9}, unit{"m", 60e9}, unit{"h", 3600e9}};
    double total = 0;
    if (text.empty()) return std::nullopt;
    while (!text.empty()) {
        double value = 0;
        const auto [end, ec] = std::from_chars(text.data(), text.data() + text.size(), value, std::chars_format::fixed);
        if (ec != std::errc() || !std::isfinite(value) || value < 0) return std::nullopt;
        text.remove_prefix(static_cast<std::size_t>(end - text.data()));
        double scale = text.empty() ? 1e9 : 0;
        std::size_t used = 0;
        for (const unit& u : units)
            if (text.starts_with(u.name) && u.name.size() > used) {
                scale = u.nanos;
                used = u.name.size();
            }
        if (scale == 0) return std::nullopt;
        text.remove_prefix(used);
        total += value * scale;
    }
    if (total > 9e18) return std::nullopt;
    return std::chrono::nanoseconds(std::llround(total));
}

}  // namespace reagent::inline v0::model_detail

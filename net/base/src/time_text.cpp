#include <reagent/base/time_text.hpp>

#include <algorithm>
#include <array>
#include <cstdio>

namespace reagent::inline v0 {
namespace {

namespace chrono = std::chrono;

constexpr std::array<std::string_view, 12> months = {"Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"};
constexpr std::array<std::string_view, 7> days = {"Sunday", "Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday"};

// Reads a text from left to right; once something does not fit, everything after it fails as well.
class reader {
public:
    explicit reader(std::string_view text) : rest_(text) {}
    bool ok() const noexcept { return ok_; }
    bool done() const noexcept { return ok_ && rest_.empty(); }
    char peek() const noexcept { return rest_.empty() ? '\0' : rest_.front(); }

    int number(std::size_t width)
    {
        int value = 0;
        if (rest_.size() < width) ok_ = false;
        for (std::size_t i = 0; ok_ && i < width; ++i) {
            if (rest_[i] < '0' || rest_[i] > '9') ok_ = false;
            else value = value * 10 + (rest_[i] - '0');
        }
        if (ok_) rest_.remove_prefix(width);
        return value;
    }
    bool take(std::string_view word)
    {
        if (!ok_ || !rest_.starts_with(word)) return false;
        rest_.remove_prefix(word.size());
        return true;
    }
    void expect(std::string_view word) { ok_ = take(word); }
    void expect_any(char a, char b)
    {
        ok_ = ok_ && (peek() == a || peek() == b);
        if (ok_) rest_.remove_prefix(1);
    }
    unsigned month()
    {
        for (unsigned m = 0; m < months.size(); ++m) {
            if (take(months[m])) return m + 1;
        }
        ok_ = false;
        return 1;
    }
    void day_name(bool whole)
    {
        const auto known = [&](std::string_view day) { return take(whole ? day : day.substr(0, 3)); };
        ok_ = ok_ && std::any_of(days.begin(), days.end(), known);
    }
    // Digits after a point, as nanoseconds.
    chrono::nanoseconds fraction()
    {
        std::int64_t value = 0, unit = 100'000'000;
        bool any = false;
        for (; ok_ && peek() >= '0' && peek() <= '9'; rest_.remove_prefix(1)) {
            value += unit * (peek() - '0');
            unit /= 10;
            any = true;
        }
        ok_ = ok_ && any;
        return chrono::nanoseconds(value);
    }

private:
    std::string_view rest_;
    bool ok_ = true;
};

struct clock_face {
    int year = 0;
    unsigned month = 1, day = 1;
    int hour = 0, minute = 0, second = 0;
};

void read_time(reader& r, clock_face& f)
{
    f.hour = r.number(2);
    r.expect(":");
    f.minute = r.number(2);
    r.expect(":");
    f.second = r.number(2);
}

std::optional<system_time> instant(const clock_face& f, chrono::nanoseconds fraction = {}, chrono::minutes offset = {})
{
    const chrono::year_month_day date{chrono::year(f.year), chrono::month(f.month), chrono::day(f.day)};
    if (!date.ok() || f.hour > 23 || f.minute > 59 || f.second > 60) return {};
    // The range of a system_time in nanoseconds.
    if (f.year < 1678 || f.year > 2261) return {};
    const auto at = chrono::sys_days(date) + chrono::hours(f.hour) + chrono::minutes(f.minute) + chrono::seconds(f.second) + fraction - offset;
    return chrono::time_point_cast<system_time::duration>(at);
}

// RFC 9110: a two-digit year more than 50 years ahead lies in the century before.
int whole_year(int two_digits, system_time now)
{
    const chrono::year_month_day today{chrono::floor<chrono::days>(now)};
    const int this_year = static_cast<int>(today.year());
    const int year = this_year / 100 * 100 + two_digits;
    return year > this_year + 50 ? year - 100 : year;
}

}  // namespace

std::string format_iso8601(system_time t)
{
    const auto ms = chrono::floor<chrono::milliseconds>(t);
    const auto day = chrono::floor<chrono::days>(ms);
    const chrono::year_month_day date{day};
    const chrono::hh_mm_ss<chrono::milliseconds> time{ms - day};
    char text[40];
    const int n = std::snprintf(text, sizeof text, "%04d-%02u-%02uT%02d:%02d:%02d.%03dZ", static_cast<int>(date.year()), static_cast<unsigned>(date.month()),
                                static_cast<unsigned>(date.day()), static_cast<int>(time.hours().count()), static_cast<int>(time.minutes().count()),
                                static_cast<int>(time.seconds().count()), static_cast<int>(time.subseconds().count()));
    return std::string(text, static_cast<std::size_t>(n));
}

std::optional<system_time> parse_rfc3339(std::string_view text)
{
    reader r(text);
    clock_face f;
    f.year = r.number(4);
    r.expect("-");
    f.month = static_cast<unsigned>(r.number(2));
    r.expect("-");
    f.day = static_cast<unsigned>(r.number(2));
    if (!r.take(" ")) r.expect_any('T', 't');
    read_time(r, f);
    const chrono::nanoseconds fraction = r.take(".") ? r.fraction() : chrono::nanoseconds();
    chrono::minutes offset{};
    if (r.peek() == '+' || r.peek() == '-') {
        const bool west = r.peek() == '-';
        r.expect_any('+', '-');
        const int hours = r.number(2);
        r.expect(":");
        const int minutes = r.number(2);
        if (hours > 23 || minutes > 59) return {};
        offset = chrono::minutes((west ? -1 : 1) * (hours * 60 + minutes));
    } else r.expect_any('Z', 'z');
    return r.done() ? instant(f, fraction, offset) : std::nullopt;
}

std::optional<system_time> parse_http_date(std::string_view text, system_time now)
{
    const std::size_t comma = text.find(',');
    reader r(text);
    clock_face f;
    if (comma == 3) {  // Sun, 06 Nov 1994 08:49:37 GMT
        r.day_name(false);
        r.expect(", ");
        f.day = static_cast<unsigned>(r.number(2));
        r.expect(" ");
        f.month = r.month();
        r.expect(" ");
        f.year = r.number(4);
        r.expect(" ");
        read_time(r, f);
        r.expect(" GMT");
    } else if (comma != std::string_view::npos) {  // Sunday, 06-Nov-94 08:49:37 GMT
        r.day_name(true);
        r.expect(", ");
        f.day = static_cast<unsigned>(r.number(2));
        r.expect("-");
        f.month = r.month();
        r.expect("-");
        f.year = whole_year(r.number(2), now);
        r.expect(" ");
        read_time(r, f);
        r.expect(" GMT");
    } else {  // Sun Nov  6 08:49:37 1994
        r.day_name(false);
        r.expect(" ");
        f.month = r.month();
        r.expect(" ");
        f.day = static_cast<unsigned>(r.number(r.take(" ") ? 1 : 2));
        r.expect(" ");
        read_time(r, f);
        r.expect(" ");
        f.year = r.number(4);
    }
    return r.done() ? instant(f) : std::nullopt;
}

std::optional<chrono::nanoseconds> parse_go_duration(std::string_view text)
{
    bool negative = false;
    if (!text.empty() && (text.front() == '-' || text.front() == '+')) {
        negative = text.front() == '-';
        text.remove_prefix(1);
    }
    if (text == "0") return chrono::nanoseconds(0);
    if (text.empty()) return {};
    struct unit {
        std::string_view name;
        long double nanos;
    };
    // Longer names first where one begins another.
    constexpr std::array<unit, 8> units = {unit{"ns", 1},    unit{"us", 1e3L}, unit{"\xC2\xB5s", 1e3L}, unit{"\xCE\xBCs", 1e3L},
                                           unit{"ms", 1e6L}, unit{"s", 1e9L},  unit{"m", 60e9L},        unit{"h", 3600e9L}};
    long double total = 0;
    while (!text.empty()) {
        long double value = 0, weight = 1;
        bool any = false, point = false;
        std::size_t i = 0;
        for (; i < text.size(); ++i) {
            const char c = text[i];
            if (c == '.' && !point) point = true;
            else if (c >= '0' && c <= '9') {
                any = true;
                if (point) value += (weight /= 10) * (c - '0');
                else value = value * 10 + (c - '0');
            } else break;
        }
        if (!any) return {};
        text.remove_prefix(i);
        const auto found = std::find_if(units.begin(), units.end(), [&](const unit& u) { return text.starts_with(u.name); });
        if (found == units.end()) return {};
        text.remove_prefix(found->name.size());
        total += value * found->nanos;
    }
    if (!(total < 9223372036854775807.0L)) return negative ? chrono::nanoseconds::min() : chrono::nanoseconds::max();
    const auto n = static_cast<std::int64_t>(total + 0.5L);
    return chrono::nanoseconds(negative ? -n : n);
}

}  // namespace reagent::inline v0

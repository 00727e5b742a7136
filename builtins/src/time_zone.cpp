// What date's parser reads into, GCC 12 takes for uninitialised once it is inlined.
#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"
#endif

#include "time_zone.hpp"

#include <reagent/agent/tool.hpp>
#include <reagent/base/ascii.hpp>

#include <date/date.h>
#include <date/tz.h>

#include <sstream>

namespace reagent::inline v0::builtins_detail {
namespace {

const date::tzdb& database()
{
    try {
        return date::get_tzdb();
    } catch (const std::exception&) {
        throw tool_error("no_tzdata", "this system has no tz database; install the package tzdata");
    }
}

}  // namespace

std::optional<std::string> canonical_zone(std::string_view name)
{
    if (name == "UTC") return std::string(name);  // works without a database
    for (const date::time_zone& zone : database().zones) {
        if (!equal_but_case(zone.name(), name)) continue;
        // Files of the directory that are no zones of the database.
        if (zone.name() == "localtime" || zone.name() == "posixrules") return std::nullopt;
        return zone.name();
    }
    return std::nullopt;
}

std::string format_in_zone(system_time when, const std::string& zone)
{
    const auto instant = date::floor<std::chrono::seconds>(when);
    date::sys_info info;
    if (zone != "UTC") info = date::locate_zone(zone)->get_info(instant);
    else info.offset = std::chrono::seconds(0);
    const auto local = date::sys_seconds(instant.time_since_epoch() + info.offset);
    const auto offset = date::floor<std::chrono::minutes>(std::chrono::abs(info.offset));
    std::ostringstream out;
    out.imbue(std::locale::classic());
    out << date::format(std::locale::classic(), "%FT%T", local) << (info.offset < std::chrono::seconds(0) ? '-' : '+')
        << date::format(std::locale::classic(), "%H:%M", offset) << " (" << date::format(std::locale::classic(), "%A", local) << ", " << zone << ")";
    return out.str();
}

std::optional<system_time> parse_instant(std::string_view text)
{
    std::istringstream in{std::string(text)};
    in.imbue(std::locale::classic());
    date::sys_time<std::chrono::microseconds> when;
    in >> date::parse("%FT%TZ", when);
    if (in.fail() || in.peek() != std::istringstream::traits_type::eof()) return std::nullopt;
    return std::chrono::time_point_cast<system_time::duration>(when);
}

}  // namespace reagent::inline v0::builtins_detail

#pragma once
#include <reagent/base/clock.hpp>

#include <optional>
#include <string>
#include <string_view>

namespace reagent::inline v0::builtins_detail {

/// The name as the tz database writes it, matched in any case; empty for everything that is not in it. Throws `tool_error` `no_tzdata` when the system
/// has no tz database.
std::optional<std::string> canonical_zone(std::string_view name);
/// `YYYY-MM-DDTHH:MM:SS±HH:MM (Weekday, Zone)`; `zone` must be canonical. Sub-seconds are dropped.
std::string format_in_zone(system_time when, const std::string& zone);
/// `YYYY-MM-DDTHH:MM:SS[.fraction]Z`.
std::optional<system_time> parse_instant(std::string_view text);

}  // namespace reagent::inline v0::builtins_detail

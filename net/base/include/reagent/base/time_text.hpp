#pragma once
#include <reagent/base/clock.hpp>

#include <chrono>
#include <optional>
#include <string>
#include <string_view>

namespace reagent::inline v0 {

/// `2026-01-31T23:59:59.123Z`, UTC with milliseconds, rounded down.
std::string format_iso8601(system_time t);
/// RFC 3339 with `Z` or an offset; the fraction may be absent, digits beyond nanoseconds are dropped. A leap second reads as the next one.
std::optional<system_time> parse_rfc3339(std::string_view text);
/// The three forms of an HTTP date (RFC 9110 section 5.6.7). `now` places the two-digit years of the oldest form.
std::optional<system_time> parse_http_date(std::string_view text, system_time now);
/// A duration as Go prints it: `1h2m3s`, `6m0s`, `100ms`, `1.5s`, `-2us`, `0`. Saturates.
std::optional<std::chrono::nanoseconds> parse_go_duration(std::string_view text);

}  // namespace reagent::inline v0

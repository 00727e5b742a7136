#pragma once
#include <reagent/base/clock.hpp>

#include <optional>
#include <string>
#include <string_view>

namespace reagent::inline v0::model_detail {

/// `2026-11-30T09:00:00.000Z`.
std::string iso_utc(system_time t);
/// RFC 3339 with `Z` or an offset.
std::optional<system_time> parse_rfc3339(std::string_view text) noexcept;
/// The three date forms of RFC 9110 §5.6.7.
std::optional<system_time> parse_http_date(std::string_view text) noexcept;
/// A Go duration: `1h2m3s`, `6m0s`, `100ms`, `1.5s`; also a bare number of seconds.
std::optional<std::chrono::nanoseconds> parse_go_duration(std::string_view text) noexcept;

}  // namespace reagent::inline v0::model_detail

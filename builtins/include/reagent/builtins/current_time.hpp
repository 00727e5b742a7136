#pragma once
#include <reagent/agent/tool.hpp>
#include <reagent/builtins/builtin_options.hpp>

#include <string>

namespace reagent::inline v0 {

/// `current_time(timezone?)`: the time of the context's clock in a zone of the system's tz database. An IANA name (links count), any case;
/// everything else fails with `bad_timezone`, never a fallback. The zone of the host changes nothing.
/// A bad `default_zone` throws `tool_error` here. Source: spec/tools.md §5.3.
tool current_time(builtin_options options = {}, std::string default_zone = "UTC");

}  // namespace reagent::inline v0

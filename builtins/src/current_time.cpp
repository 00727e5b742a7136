#include <reagent/builtins/current_time.hpp>

#include "time_zone.hpp"

namespace reagent::inline v0 {
namespace {

std::string zone_or_fail(const std::string& name)
{
    std::optional<std::string> zone = builtins_detail::canonical_zone(name);
    if (!zone) throw tool_error("bad_timezone", "\"" + name.substr(0, 100) + "\" is not a name of the tz database; use one such as Europe/London or UTC");
    return std::move(*zone);
}

awaitable<json> run_current_time(json args, system_time now, std::string default_zone)
{
    const std::string* asked = args["timezone"].get_string();
    const std::string zone = asked ? zone_or_fail(*asked) : default_zone;
    co_return json(builtins_detail::format_in_zone(now, zone));
}

}  // namespace

tool current_time(builtin_options options, std::string default_zone)
{
    std::vector<arg_spec> args;
    args.emplace_back("timezone", arg_type::string, "IANA name such as Europe/London; left out: the default zone", false);
    return tool::from_args(options.name_or("current_time"), options.description_or("Tell the current date, time and weekday in a time zone."), std::move(args),
                           [zone = zone_or_fail(default_zone)](json given, tool_context& context) {
                               const clock_ptr& clock = context.clock ? context.clock : clock::system();
                               return run_current_time(std::move(given), clock->wall(), zone);
                           })
        .effect(effect::readonly)
        .trust(trust::own)
        .pinned(options.pinned_or(false));
}

}  // namespace reagent::inline v0

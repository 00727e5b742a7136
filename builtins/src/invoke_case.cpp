#include <reagent/builtins/invoke_case.hpp>

#include "time_zone.hpp"

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/io_context.hpp>

namespace reagent::inline v0 {
namespace {

/// The system's clock but for the wall time, which stands still.
class fixed_wall_clock final : public clock {
public:
    explicit fixed_wall_clock(system_time at) : at_(at) {}
    steady_time now() const noexcept override { return clock::system()->now(); }
    system_time wall() const noexcept override { return at_; }
    std::unique_ptr<clock_timer> make_timer(any_io_executor ex, std::function<void()> fire) override
    {
        return clock::system()->make_timer(std::move(ex), std::move(fire));
    }

private:
    system_time at_;
};

json refusal(std::string_view kind, std::string_view code, std::string_view message)
{
    json error = json::object().set("kind", kind);
    if (!code.empty()) error.set("code", code);
    error.set("message", message);
    return json::object().set("error", std::move(error));
}
json usage_error(std::string_view message)
{
    return refusal("usage", {}, message);
}

json unknown_tool(std::string name, json args, std::string why)
{
    tool_result result;
    result.name = std::move(name);
    result.args = std::move(args);
    result.code = "unknown_tool";
    result.error = std::move(why);
    return result.to_json();
}

json invoke_alone(const tool& subject, json args, clock_ptr clock)
{
    asio::io_context io(1);
    tool_context context;
    context.executor = io.get_executor();
    context.run_id = "case";
    context.call_id = "case";
    context.clock = std::move(clock);
    std::exception_ptr failure;
    json answer;
    asio::co_spawn(io, subject.invoke(std::move(args), context), [&](std::exception_ptr f, tool_result result) {
        failure = f;
        if (!f) answer = result.to_json().set("value", result.value);
    });
    io.run();
    if (failure) return refusal("tool", "tool_error", message_of(failure));
    return answer;
}

}  // namespace

json invoke_case(const json& in, const builtin_registry& registry)
{
    if (!in.is_object()) return usage_error("a line must be an object {\"tool\", \"args\"}");
    const std::string* name = in["tool"].get_string();
    if (!name) return usage_error("\"tool\" must be the name of a tool");
    const json* args = in.find("args");
    const json* options = in.find("options");
    clock_ptr clock = clock::system();
    if (const json* now = in.find("now")) {
        const auto at = now->is_string() ? builtins_detail::parse_instant(now->as_string()) : std::nullopt;
        if (!at) return usage_error("\"now\" must be an instant such as 2026-08-08T13:05:09Z");
        clock = std::make_shared<fixed_wall_clock>(*at);
    }
    // No builtin reads the host's zone, hence `tz` changes nothing; it is still checked.
    if (const json* tz = in.find("tz"); tz && !tz->is_string()) return usage_error("\"tz\" must be the name of a time zone");
    try {
        const tool subject = registry.make(*name, options ? *options : json::object());
        return invoke_alone(subject, args ? *args : json::object(), std::move(clock));
    } catch (const tool_error& e) {
        // An unknown name is a failed result, as a model that calls one gets it (spec/tools.md §3.2).
        if (e.tool_code() == "unknown_tool") return unknown_tool(*name, args ? *args : json::object(), e.message());
        return refusal("tool", e.tool_code(), e.message());
    } catch (const std::exception& e) {
        return refusal("tool", "tool_error", e.what());
    }
}

json invoke_case(const json& in)
{
    return invoke_case(in, builtin_registry::standard());
}

}  // namespace reagent::inline v0

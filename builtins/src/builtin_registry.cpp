#include <reagent/builtins/builtin_registry.hpp>

#include <reagent/base/nearest.hpp>
#include <reagent/builtins/calculate.hpp>
#include <reagent/builtins/current_time.hpp>
#include <reagent/builtins/finish.hpp>
#include <reagent/builtins/think.hpp>

#include <algorithm>

namespace reagent::inline v0 {
namespace {

constexpr std::size_t listed_names = 50;

[[noreturn]] void refuse(std::string message)
{
    throw tool_error("bad_options", std::move(message));
}

const std::string* text_option(const json& options, std::string_view tool_name, std::string_view key)
{
    const json* value = options.find(key);
    if (!value) return nullptr;
    if (!value->is_string()) refuse("options of \"" + std::string(tool_name) + "\": " + std::string(key) + " must be a string");
    return &value->as_string();
}

/// Reads the common options and refuses keys that are neither common nor in `more`.
builtin_options common_options(const json& options, std::string_view tool_name, std::vector<std::string> more = {})
{
    if (!options.is_object()) refuse("options of \"" + std::string(tool_name) + "\" must be an object");
    more.insert(more.begin(), {"name", "description", "pinned"});
    for (const json::member& m : options.as_object()) {
        if (std::ranges::find(more, m.first) != more.end()) continue;
        const auto near = nearest_name(m.first, more);
        refuse("options of \"" + std::string(tool_name) + "\": unknown key \"" + m.first + "\"" + (near ? ", did you mean \"" + *near + "\"?" : ""));
    }
    builtin_options read;
    if (const std::string* name = text_option(options, tool_name, "name")) read.name(*name);
    if (const std::string* description = text_option(options, tool_name, "description")) read.description(*description);
    if (const json* pinned = options.find("pinned")) {
        if (!pinned->is_bool()) refuse("options of \"" + std::string(tool_name) + "\": pinned must be true or false");
        read.pinned(pinned->as_bool());
    }
    return read;
}

}  // namespace

builtin_registry builtin_registry::standard()
{
    builtin_registry r;
    r.add("calculate", [](const json& o) { return calculate(common_options(o, "calculate")); });
    r.add("current_time", [](const json& o) {
        builtin_options common = common_options(o, "current_time", {"defaultTimeZone"});
        const std::string* zone = text_option(o, "current_time", "defaultTimeZone");
        return current_time(std::move(common), zone ? *zone : "UTC");
    });
    r.add("finish", [](const json& o) { return finish(common_options(o, "finish")); });
    r.add("think", [](const json& o) { return think(common_options(o, "think")); });
    return r;
}

void builtin_registry::add(std::string name, tool_factory factory)
{
    for (auto& [known, old] : factories_) {
        if (known != name) continue;
        old = std::move(factory);
        return;
    }
    factories_.emplace_back(std::move(name), std::move(factory));
}

bool builtin_registry::contains(std::string_view name) const noexcept
{
    return std::ranges::any_of(factories_, [&](const auto& f) { return f.first == name; });
}

std::vector<std::string> builtin_registry::names() const
{
    std::vector<std::string> all;
    for (const auto& f : factories_) all.push_back(f.first);
    return all;
}

tool builtin_registry::make(std::string_view name, const json& options) const
{
    for (const auto& [known, factory] : factories_)
        if (known == name) return factory(options);
    const std::vector<std::string> all = names();
    std::string message = "there is no tool \"" + std::string(name.substr(0, 100)) + "\"; there are ";
    for (std::size_t i = 0; i < all.size() && i < listed_names; ++i) message += (i ? ", " : "") + all[i];
    if (all.size() > listed_names) message += " and " + std::to_string(all.size() - listed_names) + " more";
    if (const auto near = nearest_name(name, all, 2)) message += "; did you mean \"" + *near + "\"?";
    throw tool_error("unknown_tool", std::move(message));
}

}  // namespace reagent::inline v0

#pragma once
#include <reagent/agent/tool.hpp>

#include <functional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace reagent::inline v0 {

/// Makes a tool from its options as they stand in a configuration. Throws `tool_error` for options it refuses.
using tool_factory = std::function<tool(const json& options)>;

/// Tools by name, for configurations and commands. A plain value: no registry is global, whoever builds a program fills one.
class builtin_registry {
public:
    builtin_registry() = default;
    /// The builtins of this package: `calculate`, `current_time`, `finish`, `think`. Options: `name`, `description`, `pinned`, and
    /// `defaultTimeZone` for `current_time`.
    static builtin_registry standard();

    /// Adds or replaces.
    void add(std::string name, tool_factory factory);
    bool contains(std::string_view name) const noexcept;
    /// In order of addition.
    std::vector<std::string> names() const;
    /// Throws `tool_error` `unknown_tool` naming the nearest name, or whatever the factory refuses.
    tool make(std::string_view name, const json& options = json::object()) const;

private:
    std::vector<std::pair<std::string, tool_factory>> factories_;
};

}  // namespace reagent::inline v0

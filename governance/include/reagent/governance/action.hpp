#pragma once
#include <reagent/base/json.hpp>

#include <string>
#include <string_view>
#include <utility>

namespace reagent::inline v0 {

/// What is about to happen (spec/governance.md §1.1): an object with `type`, optional `tool`, `args` and kind fields. Judged as the JSON value that the
/// executor runs. A model round is `{type:"llm"}`, a tool call `{type:<name or declared kind>, tool:<name>, args}`.
class action {
public:
    action() = default;
    explicit action(json v) : value(std::move(v)) {}
    /// `{type:"llm", args:{model}}`.
    static action llm(std::string_view model);
    /// `{type:name, tool:name, args}`; a tool of a declared kind hands in that kind as `type`.
    static action tool(std::string_view name, json args);
    static action tool(std::string_view name, std::string_view type, json args);
    /// The `type`, empty when it is missing or no string.
    std::string_view type() const noexcept;
    json value;
};

enum class outcome_kind : std::uint8_t { allow, deny };
enum class severity : std::uint8_t { action, halt };

/// A terminal verdict of a gate.
class decision {
public:
    decision() = default;
    decision(outcome_kind o, reagent::severity s, std::string r, std::string why = {}) : outcome(o), level(s), rule(std::move(r)), reason(std::move(why)) {}
    outcome_kind outcome = outcome_kind::allow;
    reagent::severity level = reagent::severity::action;
    std::string rule = "default";
    std::string reason;  ///< empty when null
    std::string aid;     ///< 8 hex characters, one per check
    bool allowed() const noexcept { return outcome == outcome_kind::allow; }
    bool halts() const noexcept { return outcome == outcome_kind::deny && level == severity::halt; }
};

}  // namespace reagent::inline v0

/// The rules of a policy are a list of steps in the order of spec/governance.md §2; the first one with an opinion decides.
#pragma once
#include <reagent/base/json.hpp>

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace reagent::inline v0::governance_detail {

enum class finding_kind : std::uint8_t { allow, ask, deny };

struct finding {
    finding_kind kind = finding_kind::allow;
    std::string rule = "default";
    std::string reason;  // empty when there is none to give
};

/// An action as the steps see it.
struct rule_subject {
    const json& value;
    std::string_view type;
    std::string_view tool;       // empty when absent
    bool tool_unusable = false;  // present, but not a non-empty string
    std::string_view identity() const noexcept { return tool.empty() ? type : tool; }
};

class rule_step {
public:
    virtual ~rule_step() = default;
    virtual std::optional<finding> judge(const rule_subject& subject) const = 0;
    /// Whether it is about tools by name: asked by the name probe, not asked of model attempts.
    virtual bool about_tools() const noexcept { return false; }
};

std::shared_ptr<const rule_step> tool_denylist(std::vector<std::string> globs);
std::shared_ptr<const rule_step> tool_allowlist(std::vector<std::string> globs);

}  // namespace reagent::inline v0::governance_detail

#include "glob.hpp"
#include "rule_step.hpp"

#include <reagent/base/utf8.hpp>

namespace reagent::inline v0::governance_detail {
namespace {

constexpr std::size_t longest_quoted_name = 200;

std::string quoted(std::string_view name)
{
    std::string out = "\"";
    out.append(utf8_prefix(name, longest_quoted_name)).append(name.size() > longest_quoted_name ? "…\"" : "\"");
    return out;
}

finding invalid_tool()
{
    return {finding_kind::deny, "tools.invalidTool", "`tool` must be a non-empty string"};
}

/// Matches type or tool: naming a tool can only widen a denial.
class denylist_step final : public rule_step {
public:
    explicit denylist_step(std::vector<std::string> globs) : globs_(std::move(globs)) {}
    bool about_tools() const noexcept override { return true; }
    std::optional<finding> judge(const rule_subject& s) const override
    {
        if (s.tool_unusable) return invalid_tool();
        for (const std::string& glob : globs_)
            for (const std::string_view name : {s.type, s.tool})
                if (!name.empty() && glob_matches(glob, name)) return finding{finding_kind::deny, "tools.denylist", quoted(name) + " is on tools.denylist"};
        return {};
    }

private:
    std::vector<std::string> globs_;
};

class allowlist_step final : public rule_step {
public:
    explicit allowlist_step(std::vector<std::string> globs) : globs_(std::move(globs)) {}
    bool about_tools() const noexcept override { return true; }
    std::optional<finding> judge(const rule_subject& s) const override
    {
        if (s.tool_unusable) return invalid_tool();
        for (const std::string& glob : globs_)
            if (glob_matches(glob, s.identity())) return finding{finding_kind::allow, "tools.allowlist", {}};
        return finding{finding_kind::deny, "tools.allowlist.exclusive", quoted(s.identity()) + " is not on tools.allowlist"};
    }

private:
    std::vector<std::string> globs_;
};

}  // namespace

std::shared_ptr<const rule_step> tool_denylist(std::vector<std::string> globs)
{
    return std::make_shared<denylist_step>(std::move(globs));
}
std::shared_ptr<const rule_step> tool_allowlist(std::vector<std::string> globs)
{
    return std::make_shared<allowlist_step>(std::move(globs));
}

}  // namespace reagent::inline v0::governance_detail

/// gate_policy::from_json: the validation of spec/governance.md §1.5 for the sections this version evaluates.
#include "policy_impl.hpp"

#include <reagent/base/error.hpp>
#include <reagent/base/nearest.hpp>

#include <array>
#include <cmath>
#include <limits>
#include <span>

namespace reagent::inline v0 {
namespace {

using policy_impl = gate_policy::impl;

[[noreturn]] void fail(const std::string& where, std::string_view what)
{
    throw config_error(where + ": " + std::string(what));
}

struct reader {
    policy_impl& out;
    bool allow_unknown = false;

    double number(const json& v, const std::string& where) const
    {
        const std::optional<double> d = v.get_double();
        if (!d) fail(where, "must be a number, not " + std::string(v.type_name()));
        if (!std::isfinite(*d) || *d < 0) fail(where, "must be a finite number of at least 0");
        return *d;
    }
    /// Nothing for `"unlimited"`; a fraction counts up: 2.5 is reached at 3.
    std::optional<std::uint64_t> count(const json& v, const std::string& where) const
    {
        if (unlimited(v)) return {};
        const double d = std::ceil(number(v, where));
        return d >= 0x1p64 ? std::numeric_limits<std::uint64_t>::max() : static_cast<std::uint64_t>(d);
    }
    static bool unlimited(const json& v) { return v.get_string() && *v.get_string() == "unlimited"; }
    std::string text(const json& v, const std::string& where) const
    {
        if (!v.is_string()) fail(where, "must be a string, not " + std::string(v.type_name()));
        return v.as_string();
    }
    std::vector<std::string> names(const json& v, const std::string& where) const
    {
        if (!v.is_array()) fail(where, "must be an array, not " + std::string(v.type_name()));
        std::vector<std::string> all;
        for (const json& e : v.as_array()) all.push_back(text(e, where + '[' + std::to_string(all.size()) + ']'));
        return all;
    }
    void unknown(const std::string& key, const std::string& where, std::span<const std::string_view> known) const
    {
        if (allow_unknown) return;
        const std::optional<std::string> near = nearest_name(key, known);
        fail(where, near ? "unknown key; did you mean \"" + *near + "\"?" : std::string("unknown key"));
    }
};

using key_action = void (*)(reader&, const json&, const std::string&);
struct key_rule {
    std::string_view name;
    key_action apply;  // none: the spec has it, this version does not evaluate it
};

constexpr std::array tools_keys{
    key_rule{"allowlist", [](reader& r, const json& v, const std::string& w) { r.out.allow_step = governance_detail::tool_allowlist(r.names(v, w)); }},
    key_rule{"denylist", [](reader& r, const json& v, const std::string& w) { r.out.deny_step = governance_detail::tool_denylist(r.names(v, w)); }},
    key_rule{"denyArgPatterns", nullptr},
};
constexpr std::array limits_keys{
    key_rule{"maxTurns", [](reader& r, const json& v, const std::string& w) { r.out.max_turns = r.count(v, w); }},
    key_rule{"maxToolRounds", [](reader& r, const json& v, const std::string& w) { r.out.max_tool_rounds = r.count(v, w); }},
    key_rule{"timeoutSeconds", nullptr},
    key_rule{"maxChildren", nullptr},
    key_rule{"maxDepth", nullptr},
};
constexpr std::array budget_keys{
    key_rule{"maxCostUsd",
             [](reader& r, const json& v, const std::string& w) {
                 r.out.caps.cost.reset();
                 if (reader::unlimited(v)) return;
                 const double d = r.number(v, w);
                 const auto exact = usd::parse(v.as_number().text());  // nano-dollars without a detour over binary fractions
                 r.out.caps.cost = exact ? *exact : usd::from_double(d);
             }},
    key_rule{"maxTokens",
             [](reader& r, const json& v, const std::string& w) {
                 r.out.caps.tokens.reset();
                 if (reader::unlimited(v)) return;
                 const double d = r.number(v, w);
                 r.out.caps.tokens = d >= 0x1p64 ? std::numeric_limits<std::uint64_t>::max() : static_cast<std::uint64_t>(d);
             }},
    key_rule{"softRatio",
             [](reader& r, const json& v, const std::string& w) {
                 const double d = r.number(v, w);
                 if (!(d > 0 && d < 1)) fail(w, "must be strictly between 0 and 1");
                 r.out.soft_ratio = d;
             }},
    key_rule{"resources", nullptr},
    key_rule{"strict", nullptr},
    key_rule{"failClosedOnUnpriced", nullptr},
    key_rule{"sharedFile", nullptr},
    key_rule{"refreshOnCheck", nullptr},
};

void audit_path(reader& r, const json& v, const std::string& w)
{
    if (v.is_null()) {
        r.out.audit = policy_impl::audit_target::memory;
        return;
    }
    r.out.audit_path = r.text(v, w);
    if (r.out.audit_path.empty()) fail(w, "must not be empty; null keeps the log in memory");
    r.out.audit = policy_impl::audit_target::file;
}
constexpr std::array audit_keys{key_rule{"path", audit_path}};

template <std::size_t N>
void section(reader& r, const json& v, const std::string& name, const std::array<key_rule, N>& rules)
{
    if (v.is_null()) return;
    if (!v.is_object()) fail(name, "must be an object, not " + std::string(v.type_name()));
    for (const auto& [key, value] : v.as_object()) {
        const std::string where = name + '.' + key;
        const auto rule = std::find_if(rules.begin(), rules.end(), [&key = key](const key_rule& k) { return k.name == key; });
        if (rule == rules.end()) {
            std::array<std::string_view, N> known;
            std::transform(rules.begin(), rules.end(), known.begin(), [](const key_rule& k) { return k.name; });
            r.unknown(key, where, known);
        } else if (rule->apply == audit_path) {
            rule->apply(r, value, where);  // here null has a meaning of its own
        } else if (value.is_null()) {
            continue;  // not configured
        } else if (!rule->apply) {
            fail(where, "is not available in this version");
        } else {
            rule->apply(r, value, where);
        }
    }
}

constexpr std::array top_keys{
    key_rule{"tools", [](reader& r, const json& v, const std::string& w) { section(r, v, w, tools_keys); }},
    key_rule{"limits", [](reader& r, const json& v, const std::string& w) { section(r, v, w, limits_keys); }},
    key_rule{"budget", [](reader& r, const json& v, const std::string& w) { section(r, v, w, budget_keys); }},
    key_rule{"audit", [](reader& r, const json& v, const std::string& w) { section(r, v, w, audit_keys); }},
    key_rule{"runId", [](reader& r, const json& v, const std::string& w) { r.out.run_id = r.text(v, w); }},
    key_rule{"parentRunId", [](reader& r, const json& v, const std::string& w) { r.out.parent_run_id = r.text(v, w); }},
    key_rule{"rootRunId", nullptr},
    key_rule{"spawnDepth",
             [](reader& r, const json& v, const std::string& w) {
                 const std::optional<std::int64_t> n = v.get_int64();
                 if (!n || *n < 0 || *n > 1'000'000) fail(w, "must be an integer from 0 to 1000000");
                 r.out.spawn_depth = static_cast<int>(*n);
             }},
    key_rule{"humanChannelTimeoutMs",
             [](reader& r, const json& v, const std::string& w) {
                 constexpr double longest_ms = 9.2e12;  // what nanoseconds in 64 bits can hold
                 r.out.channel_timeout = std::chrono::nanoseconds(static_cast<std::int64_t>(std::min(r.number(v, w), longest_ms) * 1e6));
             }},
    key_rule{"allowUnknownKeys",
             [](reader&, const json& v, const std::string& w) {
                 if (!v.is_bool()) fail(w, "must be true or false");
             }},
    key_rule{"humanChannel", nullptr},
    key_rule{"content", nullptr},
    key_rule{"bash", nullptr},
    key_rule{"fs", nullptr},
    key_rule{"net", nullptr},
    key_rule{"secrets", nullptr},
    key_rule{"flags", nullptr},
    key_rule{"spawn", nullptr},
    key_rule{"defer", nullptr},
    key_rule{"axisB", nullptr},
    key_rule{"rwx", nullptr},
};

}  // namespace

gate_policy gate_policy::from_json(const json& config)
{
    auto built = std::make_shared<impl>();
    if (config.is_null()) return gate_policy(std::shared_ptr<const impl>(std::move(built)));
    if (!config.is_object()) throw config_error("gate: the configuration must be an object, not " + std::string(config.type_name()));
    reader r{*built};
    if (const json* flag = config.find("allowUnknownKeys")) r.allow_unknown = flag->get_bool().value_or(false);
    for (const auto& [key, value] : config.as_object()) {
        const auto rule = std::find_if(top_keys.begin(), top_keys.end(), [&key = key](const key_rule& k) { return k.name == key; });
        if (rule == top_keys.end()) {
            std::array<std::string_view, top_keys.size()> known;
            std::transform(top_keys.begin(), top_keys.end(), known.begin(), [](const key_rule& k) { return k.name; });
            r.unknown(key, key, known);
        } else if (!value.is_null()) {
            if (!rule->apply) fail(key, value.is_object() ? "this section is not available in this version" : "is not available in this version");
            rule->apply(r, value, key);
        }
    }
    return gate_policy(std::shared_ptr<const impl>(std::move(built)));
}

}  // namespace reagent::inline v0

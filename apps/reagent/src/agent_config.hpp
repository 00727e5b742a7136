#pragma once
#include <reagent/base/json.hpp>
#include <reagent/base/usd.hpp>
#include <reagent/governance/budget.hpp>
#include <reagent/governance/gate.hpp>
#include <reagent/model/pricing.hpp>

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace reagent_app {

/// Largest values taken, of keys and flags alike: a year, and what a double holds exactly.
inline constexpr std::uint64_t longest_ms = 1'000ULL * 3600 * 24 * 365;
inline constexpr std::uint64_t most_tokens = std::uint64_t{1} << 53U;
inline constexpr unsigned most_retries = 100;

/// What `reagent run` needs to know, from a file and from flags (docs/configuration.md). Flags win key by key.
class agent_config {
public:
    /// Reads a configuration file. Every error is a `config_error` that starts with the path and names the key; an unknown key names the nearest
    /// known one.
    static agent_config from_file(const std::string& path);
    static agent_config from_json(const reagent::json& j, const std::string& where);

    /// Checks what only the whole can tell: a provider we have, tools that are governed. `where` names the file, or is empty.
    void check(const std::string& where) const;
    /// The tightest of `budget` and `gate.budget`.
    reagent::budget_caps caps() const;

    std::string provider = "openai";
    std::string model;     ///< empty: the provider's own
    std::string base_url;  ///< likewise
    std::string system_prompt;
    std::vector<std::string> tools;
    std::optional<reagent::gate_policy> gate;
    std::vector<std::string> denied_tools;  ///< names and patterns of `gate.tools.denylist`
    bool ungoverned = false;
    reagent::budget_caps budget;
    std::optional<reagent::rates> rates;
    std::optional<std::uint64_t> max_tokens;
    std::optional<std::chrono::milliseconds> timeout;   ///< zero is off
    std::optional<std::chrono::milliseconds> deadline;  ///< of the whole run; zero is off
    std::optional<unsigned> tool_concurrency;
    unsigned retry = 0;                 ///< how often a failed model call is sent again
    std::vector<std::string> fallback;  ///< `PROVIDER` or `PROVIDER:MODEL`, asked in order when the first fails
};

}  // namespace reagent_app

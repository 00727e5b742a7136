#pragma once
#include <reagent/agent/tool.hpp>
#include <reagent/base/json.hpp>
#include <reagent/base/usd.hpp>
#include <reagent/model/pricing.hpp>

#include <string>
#include <vector>

namespace reagent_app {

/// What the demo's agents do: each serves a customer of a shop. Rounds one and two look at the stock and work out a sum, side by side; round
/// three answers. Some customers meet a fault of the model server.
inline constexpr std::uint64_t demo_max_tokens = 60;
inline constexpr std::size_t demo_least_agents = 20;  ///< fewer, and one reservation is too large a part of the cap

/// Fixtures for `reagent mock`.
reagent::json demo_fixtures();
/// The question of agent `n`, from 1.
std::string demo_question(std::size_t n);
std::string demo_system_prompt();
/// `check_stock` and `calculate`.
std::vector<reagent::tool> demo_tools();
/// These tools only, limits on turns and tool rounds.
reagent::json demo_gate();
reagent::rates demo_rates();
/// A cap that sees every run through two rounds and runs out in the third.
reagent::usd demo_cap(std::size_t agents);

}  // namespace reagent_app

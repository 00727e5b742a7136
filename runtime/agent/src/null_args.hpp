#pragma once
#include <reagent/base/json.hpp>

#include <string>
#include <vector>

namespace reagent::inline v0::agent_detail {

/// The properties of an object schema for which a null stands for an absent argument (spec/tools.md §1.3): not required, and their own schema
/// allows no null.
std::vector<std::string> null_means_absent(const json& parameters);

}  // namespace reagent::inline v0::agent_detail

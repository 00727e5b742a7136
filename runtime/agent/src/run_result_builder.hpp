#pragma once
#include <reagent/agent/run_result.hpp>
#include <reagent/agent/turn_machine.hpp>

#include <optional>
#include <string>

namespace reagent::inline v0 {

class run_result_builder {
public:
    static void fill(run_result& out, const turn_machine& machine, const run_metrics& metrics, const std::optional<std::string>& partial,
                     const std::string& run_id);
};

}  // namespace reagent::inline v0

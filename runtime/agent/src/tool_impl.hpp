#pragma once
#include <reagent/agent/tool.hpp>

#include <string>
#include <vector>

namespace reagent::inline v0 {

struct tool::impl {
    std::string name, description;
    json parameters;
    tool_function run;
    args_check check;                        ///< null: nothing beyond "an object"
    std::vector<std::string> optional_args;  ///< whose null means absent
    reagent::effect effect = reagent::effect::unset;
    reagent::trust trust = reagent::trust::unset;
    bool pinned = false, serial = false;
    std::size_t output_limit = 20'000;
};

}  // namespace reagent::inline v0

#pragma once
#include <reagent/agent/tool.hpp>
#include <reagent/builtins/builtin_options.hpp>

namespace reagent::inline v0 {

/// `think(thought)`: room to reason aloud; answers `noted` and does nothing else. Source: spec/tools.md §5.2.
tool think(builtin_options options = {});

}  // namespace reagent::inline v0

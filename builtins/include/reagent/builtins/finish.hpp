#pragma once
#include <reagent/agent/tool.hpp>
#include <reagent/builtins/builtin_options.hpp>

#include <optional>
#include <string>
#include <string_view>

namespace reagent::inline v0 {

/// `finish(answer)`: hands the final answer in; pinned. A blank answer fails with `blank_answer`. Source: spec/tools.md §5.2.
tool finish(builtin_options options = {});

/// Whether `result` is a completed call of the tool `name`; in a group the last `__` segment of the name counts.
bool is_finished(const tool_result& result, std::string_view name = "finish");
/// The answer of a finished call as the model gave it, so that a cut output cannot harm it; empty when not finished.
std::optional<std::string> answer_of(const tool_result& result, std::string_view name = "finish");

}  // namespace reagent::inline v0

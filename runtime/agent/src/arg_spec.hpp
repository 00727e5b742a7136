#pragma once
#include <reagent/agent/tool.hpp>

#include <string>
#include <vector>

namespace reagent::inline v0::agent_detail {

/// Rows 1–3, 4–8 with 12, and 14 of spec/tools.md §1.2; each throws `tool_error`.
void check_declaration(const std::string& name, const std::string& description);
void check_args_declaration(const std::string& tool_name, const std::vector<arg_spec>& args);
void check_run(const std::string& name, const tool_function& run);
/// JSON Schema of a list of arguments (spec/tools.md §3).
json schema_of(const std::vector<arg_spec>& args);
/// Every problem of an argument object (spec/tools.md §1.3).
std::vector<std::string> check_values(const std::vector<arg_spec>& specs, const json& args);

}  // namespace reagent::inline v0::agent_detail

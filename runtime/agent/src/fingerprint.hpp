#pragma once
#include <reagent/model/message.hpp>

#include <string>

namespace reagent::inline v0::agent_detail {

/// Name and arguments as the failure guard compares them: insertion order, numbers by value (`1.0` is `1`).
std::string failure_fingerprint(const tool_call& call);
/// Name and canonical arguments as the identical-call guard compares them.
std::string call_fingerprint(const tool_call& call);

}  // namespace reagent::inline v0::agent_detail

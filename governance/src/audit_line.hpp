#pragma once
#include <reagent/base/json.hpp>

#include <cstddef>
#include <string>

namespace reagent::inline v0::governance_detail {

/// Replaces secrets in the fields of an audit line that may hold foreign text. spec/governance.md §6.
void redact_line(json& line);

/// The line as text with its newline, at most `limit` bytes: an oversize one loses detail in the four steps of spec/governance.md §7, counted
/// in UTF-8 bytes and never splitting a character.
std::string fit_line(json line, std::size_t limit);

}  // namespace reagent::inline v0::governance_detail

// Text constraints of a schema. valijson would match them with std::regex, which recurses once per character and can be driven into exponential
// time; here RE2 does it, in linear time and constant stack. Names under `patternProperties` stay with valijson: there only harmless patterns are taken.
#pragma once
#include <reagent/base/json.hpp>

#include <string>

namespace valijson {
class SchemaParser;
}

namespace reagent::inline v0::base_detail {

/// A copy of a schema whose `pattern` and `format` are ours to check. `problem` is set to the first pattern that cannot be used.
struct text_schema {
    explicit text_schema(const json& schema);
    json rewritten;
    std::string problem;
    bool matches_keys = false;  ///< has `patternProperties`, which valijson still matches with std::regex
};

/// Property names longer than this are not given to `patternProperties`.
inline constexpr std::size_t longest_matched_key = 256;

void add_text_constraints(valijson::SchemaParser& parser);
/// Whether a property name of `value` is longer than `longest_matched_key`; `path` then says where.
bool has_long_key(const json& value, std::string& path);

}  // namespace reagent::inline v0::base_detail

#pragma once
#include <reagent/base/json.hpp>

#include <memory>
#include <string>
#include <vector>

namespace reagent::inline v0 {

/// A compiled JSON Schema (draft 7 subset that valijson checks). Immutable, thread safe.
class json_schema {
public:
    /// A schema that accepts everything.
    json_schema() = default;
    /// Errors: `errc::invalid_argument`. `problem` says in a sentence what is unusable.
    static boost::system::result<json_schema> compile(const json& schema);
    static boost::system::result<json_schema> compile(const json& schema, std::string& problem);
    /// Names under `patternProperties` are matched by backtracking, so their patterns may have one group and one repetition (of one character) at most.
    /// Every violation as `path: what`, empty when the value conforms. Patterns are RE2's dialect; under a schema with `patternProperties` a
    /// property name of more than 256 bytes is a violation.
    std::vector<std::string> violations(const json& value) const;

private:
    struct impl;
    std::shared_ptr<const impl> impl_;
};

}  // namespace reagent::inline v0

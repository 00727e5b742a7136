#pragma once
#include <reagent/base/json.hpp>

#include <memory>
#include <string>
#include <vector>

namespace reagent::inline v0 {

/// A compiled JSON Schema (draft 7 subset that valijson checks). Immutable, thread safe.
class json_schema {
public:
    /// Errors: `errc::invalid_argument` naming where the schema is unusable.
    static boost::system::result<json_schema> compile(const json& schema);
    /// Every violation as `path: what`, empty when the value conforms.
    std::vector<std::string> violations(const json& value) const;

private:
    struct impl;
    std::shared_ptr<const impl> impl_;
};

}  // namespace reagent::inline v0

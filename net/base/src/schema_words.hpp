#pragma once
#include <reagent/base/json.hpp>

#include <string>
#include <string_view>
#include <vector>

namespace reagent::inline v0::base_detail {

/// Where a violation is: the steps into the value, the part of the value there (null when absent) and the part of the schema that judges it.
class violation_place {
public:
    violation_place(const json& schema, const json& value);
    void step(const std::string& key_or_index);
    std::string path() const { return path_.empty() ? "value" : path_; }
    /// The path of a member of this place.
    std::string path_to(std::string_view member) const { return path_.empty() ? std::string(member) : path_ + "." + std::string(member); }
    const json& value() const noexcept { return *value_; }
    const json& schema() const noexcept { return *schema_; }

private:
    const json* root_;
    const json* schema_;
    const json* value_;
    std::string path_;
};

/// valijson's sentence about a place in words that say what is wanted; empty for sentences that only repeat what an inner one says.
std::string violation_in_words(const violation_place& place, std::string_view sentence);

/// `integer`, `string or null`, `one of "a", "b"`: what a schema asks for, empty when it names nothing short.
std::string wanted_by(const json& schema);

}  // namespace reagent::inline v0::base_detail

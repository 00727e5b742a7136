#include "null_args.hpp"

#include <reagent/base/schema.hpp>

#include <algorithm>
#include <string_view>

namespace reagent::inline v0::agent_detail {
namespace {

/// A schema that refers to itself is followed this far.
constexpr int max_references = 16;

bool is_null_type(const json& type)
{
    return type.is_string() && type.as_string() == "null";
}

bool allows_null(const json& root, const json& schema, int references_left)
{
    if (schema.is_bool()) return schema.as_bool();
    if (!schema.is_object()) return true;
    const auto allows = [&](const json& s) { return allows_null(root, s, references_left); };
    for (const auto& [key, value] : schema.as_object()) {
        bool good = true;
        if (key == "type") good = value.is_array() ? std::ranges::any_of(value.as_array(), is_null_type) : is_null_type(value);
        else if (key == "enum") good = value.is_array() && std::ranges::any_of(value.as_array(), [](const json& e) { return e.is_null(); });
        else if (key == "const") good = value.is_null();
        else if ((key == "anyOf" || key == "oneOf") && value.is_array()) good = std::ranges::any_of(value.as_array(), allows);
        else if (key == "allOf" && value.is_array()) good = std::ranges::all_of(value.as_array(), allows);
        else if (key == "$ref" && value.is_string()) {
            const json* target = schema_reference(root, value.as_string());
            good = target == nullptr || references_left == 0 || allows_null(root, *target, references_left - 1);
        }
        if (!good) return false;
    }
    return true;
}

}  // namespace

std::vector<std::string> null_means_absent(const json& parameters)
{
    std::vector<std::string> names;
    const json* properties = parameters.find("properties");
    if (properties == nullptr || !properties->is_object()) return names;
    const json* required = parameters.find("required");
    for (const auto& [name, schema] : properties->as_object()) {
        const auto same = [&](const json& r) { return r.is_string() && r.as_string() == name; };
        const bool needed = required != nullptr && required->is_array() && std::ranges::any_of(required->as_array(), same);
        if (!needed && !allows_null(parameters, schema, max_references)) names.push_back(name);
    }
    return names;
}

}  // namespace reagent::inline v0::agent_detail

#include "schema_adapter.hpp"
#include "schema_text.hpp"
#include "schema_words.hpp"

#include <reagent/base/error.hpp>
#include <reagent/base/schema.hpp>
#include <reagent/base/untrusted_text.hpp>

#include <valijson/schema.hpp>
#include <valijson/schema_parser.hpp>
#include <valijson/validation_results.hpp>
#include <valijson/validator.hpp>

#include <algorithm>
#include <set>

namespace reagent::inline v0 {
namespace {

/// References that lead to references, without end or for very long: valijson would follow them down its stack. The first of them, else empty.
std::string endless_reference(const json& root, const json& schema)
{
    constexpr int longest_chain = 64;
    if (const std::string* first = schema["$ref"].get_string()) {
        const json* at = &schema;
        int hops = 0;
        for (const std::string* ref = first; at != nullptr && ref != nullptr && hops <= longest_chain; ++hops) {
            at = schema_reference(root, *ref);
            ref = at == nullptr ? nullptr : (*at)["$ref"].get_string();
        }
        if (hops > longest_chain) return *first;
    }
    if (schema.is_object()) {
        for (const json::member& m : schema.as_object())
            if (std::string found = endless_reference(root, m.second); !found.empty()) return found;
    } else if (schema.is_array()) {
        for (const json& e : schema.as_array())
            if (std::string found = endless_reference(root, e); !found.empty()) return found;
    }
    return {};
}

}  // namespace

struct json_schema::impl {
    explicit impl(json s) : source(std::move(s)) {}
    json source;
    valijson::Schema compiled;
    bool matches_keys = false;
};

boost::system::result<json_schema> json_schema::compile(const json& schema)
{
    std::string ignored;
    return compile(schema, ignored);
}

boost::system::result<json_schema> json_schema::compile(const json& schema, std::string& problem)
{
    const boost::system::error_code bad = errc::invalid_argument;
    if (!schema.is_object()) {
        problem = "a schema must be an object, not " + std::string(schema.type_name());
        return bad;
    }
    if (const std::string ring = endless_reference(schema, schema); !ring.empty()) {
        problem = "the reference " + untrusted_text(ring, 100) + " leads to references only";
        return bad;
    }
    const base_detail::text_schema text(schema);
    if (!text.problem.empty()) {
        problem = text.problem;
        return bad;
    }
    const auto made = std::make_shared<impl>(schema);
    made->matches_keys = text.matches_keys;
    try {
        valijson::SchemaParser parser;
        base_detail::add_text_constraints(parser);
        parser.populateSchema(base_detail::schema_adapter(text.rewritten), made->compiled);
    } catch (const std::exception& e) {
        problem = e.what();
        return bad;
    }
    json_schema result;
    result.impl_ = made;
    return result;
}

std::vector<std::string> json_schema::violations(const json& value) const
{
    std::vector<std::string> out;
    if (!impl_) return out;
    std::string long_key;
    if (impl_->matches_keys && base_detail::has_long_key(value, long_key)) {
        out.push_back(long_key + ": the name is longer than the " + std::to_string(base_detail::longest_matched_key) +
                      " bytes that can be matched against a pattern");
        return out;
    }
    valijson::Validator validator;
    valijson::ValidationResults results;
    if (validator.validate(impl_->compiled, base_detail::schema_adapter(value), &results)) return out;
    // A combination reports the complaints of its branches before its own; only its own helps.
    std::set<std::vector<std::string>> combined;
    for (const valijson::ValidationResults::Error& e : results) {
        if (e.description.find("allowed by anyOf") != std::string::npos || e.description.find("allowed by oneOf") != std::string::npos)
            combined.insert(e.context);
    }
    for (const valijson::ValidationResults::Error& e : results) {
        base_detail::violation_place place(impl_->source, value);
        // The first step is the root; the others are wrapped in brackets.
        for (std::size_t i = 1; i < e.context.size(); ++i) place.step(e.context[i].substr(1, e.context[i].size() - 2));
        const bool branch =
            combined.contains(e.context) && e.description.find(" constraint.") != std::string::npos && e.description.find("Of constraint") == std::string::npos;
        if (branch && !base_detail::wanted_by(place.schema()).empty()) continue;
        std::string words = base_detail::violation_in_words(place, e.description);
        if (!words.empty() && std::find(out.begin(), out.end(), words) == out.end()) out.push_back(std::move(words));
    }
    if (out.empty()) out.emplace_back("value: does not match the schema");
    return out;
}

}  // namespace reagent::inline v0

#include "schema_adapter.hpp"
#include "schema_words.hpp"

#include <reagent/base/error.hpp>
#include <reagent/base/schema.hpp>

#include <valijson/schema.hpp>
#include <valijson/schema_parser.hpp>
#include <valijson/validation_results.hpp>
#include <valijson/validator.hpp>

#include <algorithm>
#include <regex>
#include <set>

namespace reagent::inline v0 {
namespace {

// valijson matches patterns with std::regex, which recurses once per character: longer text would run the stack over.
constexpr std::size_t longest_matched_text = 4096;

// Where patterns are: the nearest property names above them. `$defs` may be used anywhere, so they count for every name.
struct pattern_places {
    std::set<std::string, std::less<>> names;
    bool anywhere = false;
    bool keys = false;
    std::string broken;  // the first pattern that is no regular expression

    void try_pattern(const std::string& pattern, const std::string& name)
    {
        try {
            const std::regex compiled(pattern);
        } catch (const std::regex_error&) {
            if (broken.empty()) broken = name + ": not a regular expression: " + pattern;
        }
    }
    void scan(const json& schema, const std::string& name)
    {
        if (schema.is_array()) {
            for (const json& s : schema.as_array()) scan(s, name);
            return;
        }
        if (!schema.is_object()) return;
        for (const json::member& m : schema.as_object()) {
            if (m.first == "enum" || m.first == "const" || m.first == "default" || m.first == "examples") continue;
            if (m.first == "pattern" && m.second.is_string()) {
                names.insert(name);
                try_pattern(m.second.as_string(), name);
            } else if (m.first == "format") names.insert(name);
            else if (m.first == "$defs" || m.first == "definitions") {
                pattern_places inside;
                inside.scan_members(m.second);
                anywhere = anywhere || !inside.names.empty() || inside.anywhere;
                keys = keys || inside.keys;
                if (broken.empty()) broken = inside.broken;
            } else if (m.first == "properties") scan_members(m.second);
            else if (m.first == "patternProperties" && m.second.is_object()) {
                keys = true;
                for (const json::member& p : m.second.as_object()) try_pattern(p.first, name);
                pattern_places inside;
                inside.scan_members(m.second);
                anywhere = anywhere || !inside.names.empty();
            } else if (m.first == "propertyNames") {
                keys = true;
                scan(m.second, name);
            } else if (m.first == "additionalProperties") {
                pattern_places inside;
                inside.scan(m.second, name);
                anywhere = anywhere || !inside.names.empty() || inside.anywhere;
            } else scan(m.second, name);
        }
    }
    void scan_members(const json& members)
    {
        if (!members.is_object()) return;
        for (const json::member& m : members.as_object()) scan(m.second, m.first);
    }
    bool none() const noexcept { return names.empty() && !anywhere && !keys; }

    // The first text of the value that is too long for the pattern it may meet, as a path.
    std::string too_long(const json& value, const std::string& name, const std::string& path) const
    {
        if (const std::string* s = value.get_string()) {
            return s->size() > longest_matched_text && (anywhere || names.contains(name)) ? path : std::string();
        }
        if (value.is_array()) {
            for (std::size_t i = 0; i < value.size(); ++i) {
                std::string found = too_long(value[i], name, path + "[" + std::to_string(i) + "]");
                if (!found.empty()) return found;
            }
        } else if (value.is_object()) {
            for (const json::member& m : value.as_object()) {
                if (keys && m.first.size() > longest_matched_text) return path;
                std::string found = too_long(m.second, m.first, path == "value" ? m.first : path + "." + m.first);
                if (!found.empty()) return found;
            }
        }
        return {};
    }
};

}  // namespace

struct json_schema::impl {
    explicit impl(json s) : source(std::move(s)) {}
    json source;
    valijson::Schema compiled;
    pattern_places patterns;
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
    const auto made = std::make_shared<impl>(schema);
    made->patterns.scan(schema, "");
    if (!made->patterns.broken.empty()) {
        problem = made->patterns.broken;
        return bad;
    }
    try {
        valijson::SchemaParser parser;
        parser.populateSchema(base_detail::schema_adapter(made->source), made->compiled);
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
    if (!impl_->patterns.none()) {
        const std::string place = impl_->patterns.too_long(value, "", "value");
        if (!place.empty()) {
            out.push_back(place + ": is longer than the " + std::to_string(longest_matched_text) + " bytes that can be matched against its pattern");
            return out;
        }
    }
    valijson::Validator validator;
    valijson::ValidationResults results;
    if (validator.validate(impl_->compiled, base_detail::schema_adapter(value), &results)) return out;
    // A combination reports the complaints of its branches before its own; only its own helps.
    std::set<std::vector<std::string>> combined;
    for (const valijson::ValidationResults::Error& e : results) {
        if (e.description.find("allowed by anyOf") != std::string::npos || e.description.find("allowed by oneOf") != std::string::npos) combined.insert(e.context);
    }
    for (const valijson::ValidationResults::Error& e : results) {
        base_detail::violation_place place(impl_->source, value);
        // The first step is the root; the others are wrapped in brackets.
        for (std::size_t i = 1; i < e.context.size(); ++i) place.step(e.context[i].substr(1, e.context[i].size() - 2));
        const bool branch = combined.contains(e.context) && e.description.find(" constraint.") != std::string::npos &&
                            e.description.find("Of constraint") == std::string::npos;
        if (branch && !base_detail::wanted_by(place.schema()).empty()) continue;
        std::string words = base_detail::violation_in_words(place, e.description);
        if (!words.empty() && std::find(out.begin(), out.end(), words) == out.end()) out.push_back(std::move(words));
    }
    if (out.empty()) out.emplace_back("value: does not match the schema");
    return out;
}

}  // namespace reagent::inline v0

#include "schema_text.hpp"

#include <reagent/base/time_text.hpp>
#include <reagent/base/untrusted_text.hpp>

#include <re2/re2.h>
#include <valijson/constraint_builder.hpp>
#include <valijson/constraints/concrete_constraints.hpp>
#include <valijson/internal/adapter.hpp>
#include <valijson/schema_parser.hpp>
#include <valijson/validation_results.hpp>

#include <memory>
#include <new>
#include <regex>
#include <utility>

namespace reagent::inline v0::base_detail {
namespace {

constexpr const char* pattern_key = "x-reagent-pattern";
constexpr const char* format_key = "x-reagent-format";

// ECMAScript's \uXXXX in RE2's spelling.
std::string translated(const std::string& pattern)
{
    std::string out;
    for (std::size_t i = 0; i < pattern.size(); ++i) {
        if (pattern[i] == '\\' && i + 5 < pattern.size() && pattern[i + 1] == 'u' && pattern.find_first_not_of("0123456789abcdefABCDEF", i + 2) >= i + 6) {
            out += "\\x{" + pattern.substr(i + 2, 4) + "}";
            i += 5;
            continue;
        }
        out.push_back(pattern[i]);
        if (pattern[i] == '\\' && i + 1 < pattern.size()) out.push_back(pattern[++i]);
    }
    return out;
}

std::shared_ptr<const RE2> compiled(const std::string& pattern)
{
    RE2::Options options;
    options.set_log_errors(false);
    return std::make_shared<const RE2>(translated(pattern), options);
}

class text_constraint : public valijson::constraints::PolyConstraint {
public:
    bool validate(const valijson::adapters::Adapter& target, const std::vector<std::string>& context, valijson::ValidationResults* results) const override
    {
        if (!target.isString() || fits(target.asString())) return true;
        if (results) results->pushError(context, sentence());
        return false;
    }

private:
    virtual bool fits(const std::string& text) const = 0;
    virtual std::string sentence() const = 0;
};

class pattern_constraint final : public text_constraint {
public:
    explicit pattern_constraint(std::shared_ptr<const RE2> p) : pattern_(std::move(p)) {}

private:
    bool fits(const std::string& text) const override { return RE2::PartialMatch(text, *pattern_); }
    std::string sentence() const override { return "Failed to match regex specified by 'pattern' constraint."; }
    Constraint* cloneInto(void* place) const override { return new (place) pattern_constraint(*this); }
    std::size_t sizeOf() const override { return sizeof *this; }
    std::shared_ptr<const RE2> pattern_;
};

class format_constraint final : public text_constraint {
public:
    explicit format_constraint(std::string name) : name_(std::move(name)) {}

private:
    // Other formats are notes for people, as the standard has it.
    bool fits(const std::string& text) const override
    {
        if (name_ == "date-time") return parse_rfc3339(text).has_value();
        if (name_ == "date") return text.size() == 10 && parse_rfc3339(text + "T00:00:00Z").has_value();
        return true;
    }
    std::string sentence() const override { return "String should be a valid " + name_; }
    Constraint* cloneInto(void* place) const override { return new (place) format_constraint(*this); }
    std::size_t sizeOf() const override { return sizeof *this; }
    std::string name_;
};

class pattern_builder final : public valijson::ConstraintBuilder {
public:
    valijson::constraints::Constraint* make(const valijson::adapters::Adapter& value) const override
    {
        return new pattern_constraint(compiled(value.asString()));
    }
};

class format_builder final : public valijson::ConstraintBuilder {
public:
    valijson::constraints::Constraint* make(const valijson::adapters::Adapter& value) const override { return new format_constraint(value.asString()); }
};

// Why valijson's std::regex must not match names with this pattern; empty when it may. With one repetition of one character at most and one group that is not
// repeated, it can try no more ways than the square of the name's length.
std::string too_much_for_names(const std::string& pattern)
{
    const std::shared_ptr<const RE2> read = compiled(pattern);
    if (!read->ok()) return read->error();
    std::size_t groups = 0, repetitions = 0;
    bool in_class = false, after_group = false;
    for (std::size_t i = 0; i < pattern.size(); ++i) {
        const char c = pattern[i];
        const bool closed = std::exchange(after_group, false);
        if (c == '\\') ++i;
        else if (in_class) in_class = c != ']';
        else if (c == '[') in_class = true;
        else if (c == '(') ++groups;
        else if (c == ')') after_group = true;
        else if (c == '*' || c == '+' || c == '?' || c == '{') repetitions += closed ? 2 : 1;
    }
    if (groups > 1 || repetitions > 1) return "names are matched with one repetition of one character and one group at most";
    return {};
}

// What holds data, not schemas.
bool holds_data(std::string_view key)
{
    return key == "enum" || key == "const" || key == "default" || key == "examples";
}
// What holds schemas under names of the author's choice.
bool holds_named_schemas(std::string_view key)
{
    return key == "properties" || key == "patternProperties" || key == "$defs" || key == "definitions" || key == "dependentSchemas";
}

void rewrite(json& schema, const std::string& name, text_schema& out);

void rewrite_members(json& members, text_schema& out)
{
    if (!members.is_object()) return;
    for (json::member& m : members.as_object()) rewrite(m.second, m.first, out);
}

void rewrite(json& schema, const std::string& name, text_schema& out)
{
    if (schema.is_array()) {
        for (json& s : schema.as_array()) rewrite(s, name, out);
        return;
    }
    if (!schema.is_object()) return;
    for (json::member& m : schema.as_object()) {
        const auto refuse = [&](const std::string& pattern, const std::string& why) {
            if (out.problem.empty()) out.problem = (name.empty() ? "the schema" : name) + ": unusable pattern " + untrusted_text(pattern, 100) + ": " + why;
        };
        if (holds_data(m.first)) continue;
        if (m.first == "pattern" && m.second.is_string()) {
            const std::shared_ptr<const RE2> pattern = compiled(m.second.as_string());
            if (!pattern->ok()) refuse(m.second.as_string(), pattern->error());
            m.first = pattern_key;
        } else if (m.first == "format" && m.second.is_string()) m.first = format_key;
        else if (holds_named_schemas(m.first)) {
            if (m.first == "patternProperties" && m.second.is_object()) {
                out.matches_keys = true;
                for (const json::member& p : m.second.as_object()) {
                    const std::string why = too_much_for_names(p.first);
                    if (!why.empty()) {
                        refuse(p.first, why);
                        continue;
                    }
                    try {
                        const std::regex tried(p.first);
                    } catch (const std::regex_error& e) {
                        refuse(p.first, e.what());
                    }
                }
            }
            rewrite_members(m.second, out);
        } else rewrite(m.second, name, out);
    }
}

}  // namespace

text_schema::text_schema(const json& schema) : rewritten(schema)
{
    rewrite(rewritten, {}, *this);
}

void add_text_constraints(valijson::SchemaParser& parser)
{
    parser.addConstraintBuilder(pattern_key, std::make_unique<pattern_builder>().release());
    parser.addConstraintBuilder(format_key, std::make_unique<format_builder>().release());
}

bool has_long_key(const json& value, std::string& path)
{
    const std::string here = path;
    if (value.is_array()) {
        for (std::size_t i = 0; i < value.size(); ++i) {
            path = here + "[" + std::to_string(i) + "]";
            if (has_long_key(value[i], path)) return true;
        }
    } else if (value.is_object()) {
        for (const json::member& m : value.as_object()) {
            path = (here.empty() ? "" : here + ".") + untrusted_text(m.first, 40);
            if (m.first.size() > longest_matched_key || has_long_key(m.second, path)) return true;
        }
    }
    path = here;
    return false;
}

}  // namespace reagent::inline v0::base_detail

#include "arg_spec.hpp"

#include <reagent/agent/described.hpp>
#include <reagent/base/blank.hpp>

#include <algorithm>
#include <cmath>

namespace reagent::inline v0::agent_detail {
namespace {

constexpr std::size_t max_tool_name = 64;
constexpr std::int64_t max_safe_integer = (std::int64_t(1) << 53) - 1;

bool is_identifier(std::string_view text)
{
    const auto letter = [](char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_'; };
    const auto digit = [](char c) { return c >= '0' && c <= '9'; };
    if (text.empty() || !letter(text.front())) return false;
    return std::ranges::all_of(text, [&](char c) { return letter(c) || digit(c); });
}

std::string quote(std::string_view text)
{
    std::string out;
    append_json_string(out, text);
    return out;
}

void check_arg(const std::string& tool_name, const std::vector<arg_spec>& args, std::size_t i)
{
    const arg_spec& arg = args[i];
    const std::string where = "tool " + quote(tool_name) + ": argument " + quote(arg.name);
    if (!is_identifier(arg.name)) throw tool_error("arg_bad_name", where + " is not a name ([A-Za-z_][A-Za-z0-9_]*)");
    for (std::size_t j = 0; j < i; ++j)
        if (args[j].name == arg.name) throw tool_error("arg_duplicate", where + " is declared twice");
    if (arg.type != arg_type::enumeration) return;
    if (arg.options.empty()) throw tool_error("enum_no_options", where + " is an enum without options");
    for (std::size_t j = 0; j < arg.options.size(); ++j) {
        if (is_blank(arg.options[j])) throw tool_error("enum_blank_option", where + " has a blank option");
        for (std::size_t k = 0; k < j; ++k)
            if (arg.options[k] == arg.options[j]) throw tool_error("enum_duplicate_option", where + " repeats the option " + quote(arg.options[j]));
    }
}

json schema_of(const arg_spec& arg)
{
    json schema = json::object();
    switch (arg.type) {
    case arg_type::string: schema.set("type", "string"); break;
    case arg_type::number: schema.set("type", "number"); break;
    case arg_type::boolean: schema.set("type", "boolean"); break;
    case arg_type::integer: schema.set("type", "integer"); break;
    case arg_type::object: schema.set("type", "object"); break;
    case arg_type::strings: schema.set("type", "array").set("items", json::object().set("type", "string")); break;
    case arg_type::enumeration: {
        json options = json::array();
        for (const std::string& o : arg.options) options.push_back(o);
        schema.set("type", "string").set("enum", std::move(options));
        break;
    }
    }
    if (!is_blank(arg.description)) schema.set("description", arg.description);
    return schema;
}

void check_value(const arg_spec& arg, const json& value, std::vector<std::string>& problems)
{
    const auto expect = [&](bool good, std::string_view wanted) {
        if (!good) problems.push_back(problem_type(arg.name, wanted, value));
    };
    switch (arg.type) {
    case arg_type::string: expect(value.is_string(), "a string"); break;
    case arg_type::boolean: expect(value.is_bool(), "a boolean"); break;
    case arg_type::object: expect(value.is_object(), "an object"); break;
    case arg_type::number: {
        const auto d = value.get_double();
        expect(d && std::isfinite(*d), "a finite number");
        break;
    }
    case arg_type::integer: {
        const auto i = value.get_int64();
        if (i && (*i > max_safe_integer || *i < -max_safe_integer))
            problems.push_back(problem_range(arg.name, std::to_string(-max_safe_integer), std::to_string(max_safe_integer), value));
        else expect(i.has_value(), "an integer");
        break;
    }
    case arg_type::strings: {
        const bool good = value.is_array() && std::ranges::all_of(value.as_array(), [](const json& e) { return e.is_string(); });
        expect(good, "an array of strings");
        break;
    }
    case arg_type::enumeration: {
        const bool good = value.is_string() && std::ranges::find(arg.options, value.as_string()) != arg.options.end();
        if (!good) problems.push_back(problem_enum(arg.name, arg.options, value));
        break;
    }
    }
}

}  // namespace

void check_declaration(const std::string& name, const std::string& description)
{
    if (!is_identifier(name)) throw tool_error("tool_bad_name", "tool name " + quote(name) + " is not a name ([A-Za-z_][A-Za-z0-9_]*)");
    if (name.size() > max_tool_name)
        throw tool_error("tool_name_too_long", "tool name " + quote(name) + " is over " + std::to_string(max_tool_name) + " characters");
    if (is_blank(description)) throw tool_error("tool_no_description", "tool " + quote(name) + " has no description");
}

void check_run(const std::string& name, const tool_function& run)
{
    if (!run) throw tool_error("run_missing", "tool " + quote(name) + " has nothing to run");
}

void check_args_declaration(const std::string& tool_name, const std::vector<arg_spec>& args)
{
    for (std::size_t i = 0; i < args.size(); ++i) check_arg(tool_name, args, i);
    for (const arg_spec& arg : args)
        if (arg.type != arg_type::enumeration && !arg.options.empty())
            throw tool_error("options_not_enum", "tool " + quote(tool_name) + ": argument " + quote(arg.name) + " has options but is no enum");
}

json schema_of(const std::vector<arg_spec>& args)
{
    json properties = json::object(), required = json::array();
    for (const arg_spec& arg : args) {
        properties.set(arg.name, schema_of(arg));
        if (arg.required) required.push_back(arg.name);
    }
    return json::object()
        .set("type", "object")
        .set("properties", std::move(properties))
        .set("required", std::move(required))
        .set("additionalProperties", false);
}

std::vector<std::string> check_values(const std::vector<arg_spec>& specs, const json& args)
{
    std::vector<std::string> problems, declared;
    for (const arg_spec& spec : specs) {
        declared.push_back(spec.name);
        const json* value = args.find(spec.name);
        if (value != nullptr) check_value(spec, *value, problems);
        else if (spec.required) problems.push_back(problem_missing(spec.name));
    }
    problem_undeclared("", args, declared, problems);
    return problems;
}

}  // namespace reagent::inline v0::agent_detail

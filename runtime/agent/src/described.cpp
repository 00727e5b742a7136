#include <reagent/agent/described.hpp>
#include <reagent/base/ascii.hpp>
#include <reagent/base/untrusted_text.hpp>

#include <algorithm>

namespace reagent::inline v0::agent_detail {
namespace {

std::string quoted(std::string_view path)
{
    // The whole argument object has no name of its own.
    if (path.empty()) return "arguments";
    std::string out = "\"";
    out += path;
    out += '"';
    return out;
}

/// A value as a message shows it: short, printable.
std::string shown(const json& value)
{
    if (value.is_string() || value.is_number() || value.is_bool()) return untrusted_text(value.dump(), 60);
    return std::string(value.type_name());
}

}  // namespace

std::string field_path(std::string_view parent, std::string_view name)
{
    std::string out(parent);
    if (!out.empty()) out += '.';
    out += name;
    return out;
}

std::string element_path(std::string_view parent, std::size_t index)
{
    return std::string(parent) + '[' + std::to_string(index) + ']';
}

std::string problem_type(std::string_view path, std::string_view wanted, const json& got)
{
    return quoted(path) + " must be " + std::string(wanted) + ", got " + std::string(got.type_name());
}

std::string problem_missing(std::string_view path)
{
    return quoted(path) + " is required";
}

std::string problem_enum(std::string_view path, const std::vector<std::string>& options, const json& got)
{
    std::string out = quoted(path) + " must be one of ";
    for (std::size_t i = 0; i < options.size(); ++i) {
        if (i != 0) out += ", ";
        out += options[i];
    }
    out += ", got " + shown(got);
    if (got.is_string()) {
        const auto meant = std::ranges::find_if(options, [&](const std::string& o) { return equal_but_case(o, got.as_string()); });
        if (meant != options.end()) out += " (case matters: \"" + *meant + "\")";
    }
    return out;
}

std::string problem_range(std::string_view path, std::string_view lowest, std::string_view highest, const json& got)
{
    return quoted(path) + " must be between " + std::string(lowest) + " and " + std::string(highest) + ", got " + shown(got);
}

void problem_undeclared(std::string_view path, const json& object, const std::vector<std::string>& declared, std::vector<std::string>& problems)
{
    for (const auto& [name, value] : object.as_object()) {
        if (std::ranges::find(declared, name) != declared.end()) continue;
        problems.push_back(quoted(field_path(path, untrusted_text(name, 60))) + " is not an argument");
    }
}

}  // namespace reagent::inline v0::agent_detail

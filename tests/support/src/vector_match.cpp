#include <reagent/testing/vector_match.hpp>

#include <reagent/base/error.hpp>

#include <boost/regex.hpp>

#include <algorithm>
#include <fstream>

namespace reagent::inline v0::testing {
namespace {

std::string shown(const json* value)
{
    if (!value) return "(absent)";
    std::string text = value->dump();
    if (text.size() > 300) text.replace(300, std::string::npos, "…");
    return text;
}

std::string differs(std::string_view path, const std::string& wanted, const json* answer)
{
    return std::string(path) + ": expected " + wanted + ", got " + shown(answer);
}

std::size_t scalar_values(std::string_view text)
{
    return static_cast<std::size_t>(std::ranges::count_if(text, [](char c) { return (static_cast<unsigned char>(c) & 0xC0U) != 0x80U; }));
}

/// Boost.Regex rather than std::regex: it knows look-ahead too and does not recurse once per character.
bool matches_somewhere(const std::string& pattern, const std::string& text)
{
    return boost::regex_search(text, boost::regex(pattern, boost::regex::ECMAScript | boost::regex::no_mod_m));
}

}  // namespace

std::string vector_mismatch(const json& expected, const json* answer, std::string_view path)
{
    if (expected.is_object() && expected.size() == 1 && expected.as_object()[0].first.starts_with('$')) {
        const auto& [matcher, operand] = expected.as_object()[0];
        if (matcher == "$absent") return answer ? differs(path, "no such member", answer) : std::string();
        const std::string* text = answer ? answer->get_string() : nullptr;
        bool met = false;
        if (matcher == "$contains") met = text && text->find(operand.as_string()) != std::string::npos;
        else if (matcher == "$re") met = text && matches_somewhere(operand.as_string(), *text);
        else if (matcher == "$len") met = text && scalar_values(*text) == operand.get_uint64();
        else return std::string(path) + ": unknown matcher " + matcher;
        return met ? std::string() : differs(path, shown(&expected), answer);
    }
    if (!answer) return differs(path, shown(&expected), answer);
    if (expected.is_object()) {
        if (!answer->is_object()) return differs(path, "an object", answer);
        for (const auto& [key, value] : expected.as_object()) {
            std::string why = vector_mismatch(value, answer->find(key), std::string(path) + "." + key);
            if (!why.empty()) return why;
        }
        return {};
    }
    if (expected.is_array()) {
        if (!answer->is_array() || answer->size() != expected.size()) return differs(path, shown(&expected), answer);
        for (std::size_t i = 0; i < expected.size(); ++i) {
            std::string why = vector_mismatch(expected[i], &answer->as_array()[i], std::string(path) + "[" + std::to_string(i) + "]");
            if (!why.empty()) return why;
        }
        return {};
    }
    if (expected.is_number())
        return answer->is_number() && expected.get_double() == answer->get_double() ? std::string() : differs(path, shown(&expected), answer);
    return expected == *answer ? std::string() : differs(path, shown(&expected), answer);
}

std::vector<vector_case> read_vectors(const std::string& path)
{
    std::ifstream file(path);
    if (!file) throw error(errc::not_found, "cannot open the cases " + path);
    std::vector<vector_case> cases;
    for (std::string line; std::getline(file, line);) {
        if (line.empty()) continue;
        json j = json::parse_or_throw(line, path);
        vector_case c;
        c.id = j["id"].as_string();
        c.in = j["in"];
        c.out = j["out"];
        cases.push_back(std::move(c));
    }
    return cases;
}

}  // namespace reagent::inline v0::testing

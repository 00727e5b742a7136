/// Described structs (Boost.Describe) to and from JSON, and their JSON Schema. What `make_tool` is made of; useful on its own.
#pragma once
#include <reagent/base/json.hpp>

#include <boost/describe.hpp>
#include <boost/mp11.hpp>

#include <cmath>
#include <concepts>
#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

namespace reagent::inline v0 {
namespace agent_detail {

template <class T>
struct is_optional : std::false_type {};
template <class T>
struct is_optional<std::optional<T>> : std::true_type {
    using value_type = T;
};
template <class T>
struct is_vector : std::false_type {};
template <class T>
struct is_vector<std::vector<T>> : std::true_type {
    using value_type = T;
};
template <class T>
concept described_struct = std::is_class_v<T> && boost::describe::has_describe_members<T>::value;
template <class T>
concept described_enum = std::is_enum_v<T> && boost::describe::has_describe_enumerators<T>::value;
template <class T>
using members_of = boost::describe::describe_members<T, boost::describe::mod_public | boost::describe::mod_inherited>;
template <class T>
using enumerators_of = boost::describe::describe_enumerators<T>;
template <class T>
inline constexpr bool unsupported = false;

/// `order_id`, `items[2].sku`.
std::string field_path(std::string_view parent, std::string_view name);
std::string element_path(std::string_view parent, std::size_t index);
/// `"x" must be a string, got number` and the other sentences of spec/tools.md §1.3.
std::string problem_type(std::string_view path, std::string_view wanted, const json& got);
std::string problem_missing(std::string_view path);
std::string problem_enum(std::string_view path, const std::vector<std::string>& options, const json& got);
std::string problem_range(std::string_view path, std::string_view lowest, std::string_view highest, const json& got);
/// Appends one problem per member that is not declared.
void problem_undeclared(std::string_view path, const json& object, const std::vector<std::string>& declared, std::vector<std::string>& problems);

}  // namespace agent_detail

/// JSON Schema of a described type. Fields are required unless `std::optional`; nothing else is allowed.
template <class T>
json described_schema()
{
    using namespace agent_detail;
    if constexpr (std::same_as<T, json>) {
        return json::object();
    } else if constexpr (std::same_as<T, std::string>) {
        return json::object().set("type", "string");
    } else if constexpr (std::same_as<T, bool>) {
        return json::object().set("type", "boolean");
    } else if constexpr (std::integral<T>) {
        json schema = json::object().set("type", "integer");
        if constexpr (std::unsigned_integral<T>) schema.set("minimum", 0);
        return schema;
    } else if constexpr (std::floating_point<T>) {
        return json::object().set("type", "number");
    } else if constexpr (described_enum<T>) {
        json names = json::array();
        boost::mp11::mp_for_each<enumerators_of<T>>([&](auto e) { names.push_back(e.name); });
        return json::object().set("type", "string").set("enum", std::move(names));
    } else if constexpr (is_optional<T>::value) {
        return described_schema<typename is_optional<T>::value_type>();
    } else if constexpr (is_vector<T>::value) {
        return json::object().set("type", "array").set("items", described_schema<typename is_vector<T>::value_type>());
    } else if constexpr (described_struct<T>) {
        json properties = json::object(), required = json::array();
        boost::mp11::mp_for_each<members_of<T>>([&](auto d) {
            using field = std::remove_cvref_t<decltype(std::declval<T&>().*d.pointer)>;
            properties.set(d.name, described_schema<field>());
            if constexpr (!is_optional<field>::value) required.push_back(d.name);
        });
        return json::object()
            .set("type", "object")
            .set("properties", std::move(properties))
            .set("required", std::move(required))
            .set("additionalProperties", false);
    } else {
        static_assert(unsupported<T>, "describe this type with BOOST_DESCRIBE_STRUCT or BOOST_DESCRIBE_ENUM, or take reagent::json");
    }
}

/// Fills `out` from `value`. Every problem is appended with its path; `out` is usable only when none was.
template <class T>
void read_described(const json& value, T& out, std::string_view path, std::vector<std::string>& problems)
{
    using namespace agent_detail;
    if constexpr (std::same_as<T, json>) {
        out = value;
    } else if constexpr (std::same_as<T, std::string>) {
        if (value.is_string()) out = value.as_string();
        else problems.push_back(problem_type(path, "a string", value));
    } else if constexpr (std::same_as<T, bool>) {
        if (value.is_bool()) out = value.as_bool();
        else problems.push_back(problem_type(path, "a boolean", value));
    } else if constexpr (std::integral<T>) {
        if (const auto i = value.get_int64(); i && std::in_range<T>(*i)) out = static_cast<T>(*i);
        else if (const auto u = value.get_uint64(); u && std::in_range<T>(*u)) out = static_cast<T>(*u);
        else if (i || u)
            problems.push_back(problem_range(path, std::to_string(std::numeric_limits<T>::min()), std::to_string(std::numeric_limits<T>::max()), value));
        else problems.push_back(problem_type(path, "an integer", value));
    } else if constexpr (std::floating_point<T>) {
        const auto d = value.get_double();
        if (d && std::isfinite(*d)) out = static_cast<T>(*d);
        else problems.push_back(problem_type(path, "a finite number", value));
    } else if constexpr (described_enum<T>) {
        bool found = false;
        std::vector<std::string> options;
        boost::mp11::mp_for_each<enumerators_of<T>>([&](auto e) {
            options.emplace_back(e.name);
            if (!found && value.is_string() && value.as_string() == e.name) {
                out = e.value;
                found = true;
            }
        });
        if (!found) problems.push_back(problem_enum(path, options, value));
    } else if constexpr (is_optional<T>::value) {
        if (value.is_null()) out.reset();
        else read_described(value, out.emplace(), path, problems);
    } else if constexpr (is_vector<T>::value) {
        if (!value.is_array()) {
            problems.push_back(problem_type(path, "an array", value));
            return;
        }
        out.clear();
        std::size_t i = 0;
        for (const json& element : value.as_array()) {
            typename is_vector<T>::value_type item{};
            read_described(element, item, element_path(path, i++), problems);
            out.push_back(std::move(item));
        }
    } else if constexpr (described_struct<T>) {
        if (!value.is_object()) {
            problems.push_back(problem_type(path, "an object", value));
            return;
        }
        std::vector<std::string> declared;
        boost::mp11::mp_for_each<members_of<T>>([&](auto d) {
            using field = std::remove_cvref_t<decltype(out.*d.pointer)>;
            declared.emplace_back(d.name);
            const std::string where = field_path(path, d.name);
            if (const json* member = value.find(d.name)) read_described(*member, out.*d.pointer, where, problems);
            else if constexpr (!is_optional<field>::value) problems.push_back(problem_missing(where));
        });
        problem_undeclared(path, value, declared, problems);
    } else {
        static_assert(unsupported<T>, "describe this type with BOOST_DESCRIBE_STRUCT or BOOST_DESCRIBE_ENUM, or take reagent::json");
    }
}

/// JSON of a described value; an empty optional member is left out.
template <class T>
json described_to_json(const T& value)
{
    using namespace agent_detail;
    if constexpr (std::same_as<T, json>) {
        return value;
    } else if constexpr (std::convertible_to<const T&, std::string_view>) {
        return json(std::string(std::string_view(value)));
    } else if constexpr (std::same_as<T, bool> || std::integral<T>) {
        return json(value);
    } else if constexpr (std::floating_point<T>) {
        return json(static_cast<double>(value));
    } else if constexpr (described_enum<T>) {
        return json(boost::describe::enum_to_string(value, ""));
    } else if constexpr (is_optional<T>::value) {
        return value ? described_to_json(*value) : json();
    } else if constexpr (is_vector<T>::value) {
        json array = json::array();
        for (const auto& element : value) array.push_back(described_to_json(element));
        return array;
    } else if constexpr (described_struct<T>) {
        json object = json::object();
        boost::mp11::mp_for_each<members_of<T>>([&](auto d) {
            using field = std::remove_cvref_t<decltype(value.*d.pointer)>;
            if constexpr (is_optional<field>::value) {
                if (value.*d.pointer) object.set(d.name, described_to_json(*(value.*d.pointer)));
            } else {
                object.set(d.name, described_to_json(value.*d.pointer));
            }
        });
        return object;
    } else {
        static_assert(unsupported<T>, "describe this type with BOOST_DESCRIBE_STRUCT or BOOST_DESCRIBE_ENUM, or return reagent::json");
    }
}

}  // namespace reagent::inline v0

#include "schema_words.hpp"

#include <reagent/base/schema.hpp>
#include <reagent/base/untrusted_text.hpp>

#include <algorithm>
#include <array>
#include <charconv>
#include <system_error>

namespace reagent::inline v0 {

const json* schema_reference(const json& root, std::string_view reference)
{
    if (!reference.starts_with('#')) return nullptr;
    reference.remove_prefix(1);
    const json* at = &root;
    while (at != nullptr && !reference.empty()) {
        if (!reference.starts_with('/')) return nullptr;
        reference.remove_prefix(1);
        const std::size_t end = std::min(reference.find('/'), reference.size());
        std::string name;
        for (std::size_t i = 0; i < end; ++i) {
            const bool escaped = reference[i] == '~' && i + 1 < end;
            name += !escaped ? reference[i] : reference[++i] == '1' ? '/' : '~';
        }
        reference.remove_prefix(end);
        std::size_t index = 0;
        const auto [rest, wrong] = std::from_chars(name.data(), name.data() + name.size(), index);
        const bool numbered = at->is_array() && wrong == std::errc() && rest == name.data() + name.size() && index < at->size();
        at = numbered ? &(*at)[index] : at->find(name);
    }
    return at;
}

}  // namespace reagent::inline v0

namespace reagent::inline v0::base_detail {
namespace {

const json nothing;

// A schema behind local references, "#/$defs/x"; bounded because they may form a ring.
const json& resolved(const json& root, const json* schema)
{
    for (int hops = 0; hops < 16; ++hops) {
        const std::string* ref = schema->operator[]("$ref").get_string();
        if (!ref || !ref->starts_with("#")) return *schema;
        schema = schema_reference(root, *ref);
        if (schema == nullptr) return nothing;
    }
    return nothing;
}

// The schema of a member: its own, in a branch of a combination, or that of all other members.
const json& member_schema(const json& root, const json& schema, std::string_view key, int depth = 0)
{
    const json& own = schema["properties"][key];
    if (!own.is_null()) return resolved(root, &own);
    for (const char* combination : {"allOf", "anyOf", "oneOf"}) {
        const json& branches = schema[combination];
        for (std::size_t i = 0; i < branches.size() && depth < 8 && branches.is_array(); ++i) {
            const json& found = member_schema(root, resolved(root, &branches[i]), key, depth + 1);
            if (!found.is_null()) return found;
        }
    }
    return resolved(root, &schema["additionalProperties"]);
}

std::string shown(const json& v)
{
    return untrusted_text(v.dump(), 60);
}

std::string listed(const json::array_type& values)
{
    std::string out;
    for (const json& v : values) out += (out.empty() ? "" : ", ") + shown(v);
    return untrusted_text(out, 400);
}

std::string bound(const json& schema, std::string_view key)
{
    return schema[key].is_number() ? schema[key].as_number().text() : std::string("the limit");
}

// The name in the last pair of quotes after `from`, which ends valijson's sentence; a name may hold quotes itself.
std::string quoted_name(std::string_view sentence, std::string_view from)
{
    const std::size_t open = sentence.find('\'', sentence.find(from) + from.size());
    const std::size_t close = sentence.rfind('\'');
    return open >= close ? std::string() : untrusted_text(sentence.substr(open + 1, close - open - 1), 100);
}

}  // namespace

violation_place::violation_place(const json& schema, const json& value) : root_(&schema), schema_(&resolved(schema, &schema)), value_(&value) {}

void violation_place::step(const std::string& key_or_index)
{
    if (value_->is_array()) {
        std::size_t index = 0;
        std::from_chars(key_or_index.data(), key_or_index.data() + key_or_index.size(), index);
        path_ += "[" + key_or_index + "]";
        value_ = &(*value_)[index];
        const json& items = (*schema_)["items"];
        schema_ = &resolved(*root_, items.is_array() ? &items[index] : &items);
        return;
    }
    path_ = path_to(untrusted_text(key_or_index, 100));
    schema_ = &member_schema(*root_, *schema_, key_or_index);
    value_ = &(*value_)[key_or_index];
}

std::string wanted_by(const json& schema)
{
    if (schema["enum"].is_array()) return "one of " + listed(schema["enum"].as_array());
    if (schema.find("const")) return shown(schema["const"]);
    const json& type = schema["type"];
    if (const std::string* one = type.get_string()) {
        const std::string item = *one == "array" ? wanted_by(schema["items"]) : std::string();
        return item.empty() ? *one : "array of " + item;
    }
    std::string out;
    if (type.is_array()) {
        for (const json& t : type.as_array()) out += (out.empty() ? "" : " or ") + (t.is_string() ? t.as_string() : shown(t));
        return out;
    }
    for (const char* combination : {"anyOf", "oneOf"}) {
        const json& branches = schema[combination];
        if (!branches.is_array()) continue;
        for (const json& branch : branches.as_array()) {
            const std::string one = wanted_by(branch);
            if (one.empty()) return {};
            out += (out.empty() ? "" : " or ") + one;
        }
        return out;
    }
    return out;
}

std::string violation_in_words(const violation_place& place, std::string_view sentence)
{
    const json& schema = place.schema();
    const auto is = [&](std::string_view start) { return sentence.starts_with(start); };
    const auto has = [&](std::string_view part) { return sentence.find(part) != std::string_view::npos; };
    const auto say = [&](const std::string& what) { return place.path() + ": " + what; };
    const std::string got =
        ", got " + (place.value().is_object() || place.value().is_array() ? "an " + std::string(place.value().type_name()) : shown(place.value()));
    const std::string wanted = wanted_by(schema);

    if (is("Missing required property")) return place.path_to(quoted_name(sentence, "property")) + ": is required but missing";
    if (is("Object contains a property")) {
        std::string known;
        if (schema["properties"].is_object()) {
            for (const json::member& m : schema["properties"].as_object()) known += (known.empty() ? "" : ", ") + m.first;
        }
        return place.path_to(quoted_name(sentence, "constraints:")) + ": is not a known field" +
            (known.empty() ? std::string() : "; known fields are " + untrusted_text(known, 400));
    }
    if (is("Value type not permitted")) return say("must be " + (wanted.empty() ? "of another type" : wanted) + got);
    if (is("Failed to match against any enum values") || is("Failed to match expected value")) return say("must be " + wanted + got);
    if (has("allowed by anyOf") || has("allowed by oneOf")) { return say(wanted.empty() ? "matches none of the allowed shapes" : "must be " + wanted + got); }
    if (is("Failed to validate against exactly one")) return say("matches more than one of the shapes of which it must match one");
    if (is("Failed to match regex")) return say("must match the pattern " + shown(schema["pattern"]) + got);
    if (is("Expected number less than or equal")) return say("must be at most " + bound(schema, "maximum") + got);
    if (is("Expected number less than")) return say("must be less than " + bound(schema, "exclusiveMaximum") + got);
    if (is("Expected number greater than or equal")) return say("must be at least " + bound(schema, "minimum") + got);
    if (is("Expected number greater than")) return say("must be greater than " + bound(schema, "exclusiveMinimum") + got);
    if (is("Value should be a multiple")) return say("must be a multiple of " + bound(schema, "multipleOf") + got);
    if (is("String should be no more")) return say("must have at most " + bound(schema, "maxLength") + " characters");
    if (is("String should be no fewer")) return say("must have at least " + bound(schema, "minLength") + " characters");
    if (is("Array should contain no more")) return say("must have at most " + bound(schema, "maxItems") + " elements");
    if (is("Array should contain no fewer")) return say("must have at least " + bound(schema, "minItems") + " elements");
    if (has("violate uniqueness")) return say("must not hold the same element twice");
    // These only say that something inside failed, which has its own sentence.
    constexpr std::array<std::string_view, 6> wrappers = {"Failed to validate against schema associated", "Failed to validate item #",
                                                          "Failed to validate against child schema",      "Failed to validate against additional properties",
                                                          "Failed to validate against dependent schema",  "Failed to validate against a conditional"};
    for (const std::string_view wrapper : wrappers) {
        if (is(wrapper)) return {};
    }
    std::string plain(sentence);
    while (!plain.empty() && plain.back() == '.') plain.pop_back();
    return say(untrusted_text(plain));
}

}  // namespace reagent::inline v0::base_detail

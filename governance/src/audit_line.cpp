#include "audit_line.hpp"

#include <reagent/governance/redaction.hpp>

#include <algorithm>
#include <array>

namespace reagent::inline v0::governance_detail {
namespace {

constexpr std::size_t longest_field = 200;   // step 1
constexpr std::size_t longest_scalar = 120;  // step 3
constexpr std::string_view cut_mark = "[TRUNCATED]";

constexpr std::array<std::string_view, 8> foreign_fields{"action", "result", "reason", "aid", "where", "verdict", "meta", "key"};
constexpr std::array<std::string_view, 5> cut_fields{"reason", "aid", "where", "verdict", "key"};
constexpr std::array<std::string_view, 2> body_fields{"action", "result"};
constexpr std::array<std::string_view, 2> dropped_whole{"meta", "keys"};
constexpr std::array<std::string_view, 5> kept_of_body{"type", "costUsd", "tokens", "pricing", "counts"};
constexpr std::array<std::string_view, 11> core_fields{"ts",       "seq",      "run_id", "parent_run_id", "spawn_depth", "phase",
                                                       "decision", "severity", "rule",   "aid",           "dimension"};

template <std::size_t N>
bool among(const std::array<std::string_view, N>& names, std::string_view name) noexcept
{
    return std::find(names.begin(), names.end(), name) != names.end();
}

std::string cut(const std::string& s, std::size_t bytes)
{
    if (s.size() <= bytes) return s;
    while (bytes > 0 && (static_cast<unsigned char>(s[bytes]) & 0xC0) == 0x80) --bytes;
    return s.substr(0, bytes);
}

bool too_big(const std::string& text, std::size_t limit) noexcept
{
    return text.size() + 1 > limit;
}

json marker(std::size_t bytes)
{
    return json::object().set("_truncated", true).set("bytes", bytes);
}

json short_field(const json& v)
{
    if (const std::string* s = v.get_string()) return s->size() > longest_field ? json(cut(*s, longest_field) + std::string(cut_mark)) : v;
    const std::size_t bytes = v.dump().size();
    return bytes > longest_field ? json("[TRUNCATED:" + std::to_string(bytes) + " bytes]") : v;
}

void shorten_fields(json& line)
{
    for (auto& [key, value] : line.as_object()) {
        if (among(body_fields, key)) {
            if (!value.is_object()) value = short_field(value);
            else
                for (auto& [name, member] : value.as_object()) member = short_field(member);
        } else if (among(cut_fields, key)) {
            if (value.is_string()) value = short_field(value);
        } else if (among(dropped_whole, key)) {
            const std::size_t bytes = value.dump().size();
            if (bytes > longest_field) value = marker(bytes);
        }
    }
    line.set("_truncated", true);
}

json summary(const json& body, std::size_t bytes)
{
    json out = marker(bytes);
    for (const std::string_view name : kept_of_body)
        if (const json* v = body.find(name)) out.set(std::string(name), *v);
    return out;
}

/// Step 3: scalars, and of the bodies what an accountant needs.
json only_scalars(const json& line)
{
    const auto scalar = [](const json& v) { return v.is_string() ? json(cut(v.as_string(), longest_scalar)) : v; };
    json out = json::object();
    for (const auto& [key, value] : line.as_object()) {
        if (value.is_object() && among(body_fields, key)) {
            json kept = json::object();
            for (const std::string_view name : kept_of_body)
                if (const json* v = value.find(name); v && !v->is_object() && !v->is_array()) kept.set(std::string(name), scalar(*v));
            out.set(key, std::move(kept));
        } else if (!value.is_object() && !value.is_array()) {
            out.set(key, scalar(value));
        }
    }
    out.set("_dropped", "oversize");
    return out;
}

bool droppable(std::string_view key) noexcept
{
    return !among(core_fields, key) && key != "newCap" && key != "_dropped" && key != "_dropped_keys" && key != "_dropped_bytes";
}

std::string drop_largest(json line, std::size_t limit)
{
    std::size_t keys = 0, bytes = 0;
    std::string text = line.dump();
    while (too_big(text, limit)) {
        const json::member* largest = nullptr;
        std::size_t size = 0;
        for (const bool bodies : {false, true}) {  // the kind and the spend go last
            for (const json::member& m : line.as_object()) {
                const std::size_t n = droppable(m.first) && among(body_fields, m.first) == bodies ? m.first.size() + m.second.dump().size() : 0;
                if (n > size) {
                    largest = &m;
                    size = n;
                }
            }
            if (largest) break;
        }
        if (!largest) break;
        ++keys;
        bytes += size;
        const std::string name = largest->first;
        line.erase(name);
        line.set("_dropped_keys", keys);
        line.set("_dropped_bytes", bytes);
        text = line.dump();
    }
    return text;
}

}  // namespace

void redact_line(json& line)
{
    static const redactor rules;  // immutable
    if (!line.is_object()) return;
    for (auto& [key, value] : line.as_object())
        if (among(foreign_fields, key) || key == "keys") rules.apply(value);
}

std::string fit_line(json line, std::size_t limit)
{
    std::string text = line.dump();
    if (too_big(text, limit) && line.is_object()) {
        std::array<std::size_t, 2> whole{};  // what the bodies were, for the marker
        for (std::size_t i = 0; i < body_fields.size(); ++i) whole[i] = line[body_fields[i]].dump().size();
        shorten_fields(line);
        text = line.dump();

        std::array<std::size_t, 2> order{0, 1};
        if (line["action"].dump().size() < line["result"].dump().size()) order = {1, 0};
        for (const std::size_t i : order) {
            if (!too_big(text, limit)) break;
            json* body = line.find(body_fields[i]);
            if (!body || !body->is_object()) continue;
            *body = summary(*body, whole[i]);
            text = line.dump();
        }
        if (too_big(text, limit)) { text = drop_largest(only_scalars(line), limit); }
        if (too_big(text, limit)) {
            json core = json::object().set("ts", line["ts"]).set("seq", line["seq"]);
            const std::string* run = line["run_id"].get_string();
            core.set("run_id", run ? json(cut(*run, longest_scalar)) : json());
            core.set("_dropped_core", true);
            text = core.dump();
        }
    }
    text.push_back('\n');
    return text;
}

}  // namespace reagent::inline v0::governance_detail

#include "tool_call_assembler.hpp"

#include <reagent/base/error.hpp>
#include <reagent/base/untrusted_text.hpp>

#include <algorithm>
#include <cmath>

namespace reagent::inline v0::model_detail {

void json_end_finder::feed(std::string_view bytes) noexcept
{
    for (const char c : bytes) {
        if (complete_) return;
        if (string_) {
            if (escape_) escape_ = false;
            else if (c == '\\') escape_ = true;
            else if (c == '"') string_ = false;
            continue;
        }
        if (c == '"') string_ = true;
        else if (c == '{' || c == '[') ++depth_;
        else if ((c == '}' || c == ']') && (depth_ == 0 || --depth_ == 0)) complete_ = true;
    }
}

bool tool_call_assembler::continues(const slot& s, const tool_fragment& f) const noexcept
{
    // A late id belongs to the call that has none, unless that one is whole and a name says that another begins.
    if (!f.id.empty()) return s.wire_id == f.id || (s.wire_id.empty() && (f.name.empty() || !s.end.complete()));
    if (f.name.empty()) return true;
    // A name without an id: the same call repeats its name until its arguments are whole, another name is another call.
    return !s.end.complete() && (s.name.empty() || s.name == f.name);
}

tool_call_assembler::slot* tool_call_assembler::find(const tool_fragment& f)
{
    const auto last_with = [&](auto&& wanted) -> slot* {
        const auto at = std::find_if(slots_.rbegin(), slots_.rend(), wanted);
        return at == slots_.rend() ? nullptr : &*at;
    };
    const auto same_id = [&](const slot& s) { return !f.id.empty() && s.wire_id == f.id; };
    if (slots_.empty()) return nullptr;
    if (f.index) {
        slot* here = last_with([&](const slot& s) { return s.index == f.index; });
        if (here != nullptr) {
            if (continues(*here, f)) return here;
            // An earlier call at the same index, interleaved with this one.
            return last_with([&](const slot& s) { return s.index == f.index && same_id(s); });
        }
        // An index never seen: a nameless fragment belongs to a call that is still open.
        if (!f.name.empty()) return nullptr;
        if (!f.id.empty()) return last_with([&](const slot& s) { return same_id(s) && !s.end.complete(); });
        return slots_.back().end.complete() ? nullptr : &slots_.back();
    }
    if (!f.id.empty()) {
        if (slot* known = last_with(same_id)) return known;
        return slots_.back().wire_id.empty() && slots_.back().name.empty() ? &slots_.back() : nullptr;
    }
    return continues(slots_.back(), f) ? &slots_.back() : nullptr;
}

tool_call_assembler::slot* tool_call_assembler::open(const tool_fragment& f)
{
    if (slots_.size() >= max_calls_of_round) return nullptr;
    slot& s = slots_.emplace_back();
    s.index = f.index;
    return &s;
}

/// Makes `wanted` unique in the round: the second `a` is `a__2`. Each id remembers its next suffix, so equal ids do not try all earlier ones again.
void tool_call_assembler::give_id(slot& s, std::string_view wanted)
{
    s.id = wanted;
    const auto [first, is_new] = taken_.try_emplace(s.id, 2);
    ++ids_tried_;
    if (is_new) return;
    unsigned& next = first->second;  // stays valid while others are inserted
    do {
        s.id = std::string(wanted) + "__" + std::to_string(next++);
        ++ids_tried_;
    } while (!taken_.try_emplace(s.id, 2).second);
}

void tool_call_assembler::emit(slot& s, event_batch* out)
{
    if (s.name.empty()) return;
    if (s.id.empty()) {
        if (s.arguments.empty()) return;
        give_id(s, "call_" + random_hex(random_, 16));
    }
    if (out != nullptr) {
        const std::string_view id = out->keep(s.id), name = out->keep(s.name);
        if (!s.open_event) {
            event& e = out->push(event_kind::tool_start);
            e.index = position(s);
            e.id = id;
            e.name = name;
        }
        if (s.emitted < s.arguments.size()) {
            event& e = out->push(event_kind::tool_args, std::string_view(s.arguments).substr(s.emitted));
            e.index = position(s);
            e.id = id;
            e.name = name;
        }
    }
    s.open_event = true;
    s.emitted = s.arguments.size();
}

bool tool_call_assembler::extend(slot& s, const tool_fragment& f, event_batch* out)
{
    if (!f.id.empty() && s.wire_id.empty()) {
        s.wire_id = f.id;
        label_bytes_ += f.id.size();
        if (s.id.empty()) give_id(s, f.id);
    }
    if (s.name.empty()) {
        s.name = f.name;
        label_bytes_ += f.name.size();
    }
    s.has_text = s.has_text || (f.text && !f.whole);
    s.has_value = s.has_value || f.whole;
    if (!f.arguments.empty()) {
        if (f.arguments.size() > max_arguments_ - std::min(max_arguments_, s.arguments.size())) return false;
        s.arguments += f.arguments;
        bytes_ += f.arguments.size();
        if (f.whole) s.end.set_complete();
        else s.end.feed(f.arguments);
    }
    emit(s, out);
    return true;
}

bool tool_call_assembler::holds(std::size_t position, const tool_fragment& f) const noexcept
{
    if (position >= slots_.size()) return false;
    const slot& s = slots_[position];
    return s.wire_id == f.id && s.name == f.name && s.arguments == f.arguments;
}

std::string tool_call_assembler::limit_text() const
{
    if (slots_.size() >= max_calls_of_round) return "an answer with more than " + std::to_string(max_calls_of_round) + " tool calls passes the limit";
    return "the arguments of a tool call pass the limit of " + std::to_string(max_arguments_) + " bytes";
}

bool tool_call_assembler::add(const tool_fragment& f, event_batch* out)
{
    slot* s = find(f);
    if (s == nullptr) s = open(f);
    return s != nullptr && extend(*s, f, out);
}

bool tool_call_assembler::add_whole(const tool_fragment& f, event_batch* out)
{
    slot* s = open(f);
    return s != nullptr && extend(*s, f, out);
}

bool tool_call_assembler::add_unreadable()
{
    return open(tool_fragment()) != nullptr;
}

void tool_call_assembler::cut(std::int64_t index)
{
    for (slot& s : slots_) s.cut = s.cut || s.index == index;
}

void tool_call_assembler::finish(const tool_list& tools, bool expose_arguments, generate_result& result, event_batch* out)
{
    result.tool_calls.reserve(slots_.size());
    for (slot& s : slots_) {
        if (s.id.empty()) give_id(s, "call_" + random_hex(random_, 16));
        emit(s, out);
        read_arguments read(s.arguments, s.name, tools);
        if (s.name.empty()) {
            read.fault = "a tool call without a name";
            read.offset = 0;
        }
        if (s.cut && read.fault.empty()) {
            read.fault = "the answer ended before the call did";
            read.offset = s.arguments.size();
        }
        if (read.fault.empty()) {
            if (out != nullptr) {
                const std::string_view id = out->keep(s.id), name = out->keep(s.name);
                const json* data = out->keep(read.value);
                event& e = out->push(event_kind::tool_end);
                e.index = position(s);
                e.id = id;
                e.name = name;
                e.data = data;
            }
        } else if (!result.malformed) {
            malformed_tool_call& m = result.malformed.emplace();
            m.name = s.name;
            m.error = read.fault;
            m.offset = read.offset;
            if (expose_arguments && s.has_text && !s.has_value) m.raw_arguments = s.arguments;
        }
        const bool bad = !read.fault.empty();
        attempted_call attempted;
        attempted.malformed = bad;
        attempted.offset = read.offset;
        attempted.call = tool_call(s.id, s.name, bad ? json::object() : std::move(read.value));
        result.attempted.push_back(std::move(attempted));
    }
    if (result.malformed) return;
    for (attempted_call& a : result.attempted) result.tool_calls.push_back(std::move(a.call));
    result.attempted.clear();
}

namespace {

/// The text of a number no double can hold, anywhere in the value.
const json* out_of_range(const json& value)
{
    switch (value.type()) {
    case json::kind::number: return std::isfinite(value.as_number().as_double()) ? nullptr : &value;
    case json::kind::array:
        for (const json& v : value.as_array())
            if (const json* bad = out_of_range(v)) return bad;
        return nullptr;
    case json::kind::object:
        for (const auto& [k, v] : value.as_object())
            if (const json* bad = out_of_range(v)) return bad;
        return nullptr;
    default: return nullptr;
    }
}

bool requires_something(const tool_list& tools, std::string_view name)
{
    if (!tools) return false;
    for (const tool_schema& t : *tools)
        if (t.name == name) return t.parameters["required"].is_array() && !t.parameters["required"].empty();
    return false;
}

}  // namespace

read_arguments::read_arguments(std::string_view text, std::string_view name, const tool_list& tools)
{
    constexpr std::string_view white = " \t\r\n\f\v";
    const std::size_t first = text.find_first_not_of(white);
    const std::string_view trimmed = first == std::string_view::npos ? std::string_view() : text.substr(first, text.find_last_not_of(white) - first + 1);
    if (trimmed.empty() || trimmed == "null") {
        if (requires_something(tools, name)) fault = "arguments are empty but the tool requires some";
        return;
    }
    auto parsed = json::parse(text, json::parse_options(), offset);
    if (!parsed) {
        fault = parsed.error() == errc::limit_exceeded ? "arguments nest deeper than 512 at byte " : "arguments are not JSON at byte ";
        fault += std::to_string(offset);
        return;
    }
    offset = 0;
    if (!parsed->is_object()) {
        offset = first;
        fault = "arguments are not an object but " + std::string(parsed->type_name());
        return;
    }
    if (const json* bad = out_of_range(*parsed)) {
        const std::size_t at = text.find(bad->as_number().text());
        offset = at == std::string_view::npos ? 0 : at;
        fault = "arguments hold a number out of range at byte " + std::to_string(offset);
        return;
    }
    value = std::move(*parsed);
}

}  // namespace reagent::inline v0::model_detail

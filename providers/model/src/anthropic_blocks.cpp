#include "anthropic_blocks.hpp"

#include <reagent/base/blank.hpp>

#include <array>
#include <cstdint>

namespace reagent::inline v0::model_detail {

void native_block::extend(const char* key, const std::string& with)
{
    if (with.empty()) return;
    const std::string* had = value_[key].get_string();
    value_.set(key, had == nullptr ? with : *had + with);
}

void native_block::extend(const char* key, json& with)
{
    if (with.empty()) return;
    json all = value_[key].is_array() ? value_[key] : json::array();
    for (json& one : with.as_array()) all.push_back(std::move(one));
    value_.set(key, std::move(all));
}

json native_block::take()
{
    extend("text", text_);
    extend("thinking", thinking_);
    extend("signature", signature_);
    extend("citations", citations_);
    extend("deltas", deltas_);
    // A call that ran at the service: text that is no JSON was of no use there either.
    if (!input_.empty())
        if (auto input = json::parse(input_)) value_.set("input", std::move(*input));
    return std::move(value_);
}

namespace {

/// FNV-1a in hexadecimal: tells whether a text is the same, not whose it is.
std::string digest(std::string_view text)
{
    std::uint64_t h = 14695981039346656037ULL;
    for (const char c : text) h = (h ^ static_cast<unsigned char>(c)) * 1099511628211ULL;
    std::string out(16, '0');
    for (std::size_t i = 16; i-- > 0; h >>= 4U) out[i] = "0123456789abcdef"[h & 15U];
    return out;
}

}  // namespace

void block_order::add_text(std::size_t bytes)
{
    if (bytes == 0) return;
    if (items_.empty() || items_.back().what != kind::text) items_.push_back({kind::text, 0});
    items_.back().n += bytes;
}

json block_order::to_json(std::string_view text, const generate_result& result) const
{
    const bool no_text = is_blank(text);
    json order = json::array();
    kind furthest = kind::block;
    bool plain = true;
    for (const item& i : items_) {
        if (i.what == kind::text && no_text) continue;
        plain = plain && i.what >= furthest;
        furthest = i.what;
        switch (i.what) {
        case kind::block: order.push_back(json::object().set("block", i.n)); break;
        case kind::text: order.push_back(json::object().set("text", i.n)); break;
        case kind::call: {
            const bool held = result.malformed.has_value();
            if (i.n >= (held ? result.attempted.size() : result.tool_calls.size())) return {};
            order.push_back(json::object().set("call", held ? result.attempted[i.n].call.id : result.tool_calls[i.n].id));
            break;
        }
        }
    }
    if (plain) return {};
    return json::object().set("text", digest(no_text ? std::string_view() : text)).set("order", std::move(order));
}

std::vector<block_order::item> block_order::read(const json& layout, std::string_view text, const std::vector<const tool_call*>& calls, std::size_t blocks)
{
    std::vector<item> out;
    const json& order = layout["order"];
    const std::string* same = layout["text"].get_string();
    if (!order.is_array() || same == nullptr || *same != digest(text)) return {};
    std::array<std::size_t, 3> seen = {};  // blocks, bytes of text, calls
    for (const json& o : order.as_array()) {
        item i;
        if (const auto block = o["block"].get_uint64()) {
            if (*block != seen[0]++) return {};
            i = {kind::block, static_cast<std::size_t>(*block)};
        } else if (const auto bytes = o["text"].get_uint64()) {
            if (*bytes > text.size() - seen[1]) return {};
            seen[1] += static_cast<std::size_t>(*bytes);
            i = {kind::text, static_cast<std::size_t>(*bytes)};
        } else {
            const std::string* id = o["call"].get_string();
            if (id == nullptr || seen[2] == calls.size() || calls[seen[2]]->id != *id) return {};
            i = {kind::call, seen[2]++};
        }
        out.push_back(i);
    }
    if (seen[0] != blocks || seen[1] != text.size() || seen[2] != calls.size()) return {};
    return out;
}

}  // namespace reagent::inline v0::model_detail

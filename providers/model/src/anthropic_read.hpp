/// What the events and bodies of Anthropic's Messages hold, read through either face of a JSON value (`wire_json.hpp`, which the decoder includes in front).
#pragma once
#include "wire_json.hpp"

#include <reagent/model/generate.hpp>

#include <cstdint>
#include <optional>
#include <string_view>

namespace reagent::inline v0::anthropic_wire {

using model_detail::token_count;

/// Cumulative counts: what a later event does not tell stays as it was.
class token_counts {
public:
    template <class V>
    bool overlay(const V& value)
    {
        bool told = false;
        const auto take = [&told](std::optional<std::uint64_t>& into, const V& v) {
            const auto n = token_count(v);
            if (!n) return;
            into = n;
            told = true;
        };
        value.members([&](std::string_view key, const V& v) {
            if (key == "input_tokens") take(input_, v);
            else if (key == "output_tokens") take(output_, v);
            else if (key == "cache_read_input_tokens") take(read_, v);
            else if (key == "cache_creation_input_tokens") take(creation_, v);
        });
        return told;
    }
    usage neutral() const
    {
        usage u;
        u.input = input_.value_or(0);
        u.output = output_.value_or(0);
        u.cache_read = read_.value_or(0);
        u.cache_creation = creation_.value_or(0);
        return u;
    }

private:
    std::optional<std::uint64_t> input_, output_, read_, creation_;
};

/// A stream event or a whole body, found in one pass: of duplicate keys the last one wins.
template <class V>
class root_view {
public:
    explicit root_view(const V& root)
    {
        root.members([&](std::string_view key, const V& v) {
            if (key == "type") type = v;
            else if (key == "index") index = v;
            else if (key == "delta") delta = v;
            else if (key == "content_block") block = v;
            else if (key == "message") message = v;
            else if (key == "usage") used = v;
            else if (key == "error") error = v;
            else if (key == "content") content = v;
            else if (key == "model") model = v;
            else if (key == "stop_reason") stop = v;
        });
    }
    V type, index, delta, block, message, used, error, content, model, stop;
};

template <class V>
class block_view {
public:
    explicit block_view(const V& b)
    {
        b.members([&](std::string_view key, const V& v) {
            if (key == "type") type = v;
            else if (key == "text") text = v;
            else if (key == "id") id = v;
            else if (key == "name") name = v;
            else if (key == "input") input = v;
        });
    }
    V type, text, id, name, input;
    bool is_text() const noexcept { return type.string() == "text"; }
    bool is_call() const noexcept { return type.string() == "tool_use"; }
    /// Whether it is kept or shown as JSON, where the text of numbers matters.
    bool needs_exact() const { return !is_text() && (!is_call() || (input && !input.is_string())); }
};

template <class V>
class delta_view {
public:
    explicit delta_view(const V& d)
    {
        d.members([&](std::string_view key, const V& v) {
            if (key == "type") type = v;
            else if (key == "text") text = v;
            else if (key == "thinking") thinking = v;
            else if (key == "signature") signature = v;
            else if (key == "partial_json") json_text = v;
            else if (key == "citation") citation = v;
            else if (key == "stop_reason") stop = v;
        });
    }
    V type, text, thinking, signature, json_text, citation, stop;
};

}  // namespace reagent::inline v0::anthropic_wire

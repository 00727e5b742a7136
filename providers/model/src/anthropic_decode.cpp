#include <simdjson.h>

#include "anthropic_blocks.hpp"
#include "anthropic_read.hpp"
#include "repeated_delta.hpp"
#include "tool_call_assembler.hpp"
#include "wire_json.hpp"

#include <reagent/base/utf8.hpp>
#include <reagent/model/anthropic_codec.hpp>
#include <reagent/model/wire_decoder.hpp>

#include <algorithm>
#include <array>
#include <vector>

namespace reagent::inline v0 {

/// Named, since the decoders of all wires share a unit.
namespace anthropic_wire {
namespace {

using model_detail::block_order;
using model_detail::native_block;

std::string_view neutral_stop(std::string_view raw) noexcept
{
    return raw == "model_context_window_exceeded" ? std::string_view("context_exceeded") : raw;
}

/// The status that a type of error stands for where there is none (spec/loop-and-providers.md §7.6); 0 for others.
int status_of(std::string_view type) noexcept
{
    if (type == "billing_error") return 402;
    if (type == "permission_error") return 403;
    if (type == "not_found_error") return 404;
    if (type == "request_too_large") return 413;
    if (type == "timeout_error") return 504;
    return 0;
}

/// A content block of the answer; its place in the list is the index of its call's fragments.
class block {
public:
    enum class kind : unsigned char { text, call, native };
    std::int64_t index = 0;  ///< the service's
    kind what = kind::text;
    bool closed = false, has_arguments = false;
    std::size_t native = 0;  ///< place among the native ones
    std::string input;       ///< of a call whose arguments do not come in pieces
};

class anthropic_decoder final : public wire_decoder {
public:
    anthropic_decoder(const anthropic_codec& codec, tool_list tools, std::string request_id) : wire_decoder(codec, std::move(tools), std::move(request_id)) {}

    decode_state on_event(std::string_view data, std::string_view type, event_batch* out) override;
    decode_state on_body(std::string_view text, int status, event_batch* out) override;
    thinking_signal thinking_seen() const noexcept override { return thought_ ? thinking_signal::seen : thinking_signal::none; }

private:
    enum class repeats : unsigned char { nothing, text, thinking };

    decode_state finish(event_batch* out) override;
    decode_state no_content(std::string_view body);
    decode_state fail_error(const json& error, std::string_view bound, bool with_partial);

    block* find(std::int64_t index) noexcept;
    block& open(std::int64_t index, block::kind what);
    void add_text(std::string_view text, event_batch* out);
    void keep(json start, event_batch* out);
    /// False: a limit is passed; so in all of these.
    template <class V>
    bool add_block(const V& value, std::int64_t index, bool whole, event_batch* out);
    template <class V>
    bool add_delta(const V& value, std::string_view data, std::int64_t index, event_batch* out);
    template <class V>
    bool stop_block(const V& index, event_batch* out);
    template <class V>
    void add_usage(const V& used, event_batch* out)
    {
        if (counts_.overlay(used)) answer_.add_usage(counts_.neutral(), out);
    }
    /// Nothing: to be read exactly.
    template <class V>
    std::optional<decode_state> apply(const root_view<V>& e, std::string_view what, std::string_view data, event_batch* out);

    std::vector<block> blocks_;
    std::vector<native_block> natives_;
    block_order order_;
    token_counts counts_;
    std::unique_ptr<model_detail::repeated_delta> repeated_;  ///< made when the first text arrives
    repeats sampled_ = repeats::nothing;                      ///< what the sample's delta is
    repeats repeats_ = repeats::nothing;                      ///< the same while its block is the last one
    bool thought_ = false;
};

block* anthropic_decoder::find(std::int64_t index) noexcept
{
    for (std::size_t i = blocks_.size(); i-- > 0;)
        if (blocks_[i].index == index) return &blocks_[i];
    return nullptr;
}

block& anthropic_decoder::open(std::int64_t index, block::kind what)
{
    repeats_ = repeats::nothing;
    block& b = blocks_.emplace_back();
    b.index = index;
    b.what = what;
    answer_.hold(sizeof(block));
    return b;
}

void anthropic_decoder::add_text(std::string_view text, event_batch* out)
{
    order_.add_text(text.size());
    answer_.add_text(text, out);
}

/// A block that is neither text nor a call, as it came or as it starts.
void anthropic_decoder::keep(json start, event_batch* out)
{
    const std::string* type = start["type"].get_string();
    const bool thinking = type != nullptr && *type == "thinking";
    thought_ = thought_ || thinking || (type != nullptr && *type == "redacted_thinking");
    if (const std::string* text = start["thinking"].get_string(); thinking && text != nullptr) answer_.show_thinking(*text, out);
    answer_.hold(sizeof(native_block));
    order_.add_block();
    natives_.emplace_back(std::move(start));
}

template <class V>
bool anthropic_decoder::add_block(const V& value, std::int64_t index, bool whole, event_batch* out)
{
    if (!value.is_object()) return true;
    answer_.begin(out);
    const block_view<V> view(value);
    if (view.is_text()) {
        open(index, block::kind::text);
        add_text(view.text.string(), out);
        return true;
    }
    if (!view.is_call()) {
        open(index, block::kind::native).native = natives_.size();
        keep(value.to_json(), out);
        return true;
    }
    block& b = open(index, block::kind::call);
    order_.add_call();
    model_detail::tool_fragment f;
    f.index = static_cast<std::int64_t>(blocks_.size()) - 1;
    f.id = view.id.string();
    f.name = view.name.string();
    const bool by_value = view.input && !view.input.is_string();
    if (by_value) b.input = view.input.to_json().dump();
    if (whole) {
        b.closed = true;
        f.arguments = by_value ? std::string_view(b.input) : view.input.string();
        f.whole = by_value;
    }
    f.text = whole && view.input.is_string();
    return answer_.add_call(f, true, out);
}

template <class V>
bool anthropic_decoder::add_delta(const V& value, std::string_view data, std::int64_t index, event_batch* out)
{
    using model_detail::repeated_delta;
    const delta_view<V> d(value);
    const std::string_view type = d.type.string();
    answer_.begin(out);
    block* b = find(index);
    // Text is never lost, nor is it forgotten that there were arguments.
    if (b == nullptr) {
        if (type != "text_delta" && type != "input_json_delta") return true;
        b = &open(index, type == "text_delta" ? block::kind::text : block::kind::call);
        model_detail::tool_fragment nameless;
        nameless.index = static_cast<std::int64_t>(blocks_.size()) - 1;
        nameless.text = false;
        if (b->what == block::kind::call) {
            order_.add_call();
            if (!answer_.add_call(nameless, true, out)) return false;
        }
    }
    const auto learn = [&](repeats what, std::string_view delta, std::string_view name) {
        if constexpr (!V::exact) {
            if (b != &blocks_.back()) return;
            if (!repeated_ || sampled_ != what) repeated_ = std::make_unique<repeated_delta>(model_detail::delta_shape{name, {}, {}});
            repeated_->learn(data, delta);
            repeats_ = sampled_ = what;
        }
    };
    switch (b->what) {
    case block::kind::text:
        if (type != "text_delta") return true;
        learn(repeats::text, d.text.string(), "\"text\"");
        add_text(d.text.string(), out);
        return true;
    case block::kind::call: {
        if (type != "input_json_delta") return true;
        model_detail::tool_fragment f;
        f.index = b - blocks_.data();
        f.arguments = d.json_text.string();
        b->has_arguments = b->has_arguments || !f.arguments.empty();
        return answer_.add_call(f, false, out);
    }
    case block::kind::native: break;
    }
    native_block& n = natives_[b->native];
    if (type == "thinking_delta") {
        learn(repeats::thinking, d.thinking.string(), "\"thinking\"");
        n.add_thinking(d.thinking.string());
        answer_.show_thinking(d.thinking.string(), out);
        return true;
    }
    answer_.hold(data.size());
    if (type == "signature_delta") n.add_signature(d.signature.string());
    else if (type == "text_delta") n.add_text(d.text.string());
    else if (type == "input_json_delta") n.add_input(d.json_text.string());
    else if (type == "citations_delta" && d.citation) n.add_citation(d.citation.to_json());
    else if (value.is_object()) n.add_delta(value.to_json());
    return true;
}

template <class V>
bool anthropic_decoder::stop_block(const V& index, event_batch* out)
{
    block* b = find(index.integer().value_or(0));
    if (b == nullptr || b->closed) return true;
    b->closed = true;
    if (b->what != block::kind::call || b->has_arguments || b->input.empty()) return true;
    model_detail::tool_fragment f;
    f.index = b - blocks_.data();
    f.arguments = b->input;
    f.text = false;
    f.whole = true;
    return answer_.add_call(f, false, out);
}

template <class V>
std::optional<decode_state> anthropic_decoder::apply(const root_view<V>& e, std::string_view what, std::string_view data, event_batch* out)
{
    const auto go_on = [this](bool within) { return within ? decode_state::more : answer_.fail_limit(true); };
    const std::int64_t index = e.index.integer().value_or(0);
    if (what == "content_block_delta") {
        if constexpr (!V::exact) {
            const std::string_view type = delta_view<V>(e.delta).type.string();
            constexpr std::array<std::string_view, 4> of_text = {"text_delta", "input_json_delta", "thinking_delta", "signature_delta"};
            const block* b = find(index);
            if (b != nullptr && b->what == block::kind::native && std::find(of_text.begin(), of_text.end(), type) == of_text.end()) return std::nullopt;
        }
        return go_on(add_delta(e.delta, data, index, out));
    }
    if (what == "content_block_start") {
        if constexpr (!V::exact)
            if (block_view<V>(e.block).needs_exact()) return std::nullopt;
        answer_.hold(data.size());
        return go_on(add_block(e.block, index, false, out));
    }
    if (what == "content_block_stop") return go_on(stop_block(e.index, out));
    if (what == "message_start") {
        const root_view<V> message(e.message);
        answer_.set_model(message.model.string());
        answer_.begin(out);
        add_usage(message.used, out);
    } else if (what == "message_delta") {
        answer_.set_stop(delta_view<V>(e.delta).stop.string());
        add_usage(e.used, out);
    } else if (what == "message_stop") {
        return finish(out);
    }
    return decode_state::more;
}

decode_state anthropic_decoder::on_event(std::string_view data, std::string_view type, event_batch* out)
{
    using model_detail::trimmed;
    if (data.size() < 64) {
        if (trimmed(data) == "[DONE]") return on_end(true, out);
        if (trimmed(data).empty()) return decode_state::more;
    }
    if (repeats_ != repeats::nothing && type != "error") {
        if (const auto text = repeated_->match(data)) {
            if (repeats_ == repeats::text) {
                add_text(*text, out);
            } else {
                natives_[blocks_.back().native].add_thinking(*text);
                answer_.show_thinking(*text, out);
            }
            return decode_state::more;
        }
    }
    const auto take = [&]<class V>(const V& root) -> std::optional<decode_state> {
        const root_view<V> e(root);
        const std::string_view what = e.type.is_string() ? e.type.string() : type;
        if (e.error || what == "error" || type == "error") return fail_error(e.error ? e.error.to_json() : root.to_json(), "stream-error", true);
        return apply(e, what, data, out);
    };
    return model_detail::with_json(answer_.codec().scratch(), data, take, [&] { return answer_.fail_invalid_event(data); });
}

decode_state anthropic_decoder::on_body(std::string_view text, int status, event_batch* out)
{
    const auto take = [&]<class V>(const V& root) -> std::optional<decode_state> {
        const root_view<V> m(root);
        if (m.type.string() == "error" || (m.error && !m.content.is_array()))
            return fail_error(m.error ? m.error.to_json() : root.to_json(), "error-in-200", false);
        if (!m.content.is_array()) return no_content(text);
        if constexpr (!V::exact) {
            bool exact = false;
            m.content.elements([&](const V& b) { exact = exact || block_view<V>(b).needs_exact(); });
            if (exact) return std::nullopt;
        }
        answer_.set_model(m.model.string());
        answer_.begin(out);
        bool within = true;
        std::int64_t index = 0;
        m.content.elements([&](const V& b) { within = within && add_block(b, index++, true, out); });
        if (!within) return answer_.fail_limit(false);
        answer_.set_stop(m.stop.string());
        add_usage(m.used, out);
        return finish(out);
    };
    return model_detail::with_json(answer_.codec().scratch(), text, take, [&] { return answer_.fail_invalid_body(text, status); });
}

decode_state anthropic_decoder::fail_error(const json& error, std::string_view bound, bool with_partial)
{
    service_error said = service_error::read(error);
    const std::string* type = error["type"].get_string();
    const bool numbered = error["code"].is_number() || error["status"].is_number();
    if (const int status = type == nullptr || numbered ? 0 : status_of(*type); status != 0) said.status = status;
    return answer_.fail_said(said, error, bound, with_partial);
}

decode_state anthropic_decoder::no_content(std::string_view body)
{
    const bool expose = answer_.codec().options().expose_error_body;
    provider_error e =
        answer_.make_error(errc::provider_failed, expose ? "response has no content: " + quoted(body, 300) : "response has no content", "no-content", false);
    if (expose) e.body = repair_utf8(body);
    return fail(std::move(e), false);
}

decode_state anthropic_decoder::finish(event_batch* out)
{
    for (std::size_t i = 0; i < blocks_.size(); ++i)
        if (blocks_[i].what == block::kind::call && !blocks_[i].closed) answer_.cut_call(static_cast<std::int64_t>(i));
    const decode_state state = answer_.finish(neutral_stop(answer_.raw_stop()), out);
    if (natives_.empty()) return state;
    json blocks = json::array();
    for (native_block& n : natives_) blocks.push_back(n.take());
    answer_.set_blocks(answer_.codec().model(), std::move(blocks), order_.to_json(answer_.result().text, answer_.result()));
    return state;
}

}  // namespace
}  // namespace anthropic_wire

std::unique_ptr<wire_decoder> anthropic_codec::decoder(tool_list tools, std::string request_id) const
{
    return std::make_unique<anthropic_wire::anthropic_decoder>(*this, std::move(tools), std::move(request_id));
}

}  // namespace reagent::inline v0

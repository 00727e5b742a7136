#include <simdjson.h>

#include "repeated_delta.hpp"
#include "tool_call_assembler.hpp"
#include "wire_json.hpp"

#include <reagent/base/utf8.hpp>
#include <reagent/model/openai_responses_codec.hpp>
#include <reagent/model/wire_decoder.hpp>

#include <algorithm>

namespace reagent::inline v0 {

/// Named, since the decoders of all wires share a unit.
namespace responses_wire {
namespace {

using model_detail::token_count;
using model_detail::tool_fragment;

constexpr std::string_view text_delta = "response.output_text.delta";

model_detail::delta_shape text_deltas()
{
    model_detail::delta_shape shape;
    shape.text = "\"delta\"";
    shape.digits = {"\"sequence_number\""};
    return shape;
}

template <class V>
std::optional<usage> read_usage(const V& value)
{
    std::optional<std::uint64_t> input, output, cached, reasoning;
    value.members([&](std::string_view key, const V& v) {
        if (key == "input_tokens") input = token_count(v);
        else if (key == "output_tokens") output = token_count(v);
        else if (key == "input_tokens_details") {
            v.members([&](std::string_view k, const V& n) {
                if (k == "cached_tokens") cached = token_count(n);
            });
        } else if (key == "output_tokens_details") {
            v.members([&](std::string_view k, const V& n) {
                if (k == "reasoning_tokens") reasoning = token_count(n);
            });
        }
    });
    if (!input && !output) return std::nullopt;
    usage u;
    u.cache_read = cached.value_or(0);
    u.cache_creation = 0;
    u.input = input.value_or(0) - std::min(input.value_or(0), *u.cache_read);
    u.output = output.value_or(0);
    u.reasoning = reasoning;
    return u;
}

/// An output item. Of duplicate keys the last one wins, here and below.
template <class V>
class item_view {
public:
    explicit item_view(const V& item) : all(item)
    {
        item.members([&](std::string_view key, const V& v) {
            if (key == "type") type = v.string();
            else if (key == "content") content = v;
            else if (key == "summary") summary = v;
            else if (key == "call_id") call_id = v.string();
            else if (key == "name") name = v.string();
            else if (key == "arguments") arguments = v;
        });
    }
    bool is_message() const noexcept { return type == "message"; }
    bool is_call() const noexcept { return type == "function_call"; }
    /// Neither text nor a call: kept as it is, to be sent back.
    bool is_block() const noexcept { return all.is_object() && !is_message() && !is_call(); }
    /// Arguments that came as a value instead of as its text.
    bool by_value() const noexcept { return is_call() && static_cast<bool>(arguments) && !arguments.is_string(); }
    bool needs_exact() const noexcept { return is_block() || by_value(); }
    V all, content, summary, arguments;
    std::string_view type, call_id, name;
};

template <class V>
bool any_needs_exact(const V& output)
{
    bool needed = false;
    output.elements([&](const V& i) { needed = needed || item_view<V>(i).needs_exact(); });
    return needed;
}

/// `storage` holds arguments that came as a value.
template <class V>
tool_fragment fragment_of(const item_view<V>& call, std::string& storage)
{
    tool_fragment f;
    f.id = call.call_id;
    f.name = call.name;
    f.arguments = call.arguments.string();
    f.text = call.arguments.is_string();
    if (call.by_value()) {
        storage = call.arguments.to_json().dump();
        f.arguments = storage;
        f.whole = true;
    }
    return f;
}

/// The text of a message item, refusals included; true when there is one of those.
template <class V>
bool text_of(const item_view<V>& message, std::string& out)
{
    bool refused = false;
    out += message.content.string();
    message.content.elements([&](const V& part) {
        std::string_view type, text, refusal;
        part.members([&](std::string_view key, const V& v) {
            if (key == "type") type = v.string();
            else if (key == "text") text = v.string();
            else if (key == "refusal") refusal = v.string();
        });
        if (type == "output_text") out += text;
        if (type != "refusal") return;
        out += refusal;
        refused = refused || !refusal.empty();
    });
    return refused;
}

/// `response`, as an answer of its own or inside of an event.
template <class V>
class response_view {
public:
    explicit response_view(const V& r)
    {
        r.members([&](std::string_view key, const V& v) {
            if (key == "model") model = v.string();
            else if (key == "status") status = v.string();
            else if (key == "output") output = v;
            else if (key == "usage") used = v;
            else if (key == "error") error = v;
            else if (key == "incomplete_details") details = v;
        });
        details.members([&](std::string_view key, const V& v) {
            if (key == "reason") reason = v.string();
        });
    }
    V output, used, error;
    std::string_view model, status, reason;

private:
    V details;
};

template <class V>
class event_view {
public:
    event_view(const V& root, std::string_view named) : type(named)
    {
        root.members([&](std::string_view key, const V& v) {
            if (key == "type" && v.is_string()) {
                type = v.string();
                typed = true;
            } else if (key == "delta") delta = v;
            else if (key == "item") item = v;
            else if (key == "response") response = v;
            else if (key == "error") error = v;
            else if (key == "output_index") index = v.integer();
        });
    }
    V delta, item, response, error;
    std::string_view type;
    std::optional<std::int64_t> index;
    bool typed = false;  ///< the data says its type itself
};

std::string_view neutral_stop(std::string_view raw) noexcept
{
    if (raw == "completed") return "end_turn";
    if (raw == "max_output_tokens") return "max_tokens";
    if (raw == "content_filter") return "refusal";
    return raw;
}

/// One response of the Responses wire. What streams goes to the events; the response at the end says what the answer is.
class responses_decoder final : public wire_decoder {
public:
    responses_decoder(const openai_responses_codec& codec, tool_list tools, std::string request_id)
        : wire_decoder(codec, std::move(tools), std::move(request_id))
    {}

    decode_state on_event(std::string_view data, std::string_view type, event_batch* out) override;
    decode_state on_body(std::string_view text, int status, event_batch* out) override;
    thinking_signal thinking_seen() const noexcept override { return thought_ ? thinking_signal::seen : wire_decoder::thinking_seen(); }

private:
    decode_state finish(event_batch* out) override;
    template <class V>
    std::optional<decode_state> take_event(const V& root, std::string_view data, std::string_view type, event_batch* out);
    template <class V>
    std::optional<decode_state> take_item(const event_view<V>& e, bool done, event_batch* out);
    template <class V>
    std::optional<decode_state> take_response(const V& response, std::string_view as, bool streamed, event_batch* out);
    template <class V>
    bool take_output(const V& output, bool streamed, event_batch* out);
    template <class V>
    decode_state fail_response(const response_view<V>& r, bool streamed);
    template <class V>
    void show_reasoning(const item_view<V>& item, event_batch* out);
    void think(std::string_view delta, event_batch* out);
    bool add_arguments(tool_fragment f, std::optional<std::int64_t> index, event_batch* out);
    decode_state no_output(std::string_view body);

    /// A streamed call and the bytes of arguments that came so far.
    struct open_call {
        std::optional<std::int64_t> index;
        std::size_t bytes = 0;
    };
    open_call& call_at(std::optional<std::int64_t> index);

    std::unique_ptr<model_detail::repeated_delta> repeated_;  ///< made when the first text arrives
    std::vector<open_call> open_calls_;
    json blocks_ = json::array();
    std::size_t message_start_ = 0;  ///< bytes of text in front of the message that is streaming
    bool thought_ = false, refused_ = false;
};

void responses_decoder::think(std::string_view delta, event_batch* out)
{
    thought_ = thought_ || !delta.empty();
    answer_.show_thinking(delta, out);
}

template <class V>
void responses_decoder::show_reasoning(const item_view<V>& item, event_batch* out)
{
    if (item.type != "reasoning") return;
    const auto show = [&](const V& part) {
        part.members([&](std::string_view key, const V& v) {
            if (key == "text") think(v.string(), out);
        });
    };
    item.summary.elements(show);
    item.content.elements(show);
}

responses_decoder::open_call& responses_decoder::call_at(std::optional<std::int64_t> index)
{
    const auto at = std::find_if(open_calls_.rbegin(), open_calls_.rend(), [&](const open_call& c) { return c.index == index; });
    if (at != open_calls_.rend()) return *at;
    open_calls_.push_back({index, 0});
    return open_calls_.back();
}

bool responses_decoder::add_arguments(tool_fragment f, std::optional<std::int64_t> index, event_batch* out)
{
    f.index = index;
    if (!answer_.add_call(f, false, out)) return false;  // the limit of calls bounds `open_calls_`
    call_at(index).bytes += f.arguments.size();
    return true;
}

template <class V>
std::optional<decode_state> responses_decoder::take_item(const event_view<V>& e, bool done, event_batch* out)
{
    const item_view<V> item(e.item);
    if constexpr (!V::exact)
        if (done ? item.needs_exact() : item.by_value()) return std::nullopt;
    answer_.begin(out);
    if (item.is_call()) {
        std::string storage;
        const tool_fragment f = fragment_of(item, storage);
        const bool streamed = done && call_at(e.index).bytes != 0;  // and then it says nothing new
        if (!streamed && !add_arguments(f, e.index, out)) return answer_.fail_limit(true);
    } else if (item.is_message() && !done) {
        message_start_ = text().size();
    } else if (item.is_message()) {
        // What did not come as deltas.
        std::string whole;
        refused_ = text_of(item, whole) || refused_;
        const std::string_view shown = std::string_view(text()).substr(message_start_);
        if (whole.starts_with(shown)) answer_.add_text(std::string_view(whole).substr(shown.size()), out);
        message_start_ = text().size();
    } else if (done && item.is_block()) {
        if (!thought_) show_reasoning(item, out);
        json block = item.all.to_json();
        answer_.hold(block.dump().size());
        blocks_.push_back(std::move(block));
    }
    return decode_state::more;
}

template <class V>
std::optional<decode_state> responses_decoder::take_event(const V& root, std::string_view data, std::string_view type, event_batch* out)
{
    const event_view<V> e(root, type);
    if (e.type == text_delta && !e.error) {
        if constexpr (!V::exact) {
            if (!repeated_) repeated_ = std::make_unique<model_detail::repeated_delta>(text_deltas());
            if (e.typed && e.delta.is_string()) repeated_->learn(data, e.delta.string());
        }
        answer_.begin(out);
        answer_.add_text(e.delta.string(), out);
        return decode_state::more;
    }
    if (e.error) return answer_.fail_stream(e.error.to_json());
    if (e.type == "error") return answer_.fail_stream(root.to_json());
    for (const std::string_view last : {"completed", "incomplete", "failed"})
        if (e.type.starts_with("response.") && e.type.substr(9) == last) return take_response(e.response, last, true, out);
    if (e.type == "response.output_item.added") return take_item(e, false, out);
    if (e.type == "response.output_item.done") return take_item(e, true, out);
    if (e.response.is_object()) {
        const response_view<V> r(e.response);
        answer_.set_model(r.model);
        answer_.begin(out);
        if (const auto u = read_usage(r.used)) answer_.add_usage(*u, out);
    } else if (e.type == "response.reasoning_summary_text.delta" || e.type == "response.reasoning_text.delta") {
        answer_.begin(out);
        think(e.delta.string(), out);
    } else if (e.type == "response.refusal.delta") {
        answer_.begin(out);
        answer_.add_text(e.delta.string(), out);
        refused_ = refused_ || !e.delta.string().empty();
    } else if (e.type == "response.function_call_arguments.delta") {
        answer_.begin(out);
        tool_fragment f;
        f.arguments = e.delta.string();
        if (!f.arguments.empty() && !add_arguments(f, e.index, out)) return answer_.fail_limit(true);
    }
    return decode_state::more;
}

decode_state responses_decoder::on_event(std::string_view data, std::string_view type, event_batch* out)
{
    using model_detail::trimmed;
    if (data.size() < 64 && trimmed(data) == "[DONE]") return on_end(true, out);
    if (data.size() < 64 && trimmed(data).empty()) return decode_state::more;
    if (repeated_ && type != "error") {
        if (const auto text = repeated_->match(data)) {
            answer_.add_text(*text, out);
            return decode_state::more;
        }
    }
    const auto take = [&]<class V>(const V& root) { return take_event(root, data, type, out); };
    return model_detail::with_json(answer_.codec().scratch(), data, take, [&] { return answer_.fail_invalid_event(data); });
}

decode_state responses_decoder::on_body(std::string_view text, int status, event_batch* out)
{
    const auto take = [&]<class V>(const V& root) -> std::optional<decode_state> {
        const response_view<V> r(root);
        if (!r.output.is_array() && !r.error && r.status != "failed") return no_output(text);
        return take_response(root, {}, false, out);
    };
    return model_detail::with_json(answer_.codec().scratch(), text, take, [&] { return answer_.fail_invalid_body(text, status); });
}

template <class V>
decode_state responses_decoder::fail_response(const response_view<V>& r, bool streamed)
{
    const json error = r.error ? r.error.to_json() : json::object().set("message", "the response failed and does not say why");
    return answer_.fail_said(service_error::read(error), error, streamed ? "stream-error" : "error-in-200", streamed);
}

/// `as`: the status that the event's type tells, for a response that says none.
template <class V>
std::optional<decode_state> responses_decoder::take_response(const V& response, std::string_view as, bool streamed, event_batch* out)
{
    const response_view<V> r(response);
    if constexpr (!V::exact)
        if (any_needs_exact(r.output)) return std::nullopt;
    answer_.set_model(r.model);
    answer_.begin(out);
    if (const auto u = read_usage(r.used)) answer_.add_usage(*u, out);
    const std::string_view status = r.status.empty() ? as : r.status;
    if (as == "failed" || status == "failed" || r.error) return fail_response(r, streamed);
    if (!take_output(r.output, streamed, out)) return answer_.fail_limit(streamed);
    if (refused_) answer_.set_stop("refusal");
    answer_.set_stop(status == "incomplete" ? r.reason : status);
    answer_.set_stop(status);
    return finish(out);
}

/// The output at the end is what the answer is, whatever came as deltas; some servers leave it out there, and then the deltas are. False: a limit is passed.
template <class V>
bool responses_decoder::take_output(const V& output, bool streamed, event_batch* out)
{
    std::string whole, storage;
    std::size_t items = 0, position = 0;
    bool refused = false, same_calls = true;
    output.elements([&](const V& v) {
        const item_view<V> item(v);
        ++items;
        if (item.is_message()) refused = text_of(item, whole) || refused;
        if (item.is_call()) same_calls = answer_.holds_call(position++, fragment_of(item, storage)) && same_calls;
    });
    if (streamed && items == 0) return true;
    refused_ = refused;
    blocks_ = json::array();
    const unsigned started = answer_.calls_started();
    const bool shown = thought_, replaced = !same_calls || position != started;
    if (replaced) answer_.drop_calls();
    if (whole.starts_with(text())) answer_.add_text(std::string_view(whole).substr(text().size()), out);
    else answer_.result().text = std::move(whole);
    bool fits = true;
    position = 0;
    output.elements([&](const V& v) {
        const item_view<V> item(v);
        if (item.is_block()) {
            if (!shown) show_reasoning(item, out);
            blocks_.push_back(v.to_json());
        }
        // Events of calls that streamed are out.
        if (item.is_call() && replaced && fits) fits = answer_.add_call(fragment_of(item, storage), true, position++ < started ? nullptr : out);
    });
    return fits;
}

decode_state responses_decoder::no_output(std::string_view body)
{
    const bool expose = answer_.codec().options().expose_error_body;
    provider_error e =
        answer_.make_error(errc::provider_failed, expose ? "response has no output: " + quoted(body, 300) : "response has no output", "no-output", false);
    if (expose) e.body = repair_utf8(body);
    return fail(std::move(e), false);
}

decode_state responses_decoder::finish(event_batch* out)
{
    if (!blocks_.empty()) answer_.set_blocks(answer_.codec().model(), std::move(blocks_));
    return answer_.finish(neutral_stop(answer_.raw_stop()), out);
}

}  // namespace
}  // namespace responses_wire

std::unique_ptr<wire_decoder> openai_responses_codec::decoder(tool_list tools, std::string request_id) const
{
    return std::make_unique<responses_wire::responses_decoder>(*this, std::move(tools), std::move(request_id));
}

}  // namespace reagent::inline v0

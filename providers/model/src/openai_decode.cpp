#include <simdjson.h>

#include "chat_calls.hpp"
#include "repeated_delta.hpp"
#include "wire_json.hpp"

#include <reagent/base/utf8.hpp>
#include <reagent/model/openai_decoder.hpp>

#include <algorithm>

namespace reagent::inline v0 {

/// Named, since the decoders of all wires share a unit.
namespace openai_wire {
namespace {

using model_detail::token_count;
using model_detail::wire_key;

template <class V>
std::optional<usage> read_usage(const V& value)
{
    std::optional<std::uint64_t> prompt, completion, cached, reasoning;
    bool details = false;
    value.members([&](const wire_key& key, const V& v) {
        if (key == "prompt_tokens") prompt = token_count(v);
        else if (key == "completion_tokens") completion = token_count(v);
        else if (key == "prompt_tokens_details") {
            details = v.is_object();
            v.members([&](const wire_key& k, const V& n) {
                if (k == "cached_tokens") cached = token_count(n);
            });
        } else if (key == "completion_tokens_details") {
            v.members([&](const wire_key& k, const V& n) {
                if (k == "reasoning_tokens") reasoning = token_count(n);
            });
        }
    });
    if (!prompt && !completion && !details) return std::nullopt;
    usage u;
    u.cache_read = cached.value_or(0);
    u.cache_creation = 0;
    u.input = prompt.value_or(0) - std::min(prompt.value_or(0), *u.cache_read);
    u.output = completion.value_or(0);
    u.reasoning = reasoning;
    return u;
}

/// What a chunk or a body holds, found in one pass: of duplicate keys the last one wins.
template <class V>
class chat_object {
public:
    explicit chat_object(const V& root)
    {
        root.members([&](const wire_key& key, const V& v) {
            if (key == "choices") choices = v;
            else if (key == "usage") used = v;
            else if (key == "model") model = v;
            else if (key == "error") error = v;
        });
        if (!choices.is_array()) return;
        std::int64_t position = 0;
        choices.elements([&](const V& c) { take_choice(c, position++); });
    }
    V choices, used, model, error;
    bool any_choice = false;
    V content, refusal, reasoning_content, reasoning, tool_calls, finish;
    /// Whether a text delta is all it says.
    bool only_text() const noexcept { return content.is_string() && !refusal && !reasoning_content && !reasoning && !tool_calls && !finish && !used && !error; }

private:
    void take_choice(const V& c, std::int64_t position)
    {
        V index, delta, message, reason;
        c.members([&](const wire_key& key, const V& v) {
            if (key == "index") index = v;
            else if (key == "delta") delta = v;
            else if (key == "message") message = v;
            else if (key == "finish_reason") reason = v;
        });
        any_choice = any_choice || c.is_object();
        if (index.integer().value_or(position) != 0) return;
        const V& said = message.is_object() ? message : delta;
        said.members([&](const wire_key& key, const V& v) {
            if (key == "content") content = v;
            else if (key == "refusal") refusal = v;
            else if (key == "reasoning_content") reasoning_content = v;
            else if (key == "reasoning") reasoning = v;
            else if (key == "tool_calls") tool_calls = v;
        });
        if (reason) finish = reason;
    }
};

std::string_view neutral_stop(std::string_view raw) noexcept
{
    if (raw == "stop") return "end_turn";
    if (raw == "length") return "max_tokens";
    if (raw == "tool_calls" || raw == "function_call") return "tool_use";
    if (raw == "content_filter") return "refusal";
    return raw;
}

}  // namespace
}  // namespace openai_wire

/// Applies what was read to the decoder; the same code for both kinds of value.
struct openai_decoder::reader {
    answer_builder& answer;
    event_batch* out;

    template <class V>
    void content(const V& v) const
    {
        if (v.is_string()) answer.add_text(v.string(), out);
        v.elements([&](const V& p) {
            V type, text;
            p.members([&](const model_detail::wire_key& key, const V& m) {
                if (key == "type") type = m;
                else if (key == "text") text = m;
            });
            if (type.string() == "text") answer.add_text(text.string(), out);
        });
    }

    /// False: the arguments of a call pass their limit.
    template <class V>
    bool apply(const openai_wire::chat_object<V>& o, bool whole) const
    {
        answer.set_model(o.model.string());
        answer.begin(out);
        if (const std::string_view thought = o.reasoning_content.string().empty() ? o.reasoning.string() : o.reasoning_content.string(); !thought.empty())
            answer.add_thinking(thought, out);
        content(o.content);
        answer.add_refusal(o.refusal.string());
        if (o.tool_calls.is_array() && !model_detail::add_calls(answer, o.tool_calls, whole, out)) return false;
        answer.set_stop(o.finish.string());
        if (o.used.is_object())
            if (const auto u = openai_wire::read_usage(o.used)) answer.add_usage(*u, out);
        return true;
    }
};

std::unique_ptr<wire_decoder> openai_codec::decoder(tool_list tools, std::string request_id) const
{
    return std::make_unique<openai_decoder>(*this, std::move(tools), std::move(request_id));
}

openai_decoder::openai_decoder(const openai_codec& codec, tool_list tools, std::string request_id)
    : wire_decoder(codec, std::move(tools), std::move(request_id))
{}

openai_decoder::~openai_decoder() = default;

decode_state openai_decoder::on_event(std::string_view data, std::string_view type, event_batch* out)
{
    using model_detail::trimmed;
    if (data.size() < 64 && trimmed(data) == "[DONE]") return finish(out);
    if (data.size() < 64 && trimmed(data).empty()) return decode_state::more;
    if (repeated_ && type != "error") {
        if (const auto text = repeated_->match(data)) {
            answer_.add_text(*text, out);
            return decode_state::more;
        }
    }
    const reader r{answer_, out};
    const auto take = [&]<class V>(const V& root) -> std::optional<decode_state> {
        const openai_wire::chat_object<V> o(root);
        if constexpr (!V::exact) {
            if (model_detail::needs_exact(o.tool_calls)) return std::nullopt;
            if (o.only_text() && type != "error") {
                if (!repeated_) repeated_ = std::make_unique<model_detail::repeated_delta>();
                repeated_->learn(data, o.content.string());
            }
        }
        if (o.error) return answer_.fail_stream(o.error.to_json());
        if (type == "error") return answer_.fail_stream(root.to_json());
        return r.apply(o, false) ? decode_state::more : answer_.fail_limit(true);
    };
    return model_detail::with_json(answer_.codec().scratch(), data, take, [&] { return answer_.fail_invalid_event(data); });
}

decode_state openai_decoder::on_body(std::string_view text, int status, event_batch* out)
{
    const reader r{answer_, out};
    const auto take = [&]<class V>(const V& root) -> std::optional<decode_state> {
        const openai_wire::chat_object<V> o(root);
        if constexpr (!V::exact)
            if (model_detail::needs_exact(o.tool_calls)) return std::nullopt;
        if (!o.any_choice) return no_choices(text);
        return r.apply(o, true) ? finish(out) : answer_.fail_limit(false);
    };
    return model_detail::with_json(answer_.codec().scratch(), text, take, [&] { return answer_.fail_invalid_body(text, status); });
}

decode_state openai_decoder::no_choices(std::string_view body)
{
    const bool expose = answer_.codec().options().expose_error_body;
    provider_error e =
        answer_.make_error(errc::provider_failed, expose ? "response has no choices: " + quoted(body, 300) : "response has no choices", "no-choices", false);
    if (expose) e.body = repair_utf8(body);
    return fail(std::move(e), false);
}

decode_state openai_decoder::finish(event_batch* out)
{
    if (!answer_.thinking().empty()) {
        json block = json::object().set("type", "reasoning_content").set("text", answer_.thinking());
        json blocks = json::array();
        blocks.push_back(std::move(block));
        const std::string& said = answer_.result().model;
        answer_.set_blocks(said.empty() ? answer_.codec().model() : said, std::move(blocks));
    }
    return answer_.finish(openai_wire::neutral_stop(answer_.raw_stop()), out);
}

}  // namespace reagent::inline v0

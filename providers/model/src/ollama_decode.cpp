#include <simdjson.h>

#include "chat_calls.hpp"
#include "repeated_delta.hpp"
#include "wire_json.hpp"

#include <reagent/base/utf8.hpp>
#include <reagent/model/ollama_codec.hpp>
#include <reagent/model/wire_decoder.hpp>

namespace reagent::inline v0 {

/// Named, since the decoders of all wires share a unit.
namespace ollama_wire {
namespace {

using model_detail::token_count;

/// Every line tells when it was made.
model_detail::delta_shape text_lines()
{
    model_detail::delta_shape shape;
    shape.digits = {};
    shape.strings = {"\"created_at\""};
    return shape;
}

/// What a line or a body holds, found in one pass: of duplicate keys the last one wins.
template <class V>
class line_object {
public:
    explicit line_object(const V& root)
    {
        root.members([&](std::string_view key, const V& v) {
            if (key == "model") model = v;
            else if (key == "message") message = v;
            else if (key == "done") done = v;
            else if (key == "done_reason") reason = v;
            else if (key == "error") error = v;
            else if (key == "prompt_eval_count") prompt = token_count(v);
            else if (key == "eval_count") evaluated = token_count(v);
        });
        message.members([&](std::string_view key, const V& v) {
            if (key == "content") content = v;
            else if (key == "thinking") thinking = v;
            else if (key == "tool_calls") tool_calls = v;
        });
    }
    V model, message, done, reason, error, content, thinking, tool_calls;
    std::optional<std::uint64_t> prompt, evaluated;
    /// Whether a text delta is all it says.
    bool only_text() const noexcept
    {
        return content.is_string() && thinking.string().empty() && !tool_calls && !done.is_true() && reason.string().empty() && !error && !prompt && !evaluated;
    }
};

std::string_view neutral_stop(std::string_view raw) noexcept
{
    if (raw == "stop") return "end_turn";
    if (raw == "length") return "max_tokens";
    return raw;
}

class ollama_decoder final : public wire_decoder {
public:
    ollama_decoder(const ollama_codec& codec, tool_list tools, std::string request_id) : wire_decoder(codec, std::move(tools), std::move(request_id)) {}

    decode_state on_event(std::string_view data, std::string_view type, event_batch* out) override;
    decode_state on_body(std::string_view text, int status, event_batch* out) override;
    /// It is said beside the text or not at all.
    thinking_signal thinking_seen() const noexcept override { return answer_.thinking().empty() ? thinking_signal::none : thinking_signal::seen; }

private:
    decode_state finish(event_batch* out) override { return answer_.finish(neutral_stop(answer_.raw_stop()), out); }
    template <class V>
    bool apply(const line_object<V>& o, event_batch* out);

    std::unique_ptr<model_detail::repeated_delta> repeated_;  ///< made when the first text arrives
};

/// False: the arguments of a call pass their limit.
template <class V>
bool ollama_decoder::apply(const line_object<V>& o, event_batch* out)
{
    answer_.set_model(o.model.string());
    answer_.begin(out);
    answer_.add_thinking(o.thinking.string(), out);
    answer_.add_text(o.content.string(), out);
    if (!model_detail::add_calls(answer_, o.tool_calls, true, out)) return false;
    answer_.set_stop(o.reason.string());
    if (o.prompt || o.evaluated) {
        usage u;
        u.input = o.prompt.value_or(0);
        u.output = o.evaluated.value_or(0);
        answer_.add_usage(u, out);
    }
    return true;
}

decode_state ollama_decoder::on_event(std::string_view data, std::string_view, event_batch* out)
{
    if (data.size() < 64 && model_detail::trimmed(data).empty()) return decode_state::more;
    if (repeated_) {
        if (const auto text = repeated_->match(data)) {
            answer_.add_text(*text, out);
            return decode_state::more;
        }
    }
    const auto take = [&]<class V>(const V& root) -> std::optional<decode_state> {
        const line_object<V> o(root);
        if constexpr (!V::exact) {
            if (model_detail::needs_exact(o.tool_calls)) return std::nullopt;
            if (o.only_text()) {
                if (!repeated_) repeated_ = std::make_unique<model_detail::repeated_delta>(text_lines());
                repeated_->learn(data, o.content.string());
            }
        }
        if (o.error) return answer_.fail_stream(o.error.to_json());
        if (!apply(o, out)) return answer_.fail_limit(true);
        return o.done.is_true() ? finish(out) : decode_state::more;
    };
    return model_detail::with_json(answer_.codec().scratch(), data, take, [&] { return answer_.fail_invalid_event(data); });
}

decode_state ollama_decoder::on_body(std::string_view text, int status, event_batch* out)
{
    const auto take = [&]<class V>(const V& root) -> std::optional<decode_state> {
        const line_object<V> o(root);
        if constexpr (!V::exact)
            if (model_detail::needs_exact(o.tool_calls)) return std::nullopt;
        if (o.error) return answer_.fail_said(service_error::read(o.error.to_json()), root.to_json(), "error-in-200", false);
        if (!o.message.is_object()) {
            provider_error e = answer_.make_error(errc::provider_failed, "the answer has no message", "no-message", false);
            if (answer_.codec().options().expose_error_body) e.body = repair_utf8(text);
            return fail(std::move(e), false);
        }
        return apply(o, out) ? finish(out) : answer_.fail_limit(false);
    };
    return model_detail::with_json(answer_.codec().scratch(), text, take, [&] { return answer_.fail_invalid_body(text, status); });
}

}  // namespace
}  // namespace ollama_wire

std::unique_ptr<wire_decoder> ollama_codec::decoder(tool_list tools, std::string request_id) const
{
    return std::make_unique<ollama_wire::ollama_decoder>(*this, std::move(tools), std::move(request_id));
}

}  // namespace reagent::inline v0

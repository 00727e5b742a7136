#include <simdjson.h>

#include "repeated_delta.hpp"
#include "tool_call_assembler.hpp"
#include "wire_json.hpp"

#include <reagent/base/utf8.hpp>
#include <reagent/model/gemini_codec.hpp>
#include <reagent/model/wire_decoder.hpp>

#include <algorithm>
#include <vector>

namespace reagent::inline v0 {

/// Named, since the decoders of all wires share a unit.
namespace gemini_wire {
namespace {

using model_detail::token_count;

/// Chunks count as they go.
model_detail::delta_shape text_chunks()
{
    model_detail::delta_shape shape;
    shape.text = "\"text\"";
    shape.digits = {"\"promptTokenCount\"", "\"candidatesTokenCount\"", "\"thoughtsTokenCount\"", "\"totalTokenCount\""};
    shape.strings = {};
    return shape;
}

/// `usageMetadata` as the service counts.
class counts {
public:
    template <class V>
    static counts read(const V& value)
    {
        counts out;
        value.members([&](std::string_view key, const V& v) {
            if (key == "promptTokenCount") out.prompt = token_count(v);
            else if (key == "candidatesTokenCount") out.candidates = token_count(v);
            else if (key == "thoughtsTokenCount") out.thoughts = token_count(v);
            else if (key == "cachedContentTokenCount") out.cached = token_count(v);
        });
        return out;
    }
    bool any() const noexcept { return prompt || candidates || thoughts || cached; }
    usage neutral() const noexcept
    {
        usage u;
        u.cache_read = cached.value_or(0);
        u.cache_creation = 0;
        u.input = prompt.value_or(0) - std::min(prompt.value_or(0), *u.cache_read);
        u.output = candidates.value_or(0) + thoughts.value_or(0);
        u.reasoning = thoughts.value_or(0);
        return u;
    }
    /// These counts with the numbers of a chunk that differs from theirs in nothing else.
    counts with(const model_detail::repeated_delta& chunk) const noexcept
    {
        counts out = *this;
        std::size_t i = 0;
        for (std::optional<std::uint64_t>* n : {&out.prompt, &out.candidates, &out.thoughts})
            if (const auto now = chunk.number(i++); *n && now) *n = *now;
        return out;
    }
    std::optional<std::uint64_t> prompt, candidates, thoughts, cached;
};

/// What a chunk or a body holds, found in one pass: of duplicate keys the last one wins.
template <class V>
class answer_object {
public:
    explicit answer_object(const V& root)
    {
        V candidates, feedback;
        root.members([&](std::string_view key, const V& v) {
            if (key == "candidates") candidates = v;
            else if (key == "usageMetadata") used = v;
            else if (key == "modelVersion") model = v;
            else if (key == "error") error = v;
            else if (key == "promptFeedback") feedback = v;
        });
        feedback.members([&](std::string_view key, const V& v) {
            if (key == "blockReason") blocked = v;
        });
        std::int64_t position = 0;
        candidates.elements([&](const V& c) { take_candidate(c, position++); });
    }
    V used, model, error, blocked, parts, finish;
    bool any_candidate = false;

private:
    void take_candidate(const V& c, std::int64_t position)
    {
        V index, content, reason;
        c.members([&](std::string_view key, const V& v) {
            if (key == "index") index = v;
            else if (key == "content") content = v;
            else if (key == "finishReason") reason = v;
        });
        any_candidate = any_candidate || c.is_object();
        if (index.integer().value_or(position) != 0) return;
        content.members([&](std::string_view key, const V& v) {
            if (key == "parts") parts = v;
        });
        if (reason) finish = reason;
    }
};

template <class V>
class part_view {
public:
    explicit part_view(const V& p)
    {
        p.members([&](std::string_view key, const V& v) {
            if (key == "text") text = v;
            else if (key == "thought") thought = v;
            else if (key == "functionCall") call = v;
            else if (key != "thoughtSignature") more = true;
            else signature = v;
        });
    }
    V text, thought, signature, call;
    bool more = false;
    bool is_call() const noexcept { return call.is_object(); }
    bool is_text() const noexcept { return !is_call() && text.is_string(); }
    /// Nothing but text, which goes on in the next part: a signature stays with its part.
    bool bare() const noexcept { return is_text() && !signature && !more; }
};

/// Whether the text of numbers matters somewhere, so that the value must be read exactly.
template <class V>
bool parts_need_exact(const V& parts)
{
    bool needed = false;
    parts.elements([&](const V& p) {
        const part_view<V> view(p);
        needed = needed || !view.is_text() || view.more;
    });
    return needed;
}

/// The delta of a chunk that holds one bare text and its counts; empty for any other.
template <class V>
std::string_view lone_text(const answer_object<V>& o)
{
    if (o.error || o.blocked || o.finish) return {};
    std::size_t n = 0;
    std::string_view out;
    o.parts.elements([&](const V& p) {
        const part_view<V> view(p);
        if (n++ == 0 && view.bare() && !view.thought.is_true()) out = view.text.string();
    });
    return n == 1 ? out : std::string_view();
}

std::string_view neutral_stop(std::string_view raw) noexcept
{
    if (raw == "STOP") return "end_turn";
    if (raw == "MAX_TOKENS") return "max_tokens";
    for (const std::string_view refusal :
         {"SAFETY", "RECITATION", "BLOCKLIST", "PROHIBITED_CONTENT", "SPII", "IMAGE_SAFETY", "IMAGE_PROHIBITED_CONTENT", "IMAGE_RECITATION"})
        if (raw == refusal) return "refusal";
    return raw;
}

/// The parts of a turn in order, to be replayed. Text that stands in the result is not kept twice.
class kept_parts {
public:
    /// Text at the end of the answer's own.
    void add_text(std::size_t from, std::size_t to)
    {
        if (parts_.empty() || parts_.back().what != kind::text) parts_.emplace_back(kind::text).from = from;
        parts_.back().to = to;
    }
    void add_thought(std::string_view delta)
    {
        if (parts_.empty() || parts_.back().what != kind::thought) parts_.emplace_back(kind::thought);
        parts_.back().thought += delta;
        worth_ = true;
    }
    /// `plain`: a message can say it as well.
    void add(json whole, bool plain)
    {
        parts_.emplace_back(kind::whole).value = std::move(whole);
        worth_ = worth_ || !plain;
    }
    std::size_t size() const noexcept { return parts_.size(); }
    /// Null when a message says all of it.
    json take(std::string_view text)
    {
        if (!worth_) return {};
        json out = json::array();
        for (kept& k : parts_) {
            if (k.what == kind::whole) out.push_back(std::move(k.value));
            else if (k.what == kind::thought) out.push_back(json::object().set("text", std::move(k.thought)).set("thought", true));
            else out.push_back(json::object().set("text", text.substr(k.from, k.to - k.from)));
        }
        return out;
    }

private:
    enum class kind : std::uint8_t { text, thought, whole };
    class kept {
    public:
        explicit kept(kind k) : what(k) {}
        kind what;
        std::size_t from = 0, to = 0;  ///< of text
        std::string thought;
        json value;
    };
    std::vector<kept> parts_;
    bool worth_ = false;
};

class gemini_decoder final : public wire_decoder {
public:
    gemini_decoder(const gemini_codec& codec, tool_list tools, std::string request_id) : wire_decoder(codec, std::move(tools), std::move(request_id)) {}

    decode_state on_event(std::string_view data, std::string_view type, event_batch* out) override;
    decode_state on_body(std::string_view text, int status, event_batch* out) override;
    thinking_signal thinking_seen() const noexcept override { return thought_ ? thinking_signal::seen : wire_decoder::thinking_seen(); }

private:
    decode_state finish(event_batch* out) override;
    decode_state no_candidates(std::string_view body);
    template <class V>
    bool apply(const answer_object<V>& o, event_batch* out);
    template <class V>
    bool take_part(const V& p, event_batch* out);
    template <class V>
    bool take_call(const V& p, const V& call, bool plain, event_batch* out);
    template <class V>
    decode_state take_array(const V& chunks, event_batch* out);
    void add_text(std::string_view delta, event_batch* out)
    {
        if (delta.empty()) return;
        const std::size_t from = text().size();
        answer_.add_text(delta, out);
        kept_.add_text(from, text().size());
    }
    /// A stream tells its usage in every chunk: who reads events gets the last, at the end.
    void note_usage(const counts& c) { answer_.result().usage = c.neutral(); }

    /// What a part is counted for beside its bytes.
    static constexpr std::size_t part_cost = 128;

    kept_parts kept_;
    counts sample_counts_;                                    ///< of the chunk that `repeated_` learned last
    std::unique_ptr<model_detail::repeated_delta> repeated_;  ///< made when the first text arrives
    bool thought_ = false, blocked_ = false;
};

template <class V>
bool gemini_decoder::take_call(const V& p, const V& call, bool plain, event_batch* out)
{
    V id, name, args;
    bool more = false;
    call.members([&](std::string_view key, const V& v) {
        if (key == "id") id = v;
        else if (key == "name") name = v;
        else if (key == "args") args = v;
        else more = true;
    });
    const std::string text = args ? args.to_json().dump() : "{}";
    std::string given(id.string());
    if (given.empty()) given = "gemini_call_" + random_hex(answer_.codec().options().random, 16);
    model_detail::tool_fragment f;
    f.id = given;
    f.name = name.string();
    f.arguments = text;
    f.whole = true;
    if (!answer_.add_call(f, true, out)) return false;
    answer_.hold(part_cost + text.size());
    kept_.add(p.to_json(), plain && !id && !more);
    return true;
}

template <class V>
bool gemini_decoder::take_part(const V& p, event_batch* out)
{
    if (!p.is_object()) return true;
    const part_view<V> view(p);
    if (view.is_call()) return take_call(p, view.call, !view.signature && !view.thought && !view.more, out);
    const std::size_t before = kept_.size();
    if (view.is_text() && view.thought.is_true()) {
        thought_ = thought_ || !view.text.string().empty();
        answer_.show_thinking(view.text.string(), out);
        if (view.bare()) kept_.add_thought(view.text.string());
    } else if (view.is_text()) {
        if (view.bare()) add_text(view.text.string(), out);
        else answer_.add_text(view.text.string(), out);
    }
    if (!view.bare()) {
        json whole = p.to_json();
        if (whole.empty()) return true;
        answer_.hold(whole.dump().size());
        kept_.add(std::move(whole), false);
    }
    if (kept_.size() != before) answer_.hold(part_cost);
    return true;
}

/// False: the arguments of a call pass their limit.
template <class V>
bool gemini_decoder::apply(const answer_object<V>& o, event_batch* out)
{
    answer_.set_model(o.model.string());
    answer_.begin(out);
    bool ok = true;
    o.parts.elements([&](const V& p) { ok = ok && take_part(p, out); });
    if (!ok) return false;
    if (!answer_.complete() && o.finish.string().empty() && !o.blocked.string().empty()) {
        blocked_ = true;
        answer_.set_stop(o.blocked.string());
    }
    answer_.set_stop(o.finish.string());
    if (const counts read = counts::read(o.used); read.any()) note_usage(read);
    return true;
}

decode_state gemini_decoder::on_event(std::string_view data, std::string_view type, event_batch* out)
{
    using model_detail::trimmed;
    if (data.size() < 64 && trimmed(data) == "[DONE]") return on_end(true, out);
    if (data.size() < 64 && trimmed(data).empty()) return decode_state::more;
    if (repeated_ && type != "error") {
        if (const auto text = repeated_->match(data)) {
            add_text(*text, out);
            if (sample_counts_.any()) note_usage(sample_counts_.with(*repeated_));
            return decode_state::more;
        }
    }
    const auto take = [&]<class V>(const V& root) -> std::optional<decode_state> {
        const answer_object<V> o(root);
        if constexpr (!V::exact) {
            if (parts_need_exact(o.parts)) return std::nullopt;
            if (const std::string_view text = lone_text(o); !text.empty() && type != "error") {
                if (!repeated_) repeated_ = std::make_unique<model_detail::repeated_delta>(text_chunks());
                repeated_->learn(data, text);
                sample_counts_ = counts::read(o.used);
            }
        }
        if (o.error) return answer_.fail_stream(o.error.to_json());
        if (type == "error") return answer_.fail_stream(root.to_json());
        return apply(o, out) ? decode_state::more : answer_.fail_limit(true);
    };
    return model_detail::with_json(answer_.codec().scratch(), data, take, [&] { return answer_.fail_invalid_event(data); });
}

/// A stream that came as one array of its chunks.
template <class V>
decode_state gemini_decoder::take_array(const V& chunks, event_batch* out)
{
    decode_state state = decode_state::more;
    chunks.elements([&](const V& chunk) {
        if (state != decode_state::more) return;
        const answer_object<V> o(chunk);
        if (o.error) state = answer_.fail_stream(o.error.to_json());
        else if (!apply(o, out)) state = answer_.fail_limit(true);
    });
    return state == decode_state::more ? on_end(true, out) : state;
}

decode_state gemini_decoder::on_body(std::string_view text, int status, event_batch* out)
{
    const auto take = [&]<class V>(const V& root) -> std::optional<decode_state> {
        if (root.is_array()) {
            if constexpr (V::exact) return take_array(root, out);
            return std::nullopt;
        }
        const answer_object<V> o(root);
        if constexpr (!V::exact)
            if (parts_need_exact(o.parts)) return std::nullopt;
        if (o.error) return answer_.fail_said(service_error::read(o.error.to_json()), root.to_json(), "error-in-200", false);
        if (!o.any_candidate && o.blocked.string().empty()) return no_candidates(text);
        return apply(o, out) ? finish(out) : answer_.fail_limit(false);
    };
    return model_detail::with_json(answer_.codec().scratch(), text, take, [&] { return answer_.fail_invalid_body(text, status); });
}

decode_state gemini_decoder::no_candidates(std::string_view body)
{
    provider_error e = answer_.make_error(errc::provider_failed, "the answer has no candidates", "no-candidates", true);
    if (answer_.codec().options().expose_error_body) e.body = repair_utf8(body);
    return fail(std::move(e), false);
}

decode_state gemini_decoder::finish(event_batch* out)
{
    if (json blocks = kept_.take(text()); !blocks.is_null()) answer_.set_blocks(answer_.codec().model(), std::move(blocks));
    if (answer_.raw_stop() == "MALFORMED_FUNCTION_CALL") {
        malformed_tool_call m;
        m.error = answer_.raw_stop();
        answer_.set_malformed(std::move(m));
    }
    answer_.begin(out);
    if (reported_usage()) answer_.add_usage(usage(*reported_usage()), out);
    return answer_.finish(blocked_ ? std::string_view("refusal") : neutral_stop(answer_.raw_stop()), out);
}

}  // namespace
}  // namespace gemini_wire

std::unique_ptr<wire_decoder> gemini_codec::decoder(tool_list tools, std::string request_id) const
{
    return std::make_unique<gemini_wire::gemini_decoder>(*this, std::move(tools), std::move(request_id));
}

}  // namespace reagent::inline v0

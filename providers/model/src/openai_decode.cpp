#include "repeated_delta.hpp"
#include "tool_call_assembler.hpp"

#include <reagent/base/untrusted_text.hpp>
#include <reagent/base/utf8.hpp>
#include <reagent/model/http_failure.hpp>
#include <reagent/model/openai_decoder.hpp>

#include <simdjson.h>

#include <algorithm>
#include <bit>
#include <cstring>

namespace reagent::inline v0 {

namespace {

namespace dom = simdjson::dom;
constexpr std::size_t max_depth = 512;

/// A value of simdjson's tree. Text is well-formed and numbers fit; what does not fit sends the whole text to `lenient_value`.
class wire_value {
public:
    wire_value() = default;
    explicit wire_value(dom::element e) noexcept : e_(e), there_(true) {}
    explicit operator bool() const noexcept { return there_ && !e_.is_null(); }
    bool is_object() const noexcept { return there_ && e_.is_object(); }
    bool is_array() const noexcept { return there_ && e_.is_array(); }
    bool is_string() const noexcept { return there_ && e_.is_string(); }
    std::string_view string() const noexcept
    {
        std::string_view s;
        return is_string() && e_.get(s) == simdjson::SUCCESS ? s : std::string_view();
    }
    std::optional<std::int64_t> integer() const noexcept
    {
        std::int64_t n = 0;
        if (!there_ || e_.get(n) != simdjson::SUCCESS) return std::nullopt;
        return n;
    }
    std::optional<double> number() const noexcept
    {
        double d = 0;
        if (!there_ || e_.get(d) != simdjson::SUCCESS) return std::nullopt;
        return d;
    }
    template <class F>
    void members(F&& f) const
    {
        dom::object o;
        if (!is_object() || e_.get(o) != simdjson::SUCCESS) return;
        for (const auto field : o) f(field.key, wire_value(field.value));
    }
    template <class F>
    void elements(F&& f) const
    {
        dom::array a;
        if (!is_array() || e_.get(a) != simdjson::SUCCESS) return;
        for (const dom::element v : a) f(wire_value(v));
    }
    json to_json() const { return json::parse(simdjson::minify(e_)).value(); }

private:
    dom::element e_;
    bool there_ = false;
};

/// The same face over a leniently read value: repaired text, numbers of any size.
class lenient_value {
public:
    lenient_value() = default;
    explicit lenient_value(const json& j) noexcept : j_(&j) {}
    explicit operator bool() const noexcept { return j_ != nullptr && !j_->is_null(); }
    bool is_object() const noexcept { return j_ != nullptr && j_->is_object(); }
    bool is_array() const noexcept { return j_ != nullptr && j_->is_array(); }
    bool is_string() const noexcept { return j_ != nullptr && j_->is_string(); }
    std::string_view string() const noexcept { return is_string() ? std::string_view(j_->as_string()) : std::string_view(); }
    std::optional<std::int64_t> integer() const noexcept { return j_ == nullptr ? std::nullopt : j_->get_int64(); }
    std::optional<double> number() const noexcept { return j_ == nullptr ? std::nullopt : j_->get_double(); }
    template <class F>
    void members(F&& f) const
    {
        if (is_object())
            for (const auto& [k, v] : j_->as_object()) f(std::string_view(k), lenient_value(v));
    }
    template <class F>
    void elements(F&& f) const
    {
        if (is_array())
            for (const json& v : j_->as_array()) f(lenient_value(v));
    }
    json to_json() const { return *j_; }

private:
    const json* j_ = nullptr;
};

/// Only numbers count as a usage signal; negatives, NaN and text are absent.
template <class V>
std::optional<std::uint64_t> token_count(const V& v)
{
    const std::optional<double> d = v.number();
    if (!d || !(*d >= 0) || *d > 9e15) return std::nullopt;
    return static_cast<std::uint64_t>(*d);
}

template <class V>
std::optional<usage> read_usage(const V& value)
{
    std::optional<std::uint64_t> prompt, completion, cached, reasoning;
    bool details = false;
    value.members([&](std::string_view key, const V& v) {
        if (key == "prompt_tokens") prompt = token_count(v);
        else if (key == "completion_tokens") completion = token_count(v);
        else if (key == "prompt_tokens_details") {
            details = v.is_object();
            v.members([&](std::string_view k, const V& n) {
                if (k == "cached_tokens") cached = token_count(n);
            });
        } else if (key == "completion_tokens_details") {
            v.members([&](std::string_view k, const V& n) {
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
        root.members([&](std::string_view key, const V& v) {
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
        c.members([&](std::string_view key, const V& v) {
            if (key == "index") index = v;
            else if (key == "delta") delta = v;
            else if (key == "message") message = v;
            else if (key == "finish_reason") reason = v;
        });
        any_choice = any_choice || c.is_object();
        if (index.integer().value_or(position) != 0) return;
        const V& said = message.is_object() ? message : delta;
        said.members([&](std::string_view key, const V& v) {
            if (key == "content") content = v;
            else if (key == "refusal") refusal = v;
            else if (key == "reasoning_content") reasoning_content = v;
            else if (key == "reasoning") reasoning = v;
            else if (key == "tool_calls") tool_calls = v;
        });
        if (reason) finish = reason;
    }
};

template <class V>
class call_view {
public:
    explicit call_view(const V& c)
    {
        V function;
        c.members([&](std::string_view key, const V& v) {
            if (key == "index") index = v;
            else if (key == "id") id = v;
            else if (key == "function") function = v;
        });
        function.members([&](std::string_view key, const V& v) {
            if (key == "name") name = v;
            else if (key == "arguments") arguments = v;
        });
    }
    V index, id, name, arguments;
    /// Arguments that came as a value instead of as its text.
    bool by_value() const noexcept { return static_cast<bool>(arguments) && !arguments.is_string(); }
};

/// Whether the text of numbers matters somewhere, so that the value must be read exactly.
template <class V>
bool needs_exact(const V& tool_calls)
{
    bool needed = false;
    tool_calls.elements([&](const V& c) { needed = needed || call_view<V>(c).by_value(); });
    return needed;
}

std::string_view neutral_stop(std::string_view raw) noexcept
{
    if (raw == "stop") return "end_turn";
    if (raw == "length") return "max_tokens";
    if (raw == "tool_calls" || raw == "function_call") return "tool_use";
    if (raw == "content_filter") return "refusal";
    return raw;
}

}  // namespace

/// One parser and one padded buffer for all streams of a codec. What `parse` answers lives until the next `parse`.
struct openai_codec::scratch {
    static constexpr std::size_t smallest = 4096, largest_kept = 1024 * 1024;

    /// Nothing when simdjson refuses the text; the caller then reads it leniently.
    std::optional<dom::element> parse(std::string_view text)
    {
        shrink();
        const std::size_t wanted = text.size() + simdjson::SIMDJSON_PADDING;
        if (wanted > size_) {
            size_ = std::bit_ceil(std::max(wanted, smallest));
            buffer_ = std::make_unique_for_overwrite<char[]>(size_);
        }
        std::memcpy(buffer_.get(), text.data(), text.size());
        std::memset(buffer_.get() + text.size(), ' ', simdjson::SIMDJSON_PADDING);
        if (!parser_) parser_.emplace();
        if (text.size() > parser_->capacity() && parser_->allocate(std::bit_ceil(std::max(text.size(), smallest)), max_depth) != simdjson::SUCCESS)
            return std::nullopt;
        dom::element root;
        if (parser_->parse(buffer_.get(), text.size(), false).get(root) != simdjson::SUCCESS) return std::nullopt;
        return root;
    }

private:
    /// One huge event must not keep its memory for good.
    void shrink()
    {
        if (parser_ && parser_->capacity() > largest_kept) parser_.reset();
        if (size_ > largest_kept) {
            buffer_.reset();
            size_ = 0;
        }
    }

    std::optional<dom::parser> parser_;
    std::unique_ptr<char[]> buffer_;
    std::size_t size_ = 0;
};

std::shared_ptr<openai_codec::scratch> openai_codec::make_scratch()
{
    return std::make_shared<scratch>();
}

struct openai_decoder::calls {
    model_detail::tool_call_assembler assembler;
};

/// Applies what was read to the decoder; the same code for both kinds of value.
struct openai_decoder::reader {
    openai_decoder& d;
    event_batch* out;

    model_detail::tool_call_assembler& calls() const
    {
        if (!d.calls_) {
            d.calls_ = std::make_unique<openai_decoder::calls>();
            const openai_codec_options& o = d.codec_->options();
            d.calls_->assembler = model_detail::tool_call_assembler(o.max_arguments, o.random);
        }
        return d.calls_->assembler;
    }

    template <class V>
    void content(const V& v) const
    {
        if (v.is_string()) d.add_text(v.string(), out);
        v.elements([&](const V& p) {
            V type, text;
            p.members([&](std::string_view key, const V& m) {
                if (key == "type") type = m;
                else if (key == "text") text = m;
            });
            if (type.string() == "text") d.add_text(text.string(), out);
        });
    }

    template <class V>
    bool tool_calls(const V& list, bool whole) const
    {
        bool ok = true;
        list.elements([&](const V& c) {
            if (!ok || !c) return;
            if (!c.is_object()) {
                if (whole) ok = calls().add_unreadable();
                return;
            }
            const call_view<V> view(c);
            model_detail::tool_fragment f;
            std::string text;
            f.index = view.index.integer();
            f.id = view.id.string();
            f.name = view.name.string();
            f.arguments = view.arguments.string();
            f.text = view.arguments.is_string();
            if (view.by_value()) {
                text = view.arguments.to_json().dump();
                f.arguments = text;
                f.whole = true;
            }
            ok = whole ? calls().add_whole(f, out) : calls().add(f, out);
        });
        return ok;
    }

    /// False: the arguments of a call pass their limit.
    template <class V>
    bool apply(const chat_object<V>& o, bool whole) const
    {
        if (d.result_.model.empty()) d.result_.model = o.model.string();
        d.begin(out);
        if (const std::string_view thought = o.reasoning_content.string().empty() ? o.reasoning.string() : o.reasoning_content.string(); !thought.empty())
            d.add_thinking(thought, out);
        content(o.content);
        d.refusal_ += o.refusal.string();
        if (o.tool_calls.is_array() && !tool_calls(o.tool_calls, whole)) return false;
        if (d.finish_reason_.empty()) d.finish_reason_ = o.finish.string();
        if (o.used.is_object())
            if (const auto u = read_usage(o.used)) d.add_usage(*u, out);
        return true;
    }
};

openai_decoder::openai_decoder(const openai_codec& codec, tool_list tools, std::string request_id) : codec_(&codec), tools_(std::move(tools))
{
    result_.request_id = std::move(request_id);
}

openai_decoder::~openai_decoder() = default;
openai_decoder::openai_decoder(openai_decoder&&) noexcept = default;

decode_state openai_decoder::on_event(std::string_view data, std::string_view type, event_batch* out)
{
    const auto trimmed = [](std::string_view t) {
        const std::size_t first = t.find_first_not_of(" \t\r\n\f\v");
        return first == std::string_view::npos ? std::string_view() : t.substr(first, t.find_last_not_of(" \t\r\n\f\v") - first + 1);
    };
    if (data.size() < 64 && trimmed(data) == "[DONE]") return finish(out);
    if (data.size() < 64 && trimmed(data).empty()) return decode_state::more;
    if (repeated_ && type != "error") {
        if (const auto text = repeated_->match(data)) {
            add_text(*text, out);
            return decode_state::more;
        }
    }
    const reader r{*this, out};
    const auto take = [&]<class V>(const V& root, const chat_object<V>& o) {
        if (o.error) return fail_stream(o.error.to_json());
        if (type == "error") return fail_stream(root.to_json());
        if (r.apply(o, false)) return decode_state::more;
        return fail(make_error(errc::event_too_large, calls_->assembler.limit_text(), "event-too-large", false), true);
    };
    if (const auto root = codec_->wire_json().parse(data)) {
        const wire_value v(*root);
        const chat_object<wire_value> o(v);
        if (!needs_exact(o.tool_calls)) {
            if (o.only_text() && type != "error") {
                if (!repeated_) repeated_ = std::make_unique<model_detail::repeated_delta>();
                repeated_->learn(data, o.content.string());
            }
            return take(v, o);
        }
    }
    const auto lenient = json::parse(data);
    if (!lenient) return fail(make_error(errc::invalid_json, "stream event is not JSON: " + quoted(data, 200), "invalid-event", true), true);
    const lenient_value v(*lenient);
    return take(v, chat_object<lenient_value>(v));
}

decode_state openai_decoder::on_body(std::string_view text, int status, event_batch* out)
{
    const reader r{*this, out};
    const auto take = [&]<class V>(const chat_object<V>& o) {
        if (!o.any_choice) return no_choices(text);
        if (r.apply(o, true)) return finish(out);
        return fail(make_error(errc::event_too_large, calls_->assembler.limit_text(), "event-too-large", false), false);
    };
    if (const auto root = codec_->wire_json().parse(text)) {
        const chat_object<wire_value> o{wire_value(*root)};
        if (!needs_exact(o.tool_calls)) return take(o);
    }
    const auto lenient = json::parse(text);
    if (lenient) return take(chat_object<lenient_value>(lenient_value(*lenient)));
    const bool empty = text.find_first_not_of(" \t\r\n") == std::string_view::npos;
    provider_error e = make_error(errc::invalid_json, "Invalid JSON response: " + quoted(text, 200), "invalid-json", empty);
    e.status = status;
    if (codec_->options().expose_error_body) e.body = repair_utf8(text);
    return fail(std::move(e), false);
}

decode_state openai_decoder::on_end(bool clean, event_batch* out)
{
    if (complete()) return finish(out);
    provider_error e = make_error(errc::stream_truncated, "response stream aborted before the body completed", "transport", true);
    e.event = clean ? "premature-end" : "aborted";
    return fail(std::move(e), true);
}

decode_state openai_decoder::fail(provider_error failure, bool with_partial)
{
    if (with_partial) {
        partial_output partial;
        partial.text = result_.text;
        partial.tool_calls_started = calls_ ? calls_->assembler.started() : 0;
        failure.partial = std::move(partial);
    }
    if (failure.request_id.empty()) failure.request_id = result_.request_id;
    failure_ = std::make_unique<provider_error>(std::move(failure));
    return decode_state::failed;
}

decode_state openai_decoder::fail_stream(const json& error)
{
    const service_error said = service_error::read(error);
    const std::string text = quoted(said.message, 300);
    provider_error e =
        make_error(said.status == 429 ? errc::rate_limited : errc::provider_failed, text.empty() ? "the stream carries an error without a message" : text,
                   "stream-error", retryable_status(said.status) && !said.quota);
    e.status = said.status;
    if (codec_->options().expose_error_body) e.body = error.dump();
    return fail(std::move(e), true);
}

decode_state openai_decoder::no_choices(std::string_view body)
{
    const bool expose = codec_->options().expose_error_body;
    provider_error e =
        make_error(errc::provider_failed, expose ? "response has no choices: " + quoted(body, 300) : "response has no choices", "no-choices", false);
    if (expose) e.body = repair_utf8(body);
    return fail(std::move(e), false);
}

std::string openai_decoder::quoted(std::string_view foreign, std::size_t max) const
{
    constexpr std::size_t looked_at = 64 * 1024;  // more than is ever shown
    return untrusted_text(hide_secret(foreign.substr(0, looked_at), key()), max);
}

provider_error openai_decoder::make_error(errc code, std::string_view text, std::string_view bound, bool retryable) const
{
    provider_error e(code, prefixed(openai_component, text), retryable);
    e.bound = bound;
    return e;
}

provider_error openai_decoder::take_failure()
{
    return std::move(*failure_);
}

void openai_decoder::begin(event_batch* out)
{
    if (begun_) return;
    begun_ = true;
    if (out == nullptr) return;
    const std::string_view id = out->keep(result_.request_id), model = out->keep(result_.model.empty() ? codec_->options().model : result_.model);
    event& e = out->push(event_kind::start);
    e.id = id;
    e.name = model;
}

void openai_decoder::add_text(std::string_view delta, event_batch* out)
{
    if (delta.empty()) return;
    result_.text += delta;
    if (out != nullptr) out->push(event_kind::text, delta);
}

void openai_decoder::add_thinking(std::string_view delta, event_batch* out)
{
    reasoning_ += delta;
    if (out != nullptr) out->push(event_kind::thinking, delta);
}

void openai_decoder::add_usage(const usage& u, event_batch* out)
{
    result_.usage = u;
    if (out == nullptr) return;
    const json* data = out->keep(u.to_json());
    out->push(event_kind::usage).data = data;
}

decode_state openai_decoder::finish(event_batch* out)
{
    begin(out);
    if (calls_) calls_->assembler.finish(tools_, codec_->options().expose_malformed_args, result_, out);
    result_.stop_reason = neutral_stop(finish_reason_);
    if (result_.text.empty() && !refusal_.empty()) {
        add_text(refusal_, out);
        result_.stop_reason = "refusal";
    }
    if (result_.stop_reason == "end_turn" && !result_.tool_calls.empty()) result_.stop_reason = "tool_use";
    if (result_.model.empty()) result_.model = codec_->options().model;
    if (!reasoning_.empty()) {
        json block = json::object().set("type", "reasoning_content").set("text", reasoning_);
        json blocks = json::array();
        blocks.push_back(std::move(block));
        result_.blocks.emplace("openai", result_.model, std::move(blocks));
    }
    if (out != nullptr) out->push(event_kind::stop, result_.stop_reason);
    return decode_state::done;
}

std::uint64_t openai_decoder::held_bytes() const noexcept
{
    return result_.text.size() + reasoning_.size() + refusal_.size() + (calls_ ? calls_->assembler.held_bytes() : 0);
}

std::uint64_t openai_decoder::received_bytes() const noexcept
{
    return result_.text.size() + reasoning_.size() + refusal_.size() + (calls_ ? calls_->assembler.argument_bytes() : 0);
}

thinking_signal openai_decoder::thinking_seen() const noexcept
{
    const bool counted = result_.usage && result_.usage->reasoning;
    if (!reasoning_.empty() || (counted && *result_.usage->reasoning > 0)) return thinking_signal::seen;
    return counted ? thinking_signal::none : thinking_signal::unreadable;
}

}  // namespace reagent::inline v0

#include <reagent/base/ascii.hpp>
#include <reagent/base/json.hpp>
#include <reagent/base/untrusted_text.hpp>
#include <reagent/base/utf8.hpp>
#include <reagent/providers/response_decoder.hpp>

#include <algorithm>
#include <charconv>

namespace reagent::inline v0 {

namespace {

constexpr std::string_view byte_order_mark = "\xEF\xBB\xBF";
/// White space before the first byte that tells a stream from a JSON body.
constexpr std::size_t max_sniffed = 4096;

std::string_view get(const void* fields, std::string_view name)
{
    return static_cast<const http_fields*>(fields)->get(name);
}

bool is_type(std::string_view content_type, std::string_view wanted) noexcept
{
    return starts_but_case(content_type, wanted) &&
        (content_type.size() == wanted.size() || content_type[wanted.size()] == ';' || content_type[wanted.size()] == ' ');
}

/// Most answers carry none of the eighteen headers of rate limits, which are then not looked for one by one.
bool tells_rate_limits(const http_fields& fields) noexcept
{
    constexpr std::string_view word = "ratelimit";
    for (std::size_t i = 0; i < fields.size(); ++i) {
        const std::string_view name = fields[i].first;
        for (const std::string_view prefix : {std::string_view("x-"), std::string_view("anthropic-")}) {
            if (name.size() <= prefix.size() + word.size()) continue;
            const std::string_view at = name.substr(prefix.size(), word.size());
            if (equal_but_case(at, word)) return true;
        }
    }
    return false;
}

std::optional<std::uint64_t> announced_length(const http_fields& fields) noexcept
{
    const std::string_view text = fields.get("content-length");
    std::uint64_t n = 0;
    const auto [end, ec] = std::from_chars(text.data(), text.data() + text.size(), n);
    if (ec != std::errc() || end != text.data() + text.size()) return std::nullopt;
    return n;
}

provider_error bounded(std::string_view component, errc code, std::string_view bound, std::string_view text)
{
    provider_error e(code, prefixed(component, text), false);
    e.bound = bound;
    return e;
}

bool whole_event(std::string_view data)
{
    const std::size_t first = data.find_first_not_of(" \t\r\n"), last = data.find_last_not_of(" \t\r\n");
    if (first == std::string_view::npos || data.substr(first, last - first + 1) == "[DONE]") return true;
    return json::parse(data).has_value();
}

std::string body_too_large(std::uint64_t limit)
{
    return "the response body passes the limit of " + std::to_string(limit) + " bytes";
}

std::string stream_too_large(std::uint64_t limit)
{
    return "the text and tool calls of the stream pass the limit of " + std::to_string(limit) + " bytes";
}

/// The transport names itself at the front of its sentence; ours does so here.
std::string_view without_component(std::string_view said) noexcept
{
    for (const std::string_view inner : {std::string_view("[http] "), std::string_view("[resolver] ")})
        if (said.starts_with(inner)) said.remove_prefix(inner.size());
    return said;
}

/// The errors of sizes and codings, which sending again does not cure.
std::optional<provider_error> final_failure(const error& failure, std::string_view component)
{
    const error_code code = failure.code();
    const auto make = [&](errc c, std::string_view bound) { return bounded(component, c, bound, without_component(failure.message())); };
    if (code == errc::body_too_large) return make(errc::body_too_large, "body-too-large");
    if (code == errc::headers_too_large) return make(errc::headers_too_large, "headers-too-large");
    if (code == errc::event_too_large) return make(errc::event_too_large, "event-too-large");
    if (code == errc::bad_encoding) return make(errc::bad_encoding, "bad-encoding");
    return std::nullopt;
}

}  // namespace

provider_error transport_failure(const error& failure, std::string_view component)
{
    if (auto known = final_failure(failure, component)) return std::move(*known);
    const error_code code = failure.code();
    const errc kept = code.category() == error_category() ? static_cast<errc>(code.value()) : errc::transport_failed;
    provider_error e(kept, prefixed(component, without_component(failure.message())), failure.retryable());
    e.bound = "transport";
    if (const auto* broken = dynamic_cast<const transport_error*>(&failure)) e.cause = broken->cause();
    return e;
}

response_decoder::response_decoder(const wire_codec& codec, tool_list tools, bool stream_asked, unsigned status, const http_fields& fields, system_time now,
                                   response_limits limits)
    : codec_(&codec),
      fields_(&fields),
      now_(now),
      limits_(limits),
      answer_(codec.decoder(std::move(tools), std::string(fields.get(codec.request_id_header())))),
      status_(static_cast<int>(status))
{
    const bool lines = codec.framing() == stream_framing::ndjson;
    const std::string_view type = fields.get("content-type");
    if (status_ < 200 || status_ >= 300) {
        mode_ = mode::failure;
        if (status_ >= 400) return;
        http_failure f(codec_->component(), status_, header_lookup(fields_, &get), {}, now_, false);
        provider_error e(errc::provider_failed,
                         prefixed(codec_->component(), "HTTP " + std::to_string(status_) + ": redirects are not followed; check the base URL"),
                         f.error.retryable());
        e.status = status_;
        set(answer_->fail(std::move(e), false));
        return;
    }
    html_ = is_type(type, "text/html");
    const bool stream_typed = is_type(type, lines ? "application/x-ndjson" : "text/event-stream");
    if (html_ || is_type(type, "application/json") || !(stream_asked || stream_typed)) mode_ = mode::json;
    else mode_ = lines ? mode::stream : mode::sniff;  // a line looks like a body
    if (mode_ == mode::json && announced_length(fields).value_or(0) > limits_.max_body)
        set(answer_->fail(named(errc::body_too_large, "body-too-large", body_too_large(limits_.max_body)), false));
}

decode_state response_decoder::feed(std::string_view bytes, event_batch* out)
{
    if (state_ != decode_state::more) return state_;
    if (mode_ == mode::stream) return feed_stream(bytes, out);
    if (mode_ == mode::failure) {
        body_.append(bytes.substr(0, limits_.max_error_body - std::min(limits_.max_error_body, body_.size())));
        // The status is the verdict; an endless page does not change it.
        return body_.size() < limits_.max_error_body ? state_ : finish_body(out);
    }
    body_ += bytes;
    if (mode_ == mode::sniff) {
        const std::string_view seen(body_);
        const bool marked = seen.starts_with(byte_order_mark);
        if (!marked && byte_order_mark.starts_with(seen)) return state_;
        const std::size_t first = seen.find_first_not_of(" \t\r\n", marked ? byte_order_mark.size() : 0);
        if (first == std::string_view::npos && seen.size() < max_sniffed) return state_;
        mode_ = first != std::string_view::npos && (seen[first] == '{' || seen[first] == '[') ? mode::json : mode::stream;
        if (mode_ == mode::stream) {
            const std::string held = std::move(body_);
            body_ = std::string();
            return feed_stream(held, out);
        }
    }
    if (body_.size() > limits_.max_body) return set(answer_->fail(named(errc::body_too_large, "body-too-large", body_too_large(limits_.max_body)), false));
    return state_;
}

decode_state response_decoder::feed_last(std::string_view bytes, event_batch* out)
{
    const bool in_one_piece = mode_ == mode::json && body_.empty() && !html_ && bytes.size() <= limits_.max_body && !bytes.starts_with(byte_order_mark);
    if (state_ == decode_state::more && in_one_piece) {
        whole_ = true;
        return set(answer_->on_body(bytes, status_, out));
    }
    if (feed(bytes, out) == decode_state::more) end(body_end::complete, out);
    return state_;
}

provider_error response_decoder::named(errc code, std::string_view bound, std::string_view text) const
{
    return bounded(codec_->component(), code, bound, text);
}

decode_state response_decoder::event_too_large()
{
    return set(answer_->fail(
        named(errc::event_too_large, "event-too-large", "a stream event passes the limit of " + std::to_string(limits_.max_event) + " bytes"), true));
}

std::variant<sse_parser, line_framer>& response_decoder::pieces()
{
    using either = std::variant<sse_parser, line_framer>;
    if (!pieces_) {
        const bool lines = codec_->framing() == stream_framing::ndjson;
        pieces_ = lines ? std::make_unique<either>(std::in_place_type<line_framer>, limits_.max_event)
                        : std::make_unique<either>(std::in_place_type<sse_parser>, limits_.max_event);
    }
    return *pieces_;
}

decode_state response_decoder::feed_stream(std::string_view bytes, event_batch* out)
{
    if (auto* events = std::get_if<sse_parser>(&pieces())) {
        events->feed(bytes);
        sse_event e;
        while (events->next(e))
            if (take_piece(e.data, e.type, out) != decode_state::more) return state_;
        return events->failed() ? event_too_large() : state_;
    }
    auto& lines = std::get<line_framer>(pieces());
    lines.feed(bytes);
    framed_line l;
    while (lines.next(l)) {
        if (l.too_long) return event_too_large();
        if (take_piece(l.text, {}, out) != decode_state::more) return state_;
    }
    return state_;
}

decode_state response_decoder::take_piece(std::string_view data, std::string_view type, event_batch* out)
{
    const decode_state s = answer_->on_event(data, type, out);
    if (s == decode_state::more && answer_->held_bytes() > limits_.max_stream)
        return set(answer_->fail(named(errc::body_too_large, "body-too-large", stream_too_large(limits_.max_stream)), true));
    if (s == decode_state::more) return s;
    whole_ = s == decode_state::done;
    return set(s);
}

decode_state response_decoder::end(body_end how, event_batch* out)
{
    if (state_ != decode_state::more) return state_;
    const bool clean = how == body_end::complete;
    if (mode_ == mode::sniff) mode_ = mode::stream;
    if (mode_ == mode::stream) {
        // An event without its blank line, or a line without its end, counts only when it is whole; a cut one is the cut, not a bad event.
        sse_event e;
        framed_line l;
        if (auto* events = std::get_if<sse_parser>(&pieces())) {
            if (clean && events->finish(e) && whole_event(e.data) && take_piece(e.data, e.type, out) != decode_state::more) return state_;
        } else if (clean && std::get<line_framer>(pieces()).finish(l) && !l.too_long && whole_event(l.text)) {
            if (take_piece(l.text, {}, out) != decode_state::more) return state_;
        }
        whole_ = answer_->complete();
        return set(answer_->on_end(clean, out));
    }
    if (clean) {
        whole_ = true;
        return finish_body(out);
    }
    provider_error e(errc::stream_truncated, prefixed(codec_->component(), "response stream aborted before the body completed"), true);
    e.bound = "transport";
    e.event = "aborted";
    if (status_ >= 400) e.status = status_;
    return set(answer_->fail(std::move(e), false));
}

decode_state response_decoder::broken(const error& failure, event_batch* out)
{
    if (state_ != decode_state::more) return state_;
    const bool unreadable = final_failure(failure, codec_->component()).has_value();
    // The status is the verdict, also when its page cannot be read.
    if (mode_ == mode::failure && unreadable) return finish_body(out);
    if (failure.code() == errc::bad_encoding) {
        const std::string coding = untrusted_text(fields_->get("content-encoding"), 40);
        return set(answer_->fail(named(errc::bad_encoding, "bad-encoding", "content coding " + coding + " is not supported, or its data is corrupt"),
                                 mode_ == mode::stream));
    }
    if (auto final = final_failure(failure, codec_->component())) return set(answer_->fail(std::move(*final), mode_ == mode::stream));
    return end(body_end::aborted, out);
}

decode_state response_decoder::finish_body(event_batch* out)
{
    if (mode_ == mode::failure) {
        http_failure f(codec_->component(), status_, header_lookup(fields_, &get), body_, now_, codec_->options().expose_error_body, codec_->key());
        service_message_ = std::move(f.service_message);
        return set(answer_->fail(std::move(f.error), false));
    }
    if (html_) {
        provider_error e(errc::invalid_json, prefixed(codec_->component(), "Invalid JSON response: " + answer_->quoted(body_, 200)), body_.empty());
        e.bound = "invalid-json";
        e.status = status_;
        if (codec_->options().expose_error_body) e.body = repair_utf8(body_);
        return set(answer_->fail(std::move(e), false));
    }
    if (body_.starts_with(byte_order_mark)) body_.erase(0, byte_order_mark.size());
    return set(answer_->on_body(body_, status_, out));
}

void response_decoder::complete_result()
{
    if (tells_rate_limits(*fields_)) answer_->result().rate_limit = rate_limit_from(header_lookup(fields_, &get), now_);
}

generate_result response_decoder::take_result()
{
    complete_result();
    return answer_->take_result();
}

}  // namespace reagent::inline v0

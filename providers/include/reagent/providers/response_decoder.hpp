#pragma once
#include <reagent/base/clock.hpp>
#include <reagent/base/error.hpp>
#include <reagent/model/http_failure.hpp>
#include <reagent/model/openai_decoder.hpp>
#include <reagent/net/http_types.hpp>
#include <reagent/net/sse_parser.hpp>

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace reagent::inline v0 {

/// Sizes of one response (spec/loop-and-providers.md §2.3).
class response_limits {
public:
    response_limits() = default;
    std::size_t max_event = 16 * 1024 * 1024;        ///< bytes of one stream event
    std::uint64_t max_body = 64ull * 1024 * 1024;    ///< bytes of a decoded JSON body
    std::uint64_t max_stream = 64ull * 1024 * 1024;  ///< bytes of text, thinking, refusal and tool calls that a stream may add up to
    std::size_t max_error_body = 1024 * 1024;        ///< bytes read of a body with an error status; what is beyond is not looked at
};

/// One HTTP response of an OpenAI-compatible chat service, without I/O: status, headers and decoded body bytes in any cut, in; events and a result or an error
/// out. Tells a stream from a JSON body by the content type and the first byte. The live path and the batch command drive this same object.
/// `fields` and the codec must outlive it.
class response_decoder {
public:
    response_decoder(const openai_codec& codec, tool_list tools, bool stream_asked, unsigned status, const http_fields& fields, system_time now,
                     response_limits limits = {});

    decode_state state() const noexcept { return state_; }
    /// The next body bytes, content coding removed. `out` may be null.
    decode_state feed(std::string_view bytes, event_batch* out);
    /// As `feed` with the last bytes of a complete body and then `end`; a body that came in one piece is read where it lies.
    decode_state feed_last(std::string_view bytes, event_batch* out);
    /// The body ended: `complete` by its framing, `aborted` before it.
    decode_state end(body_end how, event_batch* out);
    /// Reading broke with this error (framing, coding, size, transport).
    decode_state broken(const error& failure, event_batch* out);

    openai_decoder& answer() noexcept { return answer_; }
    const openai_decoder& answer() const noexcept { return answer_; }
    /// Whether the whole answer was read, for settlement: a result, a body that ended, or a logical end.
    bool whole() const noexcept { return whole_; }
    /// What the service said in an error body, unshortened, for `temperature_fallback`.
    const std::string& service_message() const noexcept { return service_message_; }
    /// After `done`: the result with request id and rate limits.
    generate_result take_result();

private:
    enum class mode : std::uint8_t { failure, json, sniff, stream };
    decode_state feed_stream(std::string_view bytes, event_batch* out);
    decode_state finish_body(event_batch* out);
    decode_state set(decode_state s) noexcept { return state_ = s; }

    const http_fields* fields_;
    system_time now_;
    response_limits limits_;
    openai_decoder answer_;
    sse_parser events_;
    std::string body_;  ///< JSON or error body, or what came before its kind was known
    std::string service_message_;
    bool expose_error_body_;
    int status_;
    mode mode_ = mode::json;
    decode_state state_ = decode_state::more;
    bool html_ = false, whole_ = false;
};

/// The error of a call that broke outside of a response's content: refused, reset, too large, badly coded. Keeps the code.
provider_error transport_failure(const error& failure);

}  // namespace reagent::inline v0

#pragma once
#include <reagent/base/clock.hpp>
#include <reagent/base/error.hpp>
#include <reagent/model/http_failure.hpp>
#include <reagent/model/wire_decoder.hpp>
#include <reagent/net/http_types.hpp>
#include <reagent/net/line_framer.hpp>
#include <reagent/net/sse_parser.hpp>
#include <reagent/providers/http_call_options.hpp>

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <variant>

namespace reagent::inline v0 {

/// One HTTP response of a model service, without I/O: status, headers and decoded body bytes in any cut, in; events and a result or an error
/// out. Tells a stream from a JSON body by the content type and the first byte. The live path and the batch command drive this same object.
/// `fields` and the codec must outlive it.
class response_decoder {
public:
    response_decoder(const wire_codec& codec, tool_list tools, bool stream_asked, unsigned status, const http_fields& fields, system_time now,
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

    wire_decoder& answer() noexcept { return *answer_; }
    const wire_decoder& answer() const noexcept { return *answer_; }
    /// Whether the whole answer was read, for settlement: a result, a body that ended, or a logical end.
    bool whole() const noexcept { return whole_; }
    /// What the service said in an error body, unshortened, for `temperature_fallback`.
    const std::string& service_message() const noexcept { return service_message_; }
    /// After `done`: puts the rate limits into the answer's result.
    void complete_result();
    /// The result, completed.
    generate_result take_result();

private:
    enum class mode : std::uint8_t { failure, json, sniff, stream };
    std::variant<sse_parser, line_framer>& pieces();
    decode_state feed_stream(std::string_view bytes, event_batch* out);
    decode_state take_piece(std::string_view data, std::string_view type, event_batch* out);
    decode_state event_too_large();
    provider_error named(errc code, std::string_view bound, std::string_view text) const;
    decode_state finish_body(event_batch* out);
    decode_state set(decode_state s) noexcept { return state_ = s; }

    const wire_codec* codec_;
    const http_fields* fields_;
    system_time now_;
    response_limits limits_;
    std::unique_ptr<wire_decoder> answer_;
    std::unique_ptr<std::variant<sse_parser, line_framer>> pieces_;  ///< by the codec's framing; made when a stream begins
    std::string body_;                                               ///< JSON or error body, or what came before its kind was known
    std::string service_message_;
    int status_;
    mode mode_ = mode::json;
    decode_state state_ = decode_state::more;
    bool html_ = false, whole_ = false;
};

/// The error of a call that broke outside of a response's content: refused, reset, too large, badly coded. Keeps the code. `component` begins the message.
provider_error transport_failure(const error& failure, std::string_view component);

}  // namespace reagent::inline v0

#pragma once
#include <reagent/model/answer_builder.hpp>

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace reagent::inline v0 {

/// One response of a model service, without I/O: the pieces of a stream, or one JSON body, in; neutral events and a result or an error out. For the same model
/// output both ways give the same result. The codec must outlive it. Throws nothing but for memory. `out` may be null everywhere.
class wire_decoder {
public:
    virtual ~wire_decoder();
    wire_decoder(const wire_decoder&) = delete;
    wire_decoder& operator=(const wire_decoder&) = delete;

    /// The data of one server-sent event of the given type, or one line of NDJSON with no type.
    virtual decode_state on_event(std::string_view data, std::string_view type, event_batch* out) = 0;
    /// A whole JSON body. `status` is named in the error when it is none.
    virtual decode_state on_body(std::string_view text, int status, event_batch* out) = 0;
    /// The stream's body has ended, `clean` by its framing, before a logical end.
    decode_state on_end(bool clean, event_batch* out);
    /// Fails the call from outside (framing limits, coding); keeps the partial output.
    decode_state fail(provider_error failure, bool with_partial) { return answer_.fail(std::move(failure), with_partial); }
    /// Whether thinking was seen; holds at the end. By default kept thinking text or reported reasoning tokens.
    virtual thinking_signal thinking_seen() const noexcept;

    /// A finish reason has been seen: the answer is complete but for its usage.
    bool complete() const noexcept { return answer_.complete(); }
    const std::string& text() const noexcept { return answer_.result().text; }
    const std::optional<usage>& reported_usage() const noexcept { return answer_.result().usage; }
    /// The id the response gave itself, empty when none came yet.
    const std::string& response_model() const noexcept { return answer_.result().model; }
    /// Decoded text, thinking and argument bytes, for estimates.
    std::uint64_t received_bytes() const noexcept { return answer_.received_bytes(); }
    /// Bytes that the answer keeps: as `received_bytes`, with names and ids of calls and native blocks.
    std::uint64_t held_bytes() const noexcept { return answer_.held_bytes(); }
    /// Text of the service for a message of ours: without the key it may repeat, bounded.
    std::string quoted(std::string_view foreign, std::size_t max) const { return answer_.quoted(foreign, max); }

    /// To be completed by who made the call, once this is done.
    generate_result& result() noexcept { return answer_.result(); }
    generate_result take_result() { return std::move(answer_.result()); }
    provider_error take_failure() { return answer_.take_failure(); }

protected:
    wire_decoder(const wire_codec& codec, tool_list tools, std::string request_id) : answer_(codec, std::move(tools), std::move(request_id)) {}
    /// The logical end: the neutral stop reason of `raw_stop`, the native blocks, then `answer_builder::finish`.
    virtual decode_state finish(event_batch* out) = 0;

    answer_builder answer_;
};

}  // namespace reagent::inline v0

#pragma once
#include <reagent/model/degradation.hpp>
#include <reagent/model/event.hpp>
#include <reagent/model/generate.hpp>
#include <reagent/model/openai_codec.hpp>
#include <reagent/model/provider_error.hpp>

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

namespace reagent::inline v0 {

namespace model_detail {
class repeated_delta;
}

/// Where a decoder stands.
enum class decode_state : std::uint8_t {
    more,    ///< wants more bytes
    done,    ///< the result holds; later bytes do not matter
    failed,  ///< the failure holds
};

/// One response of the OpenAI chat wire, without I/O: the data of server-sent events, or one JSON body, in; neutral events and a result or an error out. For the same
/// model output both ways give the same result. The codec must outlive it. Throws nothing but for memory.
class openai_decoder {
public:
    /// `tools`: those the request offered. `request_id` appears in the start event and the result.
    openai_decoder(const openai_codec& codec, tool_list tools, std::string request_id);
    ~openai_decoder();
    openai_decoder(openai_decoder&&) noexcept;
    openai_decoder& operator=(openai_decoder&&) = delete;

    /// The data of one server-sent event of the given type. `out` may be null.
    decode_state on_event(std::string_view data, std::string_view type, event_batch* out);
    /// A whole JSON body. `status` is named in the error when it is none.
    decode_state on_body(std::string_view text, int status, event_batch* out);
    /// The stream's body has ended, `clean` by its framing, before a logical end.
    decode_state on_end(bool clean, event_batch* out);
    /// Fails the call from outside (framing limits, coding); keeps the partial output.
    decode_state fail(provider_error failure, bool with_partial);

    /// A finish reason has been seen: the answer is complete but for its usage.
    bool complete() const noexcept { return !finish_reason_.empty(); }
    const std::string& text() const noexcept { return result_.text; }
    const std::optional<usage>& reported_usage() const noexcept { return result_.usage; }
    /// The id the response gave itself, empty when none came yet.
    const std::string& response_model() const noexcept { return result_.model; }
    /// Decoded text, thinking and argument bytes, for estimates.
    std::uint64_t received_bytes() const noexcept;
    /// Bytes that the answer keeps: as `received_bytes`, with names and ids of calls.
    std::uint64_t held_bytes() const noexcept;
    /// The key of the codec, which no message shows.
    std::string_view key() const noexcept { return codec_->options().key.reveal(); }
    /// Text of the service for a message of ours: without the key it may repeat, bounded.
    std::string quoted(std::string_view foreign, std::size_t max) const;
    /// Whether thinking was seen; holds at the end.
    thinking_signal thinking_seen() const noexcept;

    /// To be completed by who made the call, once this is done.
    generate_result& result() noexcept { return result_; }
    generate_result take_result() { return std::move(result_); }
    provider_error take_failure();

private:
    struct reader;
    friend struct reader;
    decode_state finish(event_batch* out);
    decode_state fail_stream(const json& error);
    decode_state no_choices(std::string_view body);
    void begin(event_batch* out);
    void add_text(std::string_view delta, event_batch* out);
    void add_thinking(std::string_view delta, event_batch* out);
    void add_usage(const usage& u, event_batch* out);
    provider_error make_error(errc code, std::string_view text, std::string_view bound, bool retryable) const;

    const openai_codec* codec_;
    tool_list tools_;
    generate_result result_;
    std::string finish_reason_, refusal_, reasoning_;
    struct calls;
    std::unique_ptr<calls> calls_;                            ///< made when the first call arrives
    std::unique_ptr<model_detail::repeated_delta> repeated_;  ///< made when the first text arrives
    std::unique_ptr<provider_error> failure_;
    bool begun_ = false;
};

}  // namespace reagent::inline v0

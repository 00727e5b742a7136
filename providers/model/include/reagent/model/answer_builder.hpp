#pragma once
#include <reagent/model/event.hpp>
#include <reagent/model/generate.hpp>
#include <reagent/model/http_failure.hpp>
#include <reagent/model/provider_error.hpp>
#include <reagent/model/wire_codec.hpp>

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

namespace reagent::inline v0 {

namespace model_detail {
class tool_call_assembler;
class tool_fragment;
}  // namespace model_detail

/// Where a decoder stands.
enum class decode_state : std::uint8_t {
    more,    ///< wants more bytes
    done,    ///< the result holds; later bytes do not matter
    failed,  ///< the failure holds
};

/// Puts one answer together from what a wire's decoder finds in it, by the rules that all wires share (spec/loop-and-providers.md §4): neutral events as they
/// come, and at the end one result or one error. The codec must outlive it. Throws nothing but for memory. `out` may be null everywhere.
class answer_builder {
public:
    answer_builder(const wire_codec& codec, tool_list tools, std::string request_id);
    ~answer_builder();
    answer_builder(const answer_builder&) = delete;
    answer_builder& operator=(const answer_builder&) = delete;

    /// The id that the response gives itself; the first one holds.
    void set_model(std::string_view id)
    {
        if (result_.model.empty()) result_.model = id;
    }
    /// The start event, once: call it when the first piece has been read, after `set_model`.
    void begin(event_batch* out)
    {
        if (!begun_) start(out);
    }
    void add_text(std::string_view delta, event_batch* out)
    {
        if (delta.empty()) return;
        result_.text += delta;
        if (out != nullptr) out->push(event_kind::text, delta);
    }
    /// Thinking that the builder keeps.
    void add_thinking(std::string_view delta, event_batch* out);
    /// Thinking that the decoder keeps itself, as a part of a native block: an event and its bytes.
    void show_thinking(std::string_view delta, event_batch* out);
    /// Becomes the text, with stop reason `refusal`, when there is no other.
    void add_refusal(std::string_view delta) { refusal_ += delta; }
    /// Cumulative: the last one holds.
    void add_usage(const usage& u, event_batch* out);
    /// A piece of a tool call, or with `whole` one of a one-shot answer. False: a limit is passed; return `fail_limit`.
    bool add_call(const model_detail::tool_fragment& f, bool whole, event_batch* out);
    /// A call that cannot be read at all. False: as `add_call`.
    bool add_unreadable_call();
    /// Whether the call at `position`, in order of appearance, is what `f` says as a whole.
    bool holds_call(std::size_t position, const model_detail::tool_fragment& f) const noexcept;
    /// Forgets the calls, for an answer that says at its end what they were. Events that are out stay out.
    void drop_calls() noexcept;
    /// The call of this fragment index was not closed when the answer ended, which makes it malformed.
    void cut_call(std::int64_t index);
    /// A round that the service itself calls malformed.
    void set_malformed(malformed_tool_call m) { result_.malformed = std::move(m); }
    /// The raw finish reason; the first non-empty one holds, and the answer is complete but for what may still come behind it.
    void set_stop(std::string_view raw)
    {
        if (raw_stop_.empty()) raw_stop_ = raw;
    }
    /// Native blocks to be replayed. `model` is the tag that decides about the replay.
    void set_blocks(std::string model, json blocks, json layout = {});
    /// Counts bytes that a decoder keeps itself, for the limit of a stream.
    void hold(std::size_t bytes) noexcept { held_ += bytes; }

    /// The end: reads the calls, fills the result, emits what is left. `stop` is neutral; `end_turn` with usable calls becomes `tool_use`.
    decode_state finish(std::string_view stop, event_batch* out);

    /// `[component] text`.
    provider_error make_error(errc code, std::string_view text, std::string_view bound, bool retryable) const;
    /// Text of the service for a message of ours: without the key it may repeat, bounded.
    std::string quoted(std::string_view foreign, std::size_t max) const;
    /// Ends the answer with an error, with what was decoded so far or without.
    decode_state fail(provider_error failure, bool with_partial);
    /// The body ended before the answer was complete.
    decode_state fail_truncated(bool clean);
    /// The arguments or the number of calls pass a limit.
    decode_state fail_limit(bool with_partial);
    /// A piece of a stream that is no JSON.
    decode_state fail_invalid_event(std::string_view data);
    /// A body that is no JSON.
    decode_state fail_invalid_body(std::string_view text, int status);
    /// An error object inside a stream.
    decode_state fail_stream(const json& error) { return fail_said(service_error::read(error), error, "stream-error", true); }
    /// What a service says of its failure in an answer of status 200 (`stream-error`, `error-in-200`); `body` is what `expose_error_body` shows.
    decode_state fail_said(const service_error& said, const json& body, std::string_view bound, bool with_partial);

    bool complete() const noexcept { return !raw_stop_.empty(); }
    const std::string& raw_stop() const noexcept { return raw_stop_; }
    const std::string& thinking() const noexcept { return thinking_; }
    const tool_list& tools() const noexcept { return tools_; }
    const wire_codec& codec() const noexcept { return *codec_; }
    unsigned calls_started() const noexcept;
    std::uint64_t received_bytes() const noexcept;
    std::uint64_t held_bytes() const noexcept;
    generate_result& result() noexcept { return result_; }
    const generate_result& result() const noexcept { return result_; }
    provider_error take_failure() { return std::move(*failure_); }

private:
    void start(event_batch* out);
    model_detail::tool_call_assembler& calls();

    const wire_codec* codec_;
    tool_list tools_;
    generate_result result_;
    std::string raw_stop_, refusal_, thinking_;
    std::uint64_t held_ = 0, shown_ = 0;
    std::unique_ptr<model_detail::tool_call_assembler> calls_;  ///< made when the first call arrives
    std::unique_ptr<provider_error> failure_;
    bool begun_ = false;
};

}  // namespace reagent::inline v0

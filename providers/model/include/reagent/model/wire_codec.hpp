#pragma once
#include <reagent/base/url.hpp>
#include <reagent/model/codec_options.hpp>
#include <reagent/model/degradation.hpp>
#include <reagent/model/generate.hpp>

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

namespace reagent::inline v0 {

class wire_decoder;

namespace model_detail {
class wire_scratch;
}

/// How a streamed answer is cut into the pieces that a decoder takes one by one.
enum class stream_framing : std::uint8_t {
    sse,     ///< server-sent events
    ndjson,  ///< a JSON value a line
};

/// `toolChoice` as every wire understands it.
class tool_choice {
public:
    enum class kind : std::uint8_t { unset, automatic, required, none, named };
    tool_choice() = default;
    explicit tool_choice(kind k, std::string n = {}) : what(k), name(std::move(n)) {}
    kind what = kind::unset;
    std::string name;  ///< of `named`
    bool empty() const noexcept { return what == kind::unset; }
    /// The model must call a tool: any, or the named one.
    bool forces() const noexcept { return what == kind::required || what == kind::named; }
};

/// One call with the instance's and the call's own options brought together. Made before any I/O.
class call_plan {
public:
    std::optional<double> temperature;
    std::optional<std::uint64_t> max_tokens;
    tool_choice choice;    ///< unset without tools: what is not sent forces nothing
    std::string thinking;  ///< JSON text of a raw `thinking`, empty when not sent
    std::optional<thinking_mode> mode;
    bool stream = false;
    std::string_view notice;  ///< what of the call this wire passes over, said once through the log; static storage, empty when nothing
};

/// One request ready for the wire. `body` views the prefix or the storage given to `encode`.
class wire_request {
public:
    std::string_view method = "POST";
    const url* target = nullptr;    ///< lives as long as the codec
    std::string_view header_lines;  ///< each ending CRLF, the content type included; lives as long as the codec
    std::string_view body;
};

/// The wire of one model service, without I/O: neutral requests to bytes, and a decoder for each answer. What drives it (providers) knows no vendor.
/// Immutable but for caches: belongs to one executor. docs/wires.md tells how to add one.
class wire_codec {
public:
    virtual ~wire_codec();
    wire_codec(const wire_codec&) = delete;
    wire_codec& operator=(const wire_codec&) = delete;

    /// The name with which messages of this codec and its provider begin: `OpenAIProvider`.
    std::string_view component() const noexcept { return component_; }
    /// The tag of native blocks and the provider's name: `openai`.
    std::string_view provider_name() const noexcept { return provider_name_; }
    stream_framing framing() const noexcept { return framing_; }
    virtual const codec_options& options() const noexcept = 0;
    const std::string& model() const noexcept { return options().model; }
    /// Which no message shows.
    std::string_view key() const noexcept { return options().key.reveal(); }
    /// A key would travel in the clear to a host that is not this machine.
    bool key_in_clear() const noexcept;

    virtual const url& endpoint(bool stream) const noexcept = 0;
    /// Most answer tokens of a call that sets no bound of its own, as the codec is configured.
    virtual std::optional<std::uint64_t> max_output() const noexcept;
    /// The rules that all wires share: the call's value before the codec's, the shape of `toolChoice`, `thinking` against `thinkingMode`. Throws
    /// `provider_error` (`invalid toolChoice`) or `validation_error`.
    virtual call_plan plan(const generate_request& request) const;
    /// The ladder of the plan's thinking mode. `winner`: the shape remembered for it. A shape is what `encode` gets as `thinking_members`: a codec may give
    /// it a meaning of its own, as long as it is of static storage.
    virtual thinking_ladder ladder(const call_plan& plan, std::optional<std::size_t> winner) const = 0;
    /// The request's body goes into its prefix when it has one, else into `storage`. `thinking_members`: `thinking_ladder::members`.
    /// Throws `validation_error` for what this wire cannot carry.
    virtual wire_request encode(const generate_request& request, const call_plan& plan, bool with_temperature, std::string_view thinking_members,
                                std::string& storage) const = 0;
    /// The decoder of one answer, which the codec must outlive. `tools`: those the request offered. `request_id` appears in the start event and the result.
    virtual std::unique_ptr<wire_decoder> decoder(tool_list tools, std::string request_id) const = 0;

    /// Whether a 400 with this message of the service asks to be sent again without temperature.
    virtual bool refuses_temperature(std::string_view message, const call_plan& plan) const;
    /// The response header that carries the service's id of the request.
    virtual std::string_view request_id_header() const noexcept { return "x-request-id"; }

    /// The JSON parser and its padded buffer that all decoders of a codec share: used inside one decoding step, never across.
    model_detail::wire_scratch& scratch() const noexcept { return *scratch_; }

protected:
    /// The texts are of static storage.
    wire_codec(std::string_view component, std::string_view provider_name, stream_framing framing);

    /// Appends one tool as this wire writes it, without separators.
    using append_tool = void (*)(const tool_schema& tool, std::string& out);
    /// `open`, the tools comma-joined, `close`; nothing when there are none. The list of the last call is remembered. The view lives until the next call.
    std::string_view encoded_tools(const tool_list& tools, std::string_view open, append_tool one, std::string_view close) const;
    /// Bytes that `encoded_tools` remembers of this list.
    std::size_t remembered_size(const tool_list& tools) const noexcept { return tools_list_ == tools ? tools_bytes_.size() : 0; }

private:
    std::string_view component_, provider_name_;
    stream_framing framing_;
    std::shared_ptr<model_detail::wire_scratch> scratch_;
    mutable tool_list tools_list_;  ///< kept alive so that its address stays its own
    mutable std::string tools_bytes_;
};

}  // namespace reagent::inline v0

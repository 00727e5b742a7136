#pragma once
#include <reagent/base/random.hpp>
#include <reagent/base/secret.hpp>
#include <reagent/base/url.hpp>
#include <reagent/model/degradation.hpp>
#include <reagent/model/generate.hpp>

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace reagent::inline v0 {

/// The name with which messages of this codec and its provider begin.
inline constexpr std::string_view openai_component = "OpenAIProvider";

/// What an OpenAI-compatible chat codec is made of (spec/loop-and-providers.md §5).
class openai_codec_options {
public:
    openai_codec_options();
    std::string model = "gpt-4o-mini";
    url base_url;                        ///< https://api.openai.com/v1; `/chat/completions` is joined to it
    secret key;                          ///< empty: no Authorization header
    bool legacy_max_tokens = false;      ///< `max_tokens` instead of `max_completion_tokens`
    bool stream_usage = true;            ///< ask streams for their usage
    std::string system_role = "system";  ///< role written for system messages
    std::optional<double> temperature;
    std::optional<std::uint64_t> max_tokens;
    json thinking;  ///< sent verbatim when truthy
    std::optional<thinking_mode> mode;
    bool expose_error_body = false, expose_malformed_args = false;
    std::size_t max_arguments = 8 * 1024 * 1024;               ///< bytes of arguments of one call
    std::vector<std::pair<std::string, std::string>> headers;  ///< sent with every request beside our own
    json members;                                              ///< an object: members of every body that we do not set (`top_p`, `seed`, `stop`); null: none
    random_source random;                                      ///< ids of calls that come without; empty: the default source
};

/// One call with the instance's and the call's own options brought together. Made before any I/O.
class openai_call_plan {
public:
    std::optional<double> temperature;
    std::optional<std::uint64_t> max_tokens;
    std::string tool_choice;  ///< JSON text, empty when not sent
    std::string thinking;     ///< JSON text of a raw `thinking`, empty when not sent
    std::optional<thinking_mode> mode;
    bool forced_tool = false;  ///< `required` or a named tool
    bool stream = false;
};

/// One request ready for the wire. `body` views the prefix or the storage given to `encode`.
class wire_request {
public:
    std::string_view method = "POST";
    const url* target = nullptr;    ///< lives as long as the codec
    std::string_view header_lines;  ///< each ending CRLF, the content type included; lives as long as the codec
    std::string_view body;
};

/// Requests of the OpenAI chat wire, without I/O. Immutable but for caches: belongs to one executor.
class openai_codec {
public:
    /// Throws `validation_error` for a key or header that no request can carry, and for members that are ours to set.
    explicit openai_codec(openai_codec_options options);
    ~openai_codec();
    openai_codec(const openai_codec&) = delete;
    openai_codec& operator=(const openai_codec&) = delete;

    const openai_codec_options& options() const noexcept { return options_; }
    const url& endpoint() const noexcept { return endpoint_; }
    bool deepseek() const noexcept { return deepseek_; }
    /// A key would travel in the clear to a host that is not this machine.
    bool key_in_clear() const noexcept { return !options_.key.empty() && !endpoint_.tls() && !endpoint_.loopback(); }

    /// Throws `provider_error` (`invalid toolChoice`) or `validation_error`.
    openai_call_plan plan(const generate_request& request) const;
    /// The ladder of the plan's thinking mode. `winner`: the shape remembered for it.
    thinking_ladder ladder(const openai_call_plan& plan, std::optional<std::size_t> winner) const;
    /// The request's body goes into its prefix when it has one, else into `storage`. `thinking_members`: `thinking_ladder::members`.
    /// Throws `validation_error` for what this wire cannot carry.
    wire_request encode(const generate_request& request, const openai_call_plan& plan, bool with_temperature, std::string_view thinking_members,
                        std::string& storage) const;

    struct scratch;
    /// The shared JSON parser and its padded buffer: used inside one decoding step, never across.
    scratch& wire_json() const noexcept { return *scratch_; }

private:
    static std::shared_ptr<scratch> make_scratch();
    std::string_view encoded_tools(const tool_list& tools) const;
    openai_codec_options options_;
    url endpoint_;
    std::string header_lines_, head_, members_;
    bool deepseek_ = false;
    std::shared_ptr<scratch> scratch_;
    mutable tool_list cached_tools_;  ///< kept alive so that its address stays its own
    mutable std::string tools_bytes_;
};

}  // namespace reagent::inline v0

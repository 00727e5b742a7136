#pragma once
#include <reagent/model/wire_codec.hpp>

#include <cstdint>
#include <string>
#include <string_view>

namespace reagent::inline v0 {

/// The name with which messages of this codec and its provider begin.
inline constexpr std::string_view anthropic_component = "AnthropicProvider";

/// What a codec of Anthropic's Messages is made of (spec/loop-and-providers.md §7). By default the model is claude-haiku-4-5-20251001 at
/// https://api.anthropic.com/v1, to which `/messages` is joined. A call that sets no `max_tokens` asks for 4096, which this wire cannot do without.
class anthropic_codec_options : public codec_options {
public:
    anthropic_codec_options();
    bool cache_system = false;    ///< mark the system prompt for the prompt cache
    bool cache_messages = false;  ///< mark the last block of the last message
    std::string cache_ttl;        ///< how long marked parts are kept: `5m` or `1h`; empty: as the service does it
};

/// The wire of Anthropic's Messages.
class anthropic_codec final : public wire_codec {
public:
    static constexpr std::uint64_t default_max_tokens = 4096;

    /// Throws `validation_error` for a missing key, a key or header that no request can carry, a `cache_ttl` there is not, and members that are ours to set.
    explicit anthropic_codec(anthropic_codec_options options);

    const anthropic_codec_options& options() const noexcept override { return options_; }
    const url& endpoint(bool) const noexcept override { return endpoint_; }
    std::optional<std::uint64_t> max_output() const noexcept override;
    call_plan plan(const generate_request& request) const override;
    thinking_ladder ladder(const call_plan& plan, std::optional<std::size_t> winner) const override;
    wire_request encode(const generate_request& request, const call_plan& plan, bool with_temperature, std::string_view thinking_members,
                        std::string& storage) const override;
    std::unique_ptr<wire_decoder> decoder(tool_list tools, std::string request_id) const override;
    /// With thinking on, a refusal that names temperature and thinking means a temperature other than the default.
    bool refuses_temperature(std::string_view message, const call_plan& plan) const override;
    std::string_view request_id_header() const noexcept override { return "request-id"; }

private:
    std::string& begin_marked(const generate_request& request, std::string& storage) const;

    anthropic_codec_options options_;
    url endpoint_;
    std::string header_lines_, head_, members_, mark_;
};

}  // namespace reagent::inline v0

#pragma once
#include <reagent/model/wire_codec.hpp>

#include <string>
#include <string_view>

namespace reagent::inline v0 {

/// The name with which messages of this codec and its provider begin.
inline constexpr std::string_view openai_component = "OpenAIProvider";

/// What an OpenAI-compatible chat codec is made of (spec/loop-and-providers.md §5). By default the model is gpt-4o-mini at https://api.openai.com/v1, to which
/// `/chat/completions` is joined.
class openai_codec_options : public codec_options {
public:
    openai_codec_options();
    bool legacy_max_tokens = false;      ///< `max_tokens` instead of `max_completion_tokens`
    bool stream_usage = true;            ///< ask streams for their usage
    std::string system_role = "system";  ///< role written for system messages
};

/// The OpenAI chat wire.
class openai_codec final : public wire_codec {
public:
    /// Throws `validation_error` for a key or header that no request can carry, and for members that are ours to set.
    explicit openai_codec(openai_codec_options options);

    const openai_codec_options& options() const noexcept override { return options_; }
    const url& endpoint(bool) const noexcept override { return endpoint_; }
    thinking_ladder ladder(const call_plan& plan, std::optional<std::size_t> winner) const override;
    wire_request encode(const generate_request& request, const call_plan& plan, bool with_temperature, std::string_view thinking_members,
                        std::string& storage) const override;
    std::unique_ptr<wire_decoder> decoder(tool_list tools, std::string request_id) const override;
    bool deepseek() const noexcept { return deepseek_; }

private:
    openai_codec_options options_;
    url endpoint_;
    std::string header_lines_, head_, members_;
    bool deepseek_ = false;
};

}  // namespace reagent::inline v0

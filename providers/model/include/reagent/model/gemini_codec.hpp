#pragma once
#include <reagent/model/wire_codec.hpp>

#include <string>
#include <string_view>

namespace reagent::inline v0 {

/// The name with which messages of this codec and its provider begin.
inline constexpr std::string_view gemini_component = "GeminiProvider";

/// What a Gemini codec is made of (spec/loop-and-providers.md §8). By default the model is gemini-2.5-flash at
/// https://generativelanguage.googleapis.com/v1beta, to which `/models/<model>:generateContent` is joined. `thinking` becomes
/// `generationConfig.thinkingConfig`; a member `generationConfig` of `members` is merged with ours.
class gemini_codec_options : public codec_options {
public:
    gemini_codec_options();
};

/// The Gemini wire: `generateContent`, and `streamGenerateContent` as server-sent events.
class gemini_codec final : public wire_codec {
public:
    /// Throws `validation_error` for a key or header that no request can carry, and for members that are ours to set.
    explicit gemini_codec(gemini_codec_options options);

    const gemini_codec_options& options() const noexcept override { return options_; }
    const url& endpoint(bool stream) const noexcept override { return stream ? stream_endpoint_ : endpoint_; }
    thinking_ladder ladder(const call_plan& plan, std::optional<std::size_t> winner) const override;
    wire_request encode(const generate_request& request, const call_plan& plan, bool with_temperature, std::string_view thinking_members,
                        std::string& storage) const override;
    std::unique_ptr<wire_decoder> decoder(tool_list tools, std::string request_id) const override;

private:
    gemini_codec_options options_;
    url endpoint_, stream_endpoint_;
    std::string header_lines_, members_, config_members_;
};

}  // namespace reagent::inline v0

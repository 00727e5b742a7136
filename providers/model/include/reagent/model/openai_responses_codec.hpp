#pragma once
#include <reagent/model/wire_codec.hpp>

#include <string>
#include <string_view>

namespace reagent::inline v0 {

/// The name with which messages of this codec and its provider begin.
inline constexpr std::string_view openai_responses_component = "OpenAIResponsesProvider";

/// What an OpenAI Responses codec is made of (spec/loop-and-providers.md §6). By default the model is gpt-4o-mini at https://api.openai.com/v1, to which
/// `/responses` is joined. `thinking` is sent as `reasoning`; a string is its `effort`.
class openai_responses_codec_options : public codec_options {
public:
    openai_responses_codec_options();
    bool store = false;  ///< let the service keep the response; reasoning is replayed by its encrypted form either way
};

/// The OpenAI Responses wire. The whole transcript goes with every request; nothing of ours is kept by the service unless `store` says so.
class openai_responses_codec final : public wire_codec {
public:
    /// Throws `validation_error` for a key or header that no request can carry, and for members that are ours to set or that bring the service to read or
    /// do more than the request says (`background`, `conversation`, `previous_response_id`, `prompt`).
    explicit openai_responses_codec(openai_responses_codec_options options);

    const openai_responses_codec_options& options() const noexcept override { return options_; }
    const url& endpoint(bool) const noexcept override { return endpoint_; }
    thinking_ladder ladder(const call_plan& plan, std::optional<std::size_t> winner) const override;
    wire_request encode(const generate_request& request, const call_plan& plan, bool with_temperature, std::string_view thinking_members,
                        std::string& storage) const override;
    std::unique_ptr<wire_decoder> decoder(tool_list tools, std::string request_id) const override;

private:
    openai_responses_codec_options options_;
    url endpoint_;
    std::string header_lines_, head_, members_;
    bool reasons_ = false;  ///< the model table says so
};

}  // namespace reagent::inline v0

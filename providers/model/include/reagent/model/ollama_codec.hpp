#pragma once
#include <reagent/model/wire_codec.hpp>

#include <string>
#include <string_view>

namespace reagent::inline v0 {

/// The name with which messages of this codec and its provider begin.
inline constexpr std::string_view ollama_component = "OllamaProvider";

/// What an Ollama codec is made of (spec/loop-and-providers.md §9). By default the model is llama3.2 at http://localhost:11434, to which `/api/chat` is
/// joined. `thinking` becomes `think`; a member `options` of `members` is merged with ours.
class ollama_codec_options : public codec_options {
public:
    ollama_codec_options();
};

/// The native Ollama wire; its streams are a JSON value a line.
class ollama_codec final : public wire_codec {
public:
    /// Throws `validation_error` for a key or header that no request can carry, and for members that are ours to set.
    explicit ollama_codec(ollama_codec_options options);

    const ollama_codec_options& options() const noexcept override { return options_; }
    const url& endpoint(bool) const noexcept override { return endpoint_; }
    /// 0 is no bound here: it is sent.
    std::optional<std::uint64_t> max_output() const noexcept override;
    call_plan plan(const generate_request& request) const override;
    thinking_ladder ladder(const call_plan& plan, std::optional<std::size_t> winner) const override;
    wire_request encode(const generate_request& request, const call_plan& plan, bool with_temperature, std::string_view thinking_members,
                        std::string& storage) const override;
    std::unique_ptr<wire_decoder> decoder(tool_list tools, std::string request_id) const override;

private:
    ollama_codec_options options_;
    url endpoint_;
    std::string header_lines_, head_, members_, option_members_;
};

}  // namespace reagent::inline v0

#pragma once
#include <reagent/model/openai_codec.hpp>
#include <reagent/model/wire_decoder.hpp>

#include <memory>
#include <string>
#include <string_view>

namespace reagent::inline v0 {

namespace model_detail {
class repeated_delta;
}

/// One response of the OpenAI chat wire.
class openai_decoder final : public wire_decoder {
public:
    openai_decoder(const openai_codec& codec, tool_list tools, std::string request_id);
    ~openai_decoder() override;

    decode_state on_event(std::string_view data, std::string_view type, event_batch* out) override;
    decode_state on_body(std::string_view text, int status, event_batch* out) override;

private:
    struct reader;
    friend struct reader;
    decode_state finish(event_batch* out) override;
    decode_state no_choices(std::string_view body);

    std::unique_ptr<model_detail::repeated_delta> repeated_;  ///< made when the first text arrives
};

}  // namespace reagent::inline v0

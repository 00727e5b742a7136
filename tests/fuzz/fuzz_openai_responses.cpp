// Any answer on OpenAI's Responses wire, and what closes a stream against the same response as a body.
#include "wire_fuzz.hpp"

#include <reagent/model/openai_responses_codec.hpp>

#include <algorithm>

namespace {

/// A stream that is its last event alone is that event's response.
void same_in_a_stream(const reagent::wire_codec& codec, const reagent::tool_list& tools, std::string_view body)
{
    if (std::count(body.begin(), body.end(), '[') + std::count(body.begin(), body.end(), '{') > 400) return;  // the event is one level deeper
    const auto parsed = reagent::json::parse(body);
    if (!parsed || !(*parsed)["status"].is_string() || (*parsed)["status"].as_string().empty()) return;
    const auto whole = codec.decoder(tools, "r"), streamed = codec.decoder(tools, "r");
    if (whole->on_body(body, 200, nullptr) != reagent::decode_state::done) return;
    const std::string last = R"({"type":"response.completed","response":)" + std::string(body) + "}";
    wire_fuzz::require(streamed->on_event(last, {}, nullptr) == reagent::decode_state::done);
    wire_fuzz::require(streamed->take_result().to_json().dump() == whole->take_result().to_json().dump());
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* bytes, std::size_t size)
{
    static const reagent::openai_responses_codec codec(wire_fuzz::options<reagent::openai_responses_codec_options>());
    static const reagent::tool_list tools = wire_fuzz::some_tools();
    const std::string_view data(reinterpret_cast<const char*>(bytes), size);
    wire_fuzz::run(codec, tools, data, wire_fuzz::text_is::what_the_end_says);
    if (data.starts_with('B')) same_in_a_stream(codec, tools, data.substr(1));
    return 0;
}

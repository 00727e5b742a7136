/// What the tests of Anthropic's answers share: a decoder with its events, and the pieces of a stream.
#pragma once
#include <reagent/model/anthropic_codec.hpp>
#include <reagent/model/wire_decoder.hpp>

#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace reagent::inline v0::anthropic_events_detail {

inline anthropic_codec_options options()
{
    anthropic_codec_options o;
    o.model = "m";
    o.key = secret("k");
    o.random = [n = std::uint64_t{0}]() mutable { return ++n; };
    return o;
}

inline tool_list writing_tool()
{
    json required = json::array();
    required.push_back("content");
    auto tools = std::make_shared<std::vector<tool_schema>>();
    tools->emplace_back("write", "", json::object().set("required", std::move(required)));
    return tools;
}

class decoding {
public:
    explicit decoding(anthropic_codec_options o = options(), tool_list tools = {}) : codec(std::move(o)), decoder(codec.decoder(std::move(tools), "req_1")) {}
    decode_state event(std::string_view data, std::string_view type = {}) { return decoder->on_event(data, type, &events); }
    /// All of them; the state after the last one.
    decode_state feed(const std::vector<std::string>& all)
    {
        decode_state s = decode_state::more;
        for (const std::string& e : all) s = event(e);
        return s;
    }
    decode_state body(std::string_view text) { return decoder->on_body(text, 200, &events); }
    json failure() { return provider_error_to_json(std::make_exception_ptr(decoder->take_failure())); }
    generate_result result() { return decoder->take_result(); }
    std::vector<event_kind> kinds() const
    {
        std::vector<event_kind> out;
        for (const reagent::event& e : events) out.push_back(e.kind);
        return out;
    }
    std::string text_of(event_kind kind) const
    {
        std::string out;
        for (const reagent::event& e : events)
            if (e.kind == kind) out += e.payload;
        return out;
    }
    anthropic_codec codec;
    std::unique_ptr<wire_decoder> decoder;
    event_batch events;
};

inline std::string in_quotes(std::string_view text)
{
    std::string out;
    append_json_string(out, text);
    return out;
}

inline std::string start(int index, const std::string& block)
{
    return R"({"type":"content_block_start","index":)" + std::to_string(index) + R"(,"content_block":)" + block + "}";
}

inline std::string delta(int index, const std::string& members)
{
    return R"({"type":"content_block_delta","index":)" + std::to_string(index) + R"(,"delta":)" + members + "}";
}

inline std::string text_delta(int index, std::string_view text)
{
    return delta(index, R"({"type":"text_delta","text":)" + in_quotes(text) + "}");
}

inline std::string thinking_delta(int index, std::string_view text)
{
    return delta(index, R"({"type":"thinking_delta","thinking":)" + in_quotes(text) + "}");
}

inline std::string json_delta(int index, std::string_view text)
{
    return delta(index, R"({"type":"input_json_delta","partial_json":)" + in_quotes(text) + "}");
}

inline std::string stop(int index)
{
    return R"({"type":"content_block_stop","index":)" + std::to_string(index) + "}";
}

inline std::string ended(std::string_view reason, const std::string& usage = R"({"output_tokens":4})")
{
    return R"({"type":"message_delta","delta":{"stop_reason":)" + in_quotes(reason) + R"(,"stop_sequence":null},"usage":)" + usage + "}";
}

inline const std::string began =
    R"({"type":"message_start","message":{"id":"msg_1","type":"message","role":"assistant","model":"m-1","content":[],"stop_reason":null,"usage":{"input_tokens":3,"output_tokens":1}}})";
inline const std::string text_block = R"({"type":"text","text":""})";
inline const std::string call_block = R"({"type":"tool_use","id":"t1","name":"find","input":{}})";
inline const std::string over = R"({"type":"message_stop"})";

inline std::string whole(const std::string& content, std::string_view reason = "end_turn")
{
    return R"({"type":"message","role":"assistant","model":"m-1","content":[)" + content + R"(],"stop_reason":)" + in_quotes(reason) +
        R"(,"usage":{"input_tokens":3,"output_tokens":4}})";
}

}  // namespace reagent::inline v0::anthropic_events_detail

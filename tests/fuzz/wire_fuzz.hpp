/// What the fuzz targets of the wires share: any answer is decoded without a fault, in one way only, and can be sent back.
#pragma once
#include <reagent/base/utf8.hpp>
#include <reagent/model/encoded_prefix.hpp>
#include <reagent/model/wire_decoder.hpp>

#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>

namespace wire_fuzz {

using namespace reagent;

inline void require(bool holds)
{
    if (!holds) std::abort();
}

/// Of any wire's codec: small limits, nothing hidden, ids that repeat.
template <class Options>
Options options()
{
    Options o;
    o.model = "m";
    o.key = secret("sk-fuzz");
    o.max_arguments = 1024;
    o.expose_malformed_args = o.expose_error_body = true;
    o.random = [] { return std::uint64_t{7}; };
    return o;
}

inline tool_list some_tools()
{
    json required = json::array();
    required.push_back("content");
    auto tools = std::make_shared<std::vector<tool_schema>>();
    tools->emplace_back("find", "", json());
    tools->emplace_back("write", "", json::object().set("required", std::move(required)));
    return tools;
}

/// Feeds an answer: a body when its first byte is `B`, else the pieces of a stream, one a line, a name of the event in front of a `|` where a line has no brace first.
inline decode_state feed(wire_decoder& d, std::string_view data, event_batch* out)
{
    if (data.starts_with('B')) return d.on_body(data.substr(1), 200, out);
    while (!data.empty()) {
        std::string_view line = data.substr(0, data.find('\n')), type;
        data.remove_prefix(std::min(data.size(), line.size() + 1));
        const std::size_t bar = line.find('|');
        if (bar != std::string_view::npos && bar < line.find('{')) {
            type = line.substr(0, bar);
            line.remove_prefix(bar + 1);
        }
        if (const decode_state s = d.on_event(line, type, out); s != decode_state::more) return s;
    }
    return d.on_end(true, out);
}

/// Sends a result back, with and without marks and a prefix.
inline void replay(const wire_codec& codec, const generate_result& r, const tool_list& tools)
{
    generate_request request({message::system("s"), message::user("hi"), message::assistant(r.text, r.tool_calls, r.blocks)}, tools);
    for (const tool_call& c : r.tool_calls) request.messages.push_back(message::tool_result(c.id, r.text));
    encoded_prefix prefix;
    const call_plan plan = codec.plan(request);
    for (const bool marks : {false, true, false}) {
        request.options.cache_messages = request.options.cache_system = marks;
        std::string plain, unused;
        request.prefix = nullptr;
        const std::string body(codec.encode(request, plan, true, {}, plain).body);
        request.prefix = &prefix;
        require(codec.encode(request, plan, true, {}, unused).body == body);
        require(is_utf8(body) && json::parse(body).has_value());
    }
}

/// Where a stream's text may stand: a wire that says at its end what the text is may take back what it streamed.
enum class text_is { what_streamed, what_the_end_says };

inline void run(const wire_codec& codec, const tool_list& tools, std::string_view data, text_is from = text_is::what_streamed)
{
    const auto decoder = codec.decoder(tools, "r"), silent = codec.decoder(tools, "r");
    event_batch events;
    const decode_state state = feed(*decoder, data, &events);
    require(state != decode_state::more && feed(*silent, data, nullptr) == state);
    std::string text;
    for (const event& e : events) text += e.text();
    require(is_utf8(text) && is_utf8(decoder->text()) && (text == decoder->text() || from == text_is::what_the_end_says));
    require(decoder->held_bytes() >= decoder->text().size());
    if (state == decode_state::failed) {
        const provider_error e = decoder->take_failure();
        require(is_utf8(e.message()) && e.message() == silent->take_failure().message());
        return;
    }
    const generate_result r = decoder->take_result();
    require(r.to_json() == silent->take_result().to_json());
    require(r.tool_calls.empty() || !r.malformed);
    replay(codec, r, tools);
}

}  // namespace wire_fuzz

// Argument assembly: fragments cut anywhere give the same calls, fragments in any disorder lose no byte, and nothing throws.
#include "tool_call_assembler.hpp"

#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>
#include <vector>

namespace {

using namespace reagent;
using model_detail::tool_call_assembler;
using model_detail::tool_fragment;

random_source counted()
{
    return [n = std::uint64_t{0}]() mutable { return ++n; };
}

std::string outcome(tool_call_assembler& a, const tool_list& tools, event_batch* events)
{
    generate_result r;
    a.finish(tools, true, r, events);
    std::string out = r.to_json().dump();
    for (const attempted_call& c : r.attempted) out += c.call.id + c.call.name + c.call.arguments.dump() + std::to_string(c.offset);
    return out;
}

tool_list some_tools()
{
    json required = json::array();
    required.push_back("x");
    auto tools = std::make_shared<std::vector<tool_schema>>();
    tools->emplace_back("t1", "", json::object().set("required", std::move(required)));
    return tools;
}

/// Calls separated by 0xFF, whole and in pieces; the cuts come from the bytes themselves.
void same_calls_however_cut(std::string_view data, const tool_list& tools)
{
    tool_call_assembler whole(model_detail::default_max_arguments, counted()), cut(model_detail::default_max_arguments, counted());
    event_batch events;
    std::int64_t index = 0;
    std::string concatenated, streamed;
    while (!data.empty() && index < 8) {
        const std::string_view text = data.substr(0, data.find('\xFF'));
        data.remove_prefix(std::min(data.size(), text.size() + 1));
        const std::string id = "id" + std::to_string(index), name = "t" + std::to_string(index % 2);
        tool_fragment f;
        f.index = index;
        f.id = id;
        f.name = name;
        f.arguments = text;
        if (!whole.add(f, nullptr)) std::abort();
        f.arguments = {};
        if (!cut.add(f, &events)) std::abort();
        for (std::size_t at = 0; at < text.size();) {
            const std::size_t n = std::min<std::size_t>(1 + static_cast<unsigned char>(text[at]) % 7, text.size() - at);
            tool_fragment p;
            p.index = index;
            p.arguments = text.substr(at, n);
            if (!cut.add(p, &events)) std::abort();
            at += n;
        }
        concatenated += text;
        ++index;
    }
    for (const event& e : events)
        if (e.kind == event_kind::tool_args) streamed += e.payload;
    if (streamed != concatenated) std::abort();
    if (outcome(whole, tools, nullptr) != outcome(cut, tools, &events)) std::abort();
}

/// Fragments as disorderly as the bytes say.
void any_disorder(std::string_view data, const tool_list& tools)
{
    tool_call_assembler a(4096, counted());
    event_batch events;
    std::size_t fed = 0;
    while (data.size() >= 2) {
        const auto control = static_cast<unsigned char>(data[0]), size = static_cast<unsigned char>(data[1]);
        data.remove_prefix(2);
        static constexpr std::string_view ids[] = {"", "a", "b", "c"}, names[] = {"", "t0", "t1", ""};
        tool_fragment f;
        if ((control & 1U) != 0) f.index = (control >> 1U) & 3U;
        f.id = ids[(control >> 3U) & 3U];
        f.name = names[(control >> 5U) & 3U];
        f.whole = (control & 0x80U) != 0;
        f.arguments = data.substr(0, size % 32);
        data.remove_prefix(f.arguments.size());
        if (!a.add(f, &events)) return;
        fed += f.arguments.size();
    }
    if (a.argument_bytes() != fed) std::abort();
    static_cast<void>(outcome(a, tools, &events));
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* bytes, std::size_t size)
{
    static const tool_list tools = some_tools();
    const std::string_view data(reinterpret_cast<const char*>(bytes), size);
    same_calls_however_cut(data, tools);
    any_disorder(data, tools);
    return 0;
}

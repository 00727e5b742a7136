/// Tool calls as the chat wires of OpenAI and Ollama write them. For decoders only, behind `wire_json.hpp`.
#pragma once
#include "tool_call_assembler.hpp"

#include <reagent/model/answer_builder.hpp>

#include <string>
#include <string_view>

namespace reagent::inline v0::model_detail {

template <class V>
class call_view {
public:
    explicit call_view(const V& c)
    {
        V function;
        c.members([&](std::string_view key, const V& v) {
            if (key == "index") index = v;
            else if (key == "id") id = v;
            else if (key == "function") function = v;
        });
        function.members([&](std::string_view key, const V& v) {
            if (key == "name") name = v;
            else if (key == "arguments") arguments = v;
        });
    }
    V index, id, name, arguments;
    /// Arguments that came as a value instead of as its text.
    bool by_value() const noexcept { return static_cast<bool>(arguments) && !arguments.is_string(); }
};

/// Whether the text of numbers matters somewhere, so that the value must be read exactly.
template <class V>
bool needs_exact(const V& tool_calls)
{
    bool needed = false;
    tool_calls.elements([&](const V& c) { needed = needed || call_view<V>(c).by_value(); });
    return needed;
}

/// Hands a list of calls to the answer; `whole`: each element is a call, else a fragment of one. False: a limit is passed.
template <class V>
bool add_calls(answer_builder& answer, const V& list, bool whole, event_batch* out)
{
    bool ok = true;
    list.elements([&](const V& c) {
        if (!ok || !c) return;
        if (!c.is_object()) {
            if (whole) ok = answer.add_unreadable_call();
            return;
        }
        const call_view<V> view(c);
        tool_fragment f;
        std::string text;
        f.index = view.index.integer();
        f.id = view.id.string();
        f.name = view.name.string();
        f.arguments = view.arguments.string();
        f.text = view.arguments.is_string();
        if (view.by_value()) {
            text = view.arguments.to_json().dump();
            f.arguments = text;
            f.whole = true;
        }
        ok = answer.add_call(f, whole, out);
    });
    return ok;
}

}  // namespace reagent::inline v0::model_detail

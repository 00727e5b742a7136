#include <reagent/agent/tool.hpp>
#include <reagent/base/utf8.hpp>

#include <algorithm>

namespace reagent::inline v0 {

std::string_view to_string(effect e) noexcept
{
    switch (e) {
    case effect::readonly: return "readonly";
    case effect::idempotent: return "idempotent";
    case effect::destructive: return "destructive";
    case effect::unset: break;
    }
    return "";
}

std::string_view to_string(trust t) noexcept
{
    switch (t) {
    case trust::own: return "own";
    case trust::external: return "external";
    case trust::unset: break;
    }
    return "";
}

std::string render_tool_value(const json& value)
{
    std::string out;
    const json* answer = value.is_object() ? value.find("answer") : nullptr;
    if (value.is_null()) return out;
    if (value.is_string()) out = repair_utf8(value.as_string());
    else if (answer != nullptr && answer->is_string()) out = repair_utf8(answer->as_string());
    else out = value.dump();
    std::erase(out, '\0');
    return out;
}

json tool_result::to_json() const
{
    json out = json::object().set("name", name).set("args", args).set("status", completed ? "completed" : "failed").set("output", output);
    if (!completed) out.set("error", error).set("code", code);
    out.set("latencyMs", latency_ms);
    if (whose != trust::unset) out.set("trust", to_string(whose));
    if (cost_micros) out.set("costMicros", *cost_micros);
    if (!sources.empty()) {
        json list = json::array();
        for (const tool_source& s : sources) {
            json item = json::object().set("url", s.url);
            if (!s.title.empty()) item.set("title", s.title);
            if (!s.snippet.empty()) item.set("snippet", s.snippet);
            if (!s.date.empty()) item.set("date", s.date);
            list.push_back(std::move(item));
        }
        out.set("sources", std::move(list));
    }
    if (truncated) out.set("truncated", json::object().set("kept", truncated->first).set("of", truncated->second));
    return out;
}

}  // namespace reagent::inline v0

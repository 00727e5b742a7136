#include "run_printer.hpp"

#include <fmt/format.h>

namespace reagent_app {
namespace {

constexpr std::size_t shown_characters = 200;

std::string shown(const reagent::json& value)
{
    return one_line(value.is_string() ? value.as_string() : value.dump(), shown_characters);
}

/// `{"result"}`, `{"error"}` or `{"denied","reason"}` (spec/loop-and-providers.md §13.1).
std::string told(const reagent::json* data)
{
    if (!data) return {};
    if (const reagent::json* result = data->find("result")) return shown(*result);
    if (const reagent::json* reason = data->find("reason")) return "denied: " + shown(*reason);
    if (const reagent::json* error = data->find("error")) return "failed: " + shown(*error);
    return shown(*data);
}

}  // namespace

std::string run_figures(const reagent::run_result& result)
{
    const reagent::run_metrics& m = result.metrics();
    const auto counted = [](std::uint64_t n, const char* what) { return fmt::format("{} {}{}", grouped(n), what, n == 1 ? "" : "s"); };
    std::string text = counted(m.turns, "turn");
    if (m.tool_calls) text += ", " + counted(m.tool_calls, "tool call");
    text += fmt::format(", {} tokens in, {} out", grouped(m.input_tokens + m.cache_creation_tokens + m.cache_read_tokens), grouped(m.output_tokens));
    if (m.cost) text += ", $" + m.cost->to_string();
    else text += ", price unknown";
    return text;
}

void run_printer::show(const reagent::event& e)
{
    switch (e.kind) {
    case reagent::event_kind::text:
        if (!text_) return;
        if (e.round != round_) {
            out_.end_stream();
            round_text_.clear();
            round_ = e.round;
        }
        round_text_ += e.payload;
        out_.stream(e.payload);
        return;
    case reagent::event_kind::reset:
        // What was streamed of this attempt does not count; the next one starts anew.
        out_.end_stream();
        round_text_.clear();
        if (!quiet_) out_.aside(fmt::format("the answer starts again: {}", e.payload));
        return;
    case reagent::event_kind::tool_call:
        if (!quiet_) out_.aside(fmt::format("-> {} {}", e.name, e.data ? shown((*e.data)["args"]) : ""));
        return;
    case reagent::event_kind::tool_result:
        if (!quiet_) out_.aside(fmt::format("<- {} {}", e.name, told(e.data)));
        return;
    default: return;
    }
}

void run_printer::finish(const reagent::run_result& result)
{
    const bool streamed = round_text_ == result.text();
    if (text_ && result.completed() && !streamed) {
        out_.end_stream();
        out_.stream(result.text());
    }
    out_.end_stream();
    if (result.completed()) {
        if (!quiet_) out_.aside(run_figures(result));
        return;
    }
    std::string line = fmt::format("reagent run: {}", reagent::to_string(result.outcome()));
    if (result.error() && *result.error() != reagent::to_string(result.outcome())) line += ": " + *result.error();
    if (result.metrics().turns > 0 && !quiet_) line += " (" + run_figures(result) + ")";
    out_.note(line);
}

}  // namespace reagent_app

#include <reagent/model/event.hpp>

#include <reagent/base/time_text.hpp>

#include <algorithm>
#include <cstring>

namespace reagent::inline v0 {

namespace {

constexpr std::size_t first_block = 512;
constexpr std::size_t largest_kept = 64 * 1024;  ///< bigger blocks go back when the batch is cleared

std::string_view type_name(event_kind k) noexcept
{
    switch (k) {
    case event_kind::run_start: return "loop:start";
    case event_kind::assemble: return "loop:assemble";
    case event_kind::trim: return "loop:trim";
    case event_kind::resume: return "loop:resume";
    case event_kind::truncated: return "loop:truncated";
    case event_kind::final_text: return "loop:text";
    case event_kind::tool_call: return "loop:tool_call";
    case event_kind::tool_result: return "loop:tool_result";
    case event_kind::checkpoint_ask: return "checkpoint:ask";
    case event_kind::checkpoint_reply: return "checkpoint:reply";
    case event_kind::retry: return "loop:retry";
    case event_kind::error: return "loop:error";
    case event_kind::done: return "loop:done";
    default: return "loop:delta";
    }
}

std::string_view delta_name(event_kind k) noexcept
{
    switch (k) {
    case event_kind::start: return "start";
    case event_kind::text: return "text";
    case event_kind::thinking: return "thinking";
    case event_kind::tool_start: return "tool_start";
    case event_kind::tool_args: return "tool_args";
    case event_kind::tool_end: return "tool_end";
    case event_kind::usage: return "usage";
    case event_kind::stop: return "stop";
    case event_kind::reset: return "reset";
    default: return {};
    }
}

void merge(json& into, const json* data)
{
    if (data == nullptr || !data->is_object()) return;
    for (const auto& [k, v] : data->as_object()) into.set(k, v);
}

json delta_data(const event& e)
{
    json out = json::object().set("round", e.round).set("kind", delta_name(e.kind));
    switch (e.kind) {
    case event_kind::start:
        if (!e.id.empty()) out.set("requestId", e.id);
        if (!e.name.empty()) out.set("model", e.name);
        break;
    case event_kind::text:
    case event_kind::thinking: out.set("delta", e.payload); break;
    case event_kind::tool_start: out.set("index", e.index).set("id", e.id).set("name", e.name); break;
    case event_kind::tool_args: out.set("index", e.index).set("id", e.id).set("fragment", e.payload); break;
    case event_kind::tool_end:
        out.set("index", e.index).set("id", e.id).set("name", e.name).set("arguments", e.data == nullptr ? json::object() : *e.data);
        break;
    case event_kind::usage: merge(out, e.data); break;
    case event_kind::stop: out.set("stopReason", e.payload.empty() ? json() : json(e.payload)); break;
    case event_kind::reset: out.set("attempt", e.index).set("reason", e.payload); break;
    default: break;
    }
    return out;
}

json run_data(const event& e)
{
    json out = json::object();
    switch (e.kind) {
    case event_kind::final_text: out.set("text", e.payload); break;
    case event_kind::tool_call:
    case event_kind::tool_result:
    case event_kind::checkpoint_ask: out.set("tool", e.name); break;
    case event_kind::checkpoint_reply: out.set("reply", e.payload); break;
    case event_kind::error: out.set("error", e.payload); break;
    case event_kind::retry: out.set("round", e.round).set("attempt", e.index).set("error", e.payload); break;
    default: break;
    }
    merge(out, e.data);
    return out;
}

}  // namespace

json event::to_json() const
{
    const std::string_view type = type_name(kind);
    json out = json::object().set("type", type).set("data", type == "loop:delta" ? delta_data(*this) : run_data(*this));
    if (at != system_time()) out.set("ts", format_iso8601(at));
    return out;
}

struct event_batch::block {
    explicit block(std::size_t n) : bytes(std::make_unique_for_overwrite<char[]>(n)), size(n) {}
    std::unique_ptr<char[]> bytes;
    std::size_t size;
};

event_batch::event_batch() = default;
event_batch::~event_batch() = default;
event_batch::event_batch(event_batch&&) noexcept = default;
event_batch& event_batch::operator=(event_batch&&) noexcept = default;

void event_batch::clear() noexcept
{
    events_.clear();
    values_.clear();
    std::erase_if(blocks_, [](const block& b) { return b.size > largest_kept; });
    used_ = current_ = bytes_ = 0;
}

std::string_view event_batch::keep(std::string_view text)
{
    bytes_ += text.size();
    if (text.empty()) return {};
    while (current_ < blocks_.size() && blocks_[current_].size - used_ < text.size()) {
        ++current_;
        used_ = 0;
    }
    if (current_ == blocks_.size()) {
        const std::size_t grown = blocks_.empty() ? first_block : std::min(blocks_.back().size * 2, largest_kept);
        blocks_.emplace_back(std::max(grown, text.size()));
        used_ = 0;
    }
    char* at = blocks_[current_].bytes.get() + used_;
    std::memcpy(at, text.data(), text.size());
    used_ += text.size();
    return {at, text.size()};
}

const json* event_batch::keep(json value)
{
    return &values_.emplace_back(std::move(value));
}

event& event_batch::push(event_kind kind)
{
    event& e = events_.emplace_back();
    e.kind = kind;
    return e;
}

event& event_batch::push(event_kind kind, std::string_view payload)
{
    const std::string_view kept = keep(payload);
    event& e = push(kind);
    e.payload = kept;
    return e;
}

}  // namespace reagent::inline v0

#include "anthropic_messages.hpp"
#include "encode_common.hpp"

#include <reagent/base/ascii.hpp>
#include <reagent/base/error.hpp>
#include <reagent/model/anthropic_codec.hpp>
#include <reagent/model/http_failure.hpp>

#include <algorithm>
#include <array>

namespace reagent::inline v0 {

/// Named, since the encoders of all wires share a unit.
namespace anthropic_wire {
namespace {

using namespace model_detail;

constexpr std::string_view version_header = "anthropic-version";
/// A shape of the ladder that `encode` completes: the budget depends on the call.
constexpr std::string_view thinking_with_budget = R"("thinking":{"type":"enabled","budget_tokens":)";

std::uint64_t thinking_budget(std::uint64_t max_tokens) noexcept
{
    return std::max<std::uint64_t>(1024, max_tokens / 2);
}

void append_tool_schema(const tool_schema& t, std::string& out)
{
    out += R"({"name":)";
    append_json_string(out, t.name);
    if (!t.description.empty()) {
        out += R"(,"description":)";
        append_json_string(out, t.description);
    }
    out += R"(,"input_schema":)";
    if (t.parameters.is_null()) out += R"({"type":"object","properties":{}})";
    else t.parameters.dump_to(out);
    out += '}';
}

void append_choice(std::string& out, const tool_choice& choice)
{
    using kind = tool_choice::kind;
    switch (choice.what) {
    case kind::unset: return;
    case kind::automatic: out += R"(,"tool_choice":{"type":"auto"})"; return;
    case kind::required: out += R"(,"tool_choice":{"type":"any"})"; return;
    case kind::none: out += R"(,"tool_choice":{"type":"none"})"; return;
    case kind::named: break;
    }
    out += R"(,"tool_choice":{"type":"tool","name":)";
    append_json_string(out, choice.name);
    out += '}';
}

bool says(std::string_view text, std::string_view word) noexcept
{
    return std::search(text.begin(), text.end(), word.begin(), word.end(), [](char a, char b) { return to_lower(a) == b; }) != text.end();
}

}  // namespace
}  // namespace anthropic_wire

anthropic_codec_options::anthropic_codec_options() : codec_options("claude-haiku-4-5-20251001", "https://api.anthropic.com/v1") {}

anthropic_codec::anthropic_codec(anthropic_codec_options options)
    : wire_codec(anthropic_component, "anthropic", stream_framing::sse), options_(std::move(options)), endpoint_(options_.base_url.joined("/messages"))
{
    using namespace anthropic_wire;
    static constexpr std::array<std::string_view, 9> ours = {"model",    "messages", "max_tokens",  "system", "temperature",
                                                             "thinking", "tools",    "tool_choice", "stream"};
    if (options_.key.empty()) throw validation_error(prefixed(anthropic_component, "requires apiKey"));
    if (!options_.cache_ttl.empty() && options_.cache_ttl != "5m" && options_.cache_ttl != "1h")
        throw validation_error(prefixed(anthropic_component, R"(cacheTtl must be "5m" or "1h")"));
    header_lines_ = model_detail::header_lines(anthropic_component, options_, "x-api-key", "");
    const auto& own = options_.headers;
    if (std::none_of(own.begin(), own.end(), [](const auto& h) { return equal_but_case(h.first, version_header); }))
        header_lines_.append(version_header).append(": 2023-06-01\r\n");
    members_ = model_detail::encoded_members(anthropic_component, options_.members, ours);
    mark_ = R"(,"cache_control":{"type":"ephemeral")";
    if (!options_.cache_ttl.empty()) mark_.append(R"(,"ttl":")").append(options_.cache_ttl).append("\"");
    mark_ += '}';
    head_ = R"({"model":)";
    append_json_string(head_, options_.model);
    head_ += R"(,"messages":[)";
}

std::optional<std::uint64_t> anthropic_codec::max_output() const noexcept
{
    const std::uint64_t own = options_.max_tokens.value_or(0);
    return own != 0 ? own : default_max_tokens;
}

call_plan anthropic_codec::plan(const generate_request& request) const
{
    call_plan out = wire_codec::plan(request);
    if (!out.max_tokens) out.max_tokens = default_max_tokens;
    return out;
}

bool anthropic_codec::refuses_temperature(std::string_view message, const call_plan& plan) const
{
    using anthropic_wire::says;
    if (wire_codec::refuses_temperature(message, plan)) return true;
    return plan.mode == thinking_mode::on && plan.temperature != 1.0 && says(message, "temperature") && says(message, "thinking");
}

thinking_ladder anthropic_codec::ladder(const call_plan& plan, std::optional<std::size_t> winner) const
{
    static constexpr std::array<std::string_view, 2> on = {R"("thinking":{"type":"adaptive"})", anthropic_wire::thinking_with_budget};
    static constexpr std::array<std::string_view, 1> off = {R"("thinking":{"type":"disabled"})"};
    if (!plan.mode) return {};
    if (*plan.mode == thinking_mode::off) {
        if (options_.model == "claude-opus-5-5") return thinking_ladder::unswitchable(*plan.mode, {});
        return thinking_ladder(*plan.mode, off, winner);
    }
    const std::uint64_t most = plan.max_tokens.value_or(default_max_tokens);
    const bool fits = anthropic_wire::thinking_budget(most) < most;
    return thinking_ladder(*plan.mode, std::span<const std::string_view>(on).first(fits ? 2 : 1), winner);
}

/// The body up to and with the messages, the last block of the last one marked. Without the mark a message may be reused, so the prefix does not see the last.
std::string& anthropic_codec::begin_marked(const generate_request& request, std::string& storage) const
{
    const std::span<const message_ptr> all(request.messages);
    const message_items items = model_detail::anthropic_items();
    std::string last;
    std::size_t first = all.size();
    while (first > 0 && last.empty()) {
        const std::size_t end = first;
        do --first;
        while (!items.begins(all, first));
        model_detail::append_anthropic_item(*this, all.first(end), first, last, mark_);
    }
    std::string& out = model_detail::begin_body(request, all.first(first), storage, this, items, head_, remembered_size(request.tools));
    if (out.size() > head_.size() && !last.empty()) out += ',';
    return out += last;
}

wire_request anthropic_codec::encode(const generate_request& request, const call_plan& plan, bool with_temperature, std::string_view thinking_members,
                                     std::string& storage) const
{
    using namespace anthropic_wire;
    std::string& out = request.options.cache_messages.value_or(options_.cache_messages)
        ? begin_marked(request, storage)
        : begin_body(request, request.messages, storage, this, anthropic_items(), head_, remembered_size(request.tools));
    out += R"(],"max_tokens":)";
    append_unsigned(out, plan.max_tokens.value_or(default_max_tokens));
    append_anthropic_system(out, request, request.options.cache_system.value_or(options_.cache_system) ? std::string_view(mark_) : std::string_view());
    if (with_temperature && plan.temperature) append_number(out, R"(,"temperature":)", *plan.temperature);
    out += encoded_tools(request.tools, R"(,"tools":[)", &append_tool_schema, "]");
    append_choice(out, plan.choice);
    out += members_;
    if (!plan.thinking.empty()) {
        out += R"(,"thinking":)";
        out += plan.thinking;
    }
    if (!thinking_members.empty()) {
        out += ',';
        out += thinking_members;
        if (thinking_members == thinking_with_budget) {
            append_unsigned(out, thinking_budget(plan.max_tokens.value_or(default_max_tokens)));
            out += '}';
        }
    }
    if (plan.stream) out += R"(,"stream":true)";
    out += '}';
    wire_request w;
    w.target = &endpoint_;
    w.header_lines = header_lines_;
    w.body = out;
    return w;
}

}  // namespace reagent::inline v0

#include "encode_common.hpp"
#include "wire_scratch.hpp"

#include <reagent/base/error.hpp>
#include <reagent/model/http_failure.hpp>
#include <reagent/model/provider_error.hpp>
#include <reagent/model/wire_codec.hpp>

namespace reagent::inline v0 {

namespace {

tool_choice read_tool_choice(const json& choice, std::string_view component)
{
    using kind = tool_choice::kind;
    if (const std::string* word = choice.get_string()) {
        if (*word == "auto") return tool_choice(kind::automatic);
        if (*word == "required") return tool_choice(kind::required);
        if (*word == "none") return tool_choice(kind::none);
    }
    const std::string* named = choice["name"].get_string();
    if (named != nullptr && !named->empty() && choice.size() == 1) return tool_choice(kind::named, *named);
    throw provider_error(errc::invalid_argument, prefixed(component, R"(invalid toolChoice: use "auto", "required", "none" or {"name": …})"), false);
}

}  // namespace

wire_codec::wire_codec(std::string_view component, std::string_view provider_name, stream_framing framing)
    : component_(component), provider_name_(provider_name), framing_(framing), scratch_(model_detail::make_wire_scratch())
{}

wire_codec::~wire_codec() = default;

bool wire_codec::key_in_clear() const noexcept
{
    const url& to = endpoint(false);
    return !options().key.empty() && !to.tls() && !to.loopback();
}

std::optional<std::uint64_t> wire_codec::max_output() const noexcept
{
    return options().max_tokens;
}

call_plan wire_codec::plan(const generate_request& request) const
{
    const generate_options& o = request.options;
    const codec_options& own = options();
    call_plan out;
    out.temperature = o.temperature ? o.temperature : own.temperature;
    out.max_tokens = o.max_tokens.value_or(0) != 0 ? o.max_tokens : own.max_tokens;
    if (out.max_tokens == std::uint64_t{0}) out.max_tokens.reset();
    out.stream = o.stream;
    if (o.tool_choice && !o.tool_choice->is_null()) {
        out.choice = read_tool_choice(*o.tool_choice, component_);
        if (!request.tools || request.tools->empty()) out.choice = tool_choice();
    }
    const json& raw = o.thinking ? *o.thinking : own.thinking;
    if (model_detail::truthy(raw)) out.thinking = raw.dump();
    out.mode = o.mode ? *o.mode : own.mode;
    if (out.mode && !out.thinking.empty()) throw validation_error(prefixed(component_, "thinking and thinkingMode exclude each other; set one of them"));
    return out;
}

bool wire_codec::refuses_temperature(std::string_view message, const call_plan&) const
{
    return says_temperature_unsupported(message);
}

std::string_view wire_codec::encoded_tools(const tool_list& tools, std::string_view open, append_tool one, std::string_view close) const
{
    if (!tools || tools->empty()) return {};
    if (tools_list_ == tools) return tools_bytes_;
    tools_list_ = tools;
    tools_bytes_ = open;
    for (const tool_schema& t : *tools) {
        if (&t != &tools->front()) tools_bytes_ += ',';
        one(t, tools_bytes_);
    }
    tools_bytes_ += close;
    return tools_bytes_;
}

}  // namespace reagent::inline v0

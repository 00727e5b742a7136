#include <reagent/base/ascii.hpp>
#include <reagent/base/error.hpp>
#include <reagent/base/untrusted_text.hpp>
#include <reagent/model/encoded_prefix.hpp>
#include <reagent/model/http_failure.hpp>
#include <reagent/model/openai_codec.hpp>

#include <algorithm>
#include <charconv>

namespace reagent::inline v0 {

namespace {

bool is_deepseek(std::string_view host) noexcept
{
    constexpr std::string_view domain = "deepseek.com";
    return host.size() > domain.size() && host.ends_with(domain) && host[host.size() - domain.size() - 1] == '.';
}

void append_unsigned(std::string& out, std::uint64_t n)
{
    std::array<char, 24> buffer{};
    const auto end = std::to_chars(buffer.data(), buffer.data() + buffer.size(), n).ptr;
    out.append(buffer.data(), end);
}

void append_image(std::string& out, const image_part& image)
{
    out += R"({"type":"image_url","image_url":{"url":)";
    if (image.url.empty()) {
        std::string data;
        data.reserve(image.media_type.size() + image.data_base64.size() + 16);
        data += "data:";
        data += image.media_type;
        data += ";base64,";
        data += image.data_base64;
        append_json_string(out, data);
    } else {
        append_json_string(out, image.url);
    }
    if (!image.detail.empty()) {
        out += R"(,"detail":)";
        append_json_string(out, image.detail);
    }
    out += "}}";
}

void append_parts(std::string& out, const message& m)
{
    out += '[';
    bool first = true;
    for (const part& p : m.parts) {
        const auto* text = std::get_if<text_part>(&p);
        const auto* image = std::get_if<image_part>(&p);
        const auto* native = std::get_if<native_part>(&p);
        if (text == nullptr && image == nullptr && native == nullptr) continue;
        if (!first) out += ',';
        first = false;
        if (text != nullptr) {
            out += R"({"type":"text","text":)";
            append_json_string(out, text->text);
            out += '}';
        } else if (image != nullptr) {
            append_image(out, *image);
        } else {
            native->value.dump_to(out);
        }
    }
    out += ']';
}

bool is_text(const native_part& n) noexcept
{
    const std::string* type = n.value["type"].get_string();
    return type != nullptr && *type == "text" && n.value["text"].is_string();
}

/// A tool result is one string: text parts joined by LF, nothing else.
void append_tool_content(std::string& out, const message& m)
{
    for (const part& p : m.parts) {
        const auto* native = std::get_if<native_part>(&p);
        if (std::holds_alternative<image_part>(p) || (native != nullptr && !is_text(*native)))
            throw validation_error(prefixed(openai_component, "a tool result can carry text only; the result of call " + m.tool_call_id + " has another part"));
    }
    append_json_string(out, m.text());
}

void append_content(std::string& out, const message& m)
{
    std::size_t texts = 0, others = 0;
    for (const part& p : m.parts) {
        if (std::holds_alternative<text_part>(p)) ++texts;
        else if (std::holds_alternative<image_part>(p) || std::holds_alternative<native_part>(p)) ++others;
    }
    if (m.who == role::tool) {
        append_tool_content(out, m);
    } else if (m.content_null && texts + others == 0) {
        out += "null";
    } else if (others == 0 && texts <= 1 && !m.content_parts) {
        const text_part* only = nullptr;
        for (const part& p : m.parts)
            if (const auto* t = std::get_if<text_part>(&p)) only = t;
        append_json_string(out, only == nullptr ? std::string_view() : std::string_view(only->text));
    } else {
        append_parts(out, m);
    }
}

/// Reasoning text that DeepSeek wants back beside the calls it led to.
std::string reasoning_of(const message& m)
{
    std::string out;
    const provider_blocks* b = m.blocks();
    if (b == nullptr || b->provider != "openai" || !b->blocks.is_array()) return out;
    for (const json& block : b->blocks.as_array()) {
        const std::string* type = block["type"].get_string();
        const std::string* text = block["text"].get_string();
        if (type != nullptr && text != nullptr && *type == "reasoning_content") out += *text;
    }
    return out;
}

void append_calls(std::string& out, const message& m)
{
    bool first = true;
    std::string text;
    for (const part& p : m.parts) {
        const auto* call = std::get_if<tool_call>(&p);
        if (call == nullptr) continue;
        out += first ? R"(,"tool_calls":[{"id":)" : R"(,{"id":)";
        first = false;
        append_json_string(out, call->id);
        out += R"(,"type":"function","function":{"name":)";
        append_json_string(out, call->name);
        out += R"(,"arguments":)";
        if (const std::string* raw = call->arguments.get_string()) {
            append_json_string(out, *raw);
        } else {
            text.clear();
            call->arguments.dump_to(text);
            append_json_string(out, text);
        }
        out += "}}";
    }
    if (!first) out += ']';
}

/// Depends on the message and the codec's fixed options only, so that an `encoded_prefix` may keep the bytes.
void append_message(const void* opaque, const message& m, std::string& out)
{
    const auto& codec = *static_cast<const openai_codec*>(opaque);
    out += R"({"role":)";
    append_json_string(out,
                       m.who == role::system      ? std::string_view(codec.options().system_role)
                           : m.who == role::other ? std::string_view(m.role_name)
                                                  : to_string(m.who));
    out += R"(,"content":)";
    append_content(out, m);
    if (m.who == role::assistant) {
        const std::size_t before = out.size();
        append_calls(out, m);
        if (codec.deepseek() && out.size() != before) {
            const std::string reasoning = reasoning_of(m);
            if (!reasoning.empty()) {
                out += R"(,"reasoning_content":)";
                append_json_string(out, reasoning);
            }
        }
    }
    if (m.who == role::tool) {
        out += R"(,"tool_call_id":)";
        append_json_string(out, m.tool_call_id);
    }
    out += '}';
}

std::size_t estimated_size(const generate_request& r) noexcept
{
    std::size_t bytes = 512;
    for (const message_ptr& m : r.messages) {
        bytes += 96;
        for (const part& p : m->parts) {
            if (const auto* t = std::get_if<text_part>(&p)) bytes += t->text.size() + t->text.size() / 16;
            else if (const auto* i = std::get_if<image_part>(&p)) bytes += i->data_base64.size() + i->url.size() + 96;
            else bytes += 256;
        }
    }
    return bytes;
}

bool truthy(const json& j) noexcept
{
    switch (j.type()) {
    case json::kind::null: return false;
    case json::kind::boolean: return j.as_bool();
    case json::kind::number: return j.as_number().as_double() != 0;
    case json::kind::string: return !j.as_string().empty();
    default: return true;
    }
}

/// No control character may stand in a header: a line break would start one of its own.
bool fits_a_header(std::string_view text) noexcept
{
    return std::none_of(text.begin(), text.end(), [](char c) { return static_cast<unsigned char>(c) < 0x20 || c == 0x7f; });
}

/// The user's own headers. Their values are never shown: they may hold a key.
void append_headers(std::string& lines, const openai_codec_options& o)
{
    for (const auto& [name, value] : o.headers) {
        const std::string lower = to_lower(name);
        if (lower == "content-type" || (lower == "authorization" && !o.key.empty()))
            throw validation_error(prefixed(openai_component, "the header " + name + " is set by the provider"));
        const bool token =
            !name.empty() && name.find_first_not_of("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789!#$%&'*+-.^_`|~") == std::string::npos;
        if (!token || !fits_a_header(value))
            throw validation_error(prefixed(openai_component, "the header " + untrusted_text(name, 40) + " must be a name and one line of text"));
        lines.append(name).append(": ").append(value).append("\r\n");
    }
}

/// `,"top_p":0.5`: what we set ourselves, and what would multiply the answer past its bound, is refused.
std::string encoded_members(const json& members)
{
    static constexpr std::array<std::string_view, 11> ours = {
        "model", "messages", "temperature", "max_tokens", "max_completion_tokens", "tools", "tool_choice", "thinking", "stream", "stream_options", "n"};
    std::string out;
    if (members.is_null()) return out;
    if (!members.is_object()) throw validation_error(prefixed(openai_component, "body members must be an object"));
    for (const auto& [name, value] : members.as_object()) {
        if (std::find(ours.begin(), ours.end(), name) != ours.end())
            throw validation_error(prefixed(openai_component, "the body member " + name + " is set by the provider"));
        out += ',';
        append_json_string(out, name);
        out += ':';
        value.dump_to(out);
    }
    return out;
}

[[noreturn]] void invalid_tool_choice()
{
    throw provider_error(errc::invalid_argument, prefixed(openai_component, R"(invalid toolChoice: use "auto", "required", "none" or {"name": …})"), false);
}

}  // namespace

openai_codec_options::openai_codec_options() : base_url(url::parse_or_throw("https://api.openai.com/v1", "baseUrl")) {}

openai_codec::openai_codec(openai_codec_options options)
    : options_(std::move(options)), endpoint_(options_.base_url.joined("/chat/completions")), deepseek_(is_deepseek(endpoint_.host())), scratch_(make_scratch())
{
    header_lines_ = "Content-Type: application/json\r\n";
    if (!options_.key.empty()) {
        if (!fits_a_header(options_.key.reveal())) throw validation_error(prefixed(openai_component, "apiKey must be one line of text"));
        header_lines_ += "Authorization: Bearer ";
        header_lines_ += options_.key.reveal();
        header_lines_ += "\r\n";
    }
    append_headers(header_lines_, options_);
    members_ = encoded_members(options_.members);
    head_ = R"({"model":)";
    append_json_string(head_, options_.model);
    head_ += R"(,"messages":[)";
}

openai_codec::~openai_codec() = default;

openai_call_plan openai_codec::plan(const generate_request& request) const
{
    const generate_options& o = request.options;
    openai_call_plan out;
    out.temperature = o.temperature ? o.temperature : options_.temperature;
    out.max_tokens = o.max_tokens.value_or(0) != 0 ? o.max_tokens : options_.max_tokens;
    if (out.max_tokens == std::uint64_t{0}) out.max_tokens.reset();
    out.stream = o.stream;
    if (o.tool_choice && !o.tool_choice->is_null()) {
        const json& choice = *o.tool_choice;
        const std::string* word = choice.get_string();
        const std::string* named = choice["name"].get_string();
        if (word != nullptr) {
            if (*word != "auto" && *word != "required" && *word != "none") invalid_tool_choice();
            out.tool_choice = '"' + *word + '"';
            out.forced_tool = *word == "required";
        } else if (named != nullptr && !named->empty() && choice.size() == 1) {
            out.tool_choice = R"({"type":"function","function":{"name":)";
            append_json_string(out.tool_choice, *named);
            out.tool_choice += "}}";
            out.forced_tool = true;
        } else {
            invalid_tool_choice();
        }
        if (!request.tools || request.tools->empty()) {
            out.tool_choice.clear();
            out.forced_tool = false;  // what is not sent forces nothing
        }
    }
    const json& raw = o.thinking ? *o.thinking : options_.thinking;
    if (truthy(raw)) out.thinking = raw.dump();
    out.mode = o.mode ? *o.mode : options_.mode;
    if (out.mode && !out.thinking.empty()) throw validation_error(prefixed(openai_component, "thinking and thinkingMode exclude each other; set one of them"));
    return out;
}

thinking_ladder openai_codec::ladder(const openai_call_plan& plan, std::optional<std::size_t> winner) const
{
    static constexpr std::string_view enabled = R"("thinking":{"type":"enabled"})", disabled = R"("thinking":{"type":"disabled"})";
    static constexpr std::array<std::string_view, 1> deepseek_on = {enabled}, deepseek_off = {disabled}, on = {R"("reasoning_effort":"medium")"};
    static constexpr std::array<std::string_view, 2> off = {R"("reasoning_effort":"none")", R"("reasoning_effort":"minimal")"};
    if (!plan.mode) return {};
    const bool wanted = *plan.mode == thinking_mode::on;
    if (!deepseek_) return wanted ? thinking_ladder(*plan.mode, on, winner) : thinking_ladder(*plan.mode, off, winner);
    if (wanted && plan.forced_tool) return thinking_ladder::unswitchable(*plan.mode, disabled);
    return wanted ? thinking_ladder(*plan.mode, deepseek_on, winner) : thinking_ladder(*plan.mode, deepseek_off, winner);
}

std::string_view openai_codec::encoded_tools(const tool_list& tools) const
{
    if (cached_tools_ == tools) return tools_bytes_;
    cached_tools_ = tools;
    tools_bytes_.clear();
    for (const tool_schema& t : *tools) {
        tools_bytes_ += tools_bytes_.empty() ? R"(,"tools":[)" : ",";
        tools_bytes_ += R"({"type":"function","function":{"name":)";
        append_json_string(tools_bytes_, t.name);
        if (!t.description.empty()) {
            tools_bytes_ += R"(,"description":)";
            append_json_string(tools_bytes_, t.description);
        }
        if (!t.parameters.is_null()) {
            tools_bytes_ += R"(,"parameters":)";
            t.parameters.dump_to(tools_bytes_);
        }
        tools_bytes_ += "}}";
    }
    if (!tools_bytes_.empty()) tools_bytes_ += ']';
    return tools_bytes_;
}

wire_request openai_codec::encode(const generate_request& request, const openai_call_plan& plan, bool with_temperature, std::string_view thinking_members,
                                  std::string& storage) const
{
    std::string* body = &storage;
    if (request.prefix != nullptr) {
        body = &request.prefix->begin_body(this, &append_message, head_, request.messages);
    } else {
        storage.clear();
        storage.reserve(estimated_size(request) + (cached_tools_ == request.tools ? tools_bytes_.size() : 0));
        storage += head_;
        bool first = true;
        for (const message_ptr& m : request.messages) {
            if (!first) storage += ',';
            first = false;
            append_message(this, *m, storage);
        }
    }
    std::string& out = *body;
    out += ']';
    if (with_temperature && plan.temperature) {
        out += R"(,"temperature":)";
        json::number(*plan.temperature).append_to(out);
    }
    if (plan.max_tokens) {
        out += options_.legacy_max_tokens ? R"(,"max_tokens":)" : R"(,"max_completion_tokens":)";
        append_unsigned(out, *plan.max_tokens);
    }
    if (request.tools && !request.tools->empty()) out += encoded_tools(request.tools);
    if (!plan.tool_choice.empty()) {
        out += R"(,"tool_choice":)";
        out += plan.tool_choice;
    }
    out += members_;
    if (!plan.thinking.empty()) {
        out += R"(,"thinking":)";
        out += plan.thinking;
    }
    if (!thinking_members.empty()) {
        out += ',';
        out += thinking_members;
    }
    if (plan.stream) out += options_.stream_usage ? R"(,"stream":true,"stream_options":{"include_usage":true})" : R"(,"stream":true)";
    out += '}';
    wire_request w;
    w.target = &endpoint_;
    w.header_lines = header_lines_;
    w.body = out;
    return w;
}

}  // namespace reagent::inline v0

#include <reagent/model/message.hpp>

#include <algorithm>

namespace reagent::inline v0 {

namespace {
bool blank(std::string_view text) noexcept
{
    return text.find_first_not_of(" \t\r\n\f\v") == std::string_view::npos;
}
/// The text of a part, null when it has none. A text object with members we do not know is native, and still text.
const std::string* text_of(const part& p) noexcept
{
    if (const auto* t = std::get_if<text_part>(&p)) return &t->text;
    if (const auto* n = std::get_if<native_part>(&p)) {
        const std::string* type = n->value["type"].get_string();
        if (type != nullptr && *type == "text") return n->value["text"].get_string();
    }
    return nullptr;
}
}  // namespace

message::message(role r, std::string text) : who(r)
{
    parts.emplace_back(text_part(std::move(text)));
}

message_ptr message::system(std::string text)
{
    return std::make_shared<const message>(role::system, std::move(text));
}

message_ptr message::user(std::string text)
{
    return std::make_shared<const message>(role::user, std::move(text));
}

message_ptr message::assistant(std::string text, std::vector<tool_call> calls, std::optional<provider_blocks> blocks)
{
    auto m = std::make_shared<message>();
    m->who = role::assistant;
    m->parts.reserve(1 + calls.size() + (blocks ? 1 : 0));
    if (!calls.empty() && blank(text)) m->content_null = true;
    else m->parts.emplace_back(text_part(std::move(text)));
    for (tool_call& c : calls) m->parts.emplace_back(std::move(c));
    if (blocks) m->parts.emplace_back(std::move(*blocks));
    return m;
}

message_ptr message::tool_result(std::string call_id, std::string text)
{
    auto m = std::make_shared<message>(role::tool, std::move(text));
    m->tool_call_id = std::move(call_id);
    return m;
}

std::string message::text() const
{
    std::string out;
    bool first = true;
    for (const part& p : parts) {
        const std::string* t = text_of(p);
        if (t == nullptr) continue;
        if (!first) out += '\n';
        first = false;
        out += *t;
    }
    return out;
}

std::vector<const tool_call*> message::calls() const
{
    std::vector<const tool_call*> out;
    for (const part& p : parts)
        if (const auto* c = std::get_if<tool_call>(&p)) out.push_back(c);
    return out;
}

const provider_blocks* message::blocks() const noexcept
{
    for (const part& p : parts)
        if (const auto* b = std::get_if<provider_blocks>(&p)) return b;
    return nullptr;
}

std::string_view to_string(role r) noexcept
{
    switch (r) {
    case role::system: return "system";
    case role::user: return "user";
    case role::assistant: return "assistant";
    case role::tool: return "tool";
    case role::other: break;
    }
    return "other";
}

}  // namespace reagent::inline v0

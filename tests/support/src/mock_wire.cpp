#include "mock_wire.hpp"

#include <algorithm>

namespace reagent::inline v0::testing_detail {

std::optional<mock_route> route_of(std::string_view path)
{
    if (path == "/v1/chat/completions") return mock_route{&chat_wire, {}, false};
    if (path == "/v1/responses") return mock_route{&responses_wire, {}, false};
    if (path == "/v1/messages") return mock_route{&messages_wire, {}, false};
    if (path == "/api/chat") return mock_route{&ollama_wire, {}, false};
    constexpr std::string_view models = "/v1beta/models/";
    if (!path.starts_with(models)) return std::nullopt;
    path.remove_prefix(models.size());
    const std::size_t colon = path.rfind(':');
    if (colon == std::string_view::npos || colon == 0) return std::nullopt;
    const std::string_view method = path.substr(colon + 1);
    if (method != "generateContent" && method != "streamGenerateContent") return std::nullopt;
    return mock_route{&gemini_wire, std::string(path.substr(0, colon)), method == "streamGenerateContent"};
}

std::string read_request(const mock_route& route, std::string_view body, chat_facts& out)
{
    std::size_t offset = 0;
    const auto parsed = json::parse(body, json::parse_options(), offset);
    if (!parsed) return "the body is not JSON at byte " + std::to_string(offset);
    if (!parsed->is_object()) return "the body is not an object";
    out.model = route.model;
    out.stream = route.stream;
    if (out.model.empty()) {
        const std::string* model = (*parsed)["model"].get_string();
        if (model == nullptr) return "model must be a string";
        out.model = *model;
    }
    return route.wire->read(*parsed, out);
}

std::string text_of(const json& content)
{
    if (const std::string* s = content.get_string()) return *s;
    std::string out;
    if (!content.is_array()) return out;
    for (const json& part : content.as_array()) {
        if (const std::string* s = part["text"].get_string()) out += (out.empty() ? "" : "\n") + *s;
    }
    return out;
}

void note_user(chat_facts& facts, const json& content)
{
    facts.last_user = text_of(content);
    facts.has_tool_result = false;
}

void note_tool_result(chat_facts& facts, const json& id)
{
    facts.has_tool_result = true;
    if (const std::string* s = id.get_string()) facts.last_tool_call_id = *s;
}

void note_tool(chat_facts& facts, const json& name)
{
    if (const std::string* s = name.get_string()) facts.tools.push_back(*s);
}

std::vector<std::string_view> cut(std::string_view text, std::uint64_t size)
{
    std::vector<std::string_view> out;
    while (!text.empty()) {
        std::size_t n = std::min<std::uint64_t>(size, text.size());
        while (n < text.size() && (static_cast<unsigned char>(text[n]) & 0xC0U) == 0x80U) ++n;
        out.push_back(text.substr(0, n));
        text.remove_prefix(n);
    }
    return out;
}

json list_of(json one)
{
    json out = json::array();
    out.push_back(std::move(one));
    return out;
}

json arguments_of(const mock_tool_call& call)
{
    auto parsed = json::parse(call.arguments);
    return parsed ? std::move(*parsed) : json(call.arguments);
}

std::string finish_by(std::string_view finish, std::initializer_list<std::pair<std::string_view, std::string_view>> words)
{
    for (const auto& [ours, theirs] : words)
        if (ours == finish) return std::string(theirs);
    return std::string(finish);
}

}  // namespace reagent::inline v0::testing_detail

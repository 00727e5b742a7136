#include <reagent/base/json.hpp>
#include <reagent/providers/response_cache.hpp>

namespace reagent::inline v0 {

namespace {

json options_json(const generate_options& options)
{
    // Names every member: a new one does not compile before somebody has decided whether it is part of the key.
    const auto& [temperature, max_tokens, tool_choice, thinking, mode, system, cache_system, cache_messages, stream, accept_resets, idle, total, deadline] =
        options;
    static_cast<void>(cache_system);  // what a prompt cache does changes the price, not the answer
    static_cast<void>(cache_messages);
    static_cast<void>(stream);
    static_cast<void>(accept_resets);
    static_cast<void>(idle);
    static_cast<void>(total);
    static_cast<void>(deadline);
    json out = json::object();
    if (temperature) out.set("temperature", *temperature);
    if (max_tokens) out.set("max_tokens", *max_tokens);
    if (tool_choice) out.set("tool_choice", *tool_choice);
    if (thinking) out.set("thinking", *thinking);
    if (mode) out.set("mode", !*mode ? json() : json(**mode == thinking_mode::on));
    if (system) out.set("system", *system);
    return out;
}

}  // namespace

std::string request_key(std::string_view scope, std::string_view provider, std::string_view model, const generate_request& request)
{
    json messages = json::array();
    for (const message_ptr& m : request.messages) messages.push_back(m->to_json());
    json tools = json::array();
    if (request.tools)
        for (const tool_schema& t : *request.tools)
            tools.push_back(json::object().set("name", t.name).set("description", t.description).set("parameters", t.parameters));
    return json::object()
        .set("scope", scope)
        .set("provider", provider)
        .set("model", model)
        .set("messages", std::move(messages))
        .set("tools", std::move(tools))
        .set("options", options_json(request.options))
        .canonical();
}

}  // namespace reagent::inline v0

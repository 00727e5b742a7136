#include "run_driver.hpp"

#include <reagent/agent/agent.hpp>
#include <reagent/base/spawn.hpp>

namespace reagent::inline v0 {

json validation_report::to_json() const
{
    json provider = json::object().set("ok", provider_ok);
    if (!provider_ok) provider.set("error", provider_error);
    json store = json::object().set("ok", store_ok).set("skipped", store_skipped);
    if (!store_ok) store.set("error", store_error);
    json tools = json::object().set("ok", tools_ok);
    if (!tools_ok) {
        json errors = json::array();
        for (const std::string& e : tool_errors) errors.push_back(e);
        tools.set("errors", std::move(errors));
    }
    return json::object().set("provider", std::move(provider)).set("store", std::move(store)).set("tools", std::move(tools));
}

namespace agent_detail {
namespace {

awaitable<void> try_store(store_probe& store, std::string key)
{
    const std::string content = "validation probe " + key;
    std::string copy = content;
    const std::string id = co_await store.put(std::move(copy));
    const std::optional<std::string> back = co_await store.get(id);
    if (!back) throw error(errc::not_found, "the store did not give back what it was given (id " + id + ")");
    if (*back != content) throw error(errc::not_found, "the store gave back something else than it was given (id " + id + ")");
    co_await store.remove(id);
}

awaitable<validation_report> try_all(std::shared_ptr<const agent_core> core, store_probe* store)
{
    validation_report out;
    std::exception_ptr failure;
    try {
        transcript messages;
        messages.push_back(message::user("respond with ok"));
        generate_request request(std::move(messages));
        request.options.stream = false;
        co_await core->model->generate(std::move(request));
        out.provider_ok = true;
    } catch (...) {
        failure = std::current_exception();
    }
    if (failure) out.provider_error = message_of(failure);
    failure = nullptr;
    if (store != nullptr) {
        out.store_skipped = false;
        const auto now = std::chrono::duration_cast<std::chrono::milliseconds>(core->options.time->wall().time_since_epoch()).count();
        std::string key = "__validate_" + std::to_string(now);
        try {
            co_await try_store(*store, std::move(key));
        } catch (...) {
            failure = std::current_exception();
        }
        out.store_ok = failure == nullptr;
        if (failure) out.store_error = message_of(failure);
    }
    try {
        out.tool_errors = tool_faults(core->options.thunk ? core->options.thunk() : core->options.tools);
    } catch (...) {
        out.tool_errors.push_back("the tools could not be listed: " + message_of(std::current_exception()));
    }
    out.tools_ok = out.tool_errors.empty();
    co_return out;
}

}  // namespace
}  // namespace agent_detail

awaitable<validation_report> agent::validate(store_probe* store) const
{
    if (!core_) throw validation_error("[Loop] an empty agent was used");
    return isolated(agent_detail::try_all(core_, store));
}

}  // namespace reagent::inline v0

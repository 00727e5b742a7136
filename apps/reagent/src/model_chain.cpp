#include "model_chain.hpp"

#include "terminal.hpp"

#include <reagent/base/error.hpp>
#include <reagent/base/untrusted_text.hpp>
#include <reagent/providers/fallback.hpp>
#include <reagent/providers/http_provider.hpp>
#include <reagent/providers/retry.hpp>
#include <reagent/providers/wires.hpp>

namespace reagent_app {

using reagent::config_error;

model_spec model_spec::parse(std::string_view text, std::string_view where)
{
    const std::size_t colon = text.find(':');
    model_spec out;
    out.provider = text.substr(0, colon);
    if (colon != std::string_view::npos) out.model = text.substr(colon + 1);
    if (out.provider.empty() || (colon != std::string_view::npos && out.model.empty()))
        throw config_error(std::string(where) + " must be PROVIDER or PROVIDER:MODEL such as openai:gpt-4o-mini, got \"" + one_line(text, 80) + "\"");
    check_provider(out.provider, where);
    return out;
}

void check_provider(const std::string& name, std::string_view where)
{
    if (reagent::find_wire(name) == nullptr)
        throw config_error(std::string(where) + " \"" + one_line(name, 80) + "\" is not known; known are " + reagent::wire_names() +
                           " (openai is any OpenAI-compatible server, see baseUrl)");
}

reagent::provider_ptr make_provider(const model_spec& spec, const agent_config& config, const provider_means& means)
{
    check_provider(spec.provider, "provider");
    const reagent::wire_entry& entry = *reagent::find_wire(spec.provider);
    // Key, model and base URL are those of the configured provider; another one has its own.
    const bool configured = spec.provider == config.provider;
    const reagent::secret key = configured ? means.key : reagent::key_from_environment(entry);
    if (key.empty() && entry.needs_key) throw config_error(std::string(entry.key_variables[0]) + " is not set, which " + spec.provider + " needs");
    const std::string& model = spec.model.empty() && configured ? config.model : spec.model;
    reagent::json options = reagent::json::object();
    if (!key.empty()) options.set("apiKey", key.reveal());
    if (!model.empty()) options.set("model", model);
    if (configured && !config.base_url.empty()) options.set(std::string(entry.base_url_key), config.base_url);
    reagent::configured_wire wire = entry.configure(options);
    wire.call.log = means.log;
    return reagent::make_http_provider(means.http, std::move(wire.codec), std::move(wire.call));
}

reagent::provider_ptr make_model(const agent_config& config, const provider_means& means, const reagent::log_sink& retries)
{
    model_spec first;
    first.provider = config.provider;
    first.model = config.model;
    std::vector<reagent::provider_ptr> members{make_provider(first, config, means)};
    for (const std::string& text : config.fallback) {
        const model_spec spec = model_spec::parse(text, "fallback");
        members.push_back(make_provider(spec, config, means));
        // What the first model lacks is told when the run starts; the others are met in the middle of it.
        const reagent::budget_caps caps = config.caps();
        const std::string_view model = members.back()->model();
        if (caps.cost && !reagent::has_known_price(model, config.rates))
            throw config_error("fallback \"" + one_line(text, 80) + "\": no price is known for its model; give `rates`, or cap tokens instead");
    }
    reagent::provider_ptr model = members.front();
    if (members.size() > 1) {
        const auto told = [retries, members](const std::exception_ptr& failure, std::size_t, std::size_t to) {
            retries(reagent::log_level::info,
                    "falling back to " + std::string(members[to]->model()) + ": " + reagent::untrusted_text(reagent::message_of(failure)));
        };
        model = reagent::with_fallback(members, reagent::fallback_options().on_fallback(told));
    }
    if (config.retry != 0) model = reagent::with_retry(model, reagent::retry_options().attempts(config.retry + 1).log(retries));
    return model;
}

}  // namespace reagent_app

#include "model_chain.hpp"

#include "terminal.hpp"

#include <reagent/base/error.hpp>
#include <reagent/base/untrusted_text.hpp>
#include <reagent/providers/fallback.hpp>
#include <reagent/providers/openai.hpp>
#include <reagent/providers/retry.hpp>

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
    if (name != "openai")
        throw config_error(std::string(where) + " \"" + one_line(name, 80) +
                           "\" is not known; the one there is, is \"openai\" (any OpenAI-compatible server, see baseUrl)");
}

reagent::provider_ptr make_provider(const model_spec& spec, const agent_config& config, const provider_means& means)
{
    check_provider(spec.provider, "provider");
    reagent::openai_options wire(spec.model.empty() ? config.model : spec.model);
    wire.key(means.key).base_url(reagent::url::parse_or_throw(config.base_url, "baseUrl")).log(means.log);
    return reagent::openai_chat(means.http, std::move(wire));
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

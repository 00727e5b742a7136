#pragma once
#include "agent_config.hpp"

#include <reagent/base/log_sink.hpp>
#include <reagent/base/secret.hpp>
#include <reagent/model/provider.hpp>
#include <reagent/net/http_client.hpp>

#include <string>
#include <string_view>

namespace reagent_app {

/// A provider and a model, as `--fallback` names them: `openai`, or `openai:gpt-4.1-mini`. An empty model is the provider's own.
class model_spec {
public:
    /// `where` names the flag or key in the error.
    static model_spec parse(std::string_view text, std::string_view where);
    std::string provider, model;
};

/// What providers of the program share.
class provider_means {
public:
    reagent::http_client http;
    reagent::secret key;
    reagent::log_sink log;  ///< warnings
};

/// Throws `config_error` naming `where` when there is no such provider.
void check_provider(const std::string& name, std::string_view where);
/// The one place that makes a provider from its name.
reagent::provider_ptr make_provider(const model_spec& spec, const agent_config& config, const provider_means& means);
/// The model of a run: the configured one, the fallbacks behind it, and a retry around all of them. `retries` is told of each.
reagent::provider_ptr make_model(const agent_config& config, const provider_means& means, const reagent::log_sink& retries);

}  // namespace reagent_app

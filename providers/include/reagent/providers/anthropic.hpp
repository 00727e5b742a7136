#pragma once
#include <reagent/model/anthropic_codec.hpp>
#include <reagent/model/provider.hpp>
#include <reagent/net/http_client.hpp>
#include <reagent/providers/provider_options.hpp>

#include <string>

namespace reagent::inline v0 {

/// Options of a provider of Anthropic's Messages (spec/loop-and-providers.md §7), beside those that all providers share. The key is required.
class anthropic_options : public provider_options<anthropic_options, anthropic_codec_options> {
public:
    explicit anthropic_options(std::string model = "claude-haiku-4-5-20251001") { codec_.model = std::move(model); }
    /// Reads the JSON names: `apiKey`, `model`, `baseUrl`, `thinking`, `thinkingMode`, `temperature`, `maxTokens`, `exposeErrorBody`, `exposeMalformedArgs`,
    /// `timeoutMs`, `deadlineMs`, `connectTimeoutMs`, `headersTimeoutMs`, `cacheSystem`, `cacheMessages`, `cacheTtl`. Unknown keys are errors.
    /// Throws `validation_error` naming the key.
    static anthropic_options from_json(const json& j);

    /// Mark the system prompt for the prompt cache.
    REAGENT_PROVIDER_OPTION(anthropic_options, cache_system, bool, codec_.cache_system)
    /// Mark the last block of the last message: each round then reads what the one before wrote.
    REAGENT_PROVIDER_OPTION(anthropic_options, cache_messages, bool, codec_.cache_messages)
    /// How long marked parts are kept: `5m` or `1h`.
    REAGENT_PROVIDER_OPTION(anthropic_options, cache_ttl, std::string, codec_.cache_ttl)
};

/// A provider of Anthropic's Messages: `make_http_provider` with its codec. Throws `validation_error` without a key, or for one that cannot stand in a header.
provider_ptr anthropic(http_client http, anthropic_options options);

}  // namespace reagent::inline v0

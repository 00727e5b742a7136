#pragma once
#include <reagent/model/openai_codec.hpp>
#include <reagent/model/provider.hpp>
#include <reagent/net/http_client.hpp>
#include <reagent/providers/provider_options.hpp>

#include <string>

namespace reagent::inline v0 {

/// Options of an OpenAI-compatible chat provider (spec/loop-and-providers.md §5), beside those that all providers share.
class openai_options : public provider_options<openai_options, openai_codec_options> {
public:
    explicit openai_options(std::string model = "gpt-4o-mini") { codec_.model = std::move(model); }
    /// Reads the JSON names: `apiKey`, `model`, `baseUrl`, `thinking`, `thinkingMode`, `temperature`, `maxTokens`, `exposeErrorBody`, `exposeMalformedArgs`,
    /// `timeoutMs`, `deadlineMs`, `connectTimeoutMs`, `headersTimeoutMs`, `legacyMaxTokens`, `streamUsage`, `systemRole`. Unknown keys are errors.
    /// Throws `validation_error` naming the key.
    static openai_options from_json(const json& j);

    /// Send `max_tokens` instead of `max_completion_tokens`.
    REAGENT_PROVIDER_OPTION(openai_options, legacy_max_tokens, bool, codec_.legacy_max_tokens)
    /// Ask streams for their usage; off for servers that reject it.
    REAGENT_PROVIDER_OPTION(openai_options, stream_usage, bool, codec_.stream_usage)
    /// The role written for system messages.
    REAGENT_PROVIDER_OPTION(openai_options, system_role, std::string, codec_.system_role)
};

/// An OpenAI-compatible chat provider: `make_http_provider` with its codec. Throws `validation_error` for a key that cannot stand in a header.
provider_ptr openai_chat(http_client http, openai_options options);

}  // namespace reagent::inline v0

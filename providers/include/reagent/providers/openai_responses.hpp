#pragma once
#include <reagent/model/openai_responses_codec.hpp>
#include <reagent/model/provider.hpp>
#include <reagent/net/http_client.hpp>
#include <reagent/providers/provider_options.hpp>

#include <string>

namespace reagent::inline v0 {

/// Options of an OpenAI Responses provider (spec/loop-and-providers.md §6), beside those that all providers share.
class openai_responses_options : public provider_options<openai_responses_options, openai_responses_codec_options> {
public:
    explicit openai_responses_options(std::string model = "gpt-4o-mini") { codec_.model = std::move(model); }
    /// Reads the JSON names: `apiKey`, `model`, `baseUrl`, `thinking`, `thinkingMode`, `temperature`, `maxTokens`, `exposeErrorBody`, `exposeMalformedArgs`,
    /// `timeoutMs`, `deadlineMs`, `connectTimeoutMs`, `headersTimeoutMs`, `store`. Unknown keys are errors. Throws `validation_error` naming the key.
    static openai_responses_options from_json(const json& j);

    /// Let the service keep the responses. Default off.
    REAGENT_PROVIDER_OPTION(openai_responses_options, store, bool, codec_.store)
};

/// A provider that speaks OpenAI's Responses wire: `make_http_provider` with its codec. Throws `validation_error` for a key that cannot stand in a header.
provider_ptr openai_responses(http_client http, openai_responses_options options);

}  // namespace reagent::inline v0

#pragma once
#include <reagent/model/ollama_codec.hpp>
#include <reagent/model/provider.hpp>
#include <reagent/net/http_client.hpp>
#include <reagent/providers/provider_options.hpp>

#include <string>

namespace reagent::inline v0 {

/// Options of an Ollama provider (spec/loop-and-providers.md §9): those that all providers share.
class ollama_options : public provider_options<ollama_options, ollama_codec_options> {
public:
    explicit ollama_options(std::string model = "llama3.2") { codec_.model = std::move(model); }
    /// Reads the JSON names: `apiKey`, `model`, `url`, `thinking`, `thinkingMode`, `temperature`, `maxTokens`, `exposeErrorBody`, `exposeMalformedArgs`,
    /// `timeoutMs`, `deadlineMs`, `connectTimeoutMs`, `headersTimeoutMs`. Unknown keys are errors. Throws `validation_error` naming the key.
    static ollama_options from_json(const json& j);
};

/// An Ollama provider: `make_http_provider` with its codec. Throws `validation_error` for a key that cannot stand in a header.
provider_ptr ollama(http_client http, ollama_options options);

}  // namespace reagent::inline v0

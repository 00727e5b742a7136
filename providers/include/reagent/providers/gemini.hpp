#pragma once
#include <reagent/model/gemini_codec.hpp>
#include <reagent/model/provider.hpp>
#include <reagent/net/http_client.hpp>
#include <reagent/providers/provider_options.hpp>

#include <string>

namespace reagent::inline v0 {

/// Options of a Gemini provider (spec/loop-and-providers.md §8): those that all providers share.
class gemini_options : public provider_options<gemini_options, gemini_codec_options> {
public:
    explicit gemini_options(std::string model = "gemini-2.5-flash") { codec_.model = std::move(model); }
    /// Reads the JSON names: `apiKey`, `model`, `baseUrl`, `thinking`, `thinkingMode`, `temperature`, `maxTokens`, `exposeErrorBody`, `exposeMalformedArgs`,
    /// `timeoutMs`, `deadlineMs`, `connectTimeoutMs`, `headersTimeoutMs`. Unknown keys are errors. Throws `validation_error` naming the key.
    static gemini_options from_json(const json& j);
};

/// A Gemini provider: `make_http_provider` with its codec. Throws `validation_error` for a key that cannot stand in a header.
provider_ptr gemini(http_client http, gemini_options options);

}  // namespace reagent::inline v0

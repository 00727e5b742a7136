#pragma once
#include <reagent/base/json.hpp>
#include <reagent/model/codec_options.hpp>
#include <reagent/providers/http_call_options.hpp>

#include <cstdint>
#include <initializer_list>
#include <string>
#include <string_view>
#include <utility>

namespace reagent::inline v0::providers_detail {

/// Reads the JSON options of a provider: those that all share, and the vendor's own by type. Throws `validation_error` naming component and key.
class options_reader {
public:
    /// `own`: the keys that only this vendor has. All others but the shared ones are errors. `base_url`: the key of the base URL.
    options_reader(const json& j, std::string_view component, std::initializer_list<std::string_view> own, std::string_view base_url = "baseUrl");

    /// `apiKey`, `model`, the base URL, `thinking`, `thinkingMode`, `temperature`, `maxTokens`, `exposeErrorBody`, `exposeMalformedArgs`; `timeoutMs`, `deadlineMs`,
    /// `connectTimeoutMs`, `headersTimeoutMs`.
    void read_shared(codec_options& codec, http_call_options& call) const;
    /// A value that is absent or null leaves `into` as it is.
    void read(std::string_view key, bool& into) const;
    void read(std::string_view key, std::string& into) const;  ///< not empty
    [[noreturn]] void refuse(std::string_view key, std::string_view wanted) const;

private:
    const json& j_;
    std::string_view component_, base_url_;
};

}  // namespace reagent::inline v0::providers_detail

#pragma once
#include <reagent/base/secret.hpp>
#include <reagent/model/provider.hpp>
#include <reagent/net/http_client.hpp>

#include <functional>
#include <optional>
#include <string>

namespace reagent::inline v0 {

/// Options of an OpenAI-compatible chat provider (spec/loop-and-providers.md §5). Setters chain.
class openai_options {
public:
    explicit openai_options(std::string model = "gpt-4o-mini") : model_(std::move(model)) {}
    openai_options& key(secret k) & { key_ = std::move(k); return *this; }
    openai_options&& key(secret k) && { return std::move(key(std::move(k))); }
    // … base_url, legacy_max_tokens, stream_usage, system_role, temperature, max_tokens, thinking, thinking_mode, expose_error_body,
    // expose_malformed_args, idle, total, first_byte, connect, log, random: each a setter pair like `key` and a getter of the same name with `_`.

private:
    std::string model_;
    secret key_;
};

provider_ptr openai_chat(http_client http, openai_options options);

}  // namespace reagent::inline v0

#pragma once
#include <reagent/base/clock.hpp>
#include <reagent/model/generate.hpp>
#include <reagent/model/provider_error.hpp>

#include <chrono>
#include <optional>
#include <string>
#include <string_view>

namespace reagent::inline v0 {

/// Header values of a response, wherever they are kept. Look-up ignores case and answers empty when absent. A view.
class header_lookup {
public:
    using function = std::string_view (*)(const void* fields, std::string_view name);
    header_lookup() noexcept = default;
    header_lookup(const void* fields, function f) noexcept : fields_(fields), get_(f) {}
    std::string_view operator()(std::string_view name) const { return get_ == nullptr ? std::string_view() : get_(fields_, name); }

private:
    const void* fields_ = nullptr;
    function get_ = nullptr;
};

/// What an error object of a body or stream says (spec/loop-and-providers.md §4.6).
class service_error {
public:
    std::string message;  ///< the service's own text, unshortened; empty when none
    int status = 0;       ///< numeric code, status, or the one its type stands for; 0 when none
    bool quota = false;   ///< the account is exhausted: not retryable
    /// `error` may be an object or a string.
    static service_error read(const json& error);
};

/// Whether a status is worth sending again: 408, 425, 429, 500–504, 520–524, 529.
bool retryable_status(int status) noexcept;

/// `x-ratelimit-*` and `anthropic-ratelimit-*`; empty when there are none. `now` places relative resets.
std::optional<rate_limit_info> rate_limit_from(const header_lookup& headers, system_time now);
/// `retry-after-ms`, `retry-after`, RetryInfo of a body, or the reset of an exhausted limit, in this order. `now` is used when there is no Date header.
std::optional<std::chrono::milliseconds> retry_after_from(const header_lookup& headers, const json& body, system_time now);

/// The error of an answer with status ≥ 300. `component` is the class name for messages (`OpenAIProvider`); the message shows `hidden`, the call's key, as `***`.
class http_failure {
public:
    http_failure(std::string_view component, int status, const header_lookup& headers, std::string_view body, system_time now, bool expose_body,
                 std::string_view hidden = {});
    provider_error error;
    std::string service_message;  ///< what the service said, unshortened, for `temperature_fallback`
};

/// `[component] text`.
std::string prefixed(std::string_view component, std::string_view text);

}  // namespace reagent::inline v0

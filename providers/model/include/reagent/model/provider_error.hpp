#pragma once
#include <reagent/base/error.hpp>
#include <reagent/base/json.hpp>

#include <chrono>
#include <optional>
#include <string>

namespace reagent::inline v0 {

/// What a failed call left behind (`context.partial`).
class partial_output {
public:
    std::string text;
    unsigned tool_calls_started = 0;
};

/// A model service failed or answered what we cannot use (ProviderError, spec/loop-and-providers.md §4.6 and §14).
class provider_error : public error {
public:
    provider_error(errc code, std::string message, bool retryable) : error(code, std::move(message), retryable) {}
    int status = 0;                                        ///< HTTP status, or the status an error object stands for; 0 when none
    std::string bound;                                     ///< `transport`, `no-choices`, `stream-error`, … empty when none
    std::string event;                                     ///< `premature-end`, `aborted`, … empty when none
    std::optional<std::string> body;                       ///< only with `exposeErrorBody`
    std::optional<std::chrono::milliseconds> retry_after;  ///< `context.retryAfterMs`
    std::optional<partial_output> partial;
    unsigned attempts = 1;
};

/// `{"kind","status"?,"retryable","bound"?,"message","partial"?,…}` of any exception of a provider call (vectors/provider-cases.md).
json provider_error_to_json(const std::exception_ptr& failure);

}  // namespace reagent::inline v0

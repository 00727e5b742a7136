#pragma once
#include <reagent/base/error.hpp>
#include <reagent/base/json.hpp>
#include <reagent/model/generate.hpp>

#include <chrono>
#include <optional>
#include <string>
#include <vector>

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
    boost::system::error_code cause;                       ///< what the system said of a broken transport (`ECONNREFUSED`); empty when it had no part in it
    std::optional<std::string> body;                       ///< only with `exposeErrorBody`
    std::optional<std::chrono::milliseconds> retry_after;  ///< `context.retryAfterMs`
    std::optional<partial_output> partial;
    std::string request_id;                     ///< the service's id of the request, empty when it gave none
    std::optional<rate_limit_info> rate_limit;  ///< the limits an error status came with
    unsigned attempts = 1;                      ///< requests that left for the call that failed
    std::vector<attempt_record> records;        ///< what each came to, where a wrapper wrote it down
};

/// `{"kind","status"?,"retryable","bound"?,"code"?,"message","partial"?,"requestId"?,…}` of any exception of a provider call (vectors/provider-cases.md).
json provider_error_to_json(const std::exception_ptr& failure);

}  // namespace reagent::inline v0

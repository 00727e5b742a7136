/// What the wrappers need to know of a failed attempt.
#pragma once
#include <reagent/base/asio.hpp>
#include <reagent/model/attempt_log.hpp>
#include <reagent/model/event.hpp>

#include <chrono>
#include <exception>
#include <optional>

namespace reagent::inline v0::providers_detail {

enum class failure_kind : std::uint8_t {
    cancelled,
    halted,     ///< by order of a gate
    caller,     ///< what we were given is at fault, whoever is asked
    circuit,    ///< a breaker let nothing through
    transient,  ///< the same request may succeed when sent again
    final,
};

class failure_view {
public:
    explicit failure_view(const std::exception_ptr& failure);
    /// Whether it must reach the caller as it is: nobody retries, falls back or counts it.
    bool passes() const noexcept { return kind <= failure_kind::caller; }
    failure_kind kind = failure_kind::final;
    error_code code;
    int status = 0;
    std::optional<std::chrono::milliseconds> retry_after;
};

/// Writes the call's attempts into a `provider_error`, which other exceptions have no place for. Leaves the rest of it alone.
void stamp(const std::exception_ptr& failure, const attempt_log& log) noexcept;

/// Whether the reader has seen a part of the answer.
bool has_delta(const event_batch& batch) noexcept;

}  // namespace reagent::inline v0::providers_detail

/// When a failed attempt is followed by another. Without I/O, clock or dice.
#pragma once
#include "failure_view.hpp"

#include <reagent/base/clock.hpp>
#include <reagent/providers/retry.hpp>

#include <optional>

namespace reagent::inline v0::providers_detail {

class retry_schedule {
public:
    explicit retry_schedule(const retry_options& options) noexcept : options_(&options) {}
    /// Whether this failure is one to try again after. `failure` is what `seen` looked at.
    bool retryable(const failure_view& seen, const std::exception_ptr& failure) const;
    /// When attempt `made` + 1 is due; nothing when there is to be none. `unit` is the draw, from 0 to 1.
    std::optional<steady_time> next(unsigned made, const failure_view& seen, steady_time now, steady_time deadline, double unit) const noexcept;

private:
    const retry_options* options_;
};

}  // namespace reagent::inline v0::providers_detail

#include "retry_schedule.hpp"

namespace reagent::inline v0::providers_detail {

bool retry_schedule::retryable(const failure_view& seen, const std::exception_ptr& failure) const
{
    if (seen.passes()) return false;
    if (options_->when()) return options_->when()(failure);
    return seen.kind == failure_kind::transient || seen.kind == failure_kind::circuit;
}

std::optional<steady_time> retry_schedule::next(unsigned made, const failure_view& seen, steady_time now, steady_time deadline, double unit) const noexcept
{
    if (made >= options_->attempts()) return std::nullopt;
    const std::chrono::milliseconds floor = seen.retry_after.value_or(std::chrono::milliseconds(0));
    if (floor > options_->max_retry_after()) return std::nullopt;
    // On top of the floor, not instead of it: callers who were told the same second would come back in the same second.
    const std::chrono::milliseconds wait = floor + options_->spread().apply(options_->wait().after(made), unit);
    if (deadline != steady_time::max() && now + wait >= deadline) return std::nullopt;
    return now + wait;
}

}  // namespace reagent::inline v0::providers_detail

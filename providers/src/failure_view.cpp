#include "failure_view.hpp"

#include <reagent/base/error.hpp>
#include <reagent/model/provider_error.hpp>
#include <reagent/providers/fallback.hpp>

#include <boost/asio/error.hpp>

#include <algorithm>

namespace reagent::inline v0::providers_detail {

failure_view::failure_view(const std::exception_ptr& failure) : code(code_of(failure))
{
    if (is_cancellation(failure)) {
        kind = failure_kind::cancelled;
        return;
    }
    try {
        std::rethrow_exception(failure);
    } catch (const halt_error&) {
        kind = failure_kind::halted;
    } catch (const validation_error&) {
        kind = failure_kind::caller;
    } catch (const config_error&) {
        kind = failure_kind::caller;
    } catch (const provider_error& e) {
        kind = e.retryable() ? failure_kind::transient : failure_kind::final;
        status = e.status;
        retry_after = e.retry_after;
    } catch (const all_failed_error& e) {
        kind = e.retryable() ? failure_kind::transient : failure_kind::final;
        retry_after = e.retry_after();
    } catch (const error& e) {
        kind = e.code() == errc::circuit_open ? failure_kind::circuit : e.retryable() ? failure_kind::transient : failure_kind::final;
    } catch (...) {
        // A transport of somebody else, which knows no `retryable`.
        const bool again = code == asio::error::connection_reset || code == asio::error::timed_out || code == asio::error::host_not_found;
        kind = again ? failure_kind::transient : failure_kind::final;
    }
}

void stamp(const std::exception_ptr& failure, const attempt_log& log) noexcept
{
    try {
        std::rethrow_exception(failure);
    } catch (provider_error& e) {
        try {
            e.records = log.records();
            e.attempts = log.attempts();
        } catch (...) {
            // without memory it goes without
        }
    } catch (...) {}
}

bool has_delta(const event_batch& batch) noexcept
{
    return std::ranges::any_of(batch, [](const event& e) { return e.kind >= event_kind::text && e.kind <= event_kind::tool_end; });
}

}  // namespace reagent::inline v0::providers_detail

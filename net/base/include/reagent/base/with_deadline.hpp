#pragma once
#include <reagent/base/asio.hpp>
#include <reagent/base/clock.hpp>
#include <reagent/base/error.hpp>
#include <reagent/base/outcome.hpp>
#include <reagent/base/spawn.hpp>

#include <exception>
#include <string>
#include <utility>

namespace reagent::inline v0 {

namespace base_detail {

enum class deadline_end : unsigned char { finished, expired, cancelled };

/// Runs `work` under the caller's cancellation state, which must be its own, until it has ended; at `when` or on cancellation signals it.
awaitable<deadline_end> drive_until(awaitable<void> work, clock_ptr clock, steady_time when);

template <class T>
awaitable<T> with_deadline_body(clock_ptr clock, steady_time when, awaitable<T> operation, std::string what)
{
    branch_outcome<T> outcome;
    const deadline_end end = co_await drive_until(record_outcome<T>(std::move(operation), &outcome), std::move(clock), when);
    if (!outcome.has_value()) {
        if (end == deadline_end::cancelled) throw boost::system::system_error(asio::error::operation_aborted);
        if (end == deadline_end::expired) throw timeout_error(errc::deadline, what + " passed its deadline");
        std::rethrow_exception(outcome.failure());
    }
    if constexpr (!std::is_void_v<T>) co_return std::move(outcome.value());
}

}  // namespace base_detail

/// Runs `operation` and signals it when the clock reaches `when`; returns only after it has ended. For coarse waits: the limits of provider
/// calls live in the client's queue of deadlines. A value that the operation returns counts, however late it comes.
/// Errors: `timeout_error(errc::deadline)` naming `what`, `operation_aborted` when cancelled (cancellation wins over the deadline), else what
/// the operation threw. An operation whose deadline has passed is not started.
/// Cancellation: terminal; `T` default-constructible.
template <class T>
awaitable<T> with_deadline(clock_ptr clock, steady_time when, awaitable<T> operation, std::string what = "the operation")
{
    return isolated(base_detail::with_deadline_body<T>(std::move(clock), when, std::move(operation), std::move(what)));
}

}  // namespace reagent::inline v0

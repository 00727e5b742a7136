#include "gate_impl.hpp"

#include <reagent/base/error.hpp>
#include <reagent/base/with_deadline.hpp>

#include <boost/asio/error.hpp>
#include <boost/asio/this_coro.hpp>

namespace reagent::inline v0::governance_detail {
namespace {

/// Turns whatever the channel does into a value; only a cancellation passes through.
awaitable<channel_reply> call_channel(human_channel channel, human_event event, clock_ptr clock, std::optional<steady_time> until)
{
    channel_reply reply;
    std::exception_ptr failure;
    try {
        // `event` stays in this frame: the channel may have taken it by reference.
        human_answer answer = co_await channel(event);
        reply.answer = std::move(answer);
    } catch (...) {
        failure = std::current_exception();
    }
    if (failure) {
        const asio::cancellation_state state = co_await asio::this_coro::cancellation_state;
        if (is_cancellation(failure) && state.cancelled() != asio::cancellation_type::none) std::rethrow_exception(failure);
        reply.end = channel_reply::how::threw;
        reply.what = message_of(failure);
    }
    if (until && clock->now() >= *until) reply.end = channel_reply::how::timed_out;  // too late is no answer
    co_return reply;
}

awaitable<channel_reply> call_until(human_channel channel, human_event event, clock_ptr clock, std::chrono::nanoseconds timeout)
{
    const steady_time until = clock->now() + timeout;
    channel_reply reply;
    try {
        reply = co_await with_deadline(clock, until, call_channel(std::move(channel), std::move(event), clock, until), "humanChannel");
    } catch (const timeout_error&) {
        reply.end = channel_reply::how::timed_out;
    }
    co_return reply;
}

}  // namespace

awaitable<channel_reply> ask_channel(human_channel channel, human_event event, clock_ptr clock, std::chrono::nanoseconds timeout)
{
    channel_reply reply;
    if (timeout > std::chrono::nanoseconds::zero()) reply = co_await call_until(std::move(channel), std::move(event), clock, timeout);
    else reply = co_await call_channel(std::move(channel), std::move(event), clock, std::nullopt);
    // Whoever cancelled wants no verdict, not even one that came in the same turn.
    const asio::cancellation_state state = co_await asio::this_coro::cancellation_state;
    if (state.cancelled() != asio::cancellation_type::none) throw boost::system::system_error(asio::error::operation_aborted);
    co_return reply;
}

}  // namespace reagent::inline v0::governance_detail

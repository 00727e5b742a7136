#include <reagent/base/with_deadline.hpp>

#include <boost/asio/bind_cancellation_slot.hpp>
#include <boost/asio/cancellation_signal.hpp>
#include <boost/asio/redirect_error.hpp>
#include <boost/asio/steady_timer.hpp>

#include <memory>

namespace reagent::inline v0::base_detail {

awaitable<deadline_end> drive_until(awaitable<void> work, clock_ptr clock, steady_time when)
{
    const any_io_executor ex = co_await asio::this_coro::executor;
    co_await asio::this_coro::reset_cancellation_state(asio::enable_total_cancellation());
    co_await asio::this_coro::throw_if_cancelled(false);
    if (clock->now() >= when) co_return deadline_end::expired;
    asio::steady_timer ended_cv(ex, steady_time::max());
    // Shared with the running work: a context destroyed early may free this frame first.
    const auto signal = std::make_shared<asio::cancellation_signal>();
    bool ended = false;
    deadline_end end = deadline_end::finished;
    const std::unique_ptr<clock_timer> deadline_timer = clock->make_timer(ex, [&ended, &end, signal] {
        if (ended || end != deadline_end::finished) return;
        end = deadline_end::expired;
        signal->emit(asio::cancellation_type::terminal);
    });
    deadline_timer->arm(when);
    asio::co_spawn(ex, std::move(work), asio::bind_cancellation_slot(signal->slot(), [&ended, &ended_cv, signal](const std::exception_ptr&) {
                       ended = true;
                       ended_cv.cancel();
                   }));
    while (!ended) {
        const asio::cancellation_state state = co_await asio::this_coro::cancellation_state;
        if (end != deadline_end::cancelled && state.cancelled() != asio::cancellation_type::none) {
            end = deadline_end::cancelled;
            signal->emit(asio::cancellation_type::terminal);
        }
        error_code ignored;
        co_await ended_cv.async_wait(asio::redirect_error(asio::use_awaitable, ignored));
    }
    co_return end;
}

}  // namespace reagent::inline v0::base_detail

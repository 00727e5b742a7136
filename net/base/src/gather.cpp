#include <reagent/base/gather.hpp>

#include <boost/asio/bind_cancellation_slot.hpp>
#include <boost/asio/cancellation_signal.hpp>
#include <boost/asio/redirect_error.hpp>
#include <boost/asio/steady_timer.hpp>

#include <exception>
#include <memory>

namespace reagent::inline v0::base_detail {
namespace {

// Signals are shared with the running branches: a context destroyed early may free this frame before theirs.
using signal_ptr = std::shared_ptr<asio::cancellation_signal>;

class branch_group {
public:
    branch_group(any_io_executor ex, std::vector<awaitable<void>> branches)
        : ended_cv(ex, steady_timer_never()), ex_(std::move(ex)), branches_(std::move(branches)), signals_(branches_.size())
    {}

    bool waiting() const noexcept { return next_ < branches_.size(); }
    std::size_t live() const noexcept { return live_; }

    void start_next()
    {
        const std::size_t i = next_++;
        ++live_;
        signals_[i] = std::make_shared<asio::cancellation_signal>();
        asio::co_spawn(ex_, std::move(branches_[i]),
                       asio::bind_cancellation_slot(signals_[i]->slot(), [this, i, keep = signals_[i]](const std::exception_ptr&) {
                           ended_.push_back(i);
                           ended_cv.cancel();
                       }));
    }

    // The next branch that has ended and was not reported yet.
    bool take_ended(std::size_t& i) noexcept
    {
        if (reported_ == ended_.size()) return false;
        i = ended_[reported_++];
        --live_;
        signals_[i] = nullptr;
        return true;
    }

    void cancel()
    {
        next_ = branches_.size();
        for (std::size_t i = 0; i < signals_.size(); ++i) {
            const signal_ptr signal = signals_[i];
            if (signal) signal->emit(asio::cancellation_type::terminal);
        }
    }

    asio::steady_timer ended_cv;  // cancelled whenever a branch has ended

private:
    static std::chrono::steady_clock::time_point steady_timer_never() noexcept { return std::chrono::steady_clock::time_point::max(); }

    any_io_executor ex_;
    std::vector<awaitable<void>> branches_;
    std::vector<signal_ptr> signals_;
    std::vector<std::size_t> ended_;
    std::size_t reported_ = 0, next_ = 0, live_ = 0;
};

}  // namespace

awaitable<bool> drive_branches(std::vector<awaitable<void>> branches, std::size_t limit, std::function<bool(std::size_t)> stop)
{
    const any_io_executor ex = co_await asio::this_coro::executor;
    co_await asio::this_coro::reset_cancellation_state(asio::enable_total_cancellation());
    co_await asio::this_coro::throw_if_cancelled(false);
    if (limit == 0) limit = branches.size();
    branch_group group(ex, std::move(branches));
    std::exception_ptr broken;  // what the predicate threw; it leaves after the join
    bool cancelled = false, stopping = false;
    for (;;) {
        const asio::cancellation_state state = co_await asio::this_coro::cancellation_state;
        if (!cancelled && state.cancelled() != asio::cancellation_type::none) {
            cancelled = true;
            group.cancel();
        }
        for (std::size_t i = 0; group.take_ended(i);) {
            if (stopping || cancelled) continue;
            try {
                stopping = stop(i);
            } catch (...) {
                broken = std::current_exception();
                stopping = true;
            }
            if (stopping) group.cancel();
        }
        if (group.waiting() && group.live() < limit) {
            group.start_next();
            continue;  // a branch may have run its first step, and cancelled us, inside
        }
        if (group.live() == 0) break;
        error_code ignored;
        co_await group.ended_cv.async_wait(asio::redirect_error(asio::use_awaitable, ignored));
    }
    if (broken) std::rethrow_exception(broken);
    co_return cancelled;
}

}  // namespace reagent::inline v0::base_detail

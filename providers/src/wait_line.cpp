#include "wait_line.hpp"

#include <boost/asio/post.hpp>
#include <boost/asio/redirect_error.hpp>
#include <boost/asio/steady_timer.hpp>

namespace reagent::inline v0::providers_detail {

// The suspended coroutine rests in a timer of its context, which frees it when the context goes.
struct line_place::bell {
    explicit bell(const any_io_executor& ex) : rung_cv(ex, steady_time::max()) {}
    void ring()
    {
        rung = true;
        rung_cv.cancel();
    }
    asio::steady_timer rung_cv;
    bool rung = false;
};

void wait_line::wake_first()
{
    if (!places_.empty()) places_.front()->wake();
}

void wait_line::wake_all()
{
    for (line_place* p : places_) p->wake();
}

line_place::line_place(const any_io_executor& ex, std::shared_ptr<wait_line> line)
    : context_watcher(ex), ex_(ex), line_(std::move(line)), bell_(std::make_shared<bell>(ex))
{
    const std::lock_guard lock(line_->mutex);
    at_ = line_->places_.insert(line_->places_.end(), this);
}

line_place::~line_place()
{
    leave();
}

bool line_place::first() const noexcept
{
    return stands_ && line_->places_.front() == this;
}

void line_place::leave() noexcept
{
    const std::lock_guard lock(line_->mutex);
    if (!stands_) return;
    stands_ = false;
    const bool led = line_->places_.front() == this;
    line_->places_.erase(at_);
    if (led) line_->wake_first();
}

void line_place::wake()
{
    asio::post(ex_, [b = bell_] { b->ring(); });
}

awaitable<void> line_place::wait(clock_ptr clock, steady_time until)
{
    const std::shared_ptr<bell> b = bell_;
    std::unique_ptr<clock_timer> turn_timer;
    if (until != steady_time::max()) {
        turn_timer = clock->make_timer(ex_, [b] { b->ring(); });
        turn_timer->arm(until);
    }
    if (!b->rung) {
        error_code ec;
        co_await b->rung_cv.async_wait(asio::redirect_error(asio::use_awaitable, ec));
    }
    if (!b->rung) throw boost::system::system_error(asio::error::operation_aborted);
    b->rung = false;
}

}  // namespace reagent::inline v0::providers_detail

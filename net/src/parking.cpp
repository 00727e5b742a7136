#include "parking.hpp"

#include <boost/asio/associated_cancellation_slot.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/use_awaitable.hpp>

namespace reagent::inline v0::net_detail {

parking::~parking()
{
    if (waiter_) {
        auto slot = asio::get_associated_cancellation_slot(*waiter_);
        if (slot.is_connected()) slot.clear();
    }
}

void parking::start(asio::any_completion_handler<void()> handler)
{
    waiter_.emplace(std::move(handler));
    if (woken_) {
        woken_ = false;
        return wake();
    }
    auto slot = asio::get_associated_cancellation_slot(*waiter_);
    if (slot.is_connected())
        slot.assign([this](asio::cancellation_type type) {
            if ((type & asio::cancellation_type::terminal) == asio::cancellation_type::none) return;
            if (on_cancel_) on_cancel_();
            else wake();
        });
}

void parking::wake()
{
    if (woken_) return;
    woken_ = true;
    if (!waiter_) return;
    auto slot = asio::get_associated_cancellation_slot(*waiter_);
    asio::any_completion_handler<void()> handler = std::move(*waiter_);
    waiter_.reset();
    asio::post(ex_, std::move(handler));
    // Last, since this may be running inside the handler it destroys.
    if (slot.is_connected()) slot.clear();
}

awaitable<void> parking::wait(std::function<void()> on_cancel)
{
    on_cancel_ = std::move(on_cancel);
    return asio::async_initiate<const asio::use_awaitable_t<>&, void()>(
        [this](auto handler) { start(asio::any_completion_handler<void()>(std::move(handler))); }, asio::use_awaitable);
}

}  // namespace reagent::inline v0::net_detail

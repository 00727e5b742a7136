#include "waiter.hpp"

#include <boost/asio/associated_cancellation_slot.hpp>
#include <boost/asio/associated_executor.hpp>
#include <boost/asio/dispatch.hpp>
#include <boost/asio/error.hpp>
#include <boost/asio/post.hpp>

#include <utility>

namespace reagent::inline v0::agent_detail {

class waiter::wake_up {
public:
    wake_up(std::weak_ptr<waiter> owner, any_io_executor ex, handler h, error_code ec) : owner_(std::move(owner)), ex_(std::move(ex)), h_(std::move(h)), ec_(ec)
    {}
    void operator()()
    {
        const std::shared_ptr<waiter> owner = owner_.lock();
        if (owner && owner->put_back(h_)) return;
        // Inline when the waiting coroutine lives on the executor we were posted to, as it nearly always does.
        const auto where = asio::get_associated_executor(h_, ex_);
        asio::dispatch(where, last_step(std::move(h_), ec_));
    }

private:
    class last_step {
    public:
        last_step(handler h, error_code ec) : h_(std::move(h)), ec_(ec) {}
        void operator()() { std::move(h_)(ec_); }

    private:
        handler h_;
        error_code ec_;
    };
    std::weak_ptr<waiter> owner_;
    any_io_executor ex_;
    handler h_;
    error_code ec_;
};

template <class Handler>
void waiter::start(Handler h, bool forwarding)
{
    // First: to erase a handler's type puts Asio's own cancellation state into its slot, and takes out what was there.
    handler_.emplace(std::move(h));
    auto slot = asio::get_associated_cancellation_slot(*handler_);
    if (slot.is_connected()) {
        // The slot is the waiting coroutine's and may outlive this object.
        slot.assign([weak = weak_from_this(), forwarding](asio::cancellation_type type) {
            if ((type & asio::cancellation_type::terminal) == asio::cancellation_type::none) return;
            const std::shared_ptr<waiter> self = weak.lock();
            if (!self) return;
            if (forwarding) self->forward_();
            else self->complete(asio::error::operation_aborted);
        });
    }
}

awaitable<void> waiter::wait()
{
    return asio::async_initiate<const asio::use_awaitable_t<>&, void(error_code)>([](auto h, waiter* self) { self->start(std::move(h), false); },
                                                                                  asio::use_awaitable, this);
}

awaitable<void> waiter::wait_forwarding()
{
    return asio::async_initiate<const asio::use_awaitable_t<>&, void(error_code)>([](auto h, waiter* self) { self->start(std::move(h), true); },
                                                                                  asio::use_awaitable, this);
}

void waiter::complete(error_code ec)
{
    if (!handler_) return;
    handler h(std::move(*handler_));
    handler_.reset();
    asio::post(ex_, wake_up(weak_from_this(), ex_, std::move(h), ec));
}

bool waiter::put_back(handler& h)
{
    if (handler_ || !hold_ || !hold_()) return false;
    handler_.emplace(std::move(h));
    return true;
}

void waiter::context_ends() noexcept
{
    const std::shared_ptr<waiter> self = weak_from_this().lock();  // the coroutine may hold the last other one
    drop();
}

void waiter::drop() noexcept
{
    if (!handler_) return;
    handler h(std::move(*handler_));
    handler_.reset();
}

}  // namespace reagent::inline v0::agent_detail

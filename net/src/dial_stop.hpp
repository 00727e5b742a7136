#pragma once
#include "parking.hpp"
#include "transport.hpp"

#include <boost/asio/cancellation_signal.hpp>
#include <boost/asio/error.hpp>

namespace reagent::inline v0::net_detail {

/// Ends a dial from outside, for its limit: whatever it waits for is woken, and it fails with `operation_aborted`. Lives in its owner, who looks at
/// its own state first.
class dial_stop {
public:
    dial_stop() = default;
    dial_stop(const dial_stop&) = delete;
    dial_stop& operator=(const dial_stop&) = delete;
    void stop() noexcept
    {
        stopped_ = true;
        if (bell_) bell_->wake();
        if (wire_) wire_->cancel();
        if (look_up_) look_up_->emit(asio::cancellation_type::terminal);
    }
    /// After each wait: throws when the caller was cancelled or the dial is to end.
    void check(asio::cancellation_type cancelled) const
    {
        if (stopped_ || cancelled != asio::cancellation_type::none) throw boost::system::system_error(asio::error::operation_aborted, "co_await");
    }

    bool in_handshake = false;  ///< for the message of the limit

private:
    friend class dial_wait;
    bool stopped_ = false;
    parking* bell_ = nullptr;
    transport* wire_ = nullptr;
    asio::cancellation_signal* look_up_ = nullptr;
};

/// Says what the dial waits for, for as long as this lives.
class dial_wait {
public:
    dial_wait(dial_stop& s, parking& p) : stop_(s) { s.bell_ = &p; }
    dial_wait(dial_stop& s, transport& t) : stop_(s) { s.wire_ = &t; }
    dial_wait(dial_stop& s, asio::cancellation_signal& c) : stop_(s) { s.look_up_ = &c; }
    dial_wait(const dial_wait&) = delete;
    dial_wait& operator=(const dial_wait&) = delete;
    ~dial_wait()
    {
        stop_.bell_ = nullptr;
        stop_.wire_ = nullptr;
        stop_.look_up_ = nullptr;
    }

private:
    dial_stop& stop_;
};

}  // namespace reagent::inline v0::net_detail

#include "client_impl.hpp"

#include <boost/asio/this_coro.hpp>

#include <algorithm>
#include <utility>

namespace reagent::inline v0 {

using net_detail::connection;
using net_detail::parking;
using net_detail::transport;
using net_detail::waiting_mark;

bool http_exchange::impl::take_idle()
{
    net_detail::pooled_ptr idle = client->pool.take_idle(*origin, started);
    if (!idle) return false;
    link.reset(static_cast<connection*>(idle.release()));
    has_slot = reused = true;
    ++client->counts.reused;
    return true;
}

void http_exchange::impl::granted(net_detail::pooled_ptr c) noexcept
{
    has_slot = true;
    link.reset(static_cast<connection*>(c.release()));
    if (parked) parked->wake();
}

void http_exchange::impl::stop_waiting() noexcept
{
    if (parked) parked->wake();
    else if (dialling) dialling->stop();
    else if (link) link->wire->cancel();
}

void http_exchange::impl::release(bool reusable) noexcept
{
    client->deadlines.unlink(*this);
    if (!has_slot) return;
    has_slot = false;
    if (!reusable) link.reset();
    client->pool.give_back(*std::exchange(origin, nullptr), std::move(link), moved);
}

// A slot, and a connection in it.
awaitable<void> http_exchange::impl::obtain()
{
    if (!client->pool.reserve(*origin)) {
        ++client->counts.pool_waits;
        enter(phase_kind::pool, started);
        parking turn(client->executor);
        client->pool.enqueue(*origin, *this);
        {
            const waiting_mark mark(*this, turn);
            co_await turn.wait();
        }
        const duration waited = client->time->now() - started;
        client->counts.pool_wait_total += waited;
        client->counts.pool_wait_longest = std::max(client->counts.pool_wait_longest, std::chrono::nanoseconds(waited));
        const auto state = co_await asio::this_coro::cancellation_state;
        after_wait(state.cancelled());
        if (link && !link->stale()) {
            reused = true;
            ++client->counts.reused;
            co_return;
        }
        link.reset();
    }
    has_slot = true;
    co_await dial();
}

awaitable<void> http_exchange::impl::dial()
{
    const steady_time begun = client->time->now();
    enter(phase_kind::connect, begun);
    net_detail::dial_stop stop;
    const net_detail::dial_target target(request.target, client->route_of(*origin), label());
    std::unique_ptr<transport> wire;
    std::exception_ptr trouble;
    {
        const waiting_mark mark(*this, stop);
        try {
            wire = co_await client->dials.dial(target, stop);
        } catch (...) {
            trouble = std::current_exception();
        }
    }
    const auto state = co_await asio::this_coro::cancellation_state;
    after_wait(state.cancelled(), stop.in_handshake ? "; connected, but the TLS handshake has not ended: the peer may not speak TLS" : "");
    if (trouble) std::rethrow_exception(trouble);
    const steady_time now = client->time->now();
    link = std::make_unique<connection>(std::move(wire), now);
    connect_time = now - begun;
    reused = false;
    ++client->counts.dialed;
}

}  // namespace reagent::inline v0

#include "client_impl.hpp"
#include "socket_link.hpp"
#include "tls.hpp"

#include <boost/asio/associated_cancellation_slot.hpp>
#include <boost/asio/bind_cancellation_slot.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/error.hpp>
#include <boost/asio/this_coro.hpp>

#include <utility>

namespace reagent::inline v0 {

using net_detail::connection;
using net_detail::direction;
using net_detail::io_result;
using net_detail::io_status;
using net_detail::parking;
using net_detail::socket_link;
using net_detail::transport;
using net_detail::waiting_mark;

namespace {

using addresses = std::vector<ip_address>;

// Runs `work` until its end; both the caller's cancellation and `stop` cancel it.
awaitable<addresses> stoppable(any_io_executor ex, awaitable<addresses> work, asio::cancellation_signal& stop)
{
    return asio::async_initiate<const asio::use_awaitable_t<>&, void(std::exception_ptr, addresses)>(
        [ex, &stop](auto handler, awaitable<addresses> w) {
            auto slot = asio::get_associated_cancellation_slot(handler);
            if (slot.is_connected()) slot.assign([&stop](asio::cancellation_type type) { stop.emit(type); });
            asio::co_spawn(ex, std::move(w), asio::bind_cancellation_slot(stop.slot(), std::move(handler)));
        },
        asio::use_awaitable, std::move(work));
}

}  // namespace

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
    else if (looking_up) looking_up->emit(asio::cancellation_type::terminal);
    else if (dialling) dialling->cancel();
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

// The resolver runs as a coroutine of its own, so that the connect limit can end it without touching the caller's cancellation.
awaitable<std::vector<ip_address>> http_exchange::impl::look_up()
{
    asio::cancellation_signal stop;
    std::vector<ip_address> found;
    std::exception_ptr trouble;
    {
        const waiting_mark mark(*this, stop);
        try {
            found = co_await stoppable(client->executor, client->names->resolve(request.target.host()), stop);
        } catch (...) {
            trouble = std::current_exception();
        }
    }
    const auto state = co_await asio::this_coro::cancellation_state;
    after_wait(state.cancelled());
    if (trouble) std::rethrow_exception(trouble);
    co_return found;
}

awaitable<void> http_exchange::impl::dial()
{
    const steady_time begun = client->time->now();
    enter(phase_kind::connect, begun);
    const url& to = request.target;
    const bool literal = to.kind() != url::host_kind::name;
    addresses candidates;
    if (literal) {
        if (const auto address = ip_address::parse(to.host())) candidates.push_back(*address);
    } else {
        candidates = co_await look_up();
    }
    // One after the other in the resolver's order; racing the families (RFC 8305) would replace this loop.
    std::unique_ptr<socket_link> connected;
    error_code last = asio::error::host_not_found;
    for (const ip_address& address : candidates) {
        auto attempt = std::make_unique<socket_link>(client->executor);
        last = attempt->begin_connect(address, to.port());
        if (last == asio::error::in_progress) {
            {
                const waiting_mark mark(*this, *attempt);
                error_code ignored;
                co_await attempt->ready(direction::write, ignored);
            }
            const auto state = co_await asio::this_coro::cancellation_state;
            after_wait(state.cancelled());
            last = attempt->connect_result();
        }
        if (!last) {
            connected = std::move(attempt);
            break;
        }
    }
    if (!connected) throw transport_error(errc::connect_failed, label() + ": cannot connect: " + last.message(), true, last);

    std::unique_ptr<transport> wire =
        to.tls() ? client->tls().wrap(std::move(connected), to.host(), literal) : net_detail::make_plain_transport(std::move(connected));
    link = std::make_unique<connection>(std::move(wire), begun);
    for (;;) {
        const io_result step = link->wire->handshake();
        if (step.status == io_status::ok) break;
        if (step.status != io_status::would_block) {
            const std::string why = link->wire->failure_text();
            throw transport_error(errc::tls_failed, label() + ": TLS: " + (why.empty() ? step.error.message() : why), step.error.failed(), step.error);
        }
        {
            const waiting_mark mark(*this);
            error_code ignored;
            co_await link->wire->ready(step.wanted, ignored);
        }
        const auto state = co_await asio::this_coro::cancellation_state;
        after_wait(state.cancelled());
    }
    const steady_time now = client->time->now();
    link->born = now;
    connect_time = now - begun;
    reused = false;
    ++client->counts.dialed;
}

}  // namespace reagent::inline v0

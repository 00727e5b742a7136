#include <reagent/net/http_server.hpp>

#include "later.hpp"
#include "parking.hpp"
#include "server_state.hpp"

#include <boost/asio/bind_cancellation_slot.hpp>
#include <boost/asio/cancellation_signal.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/error.hpp>
#include <boost/asio/this_coro.hpp>

#include <algorithm>

namespace reagent::inline v0 {
namespace {

using net_detail::handler_task;
using net_detail::parking;
using net_detail::server_connection;
using net_detail::server_state;

/// A coroutine that answers. It has a signal of its own, as the end of its client concerns it alone.
struct spawned_handler final : handler_task {
    void cancel() override { signal.emit(asio::cancellation_type::terminal); }
    asio::cancellation_signal signal;
};

void spawn_handler(const std::shared_ptr<server_state>& state, const std::shared_ptr<server_connection>& connection,
                   const std::shared_ptr<http_server::awaitable_handler>& f, server_request&& request, http_responder&& responder)
{
    const auto task = std::make_shared<spawned_handler>();
    state->tasks.push_back(task);
    connection->set_task(task);
    awaitable<void> work = (*f)(std::move(request), std::move(responder));
    // `f` is kept: the coroutine may be a lambda whose captures live in it.
    auto ended = [state, task, f](const std::exception_ptr& failure) {
        state->tasks.remove(task);
        if (state->tasks.empty()) state->wake_waiters();
        if (failure && !is_cancellation(failure)) state->log(log_level::error, "[http_server] a handler failed: " + message_of(failure));
    };
    asio::co_spawn(state->ex, std::move(work), asio::bind_cancellation_slot(task->signal.slot(), std::move(ended)));
}

// A place among those who wait for the server to come to rest.
class rest_place {
public:
    explicit rest_place(std::shared_ptr<server_state> s) : woken(s->ex), state_(std::move(s)) { state_->waiters.push_back(&woken); }
    rest_place(const rest_place&) = delete;
    rest_place& operator=(const rest_place&) = delete;
    ~rest_place() { state_->waiters.remove(&woken); }
    parking woken;

private:
    std::shared_ptr<server_state> state_;
};

class drain_limit final : public deadline_entry {
public:
    explicit drain_limit(std::shared_ptr<server_state> s) : state_(std::move(s)) {}

private:
    steady_time on_deadline(steady_time) override
    {
        state_->stop();
        return steady_time::max();
    }
    std::shared_ptr<server_state> state_;
};

void throw_if(asio::cancellation_type cancelled)
{
    if (cancelled != asio::cancellation_type::none) throw boost::system::system_error(asio::error::operation_aborted);
}

awaitable<bool> drained(std::shared_ptr<server_state> state, std::chrono::nanoseconds limit)
{
    state->begin_drain();
    drain_limit end(state);
    if (!state->live.empty()) state->deadlines.link(end, net_detail::later(state->clock->now(), limit));
    while (!state->live.empty()) {
        rest_place here(state);
        co_await here.woken.wait();
        const asio::cancellation_state cancelled = co_await asio::this_coro::cancellation_state;
        throw_if(cancelled.cancelled());
    }
    co_return !state->stopped;
}

awaitable<void> rested(std::shared_ptr<server_state> state)
{
    state->stop();
    while (!state->tasks.empty()) {
        rest_place here(state);
        co_await here.woken.wait();
        const asio::cancellation_state cancelled = co_await asio::this_coro::cancellation_state;
        throw_if(cancelled.cancelled());
    }
}

// Where one coroutine waits for room in its stream.
class room_place {
public:
    room_place(std::shared_ptr<server_connection> c, any_io_executor ex) : woken(std::move(ex)), connection_(std::move(c))
    {
        connection_->set_room_waiter(&woken);
    }
    room_place(const room_place&) = delete;
    room_place& operator=(const room_place&) = delete;
    ~room_place() { connection_->set_room_waiter(nullptr); }
    parking woken;

private:
    std::shared_ptr<server_connection> connection_;
};

awaitable<void> room_of(std::shared_ptr<server_connection> connection)
{
    const any_io_executor ex = co_await asio::this_coro::executor;
    while (connection && !connection->closed() && !connection->has_room()) {
        room_place here(connection, ex);
        co_await here.woken.wait();
        const asio::cancellation_state cancelled = co_await asio::this_coro::cancellation_state;
        throw_if(cancelled.cancelled());
    }
    if (!connection || connection->closed()) throw error(errc::closed, "[http_server] the client has gone");
}

}  // namespace

// ---- server_request

std::string_view server_request::query() const noexcept
{
    const std::size_t mark = target.find('?');
    return mark == std::string::npos ? std::string_view() : std::string_view(target).substr(mark + 1);
}

std::string_view server_request::parameter(std::string_view name) const noexcept
{
    for (const auto& [n, v] : parameters)
        if (n == name) return v;
    return {};
}

// ---- raw_wire

raw_wire& raw_wire::operator=(raw_wire&& other) noexcept
{
    const auto old = std::exchange(connection_, std::move(other.connection_));
    if (old) old->raw_reset();
    return *this;
}

raw_wire::~raw_wire()
{
    if (connection_) connection_->raw_reset();
}

raw_wire::status raw_wire::try_write(std::string_view bytes, std::size_t& written)
{
    written = 0;
    return connection_ ? connection_->raw_write(bytes, written) : status::gone;
}

void raw_wire::when_writable(std::function<void()> f)
{
    if (connection_) connection_->raw_when_writable(std::move(f));
}

void raw_wire::on_peer_end(std::function<void(peer_end)> f)
{
    if (connection_) connection_->on_gone(std::move(f));
}

int raw_wire::native_handle() const noexcept
{
    return connection_ ? connection_->native_handle() : -1;
}

void raw_wire::done()
{
    if (const auto c = std::move(connection_)) c->raw_done(true);
}

void raw_wire::close()
{
    if (const auto c = std::move(connection_)) c->raw_done(false);
}

void raw_wire::reset()
{
    if (const auto c = std::move(connection_)) c->raw_reset();
}

// ---- http_responder

http_responder& http_responder::operator=(http_responder&& other) noexcept
{
    const auto old = std::exchange(connection_, std::move(other.connection_));
    if (old) old->drop();
    return *this;
}

http_responder::~http_responder()
{
    drop();
}

void http_responder::drop() noexcept
{
    if (const auto c = std::move(connection_)) c->drop();
}

void http_responder::send(unsigned status, const http_fields& fields, std::string body)
{
    if (!connection_) return;
    connection_->send(status, {}, &fields, std::move(body));
    connection_.reset();
}

void http_responder::send(unsigned status, std::string_view content_type, std::string body)
{
    if (!connection_) return;
    connection_->send(status, content_type, nullptr, std::move(body));
    connection_.reset();
}

void http_responder::begin(unsigned status, const http_fields& fields)
{
    if (connection_) connection_->begin(status, {}, &fields);
}

void http_responder::begin(unsigned status, std::string_view content_type)
{
    if (connection_) connection_->begin(status, content_type, nullptr);
}

bool http_responder::write(std::string_view bytes)
{
    return connection_ && connection_->write(bytes);
}
bool http_responder::has_room() const noexcept
{
    return connection_ && connection_->has_room();
}

void http_responder::end()
{
    if (const auto c = std::move(connection_)) c->end();
}

void http_responder::on_room(std::function<void()> f)
{
    if (connection_) connection_->on_room(std::move(f));
}

void http_responder::on_gone(std::function<void(peer_end)> f)
{
    if (connection_) connection_->on_gone(std::move(f));
}

bool http_responder::gone() const noexcept
{
    return !connection_ || connection_->closed();
}

awaitable<void> http_responder::write_some(std::string bytes)
{
    const std::shared_ptr<server_connection> c = connection_;
    if (c) c->write(bytes);
    co_await room_of(c);
}

awaitable<void> http_responder::room()
{
    return room_of(connection_);
}

raw_wire http_responder::take_raw()
{
    if (connection_) connection_->take_raw();
    return raw_wire(std::move(connection_));
}

// ---- http_server

http_server::http_server(any_io_executor ex, http_server_options options) : state_(std::make_shared<server_state>(std::move(ex), std::move(options)))
{
    state_->listen();
}

http_server::~http_server()
{
    state_->stop();
}

void http_server::route(std::string method, std::string pattern, handler f)
{
    state_->routes.add(std::move(method), std::move(pattern), std::move(f));
}

void http_server::route_awaitable(std::string method, std::string pattern, awaitable_handler f)
{
    auto shared = f ? std::make_shared<awaitable_handler>(std::move(f)) : nullptr;
    if (!shared) throw config_error("[http_server] the route " + pattern.substr(0, 100) + " has no handler");
    // The routes live in the state, so a strong reference would keep both for ever.
    route(std::move(method), std::move(pattern), [weak = std::weak_ptr(state_), shared](server_request&& request, http_responder responder) {
        const auto state = weak.lock();
        const auto connection = responder.connection_;
        if (state && connection) spawn_handler(state, connection, shared, std::move(request), std::move(responder));
    });
}

void http_server::fallback(handler f)
{
    state_->routes.fallback = std::move(f);
}
std::uint16_t http_server::port() const noexcept
{
    return state_->port;
}

std::string http_server::origin() const
{
    if (!state_->options.unix_socket.empty()) return {};
    const std::string& a = state_->options.address;
    return (state_->tls ? "https://" : "http://") + (a.find(':') == std::string::npos ? a : '[' + a + ']') + ':' + std::to_string(state_->port);
}

http_server_stats http_server::stats() const noexcept
{
    http_server_stats s = state_->stats;
    if (state_->tls) s.resumed = state_->tls->resumed();
    return s;
}
void http_server::stop()
{
    state_->stop();
}
awaitable<bool> http_server::drain(std::chrono::nanoseconds limit)
{
    return drained(state_, limit);
}
awaitable<void> http_server::close()
{
    return rested(state_);
}

}  // namespace reagent::inline v0

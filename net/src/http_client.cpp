#include "client_impl.hpp"
#include "request_writer.hpp"

#include <boost/asio/this_coro.hpp>

#include <utility>

namespace reagent::inline v0 {

using net_detail::waiting_mark;

namespace {

net_detail::pool_limits pool_limits_of(const http_client_options& o)
{
    net_detail::pool_limits l;
    l.max_open = o.max_open_per_origin;
    l.max_idle = o.max_idle_per_origin;
    l.max_idle_age = o.max_idle_age;
    l.max_total_age = o.max_total_age;
    return l;
}

}  // namespace

http_client::impl::impl(any_io_executor ex, http_client_options o)
    : executor(std::move(ex)),
      options(std::move(o)),
      time(options.clock ? options.clock : clock::system()),
      deadlines(executor, time),
      dials(executor, options, time, deadlines),
      pool(pool_limits_of(options)),
      scratch(std::make_unique<char[]>(scratch_size + padding))
{}

http_client::impl::~impl() = default;

const http_route* http_client::impl::way_for(const url& to, const http_route* own) const
{
    const http_route* way = own;
    if (!way && !options.route.direct()) way = &options.route;
    if (!way && !options.proxies.empty()) way = options.proxies.route_for(to);
    return way && !way->direct() ? way : nullptr;
}

net_detail::pool_origin& http_client::impl::origin_of(const http_request& request)
{
    const url& to = request.target;
    const http_route* const way = way_for(to, request.route);
    if (!way) return pool.origin(to.tls(), to.host(), to.port());
    const std::uint32_t number = routes.number_of(*way, options.max_routes, pool);
    // A proxy passes plain requests to any host over one connection.
    if (way->proxied() && !to.tls()) return pool.origin(way->at().tls(), way->at().host(), way->at().port(), number);
    return pool.origin(to.tls(), to.host(), to.port(), number);
}

char* http_client::impl::borrow()
{
    if (tenant) std::exchange(tenant, nullptr)->move_out();
    return scratch.get();
}

http_client::http_client(any_io_executor ex, http_client_options options) : impl_(std::make_shared<impl>(std::move(ex), std::move(options))) {}

namespace {

// Apart from the class, so that what it needs is its own from the moment it is made, not from its first step on.
awaitable<http_exchange> open_exchange(std::unique_ptr<http_exchange::impl> x, bool* request_left)
{
    http_client::impl* const client = x->client.get();
    if (request_left) *request_left = false;
    net_detail::check_request(x->request);
    x->started = x->moved = client->time->now();
    x->origin = &client->origin_of(x->request);
    ++client->counts.exchanges;
    if (x->request.limits.deadline <= x->started) {
        x->expired = errc::deadline;
        x->throw_timeout();
    }
    const bool warm = !x->request.fresh && x->take_idle();
    if (warm) {
        // The answers of one turn of the loop are all read before the next requests leave, so that those leave together: a peer on this machine is
        // woken once a turn instead of once a request, which halves the CPU of a call at 64 in flight.
        error_code ignored;
        co_await x->link->wire->turn_end(ignored);
        const auto state = co_await asio::this_coro::cancellation_state;
        x->after_wait(state.cancelled());
    } else {
        co_await x->obtain();
    }
    for (;;) {
        client->head_buffer.clear();
        const http_route& way = client->route_of(*x->origin);
        net_detail::write_request_head(client->head_buffer, x->request, way.proxied() && !x->request.target.tls() ? &way : nullptr);
        x->held = x->request.expect_continue && !x->request.body.empty() && client->options.continue_wait > duration::zero();
        std::string_view head = client->head_buffer;
        for (;;) {
            x->enter(http_exchange::impl::phase_kind::send, client->time->now());
            bool all_sent = x->send(head, request_left);
            while (!all_sent) {
                // A peer may answer before it has read the whole body, and then read no more of it (RFC 9112, section 9.5).
                const bool watching = x->wanted == net_detail::direction::write && x->tail.empty();
                {
                    const waiting_mark mark(*x);
                    error_code ignored;
                    if (watching) co_await x->link->wire->ready_either(ignored);
                    else co_await x->link->wire->ready(x->wanted, ignored);
                }
                const auto state = co_await asio::this_coro::cancellation_state;
                x->after_wait(state.cancelled());
                x->moved = client->time->now();
                if (watching) x->receive();
                if (x->answered()) break;
                all_sent = x->send(x->tail, request_left);
            }
            if (!x->held || x->answered() || x->failure != errc{}) break;
            // The head alone has left (RFC 9110, section 10.1.1).
            x->enter(http_exchange::impl::phase_kind::consent, client->time->now());
            x->wanted = net_detail::direction::read;
            while (x->held && !x->answered()) {
                if (!x->more_likely) {
                    {
                        const waiting_mark mark(*x);
                        error_code ignored;
                        co_await x->link->wire->ready(x->wanted, ignored);
                    }
                    const auto state = co_await asio::this_coro::cancellation_state;
                    x->after_wait(state.cancelled());
                }
                x->receive();
                if (x->reader.continue_seen()) x->held = false;
            }
            if (x->answered()) break;
            head = {};
        }
        if (!x->reader.head_done()) x->enter(http_exchange::impl::phase_kind::head, x->moved);
        x->wanted = net_detail::direction::read;
        while (!x->reader.head_done() && !x->reader.failed()) {
            if (!x->more_likely) {
                {
                    const waiting_mark mark(*x);
                    error_code ignored;
                    co_await x->link->wire->ready(x->wanted, ignored);
                }
                const auto state = co_await asio::this_coro::cancellation_state;
                x->after_wait(state.cancelled());
            }
            x->receive();
        }
        if (x->reader.head_done()) break;
        if (!x->may_retry()) x->raise_failure();
        x->start_over();
        ++client->counts.retried;
        co_await x->dial();
    }
    co_return http_exchange(std::move(x));
}

}  // namespace

awaitable<http_exchange> http_client::open(http_request request, bool* request_left)
{
    // The request stands in one place only, however many coroutines wait: a thousand open calls are then half as large in the caches.
    return open_exchange(std::make_unique<http_exchange::impl>(impl_, std::move(request)), request_left);
}

void http_client::close_idle() noexcept
{
    impl_->pool.close_idle();
}

http_client_stats http_client::stats() const noexcept
{
    http_client_stats s = impl_->counts;
    s.resumed = impl_->dials.resumed();
    s.stale_dropped = impl_->pool.stale_dropped();
    s.open = impl_->pool.open();
    s.idle = impl_->pool.idle();
    s.waiting = impl_->pool.waiting();
    return s;
}

any_io_executor http_client::get_executor() const noexcept
{
    return impl_->executor;
}
const clock_ptr& http_client::clock() const noexcept
{
    return impl_->time;
}

}  // namespace reagent::inline v0

#include "client_impl.hpp"
#include "request_writer.hpp"

#include <boost/asio/this_coro.hpp>

#include <utility>

namespace reagent::inline v0 {

using net_detail::direction;

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
    using phase = http_exchange::impl::phase_kind;
    http_client::impl* const client = x->client.get();
    if (request_left) *request_left = false;
    x->request_left = request_left;
    net_detail::check_request(x->request, client->checked_lines);
    x->started = x->moved = client->time->now();
    x->origin = &client->origin_of(x->request);
    ++client->counts.exchanges;
    if (x->request.limits.deadline <= x->started) {
        x->expired = errc::deadline;
        x->throw_timeout();
    }
    const bool warm = !x->request.fresh && x->take_idle();
    if (!warm) co_await x->obtain();
    // The answers of one turn of the loop are all read before the next requests leave, so that those leave together: a peer on this machine is
    // woken once a turn instead of once a request, which halves the CPU of a call at 64 in flight. Meanwhile the call waits for its answer.
    const bool in_turn = warm && !x->request.expect_continue && x->link->wire->at_turn_end(*x);
    if (in_turn) {
        co_await x->ready(direction::read);
        const auto state = co_await asio::this_coro::cancellation_state;
        x->go_on(state.cancelled());
        if (x->is_linked()) x->unlink();
    }
    for (;;) {
        const bool waited = std::exchange(x->flushed, false);
        bool all_sent = waited ? !x->unsent : x->begin_sending();
        bool readable = waited && all_sent;
        for (;;) {
            while (!all_sent) {
                // A peer may answer before it has read the whole body, and then read no more of it (RFC 9112, section 9.5).
                const bool watching = x->wanted == direction::write && x->tail.empty();
                awaitable<void> ready = watching ? x->ready_either() : x->ready(x->wanted);
                co_await std::move(ready);
                const auto state = co_await asio::this_coro::cancellation_state;
                x->go_on(state.cancelled());
                x->moved = client->time->now();
                if (watching) x->receive();
                if (x->answered()) break;
                all_sent = x->send(x->tail);
            }
            if (!x->held || x->answered() || x->failure != errc{}) break;
            // The head alone has left (RFC 9110, section 10.1.1).
            x->enter(phase::consent, client->time->now());
            x->wanted = direction::read;
            while (x->held && !x->answered()) {
                if (!x->more_likely) {
                    co_await x->ready(x->wanted);
                    const auto state = co_await asio::this_coro::cancellation_state;
                    x->go_on(state.cancelled());
                }
                x->receive();
                if (x->reader.continue_seen()) x->held = false;
            }
            if (x->answered()) break;
            x->enter(phase::send, client->time->now());
            all_sent = x->send({});
        }
        if (!readable && !x->reader.head_done()) x->enter(phase::head, x->moved);
        x->wanted = direction::read;
        while (!x->reader.head_done() && !x->reader.failed()) {
            if (!x->more_likely && !readable) {
                co_await x->ready(x->wanted);
                const auto state = co_await asio::this_coro::cancellation_state;
                x->go_on(state.cancelled());
            }
            readable = false;
            x->receive();
        }
        if (x->reader.head_done()) break;
        if (!x->may_retry()) x->raise_failure();
        x->start_over();
        ++client->counts.retried;
        co_await x->dial();
    }
    x->request_left = nullptr;
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

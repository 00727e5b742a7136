#include "client_impl.hpp"

#include <boost/asio/error.hpp>

namespace reagent::inline v0 {

using net_detail::later;

void http_exchange::impl::enter(phase_kind p, steady_time now)
{
    phase = p;
    phase_started = moved = now;
    const due_limit next = due();
    // Later times are found when the earlier one fires; only an earlier one has to be told.
    if (!linked() || next.when < linked_for()) client->deadlines.link(*this, next.when);
}

http_exchange::impl::due_limit http_exchange::impl::due() const noexcept
{
    due_limit first;
    first.when = request.limits.deadline;
    const auto consider = [&](duration limit, steady_time from, errc which) {
        if (limit <= duration::zero()) return;
        const steady_time when = later(from, limit);
        if (when < first.when) {
            first.when = when;
            first.which = which;
        }
    };
    switch (phase) {
    case phase_kind::none: break;
    case phase_kind::pool: consider(client->options.pool_wait, phase_started, errc::pool_timeout); break;
    case phase_kind::connect: consider(request.limits.connect, phase_started, errc::connect_timeout); break;
    case phase_kind::consent:
        if (held) consider(client->options.continue_wait, phase_started, errc{});
        consider(request.limits.idle, moved, errc::idle_timeout);
        break;
    case phase_kind::head: consider(request.limits.first_byte, phase_started, errc::first_byte_timeout); [[fallthrough]];
    case phase_kind::send:
    case phase_kind::body: consider(request.limits.idle, moved, errc::idle_timeout); break;
    }
    return first;
}

steady_time http_exchange::impl::on_deadline(steady_time now)
{
    const due_limit next = due();
    if (next.when > now) return next.when;
    // A caller that does not read is not a peer that does not send.
    if (next.which == errc::idle_timeout && !waiting) {
        moved = now;
        return due().when;
    }
    if (next.which == errc{}) {  // a peer that does not know the expectation gets the body all the same
        held = false;
        stop_waiting();
        return due().when;
    }
    expired = next.which;
    if (waiting) stop_waiting();
    return steady_time::max();
}

void http_exchange::impl::after_wait(asio::cancellation_type cancelled, std::string_view detail) const
{
    if (cancelled != asio::cancellation_type::none) throw boost::system::system_error(asio::error::operation_aborted, "co_await");
    if (expired != errc{}) throw_timeout(detail);
}

void http_exchange::impl::throw_timeout(std::string_view detail) const
{
    const auto ms = [](duration d) { return std::to_string(std::chrono::duration_cast<std::chrono::milliseconds>(d).count()) + " ms"; };
    std::string text = label();
    switch (expired) {
    case errc::pool_timeout: text += ": no connection became free within " + ms(client->options.pool_wait); break;
    case errc::connect_timeout: text += ": not connected within " + ms(request.limits.connect); break;
    case errc::first_byte_timeout: text += ": no response head within " + ms(request.limits.first_byte); break;
    case errc::idle_timeout: text += ": no byte moved for " + ms(request.limits.idle); break;
    default: text += ": the deadline has passed"; break;
    }
    throw timeout_error(expired, text.append(detail));
}

}  // namespace reagent::inline v0

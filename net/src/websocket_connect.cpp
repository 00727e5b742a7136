#include "websocket_handshake.hpp"
#include "websocket_impl.hpp"

#include <reagent/base/base64.hpp>

#include <boost/asio/this_coro.hpp>

#include <algorithm>
#include <array>
#include <utility>

namespace reagent::inline v0 {

using net_detail::io_result;
using net_detail::io_status;
using net_detail::later;
using net_detail::ms_text;
using net_detail::throw_if_cancelled;
using net_detail::websocket_label;

namespace {

/// The limits of a connection that is being made.
class opening final : public deadline_entry {
public:
    opening(http_client::impl& c, const websocket_options& o) : client_(c), options_(o) {}
    void enter(errc which, duration span)
    {
        which_ = which;
        client_.deadlines.unlink(*this);
        if (span > duration::zero()) client_.deadlines.link(*this, later(client_.time->now(), span));
    }
    bool expired() const noexcept { return expired_; }
    void after_wait(asio::cancellation_type cancelled, const std::string& label) const
    {
        throw_if_cancelled(cancelled);
        if (!expired_) return;
        if (which_ == errc::connect_timeout) throw timeout_error(which_, label + ": not connected within " + ms_text(options_.connect));
        throw timeout_error(which_, label + ": no answer to the handshake within " + ms_text(options_.handshake));
    }
    net_detail::dial_stop stop;

protected:
    steady_time on_deadline(steady_time) override
    {
        expired_ = true;
        stop.stop();
        return steady_time::max();
    }

private:
    http_client::impl& client_;
    const websocket_options& options_;
    errc which_{};
    bool expired_ = false;
};

std::string fresh_key(const random_source& source)
{
    std::array<std::uint64_t, 2> bits{};
    for (std::uint64_t& b : bits) b = source ? source() : random_bits();
    return base64_encode(std::string_view(reinterpret_cast<const char*>(bits.data()), sizeof bits));
}

// Sends the request and reads the answer until it is clear what it is.
awaitable<void> shake_hands(net_detail::transport& wire, std::string request, net_detail::handshake_reader& answer, opening& limits, std::string label)
{
    std::size_t sent = 0;
    while (!answer.done()) {
        std::array<char, 1024> buffer;
        const bool sending = sent < request.size();
        const io_result r = sending ? wire.try_write(std::string_view(request).substr(sent), {}) : wire.try_read(buffer.data(), buffer.size());
        switch (r.status) {
        case io_status::ok:
            if (sending) sent += r.bytes;
            else answer.feed({buffer.data(), r.bytes});
            continue;
        case io_status::failed:
            if (answer.refused()) co_return;
            throw websocket_error(websocket_fault::broken, label + ": " + (r.error ? r.error.message() : wire.failure_text()), r.error);
        case io_status::closed:
        case io_status::truncated: answer.end_of_input(r.status == io_status::closed); continue;
        case io_status::would_block: break;
        }
        {
            const net_detail::dial_wait mark(limits.stop, wire);
            error_code ignored;
            co_await wire.ready(r.wanted, ignored);
        }
        const auto state = co_await asio::this_coro::cancellation_state;
        // A refusal whose body does not come is one all the same.
        if (limits.expired() && answer.refused()) co_return;
        limits.after_wait(state.cancelled(), label);
    }
}

awaitable<std::unique_ptr<net_detail::transport>> dial(http_client::impl& client, const net_detail::dial_target& target, opening& limits)
{
    std::unique_ptr<net_detail::transport> wire;
    std::exception_ptr trouble;
    try {
        wire = co_await client.dials.dial(target, limits.stop);
    } catch (...) {
        trouble = std::current_exception();
    }
    const auto state = co_await asio::this_coro::cancellation_state;
    limits.after_wait(state.cancelled(), target.label);
    if (trouble) std::rethrow_exception(trouble);
    co_return wire;
}

awaitable<websocket> connect_there(std::shared_ptr<http_client::impl> client, url to, websocket_options options)
{
    net_detail::check_websocket_options(to, options);
    static const http_route straight;
    const http_route* const way = client->way_for(to, options.route);
    net_detail::dial_target target(to, way ? *way : straight, websocket_label(to));
    target.always_tunnel = true;
    std::unique_ptr<net_detail::transport> wire;
    {
        opening limits(*client, options);
        limits.enter(errc::connect_timeout, options.connect);
        wire = co_await dial(*client, target, limits);
    }
    websocket made = co_await net_detail::upgrade(std::move(client), std::move(wire), to, std::move(options));
    co_return made;
}

}  // namespace

namespace net_detail {

awaitable<websocket> upgrade(std::shared_ptr<http_client::impl> client, std::unique_ptr<transport> wire, url to, websocket_options options)
{
    const std::string label = websocket_label(to), key = fresh_key(options.random);
    std::string request = websocket_request_head(to, options, key);
    handshake_reader answer(options.max_head == 0 ? http_client::impl::scratch_size : std::min(options.max_head, http_client::impl::scratch_size),
                            websocket_accept(key), options.protocols);
    {
        opening limits(*client, options);
        limits.enter(errc::first_byte_timeout, options.handshake);
        co_await shake_hands(*wire, std::move(request), answer, limits, label);
    }
    if (!answer.switched()) answer.raise(label);
    auto made = std::make_shared<websocket::impl>(std::move(client), std::move(to), std::move(options));
    made->head = answer.head();
    made->protocol.assign(answer.protocol());
    made->frames = make_frame_stream(made->client->executor, std::move(wire), answer.behind(), made->options.message_max, *made);
    co_return websocket(std::move(made));
}

}  // namespace net_detail

awaitable<websocket> websocket::connect(http_client client, url to, websocket_options options)
{
    return connect_there(client.impl_, std::move(to), std::move(options));
}

}  // namespace reagent::inline v0

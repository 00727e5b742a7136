/// The state behind `websocket`, shared with the coroutines of its operations.
#pragma once
#include "client_impl.hpp"
#include "frame_stream.hpp"

#include <reagent/net/websocket.hpp>

#include <array>
#include <list>
#include <memory>
#include <string>

namespace reagent::inline v0 {

/// Its operations run without their callers, who only wait for them: one that is cancelled leaves nothing half done.
struct websocket::impl final : deadline_entry, net_detail::frame_owner {
    /// Operations of one kind, one at a time.
    struct line {
        bool active = false;
        std::uint64_t started = 0, ended = 0;
        net_detail::parking* waiter = nullptr;  // who started the last one
    };
    impl(std::shared_ptr<http_client::impl> c, url t, websocket_options o) : client(std::move(c)), options(std::move(o)), target(std::move(t)) {}

    void frame_ended(net_detail::frame_op which, net_detail::frame_result result) override;
    void bytes_moved(net_detail::direction d) override
    {
        moved = client->time->now();
        if (d == net_detail::direction::read) hear();
    }
    void pong_came() override { ++pongs; }

    line& line_of(net_detail::frame_op which) noexcept { return lines[static_cast<std::size_t>(which)]; }
    bool active(net_detail::frame_op which) const noexcept { return lines[static_cast<std::size_t>(which)].active; }
    std::uint64_t begin(net_detail::frame_op which)
    {
        line& l = line_of(which);
        l.active = true;
        moved = client->time->now();
        if (which == net_detail::frame_op::read) hear();
        return ++l.started;
    }
    void hear() noexcept
    {
        heard = moved;
        asked = false;
    }
    /// The end, for a reason that every later call hears.
    void end(std::exception_ptr why) noexcept;
    void wake_all() noexcept;
    [[noreturn]] void raise() const;
    void expect_open() const;

    // Limits.
    enum class limit : std::uint8_t { none, idle, ping, pong, close };
    struct due_limit {
        steady_time when = steady_time::max();
        limit which = limit::none;
    };
    due_limit due() const noexcept;
    void arm();
    steady_time on_deadline(steady_time now) override;

    std::shared_ptr<http_client::impl> client;
    websocket_options options;
    url target;
    http_head head;
    std::string protocol, close_reason;
    std::shared_ptr<net_detail::frame_stream> frames;
    std::array<line, 4> lines;
    std::list<net_detail::parking*> turns;  // who wants to write, in their order
    bool message_here = false;              // a message that nobody has taken
    bool asked = false;                     // a ping has left, and nothing has come since
    bool closing = false, over = false, proper = false;
    std::exception_ptr failure;  // why it is over, when that was not proper and not ours
    unsigned close_code = 1006;  // nothing said
    std::uint64_t pongs = 0;
    steady_time moved{}, heard{}, pinged{}, close_started{};
};

namespace net_detail {

inline std::string websocket_label(const url& to)
{
    return "[websocket] " + to.redacted();
}
inline std::string ms_text(duration d)
{
    return std::to_string(std::chrono::duration_cast<std::chrono::milliseconds>(d).count()) + " ms";
}
inline void throw_if_cancelled(asio::cancellation_type c)
{
    if (c != asio::cancellation_type::none) throw boost::system::system_error(asio::error::operation_aborted, "co_await");
}

/// The handshake over a transport that leads to `to`. Options have been checked. Errors and cancellation: as `websocket::connect` after the dial.
awaitable<websocket> upgrade(std::shared_ptr<http_client::impl> client, std::unique_ptr<transport> wire, url to, websocket_options options);

}  // namespace net_detail
}  // namespace reagent::inline v0

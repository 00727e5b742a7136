#include "waiting_place.hpp"
#include "websocket_impl.hpp"

#include <reagent/base/utf8.hpp>

#include <boost/asio/this_coro.hpp>

#include <iterator>
#include <utility>

namespace reagent::inline v0 {

using net_detail::direction;
using net_detail::frame_op;
using net_detail::frame_result;
using net_detail::later;
using net_detail::ms_text;
using net_detail::parking;
using net_detail::throw_if_cancelled;
using net_detail::websocket_label;

namespace {

constexpr unsigned no_code = 1005;

}  // namespace

// ---- an open connection

void websocket::impl::frame_ended(frame_op which, frame_result result)
{
    using kind = frame_result::kind;
    // What made it so is told by another operation.
    if (result.how == kind::aborted) return;
    if (result.how == kind::failed) {
        // After our goodbye it does not matter how the peer leaves.
        return end(closing ? nullptr : std::make_exception_ptr(websocket_error(result.fault, websocket_label(target) + ": " + result.text, result.cause)));
    }
    line& l = line_of(which);
    l.active = false;
    ++l.ended;
    // A close of ours that has ended well has read the peer's close frame.
    if (result.how == kind::closed || which == frame_op::close) {
        proper = true;
        close_code = frames->close_code() == 0 ? no_code : frames->close_code();
        close_reason.assign(frames->close_reason());
        return end(nullptr);
    }
    if (which == frame_op::read) message_here = true;
    if (which == frame_op::ping) {
        asked = true;
        pinged = client->time->now();
    }
    if (l.waiter) l.waiter->wake();
    if (!turns.empty()) turns.front()->wake();
    arm();
}

void websocket::impl::end(std::exception_ptr why) noexcept
{
    if (over) return;
    over = true;
    failure = std::move(why);
    client->deadlines.unlink(*this);
    if (frames) frames->drop();
    wake_all();
}

void websocket::impl::wake_all() noexcept
{
    for (const line& l : lines)
        if (l.waiter) l.waiter->wake();
    for (parking* p : turns) p->wake();
}

void websocket::impl::raise() const
{
    if (failure) std::rethrow_exception(failure);
    throw error(errc::closed, websocket_label(target) + ": the connection is closed");
}

void websocket::impl::expect_open() const
{
    if (over) raise();
    if (closing) throw error(errc::closed, websocket_label(target) + ": the connection is closing");
}

websocket::impl::due_limit websocket::impl::due() const noexcept
{
    due_limit first;
    const auto consider = [&](duration span, steady_time from, limit which) {
        if (span <= duration::zero()) return;
        const steady_time when = later(from, span);
        if (when >= first.when) return;
        first.when = when;
        first.which = which;
    };
    if (closing) consider(options.close_within, close_started, limit::close);
    if (active(frame_op::read) || active(frame_op::write)) consider(options.idle, moved, limit::idle);
    // The peer is only heard while a read is under way.
    if (active(frame_op::read) && !closing) {
        if (asked) consider(options.pong_within, pinged, limit::pong);
        else if (!active(frame_op::ping)) consider(options.ping_every, heard, limit::ping);
    }
    return first;
}

// Later times are found when the earlier one fires; only an earlier one has to be told.
void websocket::impl::arm()
{
    const due_limit next = due();
    if (next.when != steady_time::max() && (!linked() || next.when < linked_for())) client->deadlines.link(*this, next.when);
}

steady_time websocket::impl::on_deadline(steady_time now)
{
    for (;;) {
        const due_limit next = due();
        if (next.when > now) return next.when;
        switch (next.which) {
        case limit::ping:
            begin(frame_op::ping);
            frames->ping({});
            continue;
        case limit::close: end(nullptr); break;
        case limit::pong:
            end(std::make_exception_ptr(
                timeout_error(errc::idle_timeout, websocket_label(target) + ": no answer to a ping within " + ms_text(options.pong_within))));
            break;
        default:
            end(std::make_exception_ptr(timeout_error(errc::idle_timeout, websocket_label(target) + ": no byte moved for " + ms_text(options.idle))));
            break;
        }
        return steady_time::max();
    }
}

namespace {

/// Waits for an operation that goes on without us.
class line_wait {
public:
    line_wait(websocket::impl::line& l, parking& p) : line_(l), place_(p) { l.waiter = &p; }
    line_wait(const line_wait&) = delete;
    line_wait& operator=(const line_wait&) = delete;
    ~line_wait()
    {
        if (line_.waiter == &place_) line_.waiter = nullptr;
    }

private:
    websocket::impl::line& line_;
    parking& place_;
};

awaitable<void> wait_for(websocket::impl& x, frame_op which, std::uint64_t ticket)
{
    websocket::impl::line& l = x.line_of(which);
    parking place(x.client->executor);
    const line_wait mark(l, place);
    while (l.ended < ticket && !x.over) {
        co_await place.wait();
        const auto state = co_await asio::this_coro::cancellation_state;
        throw_if_cancelled(state.cancelled());
        place.again();
    }
}

/// A turn to write: those who want to do so in the order they came.
class turn {
public:
    explicit turn(websocket::impl& s) : socket(s), mine(s.client->executor, s.turns) {}
    turn(const turn&) = delete;
    turn& operator=(const turn&) = delete;
    ~turn()
    {
        // The list still has us; the next one looks for itself.
        if (socket.turns.size() > 1) (*std::next(socket.turns.begin()))->wake();
    }
    bool has_come(frame_op which) const noexcept { return socket.turns.front() == &mine.place && !socket.active(which); }
    websocket::impl& socket;
    net_detail::waiting_place mine;
};

awaitable<void> write_frames(std::shared_ptr<websocket::impl> self, frame_op which, websocket_kind kind, std::string bytes)
{
    websocket::impl& x = *self;
    std::uint64_t ticket = 0;
    {
        turn t(x);
        x.expect_open();
        while (!t.has_come(which)) {
            co_await t.mine.place.wait();
            const auto state = co_await asio::this_coro::cancellation_state;
            throw_if_cancelled(state.cancelled());
            t.mine.place.again();
            x.expect_open();
        }
        ticket = x.begin(which);
        if (which == frame_op::ping) x.frames->ping(bytes);
        else x.frames->write(kind, std::move(bytes));
        x.arm();
    }
    co_await wait_for(x, which, ticket);
    if (x.line_of(which).ended < ticket) x.raise();
}

awaitable<bool> read_message(std::shared_ptr<websocket::impl> self, websocket_message& to)
{
    websocket::impl& x = *self;
    if (x.line_of(frame_op::read).waiter) throw validation_error(websocket_label(x.target) + ": another read is under way");
    while (!x.message_here && !x.over) {
        if (!x.active(frame_op::read)) {
            x.begin(frame_op::read);
            x.frames->read();
            x.arm();
        }
        co_await wait_for(x, frame_op::read, x.line_of(frame_op::read).started);
    }
    if (x.message_here) {
        x.message_here = false;
        to.kind = x.frames->message.kind;
        to.bytes.swap(x.frames->message.bytes);
        co_return true;
    }
    if (x.failure) x.raise();
    co_return false;
}

awaitable<bool> say_goodbye(std::shared_ptr<websocket::impl> self, unsigned code, std::string reason)
{
    websocket::impl& x = *self;
    if (x.closing && !x.over) throw error(errc::closed, websocket_label(x.target) + ": the connection is closing");
    if (!x.over) {
        x.closing = true;
        x.close_started = x.client->time->now();
        // Those who wait for their turn do not get it any more.
        for (parking* p : x.turns) p->wake();
        const std::uint64_t ticket = x.begin(frame_op::close);
        x.frames->close(code, reason);
        x.arm();
        co_await wait_for(x, frame_op::close, ticket);
        if (!x.over) x.end(nullptr);
    }
    co_return x.proper;
}

bool may_be_sent(unsigned code) noexcept
{
    return (code >= 1000 && code <= 1003) || (code >= 1007 && code <= 1013 && code != 1010) || (code >= 3000 && code <= 4999);
}

}  // namespace

// ---- the handle

websocket::websocket() noexcept = default;
websocket::websocket(std::shared_ptr<impl> i) noexcept : impl_(std::move(i)) {}
websocket::websocket(websocket&&) noexcept = default;
websocket& websocket::operator=(websocket&& other) noexcept
{
    leave();
    impl_ = std::move(other.impl_);
    return *this;
}
websocket::~websocket()
{
    leave();
}

void websocket::leave() noexcept
{
    if (!impl_ || impl_->over) return;
    impl_->end(std::make_exception_ptr(error(errc::closed, websocket_label(impl_->target) + ": the connection was given up")));
}

awaitable<bool> websocket::read(websocket_message& to)
{
    return read_message(impl_, to);
}

awaitable<void> websocket::send(websocket_kind kind, std::string bytes)
{
    if (kind == websocket_kind::text && !is_utf8(bytes)) throw validation_error(websocket_label(impl_->target) + ": a text message must be UTF-8");
    return write_frames(impl_, frame_op::write, kind, std::move(bytes));
}

awaitable<void> websocket::ping(std::string payload)
{
    if (payload.size() > 125) throw validation_error(websocket_label(impl_->target) + ": a ping holds at most 125 bytes");
    return write_frames(impl_, frame_op::ping, websocket_kind::binary, std::move(payload));
}

awaitable<bool> websocket::close(unsigned code, std::string reason)
{
    if (!may_be_sent(code)) throw validation_error(websocket_label(impl_->target) + ": the close code " + std::to_string(code) + " may not be sent");
    if (reason.size() > 123 || !is_utf8(reason))
        throw validation_error(websocket_label(impl_->target) + ": the reason of a close is at most 123 bytes of UTF-8");
    return say_goodbye(impl_, code, std::move(reason));
}

const http_head& websocket::head() const noexcept
{
    return impl_->head;
}
std::string_view websocket::protocol() const noexcept
{
    return impl_->protocol;
}
bool websocket::is_open() const noexcept
{
    return impl_ && !impl_->over && !impl_->closing;
}
unsigned websocket::close_code() const noexcept
{
    return impl_->close_code;
}
std::string_view websocket::close_reason() const noexcept
{
    return impl_->close_reason;
}
std::uint64_t websocket::pongs() const noexcept
{
    return impl_->pongs;
}

}  // namespace reagent::inline v0

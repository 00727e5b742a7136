#include "server_connection.hpp"

#include "later.hpp"
#include "parking.hpp"
#include "server_state.hpp"

#include <boost/asio/post.hpp>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <sys/socket.h>

namespace reagent::inline v0::net_detail {
namespace {

constexpr std::size_t read_size = 64 * 1024;
constexpr std::size_t most_dropped = 256 * 1024;   // of a client that goes on sending after we have closed our side
constexpr std::size_t body_reserved = 256 * 1024;  // what a mere Content-Length is believed
constexpr int most_reads = 16;                     // of one connection before another has its turn

}  // namespace

server_connection::server_connection(std::shared_ptr<server_state> state, std::unique_ptr<transport> wire, int fd, const ip_address& peer, bool has_peer,
                                     std::uint64_t number)
    : state_(std::move(state)), wire_(std::move(wire)), number_(number), peer_(peer), fd_(fd), has_peer_(has_peer)
{}

void server_connection::start()
{
    if (!state_->tls) {
        enter(stage::fresh);
        return wait_read(direction::read);
    }
    // Signing takes long: each in its turn, not where connections are accepted.
    enter(stage::handshake);
    wait_handshake(direction::read);
}

void server_connection::wait_handshake(direction d)
{
    wire_->when_ready(d, [self = shared_from_this()](error_code ec) {
        if (!ec && self->stage_ == stage::handshake) self->shake_hands();
    });
}

void server_connection::shake_hands()
{
    const io_result r = wire_->handshake();
    if (r.status == io_status::would_block) return wait_handshake(r.wanted);
    if (r.status != io_status::ok) {
        ++state_->stats.handshakes_failed;
        state_->log(log_level::debug,
                    "[http_server] the TLS handshake with " + (has_peer_ ? peer_.to_string() : "a client") +
                        " failed: " + (r.error ? r.error.message() : wire_->failure_text()));
        // The alert says why; a reset must not overtake it.
        start_lingering();
        wait_read(direction::read);
        return;
    }
    ++state_->stats.handshakes;
    enter(stage::fresh);
    on_readable();  // the request may have come with the end of the handshake
}

// ---- limits

std::chrono::nanoseconds server_connection::limit() const noexcept
{
    const http_server_limits& l = state_->options.limits;
    switch (stage_) {
    case stage::handshake: return l.handshake;
    case stage::fresh:
    case stage::head: return l.head;
    case stage::idle: return l.keep_alive;
    case stage::body: return l.body_idle;
    case stage::answering: return waits_write_ && mode_ != mode::raw ? l.write_idle : std::chrono::nanoseconds(0);
    case stage::lingering: return l.linger;
    case stage::closed: break;
    }
    return std::chrono::nanoseconds(0);
}

// When the stage has taken too long.
steady_time server_connection::due() const noexcept
{
    const std::chrono::nanoseconds most = limit();
    steady_time end = most.count() == 0 ? steady_time::max() : later(since_, most);
    const http_server_limits& l = state_->options.limits;
    if (stage_ == stage::body && l.body_rate > 0) {
        // Each byte alone keeps the other limit from firing. A year is as good as no end, and no overflow.
        const std::uint64_t earned = std::min<std::uint64_t>(request_->body.size() / l.body_rate, 365u * 24 * 3600);
        end = std::min(end, later(later(request_->body_since, l.body_grace), std::chrono::seconds(static_cast<std::int64_t>(earned))));
    }
    return end;
}

void server_connection::enter(stage s)
{
    stage_ = s;
    since_ = state_->clock->now();
    arm();
}

// A place in the queue for a later time is left as it is when that time is not too late: it looks again then.
void server_connection::arm()
{
    const steady_time when = due();
    if (when == steady_time::max()) return;
    if (!linked() || linked_for() > when) state_->deadlines.link(*this, when);
}

steady_time server_connection::on_deadline(steady_time now)
{
    const auto self = shared_from_this();
    if (closed()) return steady_time::max();
    if (const steady_time end = due(); end > now) return end;
    if (stage_ != stage::idle && stage_ != stage::lingering) ++state_->stats.timed_out;
    switch (stage_) {
    case stage::head:
        if (state_->rate && has_peer_) state_->rate->admit(server_rate::key_of(peer_), now);
        refuse(408, "the request head took too long", {}, 0, false);
        break;
    case stage::body: refuse(408, "the request body took too long", {}, 0, false); break;
    case stage::answering: finish(peer_end::stopped, true); break;
    default: finish(peer_end::stopped, false); break;
    }
    return steady_time::max();
}

// ---- reading

void server_connection::wait_read(direction d)
{
    if (waits_read_ || closed()) return;
    waits_read_ = true;
    wire_->when_ready(d, [self = shared_from_this()](error_code ec) {
        self->waits_read_ = false;
        if (!ec && !self->closed()) self->on_readable();
    });
}

void server_connection::on_readable()
{
    const auto self = shared_from_this();
    const std::shared_ptr<server_state> state = state_;
    direction wanted = direction::read;
    bool blocked = false;
    for (int i = 0; i < most_reads; ++i) {
        const bool parsing = stage_ != stage::answering && stage_ != stage::lingering;
        const std::size_t front = parsing ? in_.size() : 0;
        char* to = state->scratch.data();
        if (front > 0) std::memcpy(to, in_.data(), front);
        const io_result r = stage_ == stage::lingering ? drop_some(to) : wire_->try_read(to + front, read_size);
        if (r.status == io_status::would_block) {
            wanted = r.wanted;
            blocked = true;
            break;
        }
        if (r.status != io_status::ok) {
            finish(r.status == io_status::closed ? peer_end::fin : peer_end::reset, false);
            return;
        }
        if (stage_ == stage::lingering) {
            dropped_ += r.bytes;
            if (dropped_ > most_dropped) finish(peer_end::stopped, false);
        } else if (parsing) {
            in_.clear();
            if (idle()) pipelined_ = 0;
            parse(front + r.bytes);
        } else {
            keep_pipelined({to, r.bytes});
        }
        if (closed()) return;
        if (r.bytes < read_size && !r.more) return wait_read(wanted);
    }
    if (blocked) return wait_read(wanted);
    // Its turn is over. What TLS has decrypted already shows on no socket, so nothing is waited for.
    waits_read_ = true;
    asio::post(state->ex, [self] {
        self->waits_read_ = false;
        if (!self->closed()) self->on_readable();
    });
}

// Of a client that we have said the last word to: below TLS, whose state need not be fit to read.
io_result server_connection::drop_some(char* to) noexcept
{
    io_result r;
    const ssize_t n = ::recv(fd_, to, read_size, MSG_DONTWAIT);
    if (n > 0) r.bytes = static_cast<std::size_t>(n);
    if (n >= 0) r.status = n > 0 ? io_status::ok : io_status::closed;
    else if (errno != EAGAIN && errno != EWOULDBLOCK && errno != EINTR) r.status = io_status::failed;
    return r;
}

// A second request behind one that is being answered. Not reading it would also hide the end of the client.
void server_connection::keep_pipelined(std::string_view bytes)
{
    if (!keep_) return;
    if (in_.size() + bytes.size() <= state_->options.limits.max_pipelined_bytes) {
        in_.append(bytes);
        return;
    }
    keep_ = false;
    in_ = std::string();
}

void server_connection::resume()
{
    if (closed() || running_ || stage_ != stage::idle || in_.empty()) return;
    const std::size_t n = in_.size();
    std::memcpy(state_->scratch.data(), in_.data(), n);
    in_.clear();
    ++pipelined_;
    parse(n);
}

// Reads what stands in the scratch buffer, and goes on with what is left of it as long as requests are answered at once. A handler may make another
// connection use that buffer, so nothing is left in it while one runs.
void server_connection::parse(std::size_t n)
{
    const std::shared_ptr<server_state> state = state_;
    running_ = true;
    for (;;) {
        if (!request_) request_ = state->lend();
        request_reader& reader = request_->reader;
        char* data = state->scratch.data();
        const bool had_head = reader.head_done();
        const request_reader::outcome o = reader.feed(data, n);
        if (reader.failed()) {
            // One whose head was good has been counted.
            if (had_head || reader.head_done() || admitted()) refuse(reader.status(), reader.failure_text(), {}, 0, false);
            break;
        }
        if (o.body_size > 0) {
            if (request_->body.empty() && reader.content_length())
                request_->body.reserve(std::min<std::size_t>(static_cast<std::size_t>(*reader.content_length()), body_reserved));
            request_->body.append(data + o.body_at, o.body_size);
        }
        in_.assign(data + o.consumed, n - o.consumed);
        const bool passed = had_head || !reader.head_done() || on_head();
        if (passed && !reader.done()) {
            if (reader.head_done()) enter(stage::body);
            else if (!in_.empty() && stage_ != stage::head) enter(stage::head);
            break;
        }
        if (passed) dispatch();
        if (stage_ != stage::idle || in_.empty()) break;
        n = in_.size();
        std::memcpy(state->scratch.data(), in_.data(), n);
        in_.clear();
        ++pipelined_;
    }
    running_ = false;
    if (in_.empty() && in_.capacity() > 4096) in_ = std::string();
}

// Counts a request to the rate of its peer. False when it is one too many, and has been refused for that.
bool server_connection::admitted()
{
    if (!state_->rate || !has_peer_) return true;
    const duration wait = state_->rate->admit(server_rate::key_of(peer_), state_->clock->now());
    if (wait.count() <= 0) return true;
    ++state_->stats.rate_limited;
    const request_reader& reader = request_->reader;
    const auto seconds = std::chrono::ceil<std::chrono::seconds>(wait).count();
    refuse(429, "this client sends requests too fast", {}, static_cast<std::uint64_t>(seconds), reader.done() && reader.keep_alive());
    return false;
}

// False when the request has been refused.
bool server_connection::on_head()
{
    if (!admitted()) return false;
    request_reader& reader = request_->reader;
    request_->body_since = state_->clock->now();
    if (!reader.wants_continue() || !request_->body.empty()) return true;
    // The client waits for a word of ours; a final one spares it the body.
    const std::string_view target(reader.head().target);
    const server_routes::verdict v = state_->routes.match(reader.head().method, target.substr(0, target.find('?')), nullptr);
    if (!v.found && !state_->routes.fallback) {
        refuse(v.allow.empty() ? 404 : 405, v.allow.empty() ? "nothing is at this path" : "this path has no such method", v.allow, 0, false);
        return false;
    }
    constexpr std::string_view word = "HTTP/1.1 100 Continue\r\n\r\n";
    const io_result sent = wire_->try_write(word, {});
    if (sent.status == io_status::ok && sent.bytes == word.size()) return true;
    // These few bytes always fit, unless the client has read nothing of many answers before: half of them would garble what follows.
    finish(peer_end::stopped, false);
    return false;
}

void server_connection::release_request()
{
    if (request_ && state_) state_->give_back(std::move(request_));
    request_.reset();
}

void server_connection::dispatch()
{
    const std::shared_ptr<server_state> state = state_;
    request_reader& reader = request_->reader;
    request_head& head = reader.head();
    const http_server_limits& l = state->options.limits;
    keep_ = reader.keep_alive() && !state->draining && (l.max_requests == 0 || requests_ + 1 < l.max_requests) && (pipelined_ < l.max_pipelined || in_.empty());
    head_only_ = head.method == "HEAD";
    http_10_ = head.minor == 0;
    server_request request;
    request.method = std::move(head.method);
    request.target = std::move(head.target);
    request.fields = std::move(head.fields);
    request.body = std::move(request_->body);
    if (has_peer_) request.peer = peer_.to_string();
    request.connection = number_;
    request.keep_alive = keep_;
    release_request();
    if (!keep_) in_ = std::string();
    ++requests_;
    ++state->stats.requests;
    ++state->stats.busy;
    stage_ = stage::answering;
    mode_ = mode::pending;
    const server_routes::verdict v = state->routes.match(request.method, request.path(), &request.parameters);
    if (!v.found && !state->routes.fallback) {
        refuse(v.allow.empty() ? 404 : 405, v.allow.empty() ? "nothing is at this path" : "this path has no such method", v.allow, 0, keep_);
        return;
    }
    const http_server::handler& f = v.found ? v.found->handler : state->routes.fallback;
    try {
        f(std::move(request), http_responder(shared_from_this()));
    } catch (...) {
        // Its responder has answered already, by being dropped.
        state->log(log_level::error, "[http_server] a handler failed: " + message_of(std::current_exception()));
    }
}

// ---- ends

void server_connection::start_lingering()
{
    in_ = std::string();
    wire_->farewell();
    ::shutdown(fd_, SHUT_WR);
    if (state_->options.limits.linger.count() == 0) return finish(peer_end::stopped, false);
    // Input still unread would turn a close into a reset, which may overtake the answer.
    enter(stage::lingering);
}

void server_connection::tell_gone(peer_end how)
{
    if (!listeners_) return;
    const std::shared_ptr<listeners> heard = std::move(listeners_);
    if (heard->room_waiter) heard->room_waiter->wake();
    if (!heard->gone && !heard->task) return;
    auto tell = [heard, how] {
        if (heard->task) heard->task->cancel();
        if (heard->gone) heard->gone(how);
    };
    if (inside_ > 0) asio::post(state_->ex, std::move(tell));
    else tell();
}

void server_connection::finish(peer_end how, bool with_reset)
{
    if (closed()) return;
    const auto self = shared_from_this();  // the map below may hold the last reference
    const std::shared_ptr<server_state> state = state_;
    const bool answering = stage_ == stage::answering;
    // An answer that is cut must not look as if it had ended.
    if (!with_reset && !answering && stage_ != stage::lingering) wire_->farewell();
    stage_ = stage::closed;
    state->deadlines.unlink(*this);
    release_request();
    if (with_reset) {
        const linger at_once{1, 0};
        ::setsockopt(fd_, SOL_SOCKET, SO_LINGER, &at_once, sizeof at_once);
    }
    wire_.reset();
    in_ = std::string();
    out_ = std::string();
    out_at_ = 0;
    if (answering) {
        --state->stats.busy;
        if (how != peer_end::stopped) ++state->stats.gone;
        tell_gone(how);
    }
    listeners_.reset();
    state_.reset();
    state->left(number_);
}

}  // namespace reagent::inline v0::net_detail

#include "client_impl.hpp"
#include "request_writer.hpp"

#include <boost/asio/this_coro.hpp>

#include <algorithm>
#include <array>
#include <cstring>

namespace reagent::inline v0 {

using net_detail::direction;
using net_detail::io_result;
using net_detail::io_status;
using net_detail::response_reader;

namespace {

constexpr std::size_t largest_head = http_client::impl::scratch_size;
// Coded bytes decoded at a time: bounds what one read can blow up to (deflate reaches 1,032 : 1).
constexpr std::size_t coded_piece = 4 * 1024;
// What is not kept for reuse between two reads.
constexpr std::size_t small_buffer = 1024;

std::size_t head_limit(const http_limits& limits) noexcept
{
    return limits.max_head == 0 ? largest_head : std::min(limits.max_head, largest_head);
}

}  // namespace

http_exchange::impl::impl(std::shared_ptr<http_client::impl> c, http_request r)
    : client(std::move(c)), request(std::move(r)), reader(head_limit(request.limits), request.method == "HEAD")
{}

http_exchange::impl::~impl()
{
    client->pool.leave(*this);
    abandon();
}

void http_exchange::impl::abandon() noexcept
{
    if (client->tenant == this) client->tenant = nullptr;
    pending = {};
    // A connection of one who no longer wants it and has not used it goes to the next.
    release(phase == phase_kind::none || phase == phase_kind::pool);
}

std::string http_exchange::impl::label() const
{
    return "[http] " + request.method + " " + request.target.redacted();
}

void http_exchange::impl::fail(errc what, std::string_view text, error_code cause)
{
    failure = what;
    failure_text.assign(text);
    failure_cause = cause;
}

void http_exchange::impl::raise_failure() const
{
    if (failure == errc{}) return;
    const bool retryable = failure == errc::transport_failed || failure == errc::stream_truncated;
    throw transport_error(failure, label() + ": " + failure_text, retryable, failure_cause, died_unused());
}

// For the second try on a fresh connection: nothing of an answer has come.
void http_exchange::impl::start_over() noexcept
{
    link.reset();
    reader.reset();
    failure = errc{};
    failure_text.clear();
    failure_cause = {};
    body_sent = 0;
    more_likely = unsent = false;
}

awaitable<void> http_exchange::impl::ready(direction d)
{
    waiting = true;
    return link->wire->ready(d, client->ignored);
}

awaitable<void> http_exchange::impl::ready_either()
{
    waiting = true;
    return link->wire->ready_either(client->ignored);
}

void http_exchange::impl::go_on(asio::cancellation_type cancelled)
{
    waiting = false;
    after_wait(cancelled);
}

// The head, and what may leave of the body; the answer is that of `send`.
bool http_exchange::impl::begin_sending()
{
    std::string& head = client->head_buffer;
    head.clear();
    const http_route& way = client->route_of(*origin);
    net_detail::write_request_head(head, request, way.proxied() && !request.target.tls() ? &way : nullptr);
    held = request.expect_continue && !request.body.empty() && client->options.continue_wait > duration::zero();
    enter(phase_kind::send, flushed ? started : client->time->now());
    return send(head);
}

// For a coroutine that waits for the answer already.
void http_exchange::impl::at_turn_end() noexcept
{
    flushed = true;
    bool sent = true;
    try {
        sent = begin_sending();
        if (sent) enter(phase_kind::head, moved);
    } catch (...) {
        failure = errc::transport_failed;
        sent = false;
    }
    if (!sent) link->wire->cancel();  // it goes on, and sees why
}

// True when all is written that may be, or when the peer takes no more (its answer may be there all the same); false when it has to wait.
bool http_exchange::impl::send(std::string_view head)
{
    std::size_t head_sent = 0;
    const std::string_view body = held ? std::string_view() : request.body;
    while (head_sent < head.size() || body_sent < body.size()) {
        const io_result r = link->wire->try_write(head.substr(head_sent), body.substr(body_sent));
        if (r.status == io_status::would_block) {
            std::string rest(head.substr(head_sent));  // `head` may be `tail` itself
            tail = std::move(rest);
            wanted = r.wanted;
            unsent = true;
            return false;
        }
        if (r.status != io_status::ok) {
            fail(errc::transport_failed, r.error ? r.error.message() : link->wire->failure_text(), r.error);
            break;
        }
        if (request_left) *request_left = true;
        const std::size_t of_head = std::min(r.bytes, head.size() - head_sent);
        head_sent += of_head;
        body_sent += r.bytes - of_head;
        if (head_sent < head.size() || body_sent < body.size()) moved = client->time->now();
    }
    tail.clear();
    unsent = held;
    return true;
}

// Reads what is there. False when nothing was, and it has to wait.
bool http_exchange::impl::receive()
{
    if (tail.capacity() > small_buffer) tail = std::string();
    char* buffer = client->borrow();
    if (!pull(buffer, http_client::impl::scratch_size)) return false;
    if (!pending.empty()) client->tenant = this;
    return true;
}

bool http_exchange::impl::pull(char* buffer, std::size_t size)
{
    std::size_t n = unparsed.size();
    std::memcpy(buffer, unparsed.data(), n);
    const io_result r = link->wire->try_read(buffer + n, size - n);
    more_likely = r.status == io_status::ok && (r.bytes == size - n || r.more);
    wanted = r.wanted;
    switch (r.status) {
    case io_status::would_block: return false;
    case io_status::ok: break;
    case io_status::closed: reader.end_of_input(true); break;
    case io_status::truncated:
        reader.end_of_input(false);
        if (reader.failed()) fail(reader.failure(), std::string(reader.failure_text()) + ": TLS broke off without close_notify");
        break;
    case io_status::failed:
        reader.end_of_input(false);
        // What is not the system's is of TLS, such as an alert that refuses our certificate: another try ends no better.
        if (reader.failed()) fail(r.error ? reader.failure() : errc::tls_failed, r.error ? r.error.message() : link->wire->failure_text(), r.error);
        break;
    }
    bool left_over = false;
    if (r.status == io_status::ok) {
        moved = client->time->now();
        received += r.bytes;
        n += r.bytes;
        const bool had_head = reader.head_done();
        const response_reader::outcome o = reader.feed(buffer, n);
        pending = std::span<const char>(buffer + o.body_at, o.body_size);
        left_over = o.consumed < n;
        if (left_over && !reader.done()) unparsed.assign(buffer + o.consumed, n - o.consumed);
        else if (unparsed.capacity() > small_buffer) unparsed = std::string();
        else unparsed.clear();
        if (reader.head_done() && !had_head) head_came();
    }
    if (reader.failed()) {
        // What broke the writing explains more than the end of the reading.
        if (failure == errc{}) fail(reader.failure(), reader.failure_text());
        client->deadlines.unlink(*this);
    } else if (reader.done()) {
        release(reader.keep_alive() && !left_over && !unsent && expired == errc{});
    }
    return true;
}

void http_exchange::impl::head_came()
{
    // The writing may have failed while the peer answered all the same.
    failure = errc{};
    first_byte_time = moved - started;
    const http_head& head = reader.head();
    const std::string_view coding = head.fields.get("content-encoding");
    if (!coding.empty() && !reader.failed()) {
        boost::system::result<content_decoder> made = content_decoder::make(coding);
        if (!made) fail(errc::bad_encoding, "a content coding that is neither gzip nor deflate");
        else if (!made->identity()) decoder = std::move(*made);
    }
    enter(phase_kind::body, moved);
}

// Whether the body is over, to be asked when nothing is pending.
bool http_exchange::impl::at_end()
{
    if (!reader.done() || failure != errc{}) return false;
    if (!decoder || decoder->ended()) return true;
    fail(errc::stream_truncated, "the compressed body ended before its end");
    return false;
}

// The next decoded bytes, or none at the end of the body; false when nothing is there or the body failed.
bool http_exchange::impl::take(std::span<const char>& out)
{
    const std::uint64_t limit = request.limits.max_body;
    while (!pending.empty() && failure != errc::bad_encoding && failure != errc::body_too_large) {
        if (!decoder) {
            out = pending;
            pending = {};
            body_bytes += out.size();
            if (limit != 0 && body_bytes > limit) {
                fail(errc::body_too_large, "the body passes " + std::to_string(limit) + " bytes");
                break;
            }
            if (client->tenant == this) client->tenant = nullptr;
            return true;
        }
        const std::span<const char> piece = pending.first(std::min(pending.size(), coded_piece));
        pending = pending.subspan(piece.size());
        decoded.clear();
        const auto fed = decoder->feed({piece.data(), piece.size()}, decoded, limit);
        if (!fed) {
            if (fed.error() == make_error_code(errc::body_too_large)) fail(errc::body_too_large, "the decoded body passes " + std::to_string(limit) + " bytes");
            else fail(errc::bad_encoding, "the compressed body is corrupt");
            break;
        }
        if (pending.empty() && client->tenant == this) client->tenant = nullptr;
        if (!decoded.empty()) {
            decoded.reserve(decoded.size() + http_client::impl::padding);
            out = decoded;
            return true;
        }
    }
    out = {};
    return pending.empty() && at_end();
}

void http_exchange::impl::move_out()
{
    std::string kept;
    kept.reserve(pending.size() + http_client::impl::padding);
    kept.assign(pending.data(), pending.size());
    tail = std::move(kept);
    pending = tail;
}

http_exchange::http_exchange() noexcept = default;
http_exchange::http_exchange(std::unique_ptr<impl> i) noexcept : impl_(std::move(i)) {}
http_exchange::http_exchange(http_exchange&&) noexcept = default;
http_exchange& http_exchange::operator=(http_exchange&&) noexcept = default;
http_exchange::~http_exchange() = default;

const http_head& http_exchange::head() const noexcept
{
    return impl_->reader.head();
}
const http_fields& http_exchange::trailers() const noexcept
{
    static const http_fields none;
    const http_fields* const found = impl_->reader.trailers();
    return found ? *found : none;
}

std::chrono::nanoseconds http_exchange::connect_time() const noexcept
{
    return impl_->connect_time;
}
std::chrono::nanoseconds http_exchange::first_byte_time() const noexcept
{
    return impl_->first_byte_time;
}

bool http_exchange::try_read_some(std::span<const char>& bytes)
{
    return impl_->take(bytes);
}

body_end http_exchange::ended() const noexcept
{
    const impl& x = *impl_;
    if (x.failure != errc{} || x.expired != errc{}) return body_end::aborted;
    // A coding that has not come to its end is a cut, which the next read tells.
    if (x.reader.done() && x.pending.empty() && (!x.decoder || x.decoder->ended())) return body_end::complete;
    return x.finished ? body_end::aborted : body_end::open;
}

awaitable<std::span<const char>> http_exchange::read_some()
{
    impl& x = *impl_;
    std::span<const char> bytes;
    try {
        for (;;) {
            if (x.take(bytes)) break;
            x.raise_failure();
            if (x.expired != errc{}) x.throw_timeout();
            if (x.finished || !x.link) throw validation_error(x.label() + ": the exchange is over");
            if (!x.more_likely) {
                x.moved = x.client->time->now();
                co_await x.ready(x.wanted);
                const auto state = co_await asio::this_coro::cancellation_state;
                x.go_on(state.cancelled());
            }
            x.receive();
        }
    } catch (...) {
        if (x.failure == errc{}) x.failure = errc::transport_failed;
        x.abandon();
        throw;
    }
    co_return bytes;
}

void http_exchange::finish() noexcept
{
    if (!impl_ || impl_->finished) return;
    impl& x = *impl_;
    x.finished = true;
    x.pending = {};
    if (x.client->tenant == &x) x.client->tenant = nullptr;
    // The last chunk often came with the bytes before it. Not into the shared buffer: views of it are still out.
    std::array<char, 4096> buffer;
    if (x.link && x.failure == errc{} && x.expired == errc{} && x.unparsed.size() < buffer.size()) {
        try {
            x.pull(buffer.data(), buffer.size());
        } catch (...) {
            x.failure = errc::transport_failed;
        }
    }
    x.abandon();
}

}  // namespace reagent::inline v0

#pragma once
#include <reagent/base/asio.hpp>
#include <reagent/base/clock.hpp>
#include <reagent/base/log_sink.hpp>
#include <reagent/net/http_types.hpp>
#include <reagent/net/tls_options.hpp>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace reagent::inline v0 {

namespace net_detail {
class server_connection;
struct server_state;
}  // namespace net_detail

/// Limits of a server. Zero is off unless said otherwise; negative durations are refused.
class http_server_limits {
public:
    http_server_limits() = default;
    std::size_t max_line = 8 * 1024;               ///< bytes of a request line: 414. Never off
    std::size_t max_head = 64 * 1024;              ///< bytes of a request head, and of trailers: 431. Never off, 64 KiB at most
    std::uint64_t max_body = 64ull * 1024 * 1024;  ///< decoded bytes of a request body: 413
    std::size_t max_pipelined = 16;  ///< requests answered in a row that were sent before the answer before; then the connection closes. Never off
    std::size_t max_pipelined_bytes =
        64 * 1024;                       ///< kept of what a client sends while it is being answered; past it the connection closes after that answer. Never off
    std::uint64_t max_requests = 0;      ///< of one connection
    std::size_t max_connections = 0;     ///< more wait in the backlog of the listener
    std::size_t high_water = 64 * 1024;  ///< bytes of a stream waiting for a slow reader before `write` says that there is no room
    std::size_t max_unsent = 4 * 1024 * 1024;  ///< the same before the connection is cut, for a handler that does not listen. Never off
    double peer_rate = 0;                      ///< requests a second of one peer (an IPv6 peer is its /64), refused ones included: 429 with Retry-After
    double peer_burst = 20;                    ///< requests it may send at once before the rate counts
    std::size_t max_peers = 10'000;            ///< peers remembered for it; the longest silent are forgotten. Never off
    std::chrono::nanoseconds handshake = std::chrono::seconds(10);   ///< connection to end of the TLS handshake, where there is one
    std::chrono::nanoseconds head = std::chrono::seconds(10);        ///< connection or first byte to end of head: 408
    std::chrono::nanoseconds body_idle = std::chrono::seconds(30);   ///< between bytes of a request body: 408
    std::uint64_t body_rate = 256;                                   ///< decoded bytes of a body a second, on average behind `body_grace`: 408
    std::chrono::nanoseconds body_grace = std::chrono::seconds(30);  ///< a body may take so long, and a second more for every `body_rate` bytes received
    std::chrono::nanoseconds write_idle = std::chrono::seconds(30);  ///< between bytes that a reader takes from us; then the connection is reset
    std::chrono::nanoseconds keep_alive = std::chrono::seconds(75);  ///< between requests
    std::chrono::nanoseconds linger = std::chrono::seconds(2);  ///< how long a closing connection waits for the client to close; at most 256 KiB are dropped
};

class http_server_options {
public:
    http_server_options() = default;
    std::string address = "127.0.0.1";  ///< an IP address in text form
    std::uint16_t port = 0;             ///< 0 picks a free one
    std::string unix_socket;            ///< path of a Unix-domain socket to listen on instead; a stale one is replaced, and removed at the end
    int backlog = 4096;
    std::optional<tls_server_options> tls;  ///< when set, every connection is TLS
    http_server_limits limits;
    clock_ptr clock;  ///< null: the system clock
    log_sink log;
    /// Content type and body of an answer that no handler makes (400, 404, 431 …), from its status and our sentence. Empty: the sentence as plain text.
    std::function<std::pair<std::string, std::string>(unsigned status, std::string_view text)> refusal;
    std::function<void()> on_connection;  ///< called for each connection accepted
};

/// Counters since construction, and what is there now.
class http_server_stats {
public:
    std::uint64_t connections = 0, requests = 0, refused = 0, timed_out = 0, rate_limited = 0, gone = 0, accept_failures = 0;
    std::uint64_t handshakes = 0, handshakes_failed = 0;  ///< of TLS; those that took too long are in `timed_out`
    std::uint64_t resumed = 0;                            ///< handshakes that resumed a session of an earlier connection
    std::size_t open = 0, busy = 0;
};

/// One request, read whole.
class server_request {
public:
    server_request() = default;
    std::string method;
    std::string target;  ///< path and query, whatever form the client used
    http_fields fields;
    std::string body;
    std::string peer;                                             ///< the client's address without port; empty on a Unix-domain socket
    std::uint64_t connection = 0;                                 ///< from 1
    bool keep_alive = true;                                       ///< whether the client lets the connection go on
    std::vector<std::pair<std::string, std::string>> parameters;  ///< of the route: `{id}` and what stood there, still percent-encoded

    std::string_view path() const noexcept { return std::string_view(target).substr(0, target.find('?')); }
    std::string_view query() const noexcept;
    std::string_view parameter(std::string_view name) const noexcept;
};

/// How a client went away while it was being answered.
enum class peer_end : std::uint8_t { fin, reset, stopped /**< the server stopped, or a limit fired */ };

/// The wire of one connection for as long as its answer takes: for answers that a responder would not make. What is written is sent as it is.
/// Move-only. Exactly one of `done`, `close` and `reset` ends it; dropped without, it resets. Functions are called on the server's executor, never
/// from inside a member of this class.
class raw_wire {
public:
    enum class status : std::uint8_t { ok, would_block, gone };
    raw_wire() noexcept = default;
    raw_wire(raw_wire&&) noexcept = default;
    raw_wire& operator=(raw_wire&&) noexcept;
    ~raw_wire();
    explicit operator bool() const noexcept { return connection_ != nullptr; }
    /// Writes what the kernel takes now; `written` counts it.
    status try_write(std::string_view bytes, std::size_t& written);
    /// Calls `f` once when another `try_write` may go on.
    void when_writable(std::function<void()> f);
    /// Calls `f` once when the client has closed or the server stops; the wire is useless then.
    void on_peer_end(std::function<void(peer_end)> f);
    /// The socket, for one who watches it; -1 when the client has gone.
    int native_handle() const noexcept;
    /// The answer is complete: the connection goes on with the next request.
    void done();
    /// The answer is over, and the connection with it: ends our side and waits for the client's end.
    void close();
    /// Ends the connection at once, with a reset.
    void reset();

private:
    friend class http_responder;
    explicit raw_wire(std::shared_ptr<net_detail::server_connection> c) noexcept : connection_(std::move(c)) {}
    std::shared_ptr<net_detail::server_connection> connection_;
};

/// Answers one request: `send`, or `begin`, `write` … `end`. Move-only; lives on the server's executor and may outlive the handler and the client: to a
/// client that has gone nothing is sent, and nothing fails. Dropped unanswered it sends 500; dropped in the middle of a stream it resets the
/// connection, so that the client does not take the part for the whole.
class http_responder {
public:
    http_responder() noexcept = default;
    http_responder(http_responder&&) noexcept = default;
    http_responder& operator=(http_responder&&) noexcept;
    ~http_responder();
    explicit operator bool() const noexcept { return connection_ != nullptr; }

    /// The whole answer. Content-Length, Date and Connection are the server's; a field that cannot be sent is a `validation_error`.
    void send(unsigned status, const http_fields& fields, std::string body);
    void send(unsigned status, std::string_view content_type, std::string body);
    /// Starts a streamed answer: chunked, or to a client of HTTP/1.0 until the connection ends.
    void begin(unsigned status, const http_fields& fields);
    void begin(unsigned status, std::string_view content_type);
    /// Sends the next bytes of it. False when there is no room for more: wait for `on_room`. Past `max_unsent` the connection is cut.
    bool write(std::string_view bytes);
    bool has_room() const noexcept;
    /// Ends it.
    void end();
    /// Calls `f` once, as soon as there is room again. Never from inside a member of this class.
    void on_room(std::function<void()> f);
    /// Calls `f` once when the client goes away, or the server stops, before the answer has ended.
    void on_gone(std::function<void(peer_end)> f);
    /// Whether the client has gone.
    bool gone() const noexcept;
    /// `write`, and waits until there is room for more. Throws `error(errc::closed)` when the client has gone. Cancellation: terminal, the bytes are
    /// sent nevertheless. The responder must outlive the call.
    awaitable<void> write_some(std::string bytes);
    /// Waits until there is room. As `write_some`.
    awaitable<void> room();
    /// Hands the wire over; nothing may have been sent.
    raw_wire take_raw();

private:
    friend class net_detail::server_connection;
    friend class http_server;
    explicit http_responder(std::shared_ptr<net_detail::server_connection> c) noexcept : connection_(std::move(c)) {}
    void drop() noexcept;
    std::shared_ptr<net_detail::server_connection> connection_;
};

/// An HTTP/1.1 server on the executor given, which is single-threaded. Keep-alive; pipelined requests are answered in order and one at a time; requests that
/// two readers could read differently are refused (RFC 9112, section 11.2); a connection costs no coroutine. A client that closes while it is being
/// answered counts as gone, one that only ends its side as well. Handlers run on the executor, inside the server.
/// Construction throws `error` when the address cannot be had and `config_error` for options that cannot be used. Its accept counts as work of the
/// context until `stop` or `drain`. The context must outlive the server; the destructor stops it.
class http_server {
public:
    using handler = std::function<void(server_request&&, http_responder)>;
    using awaitable_handler = std::function<awaitable<void>(server_request, http_responder)>;

    explicit http_server(any_io_executor ex, http_server_options options = {});
    http_server(const http_server&) = delete;
    http_server& operator=(const http_server&) = delete;
    ~http_server();

    /// Paths are matched by segments: `/health`, `/runs/{id}`, and `/files/*` for everything below. Literal segments win over `{…}`, those over `*`.
    /// An unknown path is 404, a method without a route 405 with Allow; HEAD is answered by GET's handler, its body dropped.
    /// Throws `config_error` for a pattern that cannot be used or that is taken.
    void route(std::string method, std::string pattern, handler f);
    /// As `route` for a coroutine, which is started at once. It is cancelled when its client goes away or the server stops. What it throws becomes
    /// 500, or a reset in the middle of a stream, and goes to the log.
    void route_awaitable(std::string method, std::string pattern, awaitable_handler f);
    /// Gets what no route takes, any method, instead of 404 and 405.
    void fallback(handler f);

    std::uint16_t port() const noexcept;  ///< 0 on a Unix-domain socket
    /// `http://127.0.0.1:PORT`, `https://…` with TLS, empty on a Unix-domain socket.
    std::string origin() const;
    http_server_stats stats() const noexcept;

    /// Stops accepting and closes every connection at once. Idempotent.
    void stop();
    /// Stops accepting after those who wait already, closes idle connections, lets the answers under way end (their connections close behind
    /// them), and returns when the last has: true. At `limit` it stops the rest: false. Cancellation: terminal, draining goes on.
    awaitable<bool> drain(std::chrono::nanoseconds limit);
    /// `stop`, and waits until no coroutine of a handler is left.
    awaitable<void> close();

private:
    std::shared_ptr<net_detail::server_state> state_;
};

}  // namespace reagent::inline v0

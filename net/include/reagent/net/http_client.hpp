#pragma once
#include <reagent/base/asio.hpp>
#include <reagent/base/clock.hpp>
#include <reagent/net/http_types.hpp>
#include <reagent/net/proxy.hpp>
#include <reagent/net/resolver.hpp>
#include <reagent/net/tls_options.hpp>

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>

namespace reagent::inline v0 {

class websocket;

class http_client_options {
public:
    http_client_options() = default;
    std::size_t max_open_per_origin = 0;                            ///< 0 unlimited; when set, callers wait FIFO
    std::chrono::nanoseconds pool_wait = std::chrono::seconds(10);  ///< longest such wait: errc::pool_timeout
    std::size_t max_idle_per_origin = 64;
    std::chrono::nanoseconds max_idle_age = std::chrono::seconds(20);
    /// Longest life of a connection; then a new one is dialled, which asks the resolver again: a busy client follows a name that moves.
    std::chrono::nanoseconds max_total_age = std::chrono::seconds(300);
    /// How long `http_request::expect_continue` holds a body back from a peer that says nothing; then it is sent. 0: not at all.
    std::chrono::nanoseconds continue_wait = std::chrono::seconds(1);
    tls_options tls;
    http_route route;  ///< of every request that names none itself
    /// Routes remembered, which the connections of the pool belong to. Past it the longest unused one is forgotten, its idle connections closed.
    std::size_t max_routes = 64;
    proxy_rules proxies;  ///< of requests without a route; the environment is not read unless `proxy_rules::from_environment` is put here
    /// Which addresses may be connected to; empty: all. Asked with what the name led to, before each connection that goes straight to a host.
    std::function<bool(const ip_address&)> allow_address;
    clock_ptr clock;        ///< null: the system clock
    resolver_ptr resolver;  ///< null: make_system_resolver
};

/// Counters of a client since its construction.
class http_client_stats {
public:
    std::uint64_t dialed = 0, reused = 0, stale_dropped = 0, retried = 0, exchanges = 0, pool_waits = 0;
    std::uint64_t resumed = 0;                                          ///< TLS handshakes that resumed a session
    std::chrono::nanoseconds pool_wait_total{0}, pool_wait_longest{0};  ///< of the waits for a free connection that have ended
    std::size_t open = 0, idle = 0, waiting = 0;
};

/// One exchange under way: head read, body to come. Destroying it before the end of the body closes the connection, after it the connection
/// goes back to the pool. Move-only; lives on the client's executor.
class http_exchange {
public:
    http_exchange() noexcept;
    http_exchange(http_exchange&&) noexcept;
    http_exchange& operator=(http_exchange&&) noexcept;
    ~http_exchange();
    const http_head& head() const noexcept;
    /// Fields that came behind a chunked body, complete once the body has ended; apart from the head, without those that frame, route or authorise.
    const http_fields& trailers() const noexcept;
    /// The next decoded body bytes (content coding removed); empty at the end of the body. The view lives until the next read of this exchange or
    /// the next await of anything on this executor, whichever comes first, and has `SIMDJSON_PADDING` (64) readable bytes behind it. Bytes already
    /// received are answered without suspending.
    /// Errors: `timeout_error`; `transport_error(errc::stream_truncated | body_too_large | bad_encoding | malformed_response | headers_too_large)`. A body
    /// cut short is `stream_truncated` whatever cut it. Cancellation: terminal, `operation_aborted`; the connection is closed.
    awaitable<std::span<const char>> read_some();
    /// As `read_some` without suspension: true with bytes, or with none at the end of the body; false when nothing is buffered or the body
    /// failed (then await `read_some`).
    bool try_read_some(std::span<const char>& bytes);
    /// `complete` once the end of the body has been received and handed out.
    body_end ended() const noexcept;
    /// Gives the body up: the connection goes back to the pool if its end is already here, else it is closed. `read_some` no more. Views
    /// handed out stay as long as they would.
    void finish() noexcept;
    std::chrono::nanoseconds connect_time() const noexcept;
    std::chrono::nanoseconds first_byte_time() const noexcept;

    struct impl;
    explicit http_exchange(std::unique_ptr<impl> i) noexcept;

private:
    std::unique_ptr<impl> impl_;
};

/// An HTTP/1.1 client: pool, TLS contexts, resolver and limits of one executor. A cheap handle on shared state that running exchanges keep
/// alive. Shared: unsafe; belongs to one strand or single-threaded context, which all handles and exchanges must not outlive: idle connections are
/// registered with its reactor. Coroutines that use it run on that context. Redirects are never followed.
class http_client {
public:
    explicit http_client(any_io_executor ex, http_client_options options = {});
    /// Connects (or reuses), sends the request, reads the response head (1xx skipped). A reused connection that dies before the first response byte
    /// is replaced once by a fresh one. `request_left`, when given, is set as soon as a byte of the request was handed to the kernel.
    /// Errors: `timeout_error` (`errc::pool_timeout` included); `validation_error` for a request that cannot be written, before any I/O;
    /// `error(errc::resolve_failed)`; `transport_error(errc::connect_failed | tls_failed | proxy_refused | transport_failed | headers_too_large |
    /// malformed_response)`, a failed connect and a broken connection retryable. A status is data, not an error. A deadline already passed fails before any I/O. Lifetimes: the client may die before
    /// the call; `request_left` must outlive it. Cancellation: terminal, `operation_aborted`; the connection is closed.
    awaitable<http_exchange> open(http_request request, bool* request_left = nullptr);
    /// Closes idle connections. Exchanges under way are not touched.
    void close_idle() noexcept;
    http_client_stats stats() const noexcept;
    any_io_executor get_executor() const noexcept;
    const clock_ptr& clock() const noexcept;

    struct impl;

private:
    friend class websocket;
    std::shared_ptr<impl> impl_;
};

}  // namespace reagent::inline v0

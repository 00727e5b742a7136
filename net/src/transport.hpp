#pragma once
#include <reagent/base/asio.hpp>

#include <cstddef>
#include <memory>
#include <string>
#include <string_view>

namespace reagent::inline v0::net_detail {

enum class direction { read, write };

enum class io_status {
    ok,           ///< `bytes` moved, at least one
    would_block,  ///< wait for `wanted`
    closed,       ///< the peer ended properly: FIN, with TLS a close_notify before it
    truncated,    ///< TLS only: the connection ended without close_notify
    failed,       ///< `error`, or `failure_text()` of the transport
};

struct io_result {
    io_status status = io_status::would_block;
    std::size_t bytes = 0;
    direction wanted = direction::read;
    error_code error;
    bool more = false;  ///< with `ok` of a read: another try answers at once, though the socket may show nothing
};

/// A connected byte stream that never blocks: try, and if it would block wait for readiness and try again. One waiter at a time.
/// Destroying it closes it.
class transport {
public:
    virtual ~transport() = default;
    virtual io_result try_read(char* to, std::size_t n) = 0;
    /// Writes the bytes of `a` then `b`; `bytes` counts over both. After `would_block` the same bytes are tried again.
    virtual io_result try_write(std::string_view a, std::string_view b) = 0;
    /// Goes on with the TLS handshake; `ok` when there is none or it is done.
    virtual io_result handshake() = 0;
    /// Whether an idle connection has become useless: closed, or with bytes nobody asked for.
    virtual bool stale() noexcept = 0;
    /// Tells a TLS peer that we end here, without waiting.
    virtual void farewell() noexcept {}
    /// Words for the last failure; empty when `error` says all.
    virtual std::string failure_text() const { return {}; }
    /// Waits until `d` may succeed; never throws by itself. Cancellation: terminal. `cancel` ends the wait with `operation_aborted`.
    virtual awaitable<void> ready(direction d, error_code& ec) = 0;
    /// As `ready` for whichever of the two directions comes first.
    virtual awaitable<void> ready_either(error_code& ec) = 0;
    /// Calls `handler` on the executor once `d` may succeed, or with `operation_aborted` after `cancel`. A waiter for each direction at a time.
    virtual void when_ready(direction d, asio::any_completion_handler<void(error_code)> handler) = 0;
    virtual void cancel() noexcept = 0;
};

}  // namespace reagent::inline v0::net_detail

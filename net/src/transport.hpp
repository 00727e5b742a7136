#pragma once
#include <reagent/base/asio.hpp>

#include <boost/intrusive/list.hpp>

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

/// What a read would find, without taking it.
enum class peeked { quiet, bytes, ended };

/// What a transport does at the end of a turn of the loop. Dying takes it off.
class turn_task : public boost::intrusive::list_base_hook<boost::intrusive::link_mode<boost::intrusive::auto_unlink>> {
public:
    turn_task() = default;
    turn_task(const turn_task&) = delete;
    turn_task& operator=(const turn_task&) = delete;
    virtual void at_turn_end() noexcept = 0;

protected:
    ~turn_task() = default;
};

using ready_handler = asio::any_completion_handler<void(error_code)>;

/// A connected byte stream that never blocks: try, and if it would block wait for readiness and try again. One waiter for each direction at a time.
/// Destroying it closes it.
class transport {
public:
    virtual ~transport() = default;
    virtual io_result try_read(char* to, std::size_t n) = 0;
    /// Writes the bytes of `a` then `b`; `bytes` counts over both. After `would_block` the same bytes are tried again.
    virtual io_result try_write(std::string_view a, std::string_view b) = 0;
    /// Goes on with the TLS handshake; `ok` when there is none or it is done.
    virtual io_result handshake() = 0;
    virtual peeked peek() noexcept = 0;
    /// Whether an idle connection has become useless: closed, or with bytes nobody asked for.
    bool stale() noexcept { return peek() != peeked::quiet; }
    /// Tells a TLS peer that we end here, without waiting.
    virtual void farewell() noexcept {}
    /// Words for the last failure; empty when `error` says all.
    virtual std::string failure_text() const { return {}; }
    /// Waits until `d` may succeed; never throws by itself. Cancellation: terminal. `cancel` ends the wait with `operation_aborted`.
    virtual awaitable<void> ready(direction d, error_code& ec) = 0;
    /// As `ready` for whichever of the two directions comes first.
    virtual awaitable<void> ready_either(error_code& ec) = 0;
    /// Has `task` run once the others have gone on that became ready in this turn of the loop, or in the next turn; not when the wait for reading that must follow
    /// has ended by then. False: this transport knows no turns, and nothing happens.
    virtual bool at_turn_end(turn_task&) { return false; }
    /// As `ready` for one who is no coroutine. Called on the executor of the transport unless `handler` has its own.
    virtual void when_ready(direction d, ready_handler handler) = 0;
    /// Ends all waits.
    virtual void cancel() noexcept = 0;
};

}  // namespace reagent::inline v0::net_detail

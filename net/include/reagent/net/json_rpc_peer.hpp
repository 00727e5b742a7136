#pragma once
#include <reagent/base/asio.hpp>
#include <reagent/base/clock.hpp>
#include <reagent/base/log_sink.hpp>
#include <reagent/net/json_rpc.hpp>
#include <reagent/net/message_link.hpp>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>

namespace reagent::inline v0 {

class json_rpc_options {
public:
    json_rpc_options() = default;
    duration call_timeout = std::chrono::seconds(120);      ///< of a call that names none; zero is no limit
    std::size_t max_queued = 64 * 1024 * 1024;              ///< bytes waiting to be written; a call above it fails, an answer above it ends the connection
    std::size_t max_handlers = 64;                          ///< requests of the peer served at once; above it they are answered with an error
    std::string cancel_method = "notifications/cancelled";  ///< told when a call that was written is given up; empty: nothing is
    bool batches = false;                                   ///< arrays of messages are taken apart; else they are ignored and counted
    clock_ptr clock;                                        ///< null: the system clock
    log_sink log;
};

/// One call to the peer.
class rpc_call {
public:
    rpc_call(std::string m, json p = {}) : method(std::move(m)), params(std::move(p)) {}
    std::string method;
    json params;                            ///< an object, or null for none
    duration timeout = duration::min();     ///< the least duration: the peer's default; zero: no limit
    duration max_total = duration::zero();  ///< the most that `extend` stretches it to; zero: ten times the timeout
    bool cancellable = true;                ///< false: giving it up is not told, as with `initialize`
    std::int64_t id = 0;                    ///< from `new_id`, when the caller must know it; 0: any
};

enum class rpc_status : unsigned char {
    result,  ///< the peer answered
    error,   ///< the peer answered with an error
    timed_out,
    disconnected,  ///< the connection ended, or had ended before
    not_sent,      ///< this message alone could not be sent; the connection lives
};

/// How a call ended.
class rpc_reply {
public:
    rpc_reply() = default;
    rpc_status status = rpc_status::disconnected;
    json result;
    rpc_error error;
    std::string why;       ///< for the last three: one sentence
    bool written = false;  ///< any byte of it may have reached the peer; else it is safe to send it again
    /// The result; throws `rpc_fault`, `timeout_error(errc::deadline)` or `error(errc::closed | transport_failed)` for everything else.
    json take() &&;
};

/// Counters of a peer since its construction.
class json_rpc_stats {
public:
    std::uint64_t calls = 0, requests = 0, notifications = 0;
    std::uint64_t not_json = 0;            ///< messages that are no JSON
    std::uint64_t malformed = 0;           ///< JSON, but no message of JSON-RPC 2.0; batches that are not taken
    std::uint64_t late_responses = 0;      ///< to a call that is over: answered before, timed out or cancelled
    std::uint64_t unknown_responses = 0;   ///< to an id that was never ours
    std::uint64_t duplicate_requests = 0;  ///< with the id of one that is being served; ignored
    std::uint64_t refused = 0;             ///< requests above `max_handlers`
    std::uint64_t cancel_notices = 0;
    std::size_t pending = 0, handlers = 0, queued_bytes = 0;
};

/// Both ends of JSON-RPC 2.0 over a link: calls with limits, and handlers for what the other side asks (spec/orchestration.md §23.1, §23.5). Messages are
/// written whole, in order, by a writer of its own; reading goes on while it is blocked. Move-only; lives on its executor, which must not outlive its
/// context. Shared: unsafe. `close` is the proper end; destroying it gives the link up at once and cancels the handlers.
class json_rpc_peer {
public:
    /// A named coroutine; its exception becomes the error -32603, an `rpc_fault` its own error.
    using request_handler = std::function<awaitable<json>(json params)>;
    using answer_function = std::function<json(const json& params)>;
    using notification_handler = std::function<void(const json& params)>;
    /// Once, when the connection ends by itself, with the words why.
    using end_handler = std::function<void(const std::string& why)>;

    json_rpc_peer(any_io_executor ex, std::unique_ptr<message_link> link, json_rpc_options options = {});
    json_rpc_peer(json_rpc_peer&&) noexcept;
    json_rpc_peer& operator=(json_rpc_peer&&) = delete;
    ~json_rpc_peer();

    /// Handlers, before `start`. One for each method; `answer` is for what needs no await and is called as the request is read.
    void on_request(std::string method, request_handler handler);
    void answer(std::string method, answer_function handler);
    void on_notification(std::string method, notification_handler handler);
    void on_end(end_handler handler);
    /// Begins to read and write.
    void start();

    /// Sends a request and waits for its answer. Never throws but for cancellation and a full queue (`errc::limit_exceeded`).
    /// Cancellation: terminal; a call that was not written is withdrawn, one that was is given up with a notice to the peer.
    awaitable<rpc_reply> call(rpc_call request);
    /// Queues a notification. Throws `error`: closed, limit_exceeded.
    void notify(std::string_view method, const json& params = {});
    /// An id for `rpc_call::id`.
    std::int64_t new_id() noexcept;
    /// The pending call with this id gets its timeout anew, within `max_total`. False when there is none.
    bool extend(std::int64_t id);
    /// Cancels the handler of the peer's request with this id; it is not answered. False when there is none.
    bool abort_inbound(const json& id);
    /// Ends everything: pending calls fail, handlers are cancelled, the link is closed, all is joined. Idempotent. Not from inside a handler.
    /// Cancellation hurries the link and still joins.
    awaitable<void> close();

    /// Whether calls are taken.
    bool open() const noexcept;
    json_rpc_stats stats() const noexcept;
    message_link& link() noexcept;
    void set_batches(bool taken) noexcept;

private:
    struct impl;
    static awaitable<rpc_reply> call_body(std::shared_ptr<impl> self, rpc_call request);
    static awaitable<void> close_body(std::shared_ptr<impl> self);
    std::shared_ptr<impl> impl_;
};

}  // namespace reagent::inline v0

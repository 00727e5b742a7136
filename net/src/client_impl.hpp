#pragma once
#include "dialler.hpp"
#include "later.hpp"
#include "parking.hpp"
#include "pool_index.hpp"
#include "response_reader.hpp"
#include "route_table.hpp"
#include "transport.hpp"

#include <reagent/base/address.hpp>
#include <reagent/net/content_decoder.hpp>
#include <reagent/net/deadline_queue.hpp>
#include <reagent/net/http_client.hpp>

#include <memory>
#include <optional>
#include <string>

namespace reagent::inline v0 {

namespace net_detail {
/// A connection of the pool.
class connection final : public pooled {
public:
    connection(std::unique_ptr<transport> t, steady_time now) : wire(std::move(t)) { born = idle_since = now; }
    ~connection() override { wire->farewell(); }
    bool stale() noexcept override { return wire->stale(); }
    std::unique_ptr<transport> wire;
};

}  // namespace net_detail

struct http_client::impl {
    /// All reads of a client go through one buffer; what an exchange leaves in it is its own until another one reads.
    static constexpr std::size_t scratch_size = 64 * 1024;
    static constexpr std::size_t padding = 64;

    impl(any_io_executor ex, http_client_options o);
    ~impl();
    /// The buffer, for `who` to read into: whatever another exchange has in it is moved out first.
    char* borrow();
    /// The way to `to`: the request's own, the client's, or that of its proxies; null leads straight there.
    const http_route* way_for(const url& to, const http_route* own) const;
    /// The entry of the pool for a request, by its way to the host.
    net_detail::pool_origin& origin_of(const http_request& request);
    const http_route& route_of(const net_detail::pool_origin& o) const noexcept { return routes[o.route]; }

    any_io_executor executor;
    http_client_options options;
    clock_ptr time;
    deadline_queue deadlines;
    net_detail::dialler dials;
    net_detail::route_table routes;
    net_detail::pool_index pool;
    std::unique_ptr<char[]> scratch;
    http_exchange::impl* tenant = nullptr;  // whose unread body bytes are in the scratch buffer
    std::string head_buffer;                // the request head about to be sent
    std::string checked_lines;              // header lines that may be sent: mostly they come again
    http_client_stats counts;
    error_code ignored;  // how waits ended that look at more than that
};

struct http_exchange::impl final : deadline_entry, net_detail::pool_waiter, net_detail::turn_task {
    enum class phase_kind : std::uint8_t { none, pool, connect, send, consent, head, body };

    impl(std::shared_ptr<http_client::impl> c, http_request r);
    ~impl() override;

    // Limits (exchange_limits.cpp).
    void enter(phase_kind p, steady_time now);
    steady_time on_deadline(steady_time now) override;
    struct due_limit {
        steady_time when = steady_time::max();
        errc which = errc::deadline;
    };
    due_limit due() const noexcept;
    /// After an await: throws for the caller's cancellation first, then for a limit of ours.
    void after_wait(asio::cancellation_type cancelled, std::string_view detail = {}) const;
    [[noreturn]] void throw_timeout(std::string_view detail = {}) const;
    /// The connection's readiness, awaited by a coroutine that calls `go_on` afterwards with its cancellation, as `after_wait`.
    awaitable<void> ready(net_detail::direction d);
    awaitable<void> ready_either();
    void go_on(asio::cancellation_type cancelled);

    // Connection (dial.cpp).
    bool take_idle();
    awaitable<void> obtain();
    awaitable<void> dial();
    void granted(net_detail::pooled_ptr c) noexcept override;
    void stop_waiting() noexcept;
    void release(bool reusable) noexcept;

    // Request and response (http_exchange.cpp).
    bool begin_sending();
    bool send(std::string_view head);
    void at_turn_end() noexcept override;
    bool answered() const noexcept { return reader.head_done() || reader.failed(); }
    bool receive();
    bool pull(char* buffer, std::size_t size);
    void head_came();
    bool take(std::span<const char>& out);
    bool at_end();
    void move_out();
    void start_over() noexcept;
    void abandon() noexcept;
    void fail(errc what, std::string_view text, error_code cause = {});
    void raise_failure() const;
    std::string label() const;
    bool died_unused() const noexcept { return reused && received == 0 && failure == errc::transport_failed; }
    bool may_retry() const noexcept { return request.resend && died_unused(); }

    std::shared_ptr<http_client::impl> client;
    http_request request;  // its views are not touched once the head has come
    net_detail::pool_origin* origin = nullptr;
    std::unique_ptr<net_detail::connection> link;

    bool* request_left = nullptr;  // of the caller, until the head has come

    // What a coroutine of ours waits for, so that a limit can end the wait.
    net_detail::parking* parked = nullptr;
    net_detail::dial_stop* dialling = nullptr;

    steady_time started{}, phase_started{}, moved{};
    std::chrono::nanoseconds connect_time{0}, first_byte_time{0};
    errc expired{}, failure{};
    phase_kind phase = phase_kind::none;
    net_detail::direction wanted = net_detail::direction::read;
    bool waiting = false;
    bool has_slot = false, reused = false;
    bool more_likely = false;  // the last read filled the buffer, or has an end behind its bytes
    bool unsent = false;       // a part of the request waits, or was given up for an answer that came before
    bool flushed = false;      // the end of a turn has begun to send
    bool held = false;         // the body waits for the peer's consent
    bool finished = false;

    net_detail::response_reader reader;
    std::optional<content_decoder> decoder;
    std::span<const char> pending;  // body bytes not handed out, in the scratch buffer or in tail
    std::string unparsed;           // framing that is not complete yet
    std::string tail, decoded;
    std::uint64_t received = 0, body_bytes = 0;
    std::size_t body_sent = 0;
    std::string failure_text;
    error_code failure_cause;
};

namespace net_detail {

/// Says that a coroutine of the exchange waits, for as long as this lives.
class waiting_mark {
public:
    explicit waiting_mark(http_exchange::impl& x) : x_(x) { x_.waiting = true; }
    waiting_mark(http_exchange::impl& x, parking& p) : waiting_mark(x) { x_.parked = &p; }
    waiting_mark(http_exchange::impl& x, dial_stop& s) : waiting_mark(x) { x_.dialling = &s; }
    waiting_mark(const waiting_mark&) = delete;
    waiting_mark& operator=(const waiting_mark&) = delete;
    ~waiting_mark()
    {
        x_.waiting = false;
        x_.parked = nullptr;
        x_.dialling = nullptr;
    }

private:
    http_exchange::impl& x_;
};

}  // namespace net_detail
}  // namespace reagent::inline v0

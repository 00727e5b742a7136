#pragma once
#include "request_reader.hpp"
#include "server_connection.hpp"
#include "server_rate.hpp"
#include "server_routes.hpp"
#include "socket_link.hpp"
#include "tls.hpp"

#include <reagent/net/deadline_queue.hpp>
#include <reagent/net/http_server.hpp>

#include <ctime>
#include <list>
#include <memory>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include <sys/types.h>

namespace reagent::inline v0::net_detail {

class parking;
struct handler_task;

/// A request while it is read; lent to a connection for that long, so that the ones that wait weigh nothing of it.
struct incoming_request {
    explicit incoming_request(const request_limits& limits) : reader(limits) {}
    request_reader reader;
    std::string body;
    steady_time body_since{};  ///< when its head was complete
};

/// What the connections of one server share. Connections and unfinished handlers keep it alive.
struct server_state : std::enable_shared_from_this<server_state> {
    server_state(any_io_executor executor, http_server_options o);
    ~server_state();

    void listen();
    void wait_accept();
    void accept(int bite);
    void admit(int fd, const ip_address& peer);
    void close_listener();
    void stop();
    void begin_drain();
    /// A connection is closed.
    void left(std::uint64_t number);
    void wake_waiters();

    std::unique_ptr<incoming_request> lend();
    void give_back(std::unique_ptr<incoming_request> r);
    /// `Date: …` with its CRLF, made once a second.
    std::string_view date_line();
    void log(log_level level, std::string_view text) const { options.log(level, text); }

    any_io_executor ex;
    http_server_options options;
    clock_ptr clock;
    request_limits reading;
    deadline_queue deadlines;
    server_routes routes;
    std::optional<server_rate> rate;
    std::unique_ptr<tls_server_context> tls;  // null: plain
    http_server_stats stats;
    std::string scratch;      ///< of all reads
    std::string out_scratch;  ///< where heads and chunks are put together
    std::unordered_map<std::uint64_t, std::shared_ptr<server_connection>> live;
    std::list<std::shared_ptr<handler_task>> tasks;
    std::list<parking*> waiters;
    std::uint16_t port = 0;
    bool stopped = false, draining = false;

private:
    void listen_tcp();
    void listen_unix();

    std::unique_ptr<socket_link> listener_;
    std::unique_ptr<clock_timer> accept_retry_timer_;  // guards against spinning on a failed accept
    std::vector<std::unique_ptr<incoming_request>> spare_;
    std::string date_;
    std::time_t date_second_ = -1;
    bool accept_paused_ = false;  // by max_connections
    dev_t socket_device_ = 0;     // of the Unix socket we bound, with
    ino_t socket_file_ = 0;       // its number there: only that one is ours to remove
};

}  // namespace reagent::inline v0::net_detail

#pragma once
#include "dial_stop.hpp"
#include "socket_link.hpp"

#include <reagent/net/deadline_queue.hpp>

#include <memory>
#include <string>
#include <vector>

namespace reagent::inline v0::net_detail {

/// Where sockets wait.
class socket_home {
public:
    explicit socket_home(any_io_executor ex, std::shared_ptr<ready_hub> h = nullptr) : executor(std::move(ex)), hub(std::move(h)) {}
    any_io_executor executor;
    std::shared_ptr<ready_hub> hub;  ///< null: each by itself
};

/// A connected socket, or what was tried and why it failed.
class connect_outcome {
public:
    connect_outcome() = default;
    std::unique_ptr<socket_link> link;
    std::string trouble;  ///< `192.0.2.1: Connection refused; 2001:db8::1: Network is unreachable`
    error_code cause;     ///< of the first address that failed
};

/// Connects to the first of `candidates` that answers, by the rules of `dial_race`. The losers are closed. Throws for `stop` and cancellation only.
awaitable<connect_outcome> connect_first(socket_home home, deadline_queue& times, std::vector<ip_address> candidates, std::uint16_t port, dial_stop& stop);
/// Connects to a Unix-domain socket; where its backlog is full, again and again.
awaitable<connect_outcome> connect_unix(socket_home home, deadline_queue& times, std::string path, dial_stop& stop);

}  // namespace reagent::inline v0::net_detail

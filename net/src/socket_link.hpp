#pragma once
#include "ready_hub.hpp"
#include "transport.hpp"

#include <reagent/base/address.hpp>

#include <boost/asio/posix/stream_descriptor.hpp>

#include <cstdint>
#include <memory>
#include <optional>

namespace reagent::inline v0::net_detail {

/// A non-blocking, close-on-exec stream socket in the reactor. Asio's own sockets are inherited by child processes, hence the system calls.
class socket_link {
public:
    /// With a `hub` it waits through that, else by itself.
    explicit socket_link(any_io_executor ex, std::shared_ptr<ready_hub> hub = nullptr);
    ~socket_link();
    socket_link(const socket_link&) = delete;
    socket_link& operator=(const socket_link&) = delete;
    /// Starts connecting. No error: connected. `in_progress`: wait for `write`, then ask `connect_result`.
    error_code begin_connect(const ip_address& to, std::uint16_t port);
    error_code connect_result() noexcept;
    /// Connects to a Unix-domain socket. `try_again`: its backlog is full and nothing tells when that changes; start again, with a new link, later.
    error_code begin_connect_unix(const std::string& path);
    /// Takes over a connected socket of `accept4(…, SOCK_NONBLOCK | SOCK_CLOEXEC)`. It is closed when that fails.
    error_code adopt(int fd);
    awaitable<void> ready(direction d, error_code& ec);
    awaitable<void> ready_either(error_code& ec);
    void when_ready(direction d, ready_handler handler);
    /// See `transport::at_turn_end`.
    bool at_turn_end(turn_task& task);
    void cancel() noexcept;
    int fd() const noexcept { return fd_; }
    /// What reading and writing have found; see `hub_socket`.
    void drained() noexcept
    {
        if (socket_) socket_->drained();
    }
    void filled() noexcept
    {
        if (socket_) socket_->filled();
    }
    bool quiet() const noexcept { return socket_ && socket_->quiet(); }

    /// Longest path of a Unix-domain socket: what fits the kernel's structure with its end.
    static constexpr std::size_t max_path = 107;

private:
    int fd_ = -1;
    std::optional<hub_socket> socket_;                          // with a hub
    std::optional<asio::posix::stream_descriptor> descriptor_;  // without; owns the socket then
};

std::unique_ptr<transport> make_plain_transport(std::unique_ptr<socket_link> link);

}  // namespace reagent::inline v0::net_detail

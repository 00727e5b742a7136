#pragma once
#include "transport.hpp"

#include <reagent/base/address.hpp>

#include <boost/asio/posix/stream_descriptor.hpp>

#include <cstdint>

namespace reagent::inline v0::net_detail {

/// A non-blocking, close-on-exec TCP socket in the reactor. Asio's own sockets are inherited by child processes, hence the system calls.
class socket_link {
public:
    explicit socket_link(any_io_executor ex) : descriptor_(std::move(ex)) {}
    /// Starts connecting. No error: connected. `in_progress`: wait for `write`, then ask `connect_result`.
    error_code begin_connect(const ip_address& to, std::uint16_t port);
    error_code connect_result() noexcept;
    /// Takes over a connected socket that is non-blocking and close-on-exec already, as `accept4` makes one. Closes it when that fails.
    error_code adopt(int fd);
    /// Calls `handler` on the executor once `d` may succeed, or with `operation_aborted` after `cancel`. One waiter for each direction.
    void when_ready(direction d, asio::any_completion_handler<void(error_code)> handler);
    awaitable<void> ready(direction d, error_code& ec);
    awaitable<void> ready_either(error_code& ec);
    void cancel() noexcept;
    int fd() noexcept { return descriptor_.native_handle(); }

private:
    asio::posix::stream_descriptor descriptor_;
};

std::unique_ptr<transport> make_plain_transport(std::unique_ptr<socket_link> link);

}  // namespace reagent::inline v0::net_detail

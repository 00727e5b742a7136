#include "socket_link.hpp"

#include <boost/asio/async_result.hpp>
#include <boost/asio/deferred.hpp>
#include <boost/asio/error.hpp>
#include <boost/asio/experimental/parallel_group.hpp>
#include <boost/asio/redirect_error.hpp>
#include <boost/asio/use_awaitable.hpp>

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <sys/un.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <utility>

namespace reagent::inline v0::net_detail {
namespace {

error_code system_error_of(int e) noexcept
{
    return error_code(e, boost::system::system_category());
}

class plain_transport final : public transport {
public:
    explicit plain_transport(std::unique_ptr<socket_link> link) : link_(std::move(link)), fd_(link_->fd()) {}

    io_result try_read(char* to, std::size_t n) override
    {
        io_result r;
        ssize_t got = 0;
        do got = ::recv(fd_, to, n, 0);
        while (got < 0 && errno == EINTR);
        if (got < static_cast<ssize_t>(n)) link_->drained();
        if (got > 0) {
            r.status = io_status::ok;
            r.bytes = static_cast<std::size_t>(got);
        } else if (got == 0) {
            r.status = io_status::closed;
        } else if (errno != EAGAIN && errno != EWOULDBLOCK) {
            r.status = io_status::failed;
            r.error = system_error_of(errno);
        }
        return r;
    }

    io_result try_write(std::string_view a, std::string_view b) override
    {
        io_result r;
        r.wanted = direction::write;
        ssize_t sent = 0;
        do sent = b.empty() ? ::send(fd_, a.data(), a.size(), MSG_NOSIGNAL) : send_both(a, b);
        while (sent < 0 && errno == EINTR);
        if (sent > 0) {
            r.status = io_status::ok;
            r.bytes = static_cast<std::size_t>(sent);
        } else if (sent < 0 && errno != EAGAIN && errno != EWOULDBLOCK) {
            r.status = io_status::failed;
            r.error = system_error_of(errno);
        } else {
            link_->filled();
        }
        return r;
    }

    io_result handshake() override
    {
        io_result r;
        r.status = io_status::ok;
        return r;
    }

    peeked peek() noexcept override
    {
        if (link_->quiet()) return peeked::quiet;
        char byte = 0;
        const ssize_t got = ::recv(fd_, &byte, 1, MSG_PEEK | MSG_DONTWAIT);
        if (got > 0) return peeked::bytes;
        return got < 0 && (errno == EAGAIN || errno == EWOULDBLOCK) ? peeked::quiet : peeked::ended;
    }

    awaitable<void> ready(direction d, error_code& ec) override { return link_->ready(d, ec); }
    awaitable<void> ready_either(error_code& ec) override { return link_->ready_either(ec); }
    void when_ready(direction d, ready_handler handler) override { link_->when_ready(d, std::move(handler)); }
    bool at_turn_end(turn_task& task) override { return link_->at_turn_end(task); }
    void cancel() noexcept override { link_->cancel(); }

private:
    ssize_t send_both(std::string_view a, std::string_view b) noexcept
    {
        iovec parts[2] = {{const_cast<char*>(a.data()), a.size()}, {const_cast<char*>(b.data()), b.size()}};
        msghdr message{};
        message.msg_iov = parts;
        message.msg_iovlen = 2;
        return ::sendmsg(fd_, &message, MSG_NOSIGNAL);
    }

    std::unique_ptr<socket_link> link_;
    int fd_;
};

}  // namespace

error_code socket_link::begin_connect(const ip_address& to, std::uint16_t port)
{
    const int fd = ::socket(to.is_v4() ? AF_INET : AF_INET6, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (fd < 0) return system_error_of(errno);
    const int on = 1;
    ::setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    if (const error_code ec = adopt(fd)) return ec;
    sockaddr_storage storage{};
    socklen_t size = 0;
    if (to.is_v4()) {
        auto& v4 = reinterpret_cast<sockaddr_in&>(storage);
        v4.sin_family = AF_INET;
        v4.sin_port = htons(port);
        v4.sin_addr.s_addr = htonl(to.v4_bits());
        size = sizeof v4;
    } else {
        auto& v6 = reinterpret_cast<sockaddr_in6&>(storage);
        v6.sin6_family = AF_INET6;
        v6.sin6_port = htons(port);
        std::memcpy(&v6.sin6_addr, to.bytes().data(), 16);
        size = sizeof v6;
    }
    int status = 0;
    do status = ::connect(fd, reinterpret_cast<const sockaddr*>(&storage), size);
    while (status < 0 && errno == EINTR);
    if (status == 0) return {};
    return errno == EINPROGRESS ? error_code(asio::error::in_progress) : system_error_of(errno);
}

error_code socket_link::begin_connect_unix(const std::string& path)
{
    sockaddr_un to{};
    to.sun_family = AF_UNIX;
    if (path.empty() || path.size() > max_path) return system_error_of(ENAMETOOLONG);
    std::memcpy(to.sun_path, path.data(), path.size());
    const int fd = ::socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (fd < 0) return system_error_of(errno);
    if (const error_code ec = adopt(fd)) return ec;
    int status = 0;
    do status = ::connect(fd, reinterpret_cast<const sockaddr*>(&to), sizeof to);
    while (status < 0 && errno == EINTR);
    if (status == 0) return {};
    return errno == EAGAIN ? error_code(asio::error::try_again) : system_error_of(errno);
}

socket_link::socket_link(any_io_executor ex, std::shared_ptr<ready_hub> hub)
{
    if (hub) socket_.emplace(std::move(hub));
    else descriptor_.emplace(std::move(ex));
}

socket_link::~socket_link()
{
    if (!socket_ || fd_ < 0) return;
    socket_->unwatch();
    ::close(fd_);
}

error_code socket_link::adopt(int fd)
{
    error_code ec;
    if (!socket_) descriptor_->assign(fd, ec);
    else if (!socket_->watch(fd)) ec = system_error_of(errno);
    if (ec) ::close(fd);
    else fd_ = fd;
    return ec;
}

error_code socket_link::connect_result() noexcept
{
    int e = 0;
    socklen_t size = sizeof e;
    if (::getsockopt(fd(), SOL_SOCKET, SO_ERROR, &e, &size) < 0) e = errno;
    return e == 0 ? error_code() : system_error_of(e);
}

namespace {

constexpr auto descriptor_wait(direction d) noexcept
{
    return d == direction::read ? asio::posix::descriptor_base::wait_read : asio::posix::descriptor_base::wait_write;
}

enum class hub_wait : std::uint8_t { read, write, either };

/// Starts a wait at the hub with whatever handler the token makes.
struct start_hub_wait {
    hub_socket* socket;
    hub_wait what;
    template <class Handler>
    void operator()(Handler&& handler) const
    {
        switch (what) {
        case hub_wait::read: socket->wait(direction::read, std::forward<Handler>(handler)); break;
        case hub_wait::write: socket->wait(direction::write, std::forward<Handler>(handler)); break;
        case hub_wait::either: socket->wait_either(std::forward<Handler>(handler)); break;
        }
    }
};

awaitable<void> at_hub(hub_socket& socket, hub_wait what, error_code& ec)
{
    auto token = asio::redirect_error(asio::use_awaitable, ec);
    return asio::async_initiate<decltype(token), void(error_code)>(start_hub_wait{&socket, what}, token);
}

awaitable<void> either_of(asio::posix::stream_descriptor& descriptor, error_code& ec)
{
    auto race = asio::experimental::make_parallel_group(descriptor.async_wait(asio::posix::descriptor_base::wait_read, asio::deferred),
                                                        descriptor.async_wait(asio::posix::descriptor_base::wait_write, asio::deferred));
    const auto [order, read_ec, write_ec] = co_await race.async_wait(asio::experimental::wait_for_one(), asio::use_awaitable);
    ec = order[0] == 0 ? read_ec : write_ec;
}

}  // namespace

awaitable<void> socket_link::ready(direction d, error_code& ec)
{
    if (socket_) return at_hub(*socket_, d == direction::read ? hub_wait::read : hub_wait::write, ec);
    return descriptor_->async_wait(descriptor_wait(d), asio::redirect_error(asio::use_awaitable, ec));
}

awaitable<void> socket_link::ready_either(error_code& ec)
{
    return socket_ ? at_hub(*socket_, hub_wait::either, ec) : either_of(*descriptor_, ec);
}

bool socket_link::at_turn_end(turn_task& task)
{
    if (socket_) socket_->at_turn_end(task);
    return socket_.has_value();
}

void socket_link::when_ready(direction d, ready_handler handler)
{
    if (socket_) socket_->wait(d, std::move(handler));
    else descriptor_->async_wait(descriptor_wait(d), std::move(handler));
}

void socket_link::cancel() noexcept
{
    error_code ignored;
    if (socket_) socket_->cancel();
    else descriptor_->cancel(ignored);
}

std::unique_ptr<transport> make_plain_transport(std::unique_ptr<socket_link> link)
{
    return std::make_unique<plain_transport>(std::move(link));
}

}  // namespace reagent::inline v0::net_detail

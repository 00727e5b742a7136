/// A blocking loopback client made of system calls, and a reader on a context: what the servers of this package are seen with.
#pragma once
#include <reagent/base/asio.hpp>

#include <boost/asio/buffer.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/redirect_error.hpp>

#include <arpa/inet.h>
#include <cerrno>
#include <cstdlib>
#include <fcntl.h>
#include <memory>
#include <netinet/in.h>
#include <poll.h>
#include <string>
#include <string_view>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

namespace testing_tests {

class raw_client {
public:
    explicit raw_client(std::uint16_t port) : fd_(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0))
    {
        // No read of a test waits for ever.
        const timeval limit{20, 0};
        ::setsockopt(fd_, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit);
        sockaddr_in a{};
        a.sin_family = AF_INET;
        a.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
        a.sin_port = htons(port);
        if (::connect(fd_, reinterpret_cast<const sockaddr*>(&a), sizeof a) != 0) error_ = errno;
    }
    raw_client(const raw_client&) = delete;
    raw_client& operator=(const raw_client&) = delete;
    ~raw_client() { ::close(fd_); }

    void write(std::string_view bytes)
    {
        while (!bytes.empty()) {
            const ssize_t n = ::send(fd_, bytes.data(), bytes.size(), MSG_NOSIGNAL);
            if (n <= 0) {
                error_ = errno;
                return;
            }
            bytes.remove_prefix(static_cast<std::size_t>(n));
        }
    }
    /// Up to `size` bytes, fewer when the stream ends first.
    std::string read(std::size_t size)
    {
        std::string out;
        while (out.size() < size) {
            if (!more(out, size - out.size())) break;
        }
        return out;
    }
    std::string read_all()
    {
        std::string out;
        while (more(out, 65536)) {}
        return out;
    }
    /// Up to and with `mark`.
    std::string read_until(std::string_view mark)
    {
        std::string out;
        while (out.find(mark) == std::string::npos) {
            if (!more(out, 1)) break;
        }
        return out;
    }
    /// One HTTP response by its content-length or chunked coding, as it came.
    std::string response()
    {
        std::string out = read_until("\r\n\r\n");
        if (out.find("chunked") != std::string::npos) return out + read_until("0\r\n\r\n");
        const std::size_t at = out.find("ength: ");  // of content-length, however its letters are cased
        if (at == std::string::npos) return out + read_all();
        return out + read(std::strtoull(out.c_str() + at + 7, nullptr, 10));
    }
    bool readable(int wait_ms = 0)
    {
        pollfd p{fd_, POLLIN, 0};
        return ::poll(&p, 1, wait_ms) > 0;
    }
    std::size_t write_until_blocked()
    {
        const std::string block(65536, 'x');
        std::size_t total = 0;
        ::fcntl(fd_, F_SETFL, O_NONBLOCK);
        for (;;) {
            pollfd p{fd_, POLLOUT, 0};
            if (::poll(&p, 1, 50) == 0) return total;
            const ssize_t n = ::send(fd_, block.data(), block.size(), MSG_NOSIGNAL);
            if (n > 0) total += static_cast<std::size_t>(n);
        }
    }
    void reset_on_close()
    {
        const linger now{1, 0};
        ::setsockopt(fd_, SOL_SOCKET, SO_LINGER, &now, sizeof now);
    }
    int last_error() const noexcept { return error_; }
    int fd() const noexcept { return fd_; }

private:
    bool more(std::string& out, std::size_t limit)
    {
        char block[65536];
        const ssize_t n = ::recv(fd_, block, limit < sizeof block ? limit : sizeof block, 0);
        if (n < 0) error_ = errno;
        if (n <= 0) return false;
        out.append(block, static_cast<std::size_t>(n));
        return true;
    }
    int fd_;
    int error_ = 0;
};

/// Connects, sends, and reads to the end on a context, counting its reads.
class async_reader {
public:
    async_reader(boost::asio::io_context& context, std::uint16_t port, const std::string& request = {}) : state_(std::make_shared<state>(context))
    {
        state_->socket.connect({boost::asio::ip::address_v4::loopback(), port});
        if (!request.empty()) state_->socket.send(boost::asio::buffer(request));
        next(state_);
    }
    bool ended() const noexcept { return state_->ended; }
    std::size_t reads() const noexcept { return state_->reads; }
    const std::string& text() const noexcept { return state_->text; }

private:
    struct state {
        explicit state(boost::asio::io_context& context) : socket(context) {}
        boost::asio::ip::tcp::socket socket;
        char block[4096];
        std::string text;
        std::size_t reads = 0;
        bool ended = false;
    };
    static void next(const std::shared_ptr<state>& s)
    {
        s->socket.async_read_some(boost::asio::buffer(s->block), [s](boost::system::error_code ec, std::size_t n) {
            s->ended = static_cast<bool>(ec);
            if (ec) return;
            ++s->reads;
            s->text.append(s->block, n);
            next(s);
        });
    }
    std::shared_ptr<state> state_;
};

}  // namespace testing_tests

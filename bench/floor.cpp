// The floor: what the kernel alone costs. Raw epoll, a request formatted once, keep-alive. It frames answers by Content-Length or by the last
// chunk and parses nothing but the time stamp, so no client can be cheaper. With --tls what the kernel and OpenSSL cost: one read and one write a call, on
// OpenSSL's own socket BIO, records read ahead.
#include "bench_common.hpp"

#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/tcp.h>
#include <openssl/ssl.h>
#include <signal.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

namespace {

constexpr std::string_view last_chunk = "0\r\n\r\n";
constexpr std::uint64_t events_per_stream = 100;

struct connection {
    int fd = -1;
    SSL* tls = nullptr;
    std::size_t received = 0;
    std::size_t expected = 0;  // bytes of head and body; 0 until the head was seen
};

std::string whole_request(const bench::client_flags& flags)
{
    const std::string body = bench::request_body(flags.sse);
    return "POST /v1/chat/completions HTTP/1.1\r\nHost: 127.0.0.1:" + std::to_string(flags.port) +
        "\r\nAuthorization: Bearer sk-test\r\nContent-Type: application/json\r\nAccept: " + (flags.sse ? "text/event-stream" : "application/json") +
        "\r\nContent-Length: " + std::to_string(body.size()) + "\r\n\r\n" + body;
}

class floor_client {
public:
    explicit floor_client(const bench::client_flags& flags)
        : flags_(flags),
          request_(whole_request(flags)),
          measured_(flags, "floor"),
          epoll_(epoll_create1(EPOLL_CLOEXEC)),
          connections_(static_cast<std::size_t>(flags.in_flight)),
          tls_(flags.tls ? SSL_CTX_new(TLS_client_method()) : nullptr)
    {
        if (!tls_) return;
        SSL_CTX_set_read_ahead(tls_, 1);
        SSL_CTX_set_verify(tls_, SSL_VERIFY_PEER, nullptr);
        SSL_CTX_set_default_verify_paths(tls_);  // SSL_CERT_FILE
    }

    int run()
    {
        for (std::size_t i = 0; i < connections_.size(); ++i) {
            if (!connect(i)) return 1;
        }
        std::vector<epoll_event> ready(1024);
        while (!measured_.finished()) {
            const int n = epoll_wait(epoll_, ready.data(), static_cast<int>(ready.size()), -1);
            for (int i = 0; i < n && !measured_.finished(); ++i) on_readable(connections_[ready[static_cast<std::size_t>(i)].data.u32]);
        }
        measured_.print();
        return 0;
    }

private:
    bool connect(std::size_t index)
    {
        connection& c = connections_[index];
        c.fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
        const int on = 1;
        setsockopt(c.fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
        sockaddr_in address{};
        address.sin_family = AF_INET;
        address.sin_port = htons(static_cast<std::uint16_t>(flags_.port));
        address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
        if (::connect(c.fd, reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0) {
            std::perror("floor: connect");
            return false;
        }
        if (tls_) {
            c.tls = SSL_new(tls_);
            SSL_set_fd(c.tls, c.fd);
            if (SSL_connect(c.tls) != 1) {
                std::fprintf(stderr, "floor: the TLS handshake failed\n");
                return false;
            }
            fcntl(c.fd, F_SETFL, O_NONBLOCK);
        }
        epoll_event interest{};
        interest.events = EPOLLIN;
        interest.data.u32 = static_cast<std::uint32_t>(index);
        epoll_ctl(epoll_, EPOLL_CTL_ADD, c.fd, &interest);
        send_request(c);
        return true;
    }

    void send_request(const connection& c)
    {
        if (c.tls) (void)SSL_write(c.tls, request_.data(), static_cast<int>(request_.size()));
        else (void)send(c.fd, request_.data(), request_.size(), MSG_DONTWAIT | MSG_NOSIGNAL);
    }

    void on_readable(connection& c)
    {
        // A record that was read ahead shows on no socket.
        while (wants_more(c) && c.tls && SSL_has_pending(c.tls)) {}
    }

    // False when the answer is complete, or nothing is there.
    bool wants_more(connection& c)
    {
        const ssize_t n = c.tls ? SSL_read(c.tls, buffer_, sizeof buffer_ - 1) : recv(c.fd, buffer_, sizeof buffer_ - 1, MSG_DONTWAIT);
        if (n <= 0) {
            if (c.tls ? SSL_get_error(c.tls, static_cast<int>(n)) != SSL_ERROR_WANT_READ : n == 0 || errno != EAGAIN) measured_.call_failed();
            return false;
        }
        buffer_[n] = '\0';
        const auto bytes = static_cast<std::size_t>(n);
        const bool complete = flags_.sse ? stream_complete(bytes) : body_complete(c, bytes);
        if (!complete) return true;
        c.received = c.expected = 0;
        if (flags_.sse) measured_.count_events(events_per_stream);
        measured_.call_done();
        send_request(c);
        return false;
    }

    bool body_complete(connection& c, std::size_t n)
    {
        if (c.expected == 0) {
            const char* head_end = static_cast<const char*>(memmem(buffer_, n, "\r\n\r\n", 4));
            const char* length = strcasestr(buffer_, "content-length:");
            if (!head_end || !length) return false;
            c.expected = static_cast<std::size_t>(head_end + 4 - buffer_) + static_cast<std::size_t>(std::atol(length + 15));
            read_stamp(n);
        }
        c.received += n;
        return c.received >= c.expected;
    }

    bool stream_complete(std::size_t n)
    {
        read_stamp(n);
        return n >= last_chunk.size() && std::memcmp(buffer_ + n - last_chunk.size(), last_chunk.data(), last_chunk.size()) == 0;
    }

    void read_stamp(std::size_t n)
    {
        constexpr std::string_view key = "\"created\":";
        if (const void* at = memmem(buffer_, n, key.data(), key.size())) measured_.stamp(std::strtoll(static_cast<const char*>(at) + key.size(), nullptr, 10));
    }

    const bench::client_flags& flags_;
    const std::string request_;
    bench::measurement measured_;
    int epoll_;
    std::vector<connection> connections_;
    SSL_CTX* tls_;
    char buffer_[65536];
};

}  // namespace

int main(int argc, char** argv)
{
    const bench::client_flags flags(argc, argv);
    signal(SIGPIPE, SIG_IGN);  // OpenSSL writes without MSG_NOSIGNAL
    return floor_client(flags).run();
}

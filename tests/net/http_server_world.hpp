/// A server on a context under manual time, and clients made of system calls: whatever they send is there when the context has run until it is idle.
#pragma once
#include <reagent/net/http_server.hpp>
#include <reagent/testing/manual_clock.hpp>
#include <reagent/testing/run.hpp>

#include <boost/asio/io_context.hpp>

#include <cerrno>
#include <cstring>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

namespace reagent::net_tests {

struct server_world {
    asio::io_context context;
    std::shared_ptr<testing::manual_clock> clock = std::make_shared<testing::manual_clock>();
    http_server_options options;
    std::unique_ptr<http_server> server;

    server_world() { options.clock = clock; }
    ~server_world()
    {
        server.reset();
        idle();
    }
    http_server& start()
    {
        server = std::make_unique<http_server>(context.get_executor(), options);
        return *server;
    }
    /// Answers every request with its method, target and body.
    http_server& echo()
    {
        start().fallback([](server_request&& r, http_responder out) { out.send(200, "text/plain", r.method + ' ' + r.target + ' ' + r.body); });
        return *server;
    }
    /// A blocking socket of a client that has just connected, -1 when nobody listens.
    int connect(int receive_buffer) const
    {
        const int fd = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
        if (receive_buffer > 0) ::setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &receive_buffer, sizeof receive_buffer);
        sockaddr_in a{};
        a.sin_family = AF_INET;
        a.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
        a.sin_port = htons(server->port());
        if (::connect(fd, reinterpret_cast<const sockaddr*>(&a), sizeof a) == 0) return fd;
        ::close(fd);
        return -1;
    }
    void idle() { testing::run_until_idle(context); }
    void advance(duration d)
    {
        clock->advance(d);
        idle();
    }
};

/// Holds answers until the test lets them go.
struct held_answers {
    std::vector<std::pair<std::string, http_responder>> answers;
    void operator()(server_request&& r, http_responder out) { answers.emplace_back(r.target, std::move(out)); }
    void let_go(std::size_t i) { answers[i].second.send(200, "text/plain", answers[i].first); }
};

/// Lets the server run, and gives what came to a client without its Date.
template <class Client>
std::string all_that_comes(server_world& w, Client& client)
{
    std::string all;
    for (;;) {
        w.idle();
        const std::string more = client.take();
        if (more.empty()) break;
        all += more;
    }
    for (std::size_t at = 0; (at = all.find("Date: ")) != std::string::npos;) all.erase(at, all.find('\n', at) + 1 - at);
    return all;
}

class server_client {
public:
    explicit server_client(server_world& w, int receive_buffer = 0) : world_(w)
    {
        if (!w.options.unix_socket.empty()) {
            sockaddr_un a{};
            a.sun_family = AF_UNIX;
            std::memcpy(a.sun_path, w.options.unix_socket.data(), w.options.unix_socket.size());
            fd_ = ::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
            connected_ = ::connect(fd_, reinterpret_cast<const sockaddr*>(&a), sizeof a) == 0;
            return;
        }
        fd_ = w.connect(receive_buffer);
        connected_ = fd_ >= 0;
    }
    server_client(const server_client&) = delete;
    server_client& operator=(const server_client&) = delete;
    ~server_client() { close(); }
    bool connected() const { return connected_; }
    void write(std::string_view bytes) { ::send(fd_, bytes.data(), bytes.size(), MSG_NOSIGNAL); }
    void half_close() { ::shutdown(fd_, SHUT_WR); }
    void close()
    {
        if (fd_ >= 0) ::close(fd_);
        fd_ = -1;
    }
    void reset()
    {
        const linger at_once{1, 0};
        ::setsockopt(fd_, SOL_SOCKET, SO_LINGER, &at_once, sizeof at_once);
        close();
    }
    /// What is there, at most `most` bytes. `ended` and `was_reset` tell of the end behind it.
    std::string take(std::size_t most = SIZE_MAX)
    {
        std::string out;
        std::string block(65536, '\0');
        while (out.size() < most) {
            const ssize_t n = ::recv(fd_, block.data(), std::min(block.size(), most - out.size()), MSG_DONTWAIT);
            if (n == 0) ended = true;
            if (n < 0 && errno == ECONNRESET) was_reset = true;
            if (n <= 0) break;
            out.append(block, 0, static_cast<std::size_t>(n));
        }
        return out;
    }
    /// Lets the server run, and gives what came without its Date.
    std::string read() { return all_that_comes(world_, *this); }
    std::string ask(std::string_view request)
    {
        write(request);
        return read();
    }
    bool ended = false, was_reset = false;

private:
    server_world& world_;
    int fd_ = -1;
    bool connected_ = false;
};

inline std::string get(std::string_view target, std::string_view fields = {})
{
    return "GET " + std::string(target) + " HTTP/1.1\r\nHost: a\r\n" + std::string(fields) + "\r\n";
}
inline std::string ok(std::string_view body, bool close = false)
{
    return "HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nContent-Length: " + std::to_string(body.size()) + (close ? "\r\nConnection: close" : "") +
        "\r\n\r\n" + std::string(body);
}

}  // namespace reagent::net_tests

// What an open stream weighs in the mock server: 10,000 of them from raw sockets, the resident memory of the server's process at 100 and at 10,000.
//
//     mock_memory
//
// The server runs in a child process, so that the clients' side is not counted. Exit status 1 over the limit of 7.5 kB.
#include <reagent/testing/mock_server.hpp>

#include <boost/asio/io_context.hpp>

#include <cerrno>
#include <csignal>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <stdexcept>
#include <string>
#include <vector>

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

namespace {

constexpr int few = 100, many = 10'000;
constexpr double limit_kb = 7.5;  // what it weighed before the mock stood on `http_server`

void serve(int report)
{
    reagent::testing::mock_options options;
    options.gap(std::chrono::seconds(20));
    boost::asio::io_context context(1);
    reagent::testing::mock_server server(context.get_executor(), std::move(options));
    const std::uint16_t port = server.port();
    if (::write(report, &port, sizeof port) != sizeof port) return;
    context.run();
}

long rss_kb(pid_t of)
{
    std::ifstream status("/proc/" + std::to_string(of) + "/status");
    std::string line;
    while (std::getline(status, line))
        if (line.starts_with("VmRSS:")) return std::strtol(line.c_str() + 6, nullptr, 10);
    throw std::runtime_error("the server has died");
}

// Opens a stream that takes minutes and reads its beginning.
int open_stream(std::uint16_t port, unsigned number)
{
    const int fd = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    // From several addresses, as one has ports for two runs at most.
    sockaddr_in from{};
    from.sin_family = AF_INET;
    from.sin_addr.s_addr = htonl(INADDR_LOOPBACK + 1 + number % 32);
    if (::bind(fd, reinterpret_cast<sockaddr*>(&from), sizeof from) < 0) throw std::runtime_error("cannot bind");
    const timeval limit{20, 0};
    ::setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit);
    ::setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof limit);
    sockaddr_in to{};
    to.sin_family = AF_INET;
    to.sin_port = htons(port);
    to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    if (fd < 0 || ::connect(fd, reinterpret_cast<sockaddr*>(&to), sizeof to) < 0) throw std::runtime_error("cannot connect");
    const std::string body = R"({"model":"m","stream":true,"messages":[{"role":"user","content":")" + std::string(400, 'x') + R"("}]})";
    const std::string request = "POST /v1/chat/completions HTTP/1.1\r\nHost: mock\r\nContent-Length: " + std::to_string(body.size()) + "\r\n\r\n" + body;
    char byte = 0;
    if (::send(fd, request.data(), request.size(), MSG_NOSIGNAL) < 0 || ::recv(fd, &byte, 1, 0) != 1) throw std::runtime_error("no answer");
    return fd;
}

}  // namespace

int main()
{
    rlimit files{};
    ::getrlimit(RLIMIT_NOFILE, &files);
    files.rlim_cur = files.rlim_max;
    ::setrlimit(RLIMIT_NOFILE, &files);
    int ends[2] = {};
    if (::pipe(ends) != 0) return 1;
    const pid_t server = ::fork();
    if (server == 0) {
        serve(ends[1]);
        ::_exit(0);
    }
    int result = 1;
    try {
        std::uint16_t port = 0;
        if (::read(ends[0], &port, sizeof port) != sizeof port) throw std::runtime_error("the server did not start");
        std::vector<int> open;
        while (open.size() < few) open.push_back(open_stream(port, static_cast<unsigned>(open.size())));
        const long at_few = rss_kb(server);
        while (open.size() < many) open.push_back(open_stream(port, static_cast<unsigned>(open.size())));
        const long at_many = rss_kb(server);
        const double each = static_cast<double>(at_many - at_few) / (many - few);
        std::printf("{\"bench\":\"mock_memory\",\"rss_kb_at_100\":%ld,\"rss_kb_at_10000\":%ld,\"kb_per_stream\":%.2f,\"limit_kb\":%.1f}\n", at_few, at_many,
                    each, limit_kb);
        result = each <= limit_kb ? 0 : 1;
    } catch (const std::exception& e) {
        std::fprintf(stderr, "mock_memory: %s\n", e.what());
    }
    ::kill(server, SIGKILL);
    ::waitpid(server, nullptr, 0);
    return result;
}

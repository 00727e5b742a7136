// A model server that costs next to nothing: one thread on epoll, answers prepared at start. It exists to load clients; for fixtures, faults and
// a journal there is `reagent mock`.
//
//     mock --port P [--chunks N] [--delay MS] [--gap MS] [--tls CERT KEY [--no-tickets]]
//
// POST anything: a 2 KB chat completion, or (body holds "stream":true) SSE of N events, `--gap` apart. `--delay` holds the first byte back by a
// uniform 0.5…1.5 times its value. Without tickets no TLS session is resumed. Every answer and event carries `created` = stamp_base + CLOCK_MONOTONIC ns.
#include "bench_common.hpp"

#include <arpa/inet.h>
#include <netinet/tcp.h>
#include <openssl/err.h>
#include <openssl/ssl.h>
#include <signal.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <memory>
#include <queue>
#include <random>

namespace {

struct server_flags {
    int port = 9000;
    int chunks = 100;
    std::int64_t delay_ns = 0, gap_ns = 0;
    const char* certificate = nullptr;
    const char* key = nullptr;
    bool tickets = true;

    server_flags(int argc, char** argv)
    {
        for (int i = 1; i < argc; ++i) {
            const std::string_view flag = argv[i];
            const bool more = i + 1 < argc;
            if (flag == "--port" && more) port = std::atoi(argv[++i]);
            else if (flag == "--chunks" && more) chunks = std::atoi(argv[++i]);
            else if (flag == "--delay" && more) delay_ns = static_cast<std::int64_t>(std::atof(argv[++i]) * 1e6);
            else if (flag == "--gap" && more) gap_ns = static_cast<std::int64_t>(std::atof(argv[++i]) * 1e6);
            else if (flag == "--no-tickets") tickets = false;
            else if (flag == "--tls" && i + 2 < argc) {
                certificate = argv[++i];
                key = argv[++i];
            } else {
                std::fprintf(stderr, "usage: %s --port P [--chunks N] [--delay MS] [--gap MS] [--tls CERT KEY [--no-tickets]]\n", argv[0]);
                std::exit(2);
            }
        }
    }
};

/// Bytes prepared once, with a place where the time stamp goes.
class stamped_text {
public:
    explicit stamped_text(std::string text) : text_(std::move(text)), at_(text_.find('@')) {}
    void append_to(std::string& out) const
    {
        const std::size_t begin = out.size();
        out += text_;
        std::int64_t stamp = bench::stamp_base + bench::monotonic_ns();
        char* digits = out.data() + begin + at_;
        for (int i = bench::stamp_digits - 1; i >= 0; --i, stamp /= 10) digits[i] = static_cast<char>('0' + stamp % 10);
    }

private:
    std::string text_;
    std::size_t at_;
};
const std::string stamp_place(bench::stamp_digits, '@');

stamped_text make_completion()
{
    std::string body = "{\"id\":\"chatcmpl-abc123\",\"object\":\"chat.completion\",\"created\":" + stamp_place +
        ",\"model\":\"gpt-4o-mini\",\"choices\":[{\"index\":0,\"message\":{\"role\":\"assistant\",\"content\":\"";
    while (body.size() < 1850) body += "the quick brown fox \\\"jumps\\\" over\\n ";
    body += "\"},\"logprobs\":null,\"finish_reason\":\"stop\"}],\"usage\":{\"prompt_tokens\":52,\"completion_tokens\":400,\"total_tokens\":452},"
            "\"system_fingerprint\":\"fp_1\"}";
    return stamped_text("HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nx-request-id: req_0123456789\r\nContent-Length: " + std::to_string(body.size()) +
                        "\r\n\r\n" + body);
}

stamped_text make_event()
{
    const std::string event =
        "data: {\"id\":\"c1\",\"created\":" + stamp_place + ",\"choices\":[{\"index\":0,\"delta\":{\"content\":\" token42\"},\"finish_reason\":null}]}\n\n";
    char size[16];
    std::snprintf(size, sizeof size, "%zx\r\n", event.size());
    return stamped_text(size + event + "\r\n");
}

constexpr std::string_view stream_head = "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nCache-Control: no-cache\r\nTransfer-Encoding: chunked\r\n\r\n";
constexpr std::string_view stream_end = "e\r\ndata: [DONE]\n\n\r\n0\r\n\r\n";

struct connection {
    int fd = -1;
    std::uint32_t generation = 0;  // a descriptor is reused; a due step of the connection before must not hit this one
    SSL* tls = nullptr;
    std::string in, out;
    std::size_t sent = 0;
    bool sse = false;
    bool waits_to_write = false;
    int next_chunk = 0;
};

/// Something to send later.
struct due_step {
    std::int64_t at;
    int fd;
    std::uint32_t generation;
    friend bool operator>(const due_step& a, const due_step& b) { return a.at > b.at; }
};

class mock_server {
public:
    explicit mock_server(const server_flags& flags) : flags_(flags), completion_(make_completion()), event_(make_event()), connections_(70'000)
    {
        if (flags.certificate) {
            tls_ = SSL_CTX_new(TLS_server_method());
            SSL_CTX_set_mode(tls_, SSL_MODE_ENABLE_PARTIAL_WRITE | SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER | SSL_MODE_RELEASE_BUFFERS);
            if (!flags.tickets) SSL_CTX_set_num_tickets(tls_, 0);
        }
    }

    int run()
    {
        if (tls_ &&
            (SSL_CTX_use_certificate_chain_file(tls_, flags_.certificate) != 1 || SSL_CTX_use_PrivateKey_file(tls_, flags_.key, SSL_FILETYPE_PEM) != 1)) {
            std::fprintf(stderr, "mock: cannot use %s with %s\n", flags_.certificate, flags_.key);
            return 1;
        }
        if (!listen_on_loopback()) return 1;
        std::vector<epoll_event> ready(1024);
        for (;;) {
            const int n = wait(ready);
            for (int i = 0; i < n; ++i) {
                const epoll_event& e = ready[static_cast<std::size_t>(i)];
                if (e.data.fd == listener_) accept_all();
                else on_ready(e.data.fd, e.events);
            }
            run_due_steps();
        }
    }

private:
    bool listen_on_loopback()
    {
        listener_ = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
        const int on = 1;
        setsockopt(listener_, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
        sockaddr_in address{};
        address.sin_family = AF_INET;
        address.sin_port = htons(static_cast<std::uint16_t>(flags_.port));
        address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
        if (bind(listener_, reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0 || listen(listener_, 16384) != 0) {
            std::perror("mock: bind");
            return false;
        }
        epoll_ = epoll_create1(EPOLL_CLOEXEC);
        watch(EPOLL_CTL_ADD, listener_, EPOLLIN);
        socklen_t size = sizeof address;
        getsockname(listener_, reinterpret_cast<sockaddr*>(&address), &size);
        std::fprintf(stderr, "mock on 127.0.0.1:%d\n", ntohs(address.sin_port));
        return true;
    }

    void watch(int operation, int fd, std::uint32_t events)
    {
        epoll_event interest{};
        interest.events = events;
        interest.data.fd = fd;
        epoll_ctl(epoll_, operation, fd, &interest);
    }

    int wait(std::vector<epoll_event>& ready)
    {
        timespec limit{};
        if (!steps_.empty()) {
            const std::int64_t left = std::max<std::int64_t>(0, steps_.top().at - bench::monotonic_ns());
            limit = {left / 1'000'000'000, left % 1'000'000'000};
        }
        return epoll_pwait2(epoll_, ready.data(), static_cast<int>(ready.size()), steps_.empty() ? nullptr : &limit, nullptr);
    }

    void accept_all()
    {
        for (int k = 0; k < 512; ++k) {
            const int fd = accept4(listener_, nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC);
            if (fd < 0) return;
            const int on = 1;
            setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
            auto& slot = connections_[static_cast<std::size_t>(fd)];
            if (!slot) slot = std::make_unique<connection>();
            slot->fd = fd;
            if (tls_) {
                slot->tls = SSL_new(tls_);
                SSL_set_fd(slot->tls, fd);
                SSL_set_accept_state(slot->tls);
            }
            watch(EPOLL_CTL_ADD, fd, EPOLLIN);
        }
    }

    void on_ready(int fd, std::uint32_t events)
    {
        connection* c = connections_[static_cast<std::size_t>(fd)].get();
        if (!c || c->fd < 0) return;
        if ((events & EPOLLOUT) && !flush(*c)) return;
        if (events & (EPOLLIN | EPOLLHUP | EPOLLERR)) read_all(*c);
    }

    void read_all(connection& c)
    {
        for (;;) {
            const ssize_t n = c.tls ? read_tls(c) : recv(c.fd, buffer_, sizeof buffer_, 0);
            if (n == 0 || (n < 0 && errno != EAGAIN)) return close(c);
            if (n < 0) return;
            c.in.append(buffer_, static_cast<std::size_t>(n));
            serve_requests(c);
            const bool drained = !c.tls && n < static_cast<ssize_t>(sizeof buffer_);
            if (c.fd < 0 || drained) return;
        }
    }

    /// As `recv`: bytes, 0 for an end or failure, -1 with EAGAIN.
    ssize_t read_tls(connection& c)
    {
        const int n = SSL_read(c.tls, buffer_, sizeof buffer_);
        if (n > 0) return n;
        const int why = SSL_get_error(c.tls, n);
        if (why == SSL_ERROR_WANT_WRITE) want_write(c, true);
        if (why == SSL_ERROR_WANT_READ || why == SSL_ERROR_WANT_WRITE) {
            errno = EAGAIN;
            return -1;
        }
        ERR_clear_error();
        return 0;
    }

    /// Answers every whole request of the input, at once or later.
    void serve_requests(connection& c)
    {
        while (!c.in.empty()) {
            const std::size_t size = request_size(c.in);
            if (size == 0 || c.in.size() < size) return;
            c.sse = memmem(c.in.data(), size, "\"stream\":true", 13) != nullptr;
            c.in.erase(0, size);
            c.next_chunk = 0;
            if (flags_.delay_ns > 0 || (c.sse && flags_.gap_ns > 0)) {
                steps_.push({bench::monotonic_ns() + first_wait(c), c.fd, c.generation});
            } else {
                const std::uint32_t generation = c.generation;
                send_step(c);
                if (c.generation != generation) return;
            }
        }
    }

    /// Bytes of the first request, head and body; 0 while unknown.
    static std::size_t request_size(const std::string& in)
    {
        const std::size_t head_end = in.find("\r\n\r\n");
        if (head_end == std::string::npos) return 0;
        const char* length = strcasestr(in.c_str(), "content-length:");
        if (length && static_cast<std::size_t>(length - in.data()) < head_end) return head_end + 4 + static_cast<std::size_t>(std::atol(length + 15));
        if (strcasestr(in.c_str(), "transfer-encoding: chunked")) {
            const std::size_t last_chunk = in.find("\r\n0\r\n\r\n", head_end);
            return last_chunk == std::string::npos ? 0 : last_chunk + 7;
        }
        return head_end + 4;
    }

    /// Streams start spread over one gap, so that their events do not come in step.
    std::int64_t first_wait(const connection& c)
    {
        std::uniform_real_distribution<double> uniform(0, 1);
        double wait = 0;
        if (flags_.delay_ns > 0) wait += static_cast<double>(flags_.delay_ns) * (0.5 + uniform(random_));
        if (c.sse && flags_.gap_ns > 0) wait += static_cast<double>(flags_.gap_ns) * uniform(random_);
        return static_cast<std::int64_t>(wait);
    }

    /// The whole answer, or the next event of a paced stream.
    void send_step(connection& c)
    {
        if (!c.sse) {
            completion_.append_to(c.out);
            flush(c);
            return;
        }
        const bool paced = flags_.gap_ns > 0;
        if (c.next_chunk == 0) c.out += stream_head;
        do event_.append_to(c.out);
        while (++c.next_chunk < flags_.chunks && !paced);
        const bool over = c.next_chunk >= flags_.chunks;
        if (over) c.out += stream_end;
        const bool alive = flush(c);
        if (alive && !over) steps_.push({bench::monotonic_ns() + flags_.gap_ns, c.fd, c.generation});
    }

    void run_due_steps()
    {
        const std::int64_t now = bench::monotonic_ns();
        while (!steps_.empty() && steps_.top().at <= now) {
            const due_step step = steps_.top();
            steps_.pop();
            connection* c = connections_[static_cast<std::size_t>(step.fd)].get();
            if (c && c->fd >= 0 && c->generation == step.generation) send_step(*c);
        }
    }

    /// False when the connection broke and was closed.
    bool flush(connection& c)
    {
        while (c.sent < c.out.size()) {
            const char* bytes = c.out.data() + c.sent;
            const std::size_t size = c.out.size() - c.sent;
            const ssize_t n = c.tls ? write_tls(c, bytes, size) : send(c.fd, bytes, size, MSG_NOSIGNAL);
            if (n < 0 && errno == EAGAIN) {
                want_write(c, true);
                return true;
            }
            if (n <= 0) {
                close(c);
                return false;
            }
            c.sent += static_cast<std::size_t>(n);
        }
        c.out.clear();
        c.sent = 0;
        want_write(c, false);
        return true;
    }

    /// As `send`: bytes, 0 for a failure, -1 with EAGAIN.
    static ssize_t write_tls(connection& c, const char* bytes, std::size_t size)
    {
        const int n = SSL_write(c.tls, bytes, static_cast<int>(size));
        if (n > 0) return n;
        const int why = SSL_get_error(c.tls, n);
        if (why != SSL_ERROR_WANT_READ && why != SSL_ERROR_WANT_WRITE) return 0;
        errno = EAGAIN;
        return -1;
    }

    void want_write(connection& c, bool wanted)
    {
        if (c.waits_to_write == wanted) return;
        c.waits_to_write = wanted;
        watch(EPOLL_CTL_MOD, c.fd, EPOLLIN | (wanted ? EPOLLOUT : 0u));
    }

    void close(connection& c)
    {
        if (c.tls) SSL_free(c.tls);
        ::close(c.fd);
        const std::uint32_t next = c.generation + 1;
        c = connection();
        c.generation = next;
    }

    const server_flags& flags_;
    const stamped_text completion_, event_;
    std::vector<std::unique_ptr<connection>> connections_;  // by descriptor
    std::priority_queue<due_step, std::vector<due_step>, std::greater<>> steps_;
    std::minstd_rand random_;
    SSL_CTX* tls_ = nullptr;
    int listener_ = -1, epoll_ = -1;
    char buffer_[65536];
};

}  // namespace

int main(int argc, char** argv)
{
    const server_flags flags(argc, argv);
    bench::raise_descriptor_limit();
    signal(SIGPIPE, SIG_IGN);  // OpenSSL writes without MSG_NOSIGNAL
    return mock_server(flags).run();
}

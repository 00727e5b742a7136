#include "server_state.hpp"

#include "parking.hpp"

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdio>
#include <cstring>

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

namespace reagent::inline v0::net_detail {
namespace {

constexpr std::size_t scratch_size = 192 * 1024;  // what a connection kept, and a read behind it
constexpr std::size_t most_spare = 16;
constexpr int accept_bite = 256;  // so that a storm of connections does not starve the open ones
constexpr std::chrono::milliseconds accept_pause(50);

error_code last_error() noexcept
{
    return error_code(errno, boost::system::system_category());
}

[[noreturn]] void fail(const std::string& where, error_code ec)
{
    throw error(ec, "cannot listen on " + where + ": " + ec.message());
}

void check(const http_server_limits& l)
{
    const auto bad = [](const char* what) { throw config_error(std::string("[http_server] limits.") + what); };
    for (const auto d : {l.handshake, l.head, l.body_idle, l.body_grace, l.write_idle, l.keep_alive, l.linger})
        if (d.count() < 0) bad("a duration must not be negative; zero is off");
    if (l.max_head == 0 || l.max_head > 64 * 1024) bad("max_head must be from 1 to 65536");
    if (l.max_line == 0) bad("max_line must be at least 1");
    if (l.max_pipelined == 0) bad("max_pipelined must be at least 1");
    if (l.max_pipelined_bytes == 0 || l.max_pipelined_bytes > 64 * 1024) bad("max_pipelined_bytes must be from 1 to 65536");
    if (l.max_unsent < l.high_water) bad("max_unsent must be at least high_water");
    if (!(l.peer_rate >= 0) || (l.peer_rate > 0 && l.max_peers == 0)) bad("peer_rate must not be negative, and needs max_peers");
}

}  // namespace

server_state::server_state(any_io_executor executor, http_server_options o)
    : ex(std::move(executor)), options(std::move(o)), clock(options.clock ? options.clock : clock::system()), deadlines(ex, clock), scratch(scratch_size, '\0')
{
    check(options.limits);
    reading = {options.limits.max_line, options.limits.max_head, options.limits.max_body};
    if (options.limits.peer_rate > 0) rate.emplace(options.limits.peer_rate, options.limits.peer_burst, options.limits.max_peers);
    if (options.tls) {
        tls = std::make_unique<tls_server_context>(*options.tls);
        options.tls->key = secret();
    }
}

server_state::~server_state() = default;

// ---- listening

void server_state::listen()
{
    if (options.unix_socket.empty()) listen_tcp();
    else listen_unix();
    accept_retry_timer_ = clock->make_timer(ex, [this] { wait_accept(); });
    wait_accept();
}

void server_state::listen_tcp()
{
    const auto address = ip_address::parse(options.address);
    if (!address) throw config_error("[http_server] address must be an IP address, not " + options.address.substr(0, 100));
    sockaddr_storage storage{};
    socklen_t size = sizeof(sockaddr_in6);
    if (address->is_v4()) {
        auto& v4 = reinterpret_cast<sockaddr_in&>(storage);
        v4.sin_family = AF_INET;
        v4.sin_port = htons(options.port);
        v4.sin_addr.s_addr = htonl(address->v4_bits());
        size = sizeof v4;
    } else {
        auto& v6 = reinterpret_cast<sockaddr_in6&>(storage);
        v6.sin6_family = AF_INET6;
        v6.sin6_port = htons(options.port);
        std::memcpy(&v6.sin6_addr, address->bytes().data(), 16);
    }
    const std::string where = options.address + ':' + std::to_string(options.port);
    const int fd = ::socket(storage.ss_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (fd < 0) fail(where, last_error());
    listener_ = std::make_unique<socket_link>(ex);
    if (const error_code ec = listener_->adopt(fd)) fail(where, ec);
    const int on = 1;
    ::setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
    auto* generic = reinterpret_cast<sockaddr*>(&storage);
    if (::bind(fd, generic, size) < 0 || ::listen(fd, options.backlog) < 0 || ::getsockname(fd, generic, &size) < 0) fail(where, last_error());
    port = ntohs(address->is_v4() ? reinterpret_cast<sockaddr_in&>(storage).sin_port : reinterpret_cast<sockaddr_in6&>(storage).sin6_port);
}

void server_state::listen_unix()
{
    const std::string& path = options.unix_socket;
    sockaddr_un where{};
    where.sun_family = AF_UNIX;
    if (path.size() >= sizeof where.sun_path)
        throw config_error("[http_server] unix_socket is longer than " + std::to_string(sizeof where.sun_path - 1) + " bytes");
    std::memcpy(where.sun_path, path.data(), path.size());
    const auto* generic = reinterpret_cast<const sockaddr*>(&where);
    const int fd = ::socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (fd < 0) fail(path, last_error());
    listener_ = std::make_unique<socket_link>(ex);
    if (const error_code ec = listener_->adopt(fd)) fail(path, ec);
    int status = ::bind(fd, generic, sizeof where);
    if (status < 0 && errno == EADDRINUSE) {
        // Left behind by a process that has died: nobody listens, and it is a socket.
        struct stat info {};
        const int probe = ::socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
        const bool stale =
            probe >= 0 && ::connect(probe, generic, sizeof where) < 0 && errno == ECONNREFUSED && ::lstat(path.c_str(), &info) == 0 && S_ISSOCK(info.st_mode);
        if (probe >= 0) ::close(probe);
        if (stale) ::unlink(path.c_str());
        status = ::bind(fd, generic, sizeof where);
    }
    if (status < 0) fail(path, last_error());
    if (struct stat ours{}; ::lstat(path.c_str(), &ours) == 0) {
        socket_device_ = ours.st_dev;
        socket_file_ = ours.st_ino;
    }
    if (::listen(fd, options.backlog) < 0) fail(path, last_error());
}

void server_state::wait_accept()
{
    if (!listener_) return;
    listener_->when_ready(direction::read, [self = shared_from_this()](error_code ec) {
        if (!ec && self->listener_) self->accept(accept_bite);
    });
}

void server_state::accept(int bite)
{
    for (int i = 0; i < bite; ++i) {
        if (options.limits.max_connections > 0 && live.size() >= options.limits.max_connections && !draining) {
            accept_paused_ = true;
            return;
        }
        sockaddr_storage peer{};
        socklen_t size = sizeof peer;
        const int fd = ::accept4(listener_->fd(), reinterpret_cast<sockaddr*>(&peer), &size, SOCK_NONBLOCK | SOCK_CLOEXEC);
        if (fd < 0) {
            if (errno == EAGAIN || errno == EWOULDBLOCK) break;
            if (errno == ECONNABORTED || errno == EINTR || errno == EPROTO) continue;
            // Out of descriptors or memory: look again when some may have been freed.
            if (stats.accept_failures++ == 0) log(log_level::warn, "[http_server] cannot accept: " + last_error().message() + "; trying again");
            if (!draining) accept_retry_timer_->arm(clock->now() + accept_pause);
            return;
        }
        ip_address address;
        if (peer.ss_family == AF_INET) {
            address = ip_address::v4(ntohl(reinterpret_cast<sockaddr_in&>(peer).sin_addr.s_addr));
        } else if (peer.ss_family == AF_INET6) {
            std::array<std::uint8_t, 16> bytes{};
            std::memcpy(bytes.data(), &reinterpret_cast<sockaddr_in6&>(peer).sin6_addr, 16);
            address = ip_address::v6(bytes);
        }
        if (options.unix_socket.empty()) {
            const int on = 1;
            ::setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
        }
        admit(fd, address);
    }
    if (!draining) wait_accept();
}

void server_state::admit(int fd, const ip_address& peer)
{
    auto link = std::make_unique<socket_link>(ex);
    if (const error_code ec = link->adopt(fd)) {
        ++stats.accept_failures;
        return;
    }
    std::unique_ptr<transport> wire = make_plain_transport(std::move(link));
    if (tls) wire = tls->wrap(std::move(wire));
    const std::uint64_t number = ++stats.connections;
    auto c = std::make_shared<server_connection>(shared_from_this(), std::move(wire), fd, peer, options.unix_socket.empty(), number);
    live.emplace(number, c);
    stats.open = live.size();
    if (options.on_connection) options.on_connection();
    c->start();
}

void server_state::close_listener()
{
    if (!listener_) return;
    listener_->cancel();
    listener_.reset();
    accept_retry_timer_->disarm();
    struct stat there {};
    if (socket_file_ != 0 && ::lstat(options.unix_socket.c_str(), &there) == 0 && there.st_dev == socket_device_ && there.st_ino == socket_file_)
        ::unlink(options.unix_socket.c_str());
}

// ---- ends

void server_state::stop()
{
    if (stopped) return;
    stopped = draining = true;
    close_listener();
    const auto connections = live;
    for (const auto& [number, c] : connections) c->finish(peer_end::stopped, false);
    const auto running = tasks;
    for (const auto& t : running) t->cancel();
    wake_waiters();
}

void server_state::begin_drain()
{
    if (draining) return;
    draining = true;
    // Those who have connected already are served; the kernel would reset them with the listener.
    if (listener_) accept(options.backlog);
    close_listener();
    const auto connections = live;
    for (const auto& [number, c] : connections) {
        c->end_after_answer();
        if (c->idle()) c->on_readable();  // its request may be on the way in
        if (c->idle()) c->finish(peer_end::stopped, false);
    }
}

void server_state::left(std::uint64_t number)
{
    live.erase(number);
    stats.open = live.size();
    if (live.empty()) wake_waiters();
    if (accept_paused_ && listener_) {
        accept_paused_ = false;
        wait_accept();
    }
}

void server_state::wake_waiters()
{
    for (parking* w : waiters) w->wake();
}

// ---- what is lent

std::unique_ptr<incoming_request> server_state::lend()
{
    if (spare_.empty()) return std::make_unique<incoming_request>(reading);
    auto r = std::move(spare_.back());
    spare_.pop_back();
    return r;
}

void server_state::give_back(std::unique_ptr<incoming_request> r)
{
    if (spare_.size() >= most_spare) return;
    r->reader.reset();
    r->body = std::string();
    spare_.push_back(std::move(r));
}

std::string_view server_state::date_line()
{
    static constexpr std::array<const char*, 7> days = {"Sun", "Mon", "Tue", "Wed", "Thu", "Fri", "Sat"};
    static constexpr std::array<const char*, 12> months = {"Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"};
    const std::time_t second = std::chrono::system_clock::to_time_t(clock->wall());
    if (second == date_second_) return date_;
    std::tm t{};
    ::gmtime_r(&second, &t);
    std::array<char, 64> text{};
    const int n = std::snprintf(text.data(), text.size(), "Date: %s, %02d %s %04d %02d:%02d:%02d GMT\r\n", days[static_cast<std::size_t>(t.tm_wday)], t.tm_mday,
                                months[static_cast<std::size_t>(t.tm_mon)], t.tm_year + 1900, t.tm_hour, t.tm_min, t.tm_sec);
    date_.assign(text.data(), static_cast<std::size_t>(n));
    date_second_ = second;
    return date_;
}

}  // namespace reagent::inline v0::net_detail

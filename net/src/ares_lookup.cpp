#include "ares_lookup.hpp"

#include "parking.hpp"

#include <reagent/base/error.hpp>
#include <reagent/base/untrusted_text.hpp>

#include <boost/asio/error.hpp>
#include <boost/asio/posix/stream_descriptor.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/this_coro.hpp>

#include <ares.h>
#include <netdb.h>
#include <netinet/in.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <map>

namespace reagent::inline v0::net_detail {
namespace {

// ares_library_init counts its calls; the first of ours stays for the life of the process, as c-ares wants it.
void initialise_library()
{
    static const int status = ares_library_init(ARES_LIB_INIT_ALL);
    if (status != ARES_SUCCESS) throw error(errc::resolve_failed, std::string("[resolver] c-ares cannot be set up: ") + ares_strerror(status));
}

}  // namespace

struct ares_lookup::impl : std::enable_shared_from_this<impl> {
    struct watched {
        explicit watched(any_io_executor ex, int fd) : descriptor(std::move(ex), fd) {}
        asio::posix::stream_descriptor descriptor;
        bool read = false, write = false;                  // what c-ares wants
        bool reading = false, writing = false;             // what is being waited for
    };

    impl(any_io_executor e, const dns_options& o) : ex(e), asked(o), retry_timer_(e), answer(e) {}

    void open();
    void close() noexcept;
    static void on_socket(void* self, ares_socket_t fd, int readable, int writable);
    static void on_answer(void* self, int status, int timeouts, ares_addrinfo* found);
    void watch(int fd, bool read, bool write);
    void wait_for(int fd, watched& w);
    void arm();
    void process(int read_fd, int write_fd);

    any_io_executor ex;
    dns_options asked;
    ares_channel channel = nullptr;
    std::map<int, std::shared_ptr<watched>> sockets;
    asio::steady_timer retry_timer_;  // c-ares' own repetitions
    parking answer;
    int status = ARES_ECANCELLED;
    std::vector<ip_address> addresses;
};

void ares_lookup::impl::open()
{
    initialise_library();
    ares_options options{};
    options.sock_state_cb = &impl::on_socket;
    options.sock_state_cb_data = this;
    options.timeout = static_cast<int>(asked.timeout.count());
    options.tries = asked.tries;
    int made = ares_init_options(&channel, &options, ARES_OPT_SOCK_STATE_CB | ARES_OPT_TIMEOUTMS | ARES_OPT_TRIES);
    if (made != ARES_SUCCESS) channel = nullptr;
    std::string servers;
    for (const std::string& s : asked.servers) servers += (servers.empty() ? "" : ",") + s;
    if (made == ARES_SUCCESS && !servers.empty()) made = ares_set_servers_ports_csv(channel, servers.c_str());
    if (made != ARES_SUCCESS) {
        throw error(errc::resolve_failed, std::string("[resolver] c-ares cannot be set up: ") + ares_strerror(made));
    }
}

void ares_lookup::impl::close() noexcept
{
    // Calls on_answer with a cancellation and on_socket for every socket it closes.
    if (channel) ares_destroy(std::exchange(channel, nullptr));
    for (auto& [fd, w] : sockets) w->descriptor.release();
    sockets.clear();
    retry_timer_.cancel();
}

void ares_lookup::impl::on_socket(void* self, ares_socket_t fd, int readable, int writable) { static_cast<impl*>(self)->watch(fd, readable != 0, writable != 0); }

void ares_lookup::impl::watch(int fd, bool read, bool write)
{
    const auto at = sockets.find(fd);
    if (!read && !write) {
        if (at == sockets.end()) return;
        // c-ares closes the number itself; released, it is only taken out of the reactor.
        at->second->descriptor.release();
        sockets.erase(at);
        return;
    }
    auto& w = at != sockets.end() ? at->second : sockets.emplace(fd, std::make_shared<watched>(ex, fd)).first->second;
    w->read = read;
    w->write = write;
    wait_for(fd, *w);
}

void ares_lookup::impl::wait_for(int fd, watched& w)
{
    using base = asio::posix::descriptor_base;
    const auto wait = [&](base::wait_type type, bool watched::*pending, bool writing) {
        w.*pending = true;
        w.descriptor.async_wait(type, [weak = weak_from_this(), owner = std::weak_ptr<watched>(sockets.at(fd)), pending, writing, fd](const error_code& ec) {
            const auto self = weak.lock();
            const auto socket = owner.lock();
            if (!self || !socket) return;
            (*socket).*pending = false;
            if (ec) return;
            self->process(writing ? ARES_SOCKET_BAD : fd, writing ? fd : ARES_SOCKET_BAD);
            const auto still = self->sockets.find(fd);
            if (still != self->sockets.end() && still->second == socket) self->wait_for(fd, *socket);
        });
    };
    if (w.read && !w.reading) wait(base::wait_read, &watched::reading, false);
    if (w.write && !w.writing) wait(base::wait_write, &watched::writing, true);
}

void ares_lookup::impl::process(int read_fd, int write_fd)
{
    if (!channel) return;
    ares_process_fd(channel, read_fd, write_fd);
    arm();
}

void ares_lookup::impl::arm()
{
    if (!channel) return;
    timeval next{};
    const timeval* due = ares_timeout(channel, nullptr, &next);
    if (!due) {
        retry_timer_.cancel();
        return;
    }
    retry_timer_.expires_after(std::chrono::seconds(due->tv_sec) + std::chrono::microseconds(due->tv_usec));
    retry_timer_.async_wait([weak = weak_from_this()](const error_code& ec) {
        const auto self = weak.lock();
        if (self && !ec) self->process(ARES_SOCKET_BAD, ARES_SOCKET_BAD);
    });
}

void ares_lookup::impl::on_answer(void* self, int outcome, int, ares_addrinfo* found)
{
    impl& me = *static_cast<impl*>(self);
    me.status = outcome;
    if (found) {
        for (const ares_addrinfo_node* n = found->nodes; n; n = n->ai_next) {
            ip_address address;
            if (n->ai_family == AF_INET) {
                address = ip_address::v4(ntohl(reinterpret_cast<const sockaddr_in*>(n->ai_addr)->sin_addr.s_addr));
            } else if (n->ai_family == AF_INET6) {
                std::array<std::uint8_t, 16> bytes;
                std::memcpy(bytes.data(), &reinterpret_cast<const sockaddr_in6*>(n->ai_addr)->sin6_addr, 16);
                address = ip_address::v6(bytes);
            } else {
                continue;
            }
            if (std::find(me.addresses.begin(), me.addresses.end(), address) == me.addresses.end()) me.addresses.push_back(address);
        }
        ares_freeaddrinfo(found);
    }
    me.answer.wake();
}

ares_lookup::ares_lookup(any_io_executor ex, const dns_options& options) : impl_(std::make_shared<impl>(std::move(ex), options)) {}

ares_lookup::~ares_lookup() { impl_->close(); }

awaitable<std::vector<ip_address>> ares_lookup::run(std::string host)
{
    impl& me = *impl_;
    me.open();
    ares_addrinfo_hints hints{};
    hints.ai_family = AF_UNSPEC;
    hints.ai_socktype = SOCK_STREAM;
    ares_getaddrinfo(me.channel, host.c_str(), nullptr, &hints, &impl::on_answer, &me);
    me.arm();
    co_await me.answer.wait();
    const auto state = co_await asio::this_coro::cancellation_state;
    if (state.cancelled() != asio::cancellation_type::none) throw boost::system::system_error(asio::error::operation_aborted, "co_await");
    if (me.addresses.empty())
        throw error(errc::resolve_failed,
                    "[resolver] " + untrusted_text(host, 255) + ": " + (me.status == ARES_SUCCESS ? "the name has no address" : ares_strerror(me.status)), true);
    co_return std::move(me.addresses);
}

}  // namespace reagent::inline v0::net_detail

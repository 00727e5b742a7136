#include "ares_lookup.hpp"

#include <reagent/base/error.hpp>

#include <boost/asio/posix/stream_descriptor.hpp>
#include <boost/asio/steady_timer.hpp>

#include <ares.h>
#include <netdb.h>
#include <netinet/in.h>

#include <algorithm>
#include <array>
#include <climits>
#include <cstring>
#include <map>
#include <utility>

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
        bool read = false, write = false;       // what c-ares wants
        bool reading = false, writing = false;  // what is being waited for
    };

    impl(any_io_executor e, const clock_ptr& clock, std::function<void(lookup_result)> d) : ex(e), retry_timer_(e), done(std::move(d))
    {
        delay_timer_ = clock->make_timer(e, [this] { finish(); });
        now = [clock] { return clock->now(); };
    }

    void open(const dns_options& asked);
    void close() noexcept;
    static void on_socket(void* self, ares_socket_t fd, int readable, int writable);
    static void on_answer(void* family, int status, int timeouts, ares_addrinfo* found);
    void finish();
    void watch(int fd, bool read, bool write);
    void wait_for(int fd, watched& w);
    void arm();
    void process(int read_fd, int write_fd);

    /// What one of the two queries has come to.
    struct family {
        impl* owner = nullptr;
        bool answered = false;
        int status = ARES_ECANCELLED;
        std::vector<ip_address> addresses;
        int ttl = INT_MAX;
    };

    any_io_executor ex;
    ares_channel channel = nullptr;
    std::map<int, std::shared_ptr<watched>> sockets;
    asio::steady_timer retry_timer_;  // c-ares' own repetitions
    std::unique_ptr<clock_timer> delay_timer_;
    std::function<steady_time()> now;
    std::function<void(lookup_result)> done;
    family v6, v4;
    bool finished = false;
};

void ares_lookup::impl::open(const dns_options& asked)
{
    initialise_library();
    ares_options options{};
    options.sock_state_cb = &impl::on_socket;
    options.sock_state_cb_data = this;
    options.timeout = static_cast<int>(asked.timeout.count());
    options.tries = asked.tries;
    char servers_only[] = "b";  // the hosts file is ours to read
    options.lookups = servers_only;
    int made = ares_init_options(&channel, &options, ARES_OPT_SOCK_STATE_CB | ARES_OPT_TIMEOUTMS | ARES_OPT_TRIES | ARES_OPT_LOOKUPS);
    if (made != ARES_SUCCESS) channel = nullptr;
    std::string servers;
    for (const std::string& s : asked.servers) servers += (servers.empty() ? "" : ",") + s;
    if (made == ARES_SUCCESS && !servers.empty()) made = ares_set_servers_ports_csv(channel, servers.c_str());
    if (made != ARES_SUCCESS) { throw error(errc::resolve_failed, std::string("[resolver] c-ares cannot be set up: ") + ares_strerror(made)); }
}

void ares_lookup::impl::close() noexcept
{
    delay_timer_->disarm();
    // Calls on_answer with a cancellation and on_socket for every socket it closes.
    if (channel) ares_destroy(std::exchange(channel, nullptr));
    for (auto& [fd, w] : sockets) w->descriptor.release();
    sockets.clear();
    retry_timer_.cancel();
}

void ares_lookup::impl::on_socket(void* self, ares_socket_t fd, int readable, int writable)
{
    static_cast<impl*>(self)->watch(fd, readable != 0, writable != 0);
}

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

void ares_lookup::impl::on_answer(void* asked, int status, int, ares_addrinfo* found)
{
    family& f = *static_cast<family*>(asked);
    f.answered = true;
    f.status = status;
    if (found) {
        for (const ares_addrinfo_cname* n = found->cnames; n; n = n->next) f.ttl = std::min(f.ttl, n->ttl);
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
            f.ttl = std::min(f.ttl, n->ai_ttl);
            if (std::find(f.addresses.begin(), f.addresses.end(), address) == f.addresses.end()) f.addresses.push_back(address);
        }
        ares_freeaddrinfo(found);
    }
    impl& me = *f.owner;
    if (me.v4.answered && me.v6.answered) me.finish();
    else if (me.v4.answered && !me.v4.addresses.empty()) me.delay_timer_->arm(me.now() + resolution_delay);
}

// Tells what has come so far. A dead channel says ARES_EDESTRUCTION through on_answer, when nobody is to be told any more.
void ares_lookup::impl::finish()
{
    if (std::exchange(finished, true)) return;
    delay_timer_->disarm();
    lookup_result r;
    int ttl = INT_MAX;
    for (const family* f : {&v6, &v4}) {
        r.addresses.insert(r.addresses.end(), f->addresses.begin(), f->addresses.end());
        ttl = std::min(ttl, f->ttl);
    }
    r.ttl = std::chrono::seconds(ttl);
    if (r.addresses.empty()) {
        const auto denied = [](const family& f) { return f.status == ARES_ENOTFOUND || f.status == ARES_ENODATA || f.status == ARES_SUCCESS; };
        r.absent = denied(v4) && denied(v6);
        const int status = denied(v4) && !r.absent ? v6.status : v4.status;
        r.trouble = status == ARES_SUCCESS ? "the name has no address" : ares_strerror(status);
    }
    done(std::move(r));
}

ares_lookup::ares_lookup(any_io_executor ex, const dns_options& options, const clock_ptr& clock, std::function<void(lookup_result)> done)
    : impl_(std::make_shared<impl>(std::move(ex), clock, std::move(done)))
{
    impl_->open(options);
}

ares_lookup::~ares_lookup()
{
    impl_->finished = true;
    impl_->close();
}

void ares_lookup::start(const std::string& host)
{
    impl& me = *impl_;
    me.v6.owner = me.v4.owner = &me;
    ares_addrinfo_hints hints{};
    hints.ai_socktype = SOCK_STREAM;
    hints.ai_family = AF_INET6;
    ares_getaddrinfo(me.channel, host.c_str(), nullptr, &hints, &impl::on_answer, &me.v6);
    hints.ai_family = AF_INET;
    ares_getaddrinfo(me.channel, host.c_str(), nullptr, &hints, &impl::on_answer, &me.v4);
    me.arm();
}

}  // namespace reagent::inline v0::net_detail

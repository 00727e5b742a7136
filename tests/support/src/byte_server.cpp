#include <reagent/base/ascii.hpp>
#include <reagent/testing/byte_server.hpp>

#include <boost/asio/bind_executor.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/dispatch.hpp>
#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/redirect_error.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/strand.hpp>
#include <boost/asio/write.hpp>

#include <algorithm>
#include <condition_variable>
#include <cstdlib>
#include <mutex>
#include <optional>
#include <set>
#include <stdexcept>
#include <thread>

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

namespace reagent::inline v0::testing {

namespace {

using asio::ip::tcp;

/// The decoded body of a chunked message at the start of `bytes` and how much it took, or nothing when it is not whole.
std::optional<std::pair<std::string, std::size_t>> chunked_body(std::string_view bytes)
{
    std::string body;
    std::size_t at = 0;
    for (;;) {
        const std::size_t line = bytes.find("\r\n", at);
        if (line == std::string_view::npos) return std::nullopt;
        const std::size_t size = std::strtoull(std::string(bytes.substr(at, line - at)).c_str(), nullptr, 16);
        at = line + 2;
        if (bytes.size() < at + size + 2) return std::nullopt;
        body.append(bytes.substr(at, size));
        at += size + 2;
        if (size == 0) return std::pair(std::move(body), at);
    }
}

/// Takes one whole request off the front of `bytes`, or nothing.
std::optional<byte_request> take_request(std::string& bytes)
{
    const std::size_t end = bytes.find("\r\n\r\n");
    if (end == std::string::npos) return std::nullopt;
    byte_request r;
    r.head = bytes.substr(0, end + 4);
    std::size_t used = r.head.size();
    if (to_lower(r.header("transfer-encoding")) == "chunked") {
        auto body = chunked_body(std::string_view(bytes).substr(used));
        if (!body) return std::nullopt;
        r.body = std::move(body->first);
        used += body->second;
    } else {
        const std::size_t length = std::strtoull(r.header("content-length").c_str(), nullptr, 10);
        if (bytes.size() < used + length) return std::nullopt;
        r.body = bytes.substr(used, length);
        used += length;
    }
    bytes.erase(0, used);
    return r;
}

struct connection {
    connection(tcp::socket s, std::size_t i, byte_script p)
        : socket(std::move(s)), changed_cv(socket.get_executor(), asio::steady_timer::time_point::max()), index(i), script(std::move(p))
    {}
    tcp::socket socket;
    asio::steady_timer changed_cv;  // cancelled when bytes came, a gate opened, reading is allowed again, or the end was seen
    std::size_t index;
    byte_script script;
    std::string buffer;
    bool reading = true;
    bool peer_ended = false;
    bool over = false;
};

}  // namespace

struct byte_server::impl : std::enable_shared_from_this<impl> {
    impl(any_io_executor ex, std::vector<byte_script> s, const tcp::endpoint& at = tcp::endpoint(asio::ip::address_v4::loopback(), 0))
        : strand(asio::make_strand(ex)), acceptor(strand, at), scripts(std::move(s))
    {
        if (scripts.empty()) throw std::invalid_argument("byte_server: no script");
        acceptor.non_blocking(true);
        port = acceptor.local_endpoint().port();
    }

    asio::strand<any_io_executor> strand;
    tcp::acceptor acceptor;
    std::vector<byte_script> scripts;
    std::uint16_t port = 0;
    std::vector<std::weak_ptr<connection>> live;
    std::set<std::string> opened;
    bool stopped = false;

    mutable std::mutex lock;
    mutable std::condition_variable logged_cv;
    byte_log seen;

    template <class F>
    void record(std::size_t index, std::string what, F change)
    {
        {
            const std::lock_guard guard(lock);
            if (!what.empty()) seen.events.push_back(std::to_string(index) + ' ' + what);
            change(seen.connections[index]);
        }
        logged_cv.notify_all();
    }

    /// Every coroutine here reports its failures as an event: a test sees them in the log.
    static auto finished(std::shared_ptr<impl> self)
    {
        return [self = std::move(self)](std::exception_ptr failure) {
            if (!failure) return;
            const std::lock_guard guard(self->lock);
            self->seen.events.emplace_back("server failed");
        };
    }

    void start() { asio::co_spawn(strand, accept(shared_from_this()), finished(shared_from_this())); }

    static awaitable<void> accept(std::shared_ptr<impl> self);
    static awaitable<void> read(std::shared_ptr<impl> self, std::shared_ptr<connection> c);
    static awaitable<void> play(std::shared_ptr<impl> self, std::shared_ptr<connection> c);
    static awaitable<bool> send(std::shared_ptr<impl> self, std::shared_ptr<connection> c, std::string bytes);
    static awaitable<bool> trickle(std::shared_ptr<impl> self, std::shared_ptr<connection> c, std::string bytes);
    static awaitable<bool> send_forever(std::shared_ptr<impl> self, std::shared_ptr<connection> c, std::string bytes);
    static awaitable<bool> receive(std::shared_ptr<impl> self, std::shared_ptr<connection> c);
    static awaitable<bool> pass(std::shared_ptr<impl> self, std::shared_ptr<connection> c, std::string gate);
    static awaitable<void> wait_change(std::shared_ptr<connection> c);

    void end(connection& c, byte_end how, const char* word)
    {
        if (c.peer_ended || c.over) return;
        record(c.index, word, [how](byte_connection& r) {
            r.end = how;
            r.ended = std::chrono::steady_clock::now();
        });
    }

    /// Closes from our side.
    void close(connection& c, bool with_reset)
    {
        end(c, byte_end::ours, with_reset ? "our reset" : "our close");
        c.over = true;
        error_code ignored;
        if (with_reset) c.socket.set_option(asio::socket_base::linger(true, 0), ignored);
        c.socket.close(ignored);
        c.changed_cv.cancel();
    }

    void stop()
    {
        if (stopped) return;
        stopped = true;
        error_code ignored;
        acceptor.close(ignored);
        for (const auto& weak : live) {
            if (const auto c = weak.lock(); c && !c->over) close(*c, false);
        }
    }
};

awaitable<void> byte_server::impl::accept(std::shared_ptr<impl> self)
{
    for (;;) {
        error_code ec;
        tcp::socket socket = co_await self->acceptor.async_accept(asio::redirect_error(asio::use_awaitable, ec));
        if (self->stopped) co_return;
        if (ec == asio::error::connection_aborted) continue;
        if (ec) throw boost::system::system_error(ec);
        socket.set_option(tcp::no_delay(true), ec);
        socket.non_blocking(true, ec);
        const std::size_t index = self->seen.connections.size();
        {
            const std::lock_guard guard(self->lock);
            self->seen.connections.emplace_back().accepted = std::chrono::steady_clock::now();
        }
        self->record(index, "accept", [](byte_connection&) {});
        const auto& script = self->scripts[std::min(index, self->scripts.size() - 1)];
        auto c = std::make_shared<connection>(std::move(socket), index, script);
        self->live.push_back(c);
        asio::co_spawn(self->strand, read(self, c), finished(self));
        asio::co_spawn(self->strand, play(self, c), finished(self));
    }
}

awaitable<void> byte_server::impl::wait_change(std::shared_ptr<connection> c)
{
    error_code ignored;
    co_await c->changed_cv.async_wait(asio::redirect_error(asio::use_awaitable, ignored));
}

awaitable<void> byte_server::impl::read(std::shared_ptr<impl> self, std::shared_ptr<connection> c)
{
    std::string block(std::size_t{64} << 10, '\0');
    while (!c->over) {
        if (!c->reading) {
            co_await wait_change(c);
            continue;
        }
        error_code ec;
        co_await c->socket.async_wait(tcp::socket::wait_read, asio::redirect_error(asio::use_awaitable, ec));
        if (c->over || ec) break;
        if (!c->reading) continue;
        const std::size_t n = c->socket.read_some(asio::buffer(block), ec);
        if (ec == asio::error::would_block) continue;
        if (ec) {
            const bool fin = ec == asio::error::eof;
            self->end(*c, fin ? byte_end::fin : byte_end::reset, fin ? "fin" : "rst");
            c->peer_ended = true;
            c->changed_cv.cancel();
            break;
        }
        c->buffer.append(block, 0, n);
        self->record(c->index, {}, [n](byte_connection& r) { r.received += n; });
        c->changed_cv.cancel();
    }
}

awaitable<bool> byte_server::impl::receive(std::shared_ptr<impl> self, std::shared_ptr<connection> c)
{
    for (;;) {
        std::optional<byte_request> request = take_request(c->buffer);
        if (request) {
            self->record(c->index, "request", [&request](byte_connection& r) { r.requests.push_back(std::move(*request)); });
            co_return true;
        }
        if (c->peer_ended || c->over) co_return false;
        co_await wait_change(c);
    }
}

awaitable<bool> byte_server::impl::pass(std::shared_ptr<impl> self, std::shared_ptr<connection> c, std::string gate)
{
    if (!self->opened.contains(gate)) self->record(c->index, "at gate:" + gate, [](byte_connection&) {});
    while (!self->opened.contains(gate)) {
        if (c->over || c->peer_ended) co_return false;
        co_await wait_change(c);
    }
    self->record(c->index, "gate:" + gate, [](byte_connection&) {});
    co_return true;
}

awaitable<bool> byte_server::impl::send(std::shared_ptr<impl> self, std::shared_ptr<connection> c, std::string bytes)
{
    std::size_t at = 0;
    while (at < bytes.size()) {
        error_code ec;
        const std::size_t n = co_await c->socket.async_write_some(asio::buffer(bytes) + at, asio::redirect_error(asio::use_awaitable, ec));
        at += n;
        if (n > 0) self->record(c->index, {}, [n](byte_connection& r) { r.sent += n; });
        if (ec) {
            if (!c->over && ec != asio::error::operation_aborted) {
                self->end(*c, byte_end::reset, "rst");
                c->peer_ended = true;
            }
            co_return false;
        }
    }
    co_return true;
}

awaitable<bool> byte_server::impl::trickle(std::shared_ptr<impl> self, std::shared_ptr<connection> c, std::string bytes)
{
    // Three rounds of the loop let a client on the same context see its socket ready, read it, and wait again.
    constexpr int rounds = 3;
    for (const char byte : bytes) {
        const bool sent = co_await send(self, c, std::string(1, byte));
        if (!sent) co_return false;
        for (int i = 0; i < rounds; ++i) co_await asio::post(asio::use_awaitable);
        if (c->over) co_return false;
    }
    co_return true;
}

awaitable<bool> byte_server::impl::send_forever(std::shared_ptr<impl> self, std::shared_ptr<connection> c, std::string bytes)
{
    for (;;) {
        const bool sent = co_await send(self, c, bytes);
        if (!sent) co_return false;
        co_await asio::post(asio::use_awaitable);
        if (c->over) co_return false;
    }
}

awaitable<void> byte_server::impl::play(std::shared_ptr<impl> self, std::shared_ptr<connection> c)
{
    using action = byte_script::action;
    const std::vector<byte_script::step>& steps = c->script.steps();
    bool on = true;
    for (std::size_t i = 0; on && !c->over && i < steps.size();) {
        const byte_script::step& step = steps[i++];
        error_code ignored;
        switch (step.what) {
        case action::request: on = co_await receive(self, c); break;
        case action::send: on = co_await send(self, c, step.bytes); break;
        case action::trickle: on = co_await trickle(self, c, step.bytes); break;
        case action::forever: on = co_await send_forever(self, c, step.bytes); break;
        case action::gate: on = co_await pass(self, c, step.bytes); break;
        case action::half_close: c->socket.shutdown(tcp::socket::shutdown_send, ignored); break;
        case action::reset: self->close(*c, true); break;
        case action::close: self->close(*c, false); break;
        case action::stall: on = false; break;
        case action::stop_reading: c->reading = false; break;
        case action::read_again:
            c->reading = true;
            c->changed_cv.cancel();
            break;
        case action::repeat: i = 0; break;
        }
    }
    while (!c->peer_ended && !c->over) co_await wait_change(c);
    if (c->over) co_return;
    c->over = true;
    error_code ignored;
    c->socket.close(ignored);
    self->record(c->index, "done", [](byte_connection&) {});
}

struct byte_server::own_thread {
    asio::io_context context{1};
    asio::executor_work_guard<asio::io_context::executor_type> work = asio::make_work_guard(context);
    std::thread thread;

    void start()
    {
        thread = std::thread([this] { context.run(); });
    }
    void join()
    {
        work.reset();
        thread.join();
    }
};

byte_script byte_script::answering(std::string response)
{
    byte_script s;
    s.request().send(std::move(response)).repeat();
    return s;
}

byte_server::byte_server(any_io_executor ex, std::vector<byte_script> scripts) : impl_(std::make_shared<impl>(std::move(ex), std::move(scripts)))
{
    impl_->start();
}

byte_server::byte_server(any_io_executor ex, byte_script script, const std::string& address, std::uint16_t port)
    : impl_(std::make_shared<impl>(std::move(ex), std::vector<byte_script>{std::move(script)}, tcp::endpoint(asio::ip::make_address(address), port)))
{
    impl_->start();
}

byte_server::byte_server(any_io_executor ex, byte_script script) : byte_server(std::move(ex), std::vector<byte_script>{std::move(script)}) {}

byte_server::byte_server(std::vector<byte_script> scripts) : thread_(std::make_unique<own_thread>())
{
    impl_ = std::make_shared<impl>(thread_->context.get_executor(), std::move(scripts));
    impl_->start();
    thread_->start();
}

byte_server::byte_server(byte_script script) : byte_server(std::vector<byte_script>{std::move(script)}) {}

byte_server::~byte_server()
{
    if (thread_) {
        stop();
        thread_->join();
        impl_.reset();
    } else {
        // The coroutines hold what they use; they end when the context runs next, or with it.
        impl_->stop();
    }
}

std::uint16_t byte_server::port() const noexcept
{
    return impl_->port;
}
std::string byte_server::origin() const
{
    return "http://127.0.0.1:" + std::to_string(impl_->port);
}

void byte_server::open(std::string gate)
{
    asio::dispatch(impl_->strand, [self = impl_, gate = std::move(gate)] {
        self->opened.insert(gate);
        for (const auto& weak : self->live) {
            if (const auto c = weak.lock()) c->changed_cv.cancel();
        }
    });
}

void byte_server::stop()
{
    asio::dispatch(impl_->strand, [self = impl_] { self->stop(); });
}

byte_log byte_server::log() const
{
    const std::lock_guard guard(impl_->lock);
    return impl_->seen;
}

bool byte_server::wait_until(const std::function<bool(const byte_log&)>& seen, std::chrono::milliseconds limit) const
{
    std::unique_lock guard(impl_->lock);
    return impl_->logged_cv.wait_for(guard, limit, [&] { return seen(impl_->seen); });
}

std::string byte_request::method() const
{
    return head.substr(0, head.find(' '));
}

std::string byte_request::target() const
{
    const std::size_t start = head.find(' ') + 1;
    return head.substr(start, head.find(' ', start) - start);
}

std::string byte_request::header(std::string_view name) const
{
    const std::string wanted = to_lower(name);
    for (std::size_t at = head.find("\r\n"); at != std::string::npos && at + 2 < head.size();) {
        const std::size_t start = at + 2;
        at = head.find("\r\n", start);
        const std::string_view line = std::string_view(head).substr(start, at - start);
        const std::size_t colon = line.find(':');
        if (colon == std::string_view::npos || to_lower(line.substr(0, colon)) != wanted) continue;
        std::string_view value = line.substr(colon + 1);
        while (!value.empty() && value.front() == ' ') value.remove_prefix(1);
        while (!value.empty() && value.back() == ' ') value.remove_suffix(1);
        return std::string(value);
    }
    return {};
}

bool byte_log::saw(std::string_view event) const noexcept
{
    return std::find(events.begin(), events.end(), event) != events.end();
}

std::size_t byte_log::requests() const noexcept
{
    std::size_t n = 0;
    for (const byte_connection& c : connections) n += c.requests.size();
    return n;
}

std::size_t byte_log::open() const noexcept
{
    return static_cast<std::size_t>(std::count_if(connections.begin(), connections.end(), [](const byte_connection& c) { return c.end == byte_end::open; }));
}

const byte_request& byte_log::request(std::size_t index) const
{
    for (const byte_connection& c : connections) {
        if (index < c.requests.size()) return c.requests[index];
        index -= c.requests.size();
    }
    throw std::out_of_range("byte_log: no such request");
}

refused_port::refused_port() : fd_(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0))
{
    sockaddr_in a{};
    a.sin_family = AF_INET;
    a.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof a;
    if (fd_ < 0 || ::bind(fd_, reinterpret_cast<sockaddr*>(&a), size) != 0 || ::getsockname(fd_, reinterpret_cast<sockaddr*>(&a), &size) != 0) {
        throw std::runtime_error("refused_port: no port");
    }
    port_ = ntohs(a.sin_port);
}

refused_port::~refused_port()
{
    ::close(fd_);
}

}  // namespace reagent::inline v0::testing

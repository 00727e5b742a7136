// One HTTP exchange, cancelled after every handler in the places where it waits longest: the pool, the look-up, the connection, the handshake, the
// upload, and a head and a body that do not come. The run that is not cancelled ends by the limit of that place.
#include "net_world.hpp"

#include "cancel_world.hpp"

#include <reagent/net/redirects.hpp>

#include <gtest/gtest.h>

#include <arpa/inet.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

namespace {
namespace net_cancel_test {

using namespace cancel_tests;

class file_number {
public:
    explicit file_number(int fd) : fd_(fd) {}
    file_number(file_number&& o) noexcept : fd_(std::exchange(o.fd_, -1)) {}
    file_number& operator=(file_number&&) = delete;
    ~file_number()
    {
        if (fd_ >= 0) ::close(fd_);
    }
    operator int() const noexcept { return fd_; }

private:
    int fd_;
};

/// A listening socket nobody accepts from, its backlog full: the next connection hangs in the middle.
class full_port {
public:
    full_port() : listener_(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0))
    {
        at_.sin_family = AF_INET;
        at_.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
        socklen_t size = sizeof at_;
        if (::bind(listener_, address(), size) != 0 || ::listen(listener_, 0) != 0 || ::getsockname(listener_, address(), &size) != 0)
            throw std::runtime_error("listen");
        // A connection that gets in is there at once; the first that is not has found the backlog full.
        for (int i = 0; i < 16; ++i) {
            waiting_.emplace_back(::socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
            if (::connect(waiting_.back(), address(), size) == 0) continue;
            pollfd p{waiting_.back(), POLLOUT, 0};
            if (::poll(&p, 1, 20) == 0) return;
        }
        throw std::runtime_error("the backlog is never full");
    }
    std::uint16_t port() const { return ntohs(at_.sin_port); }

private:
    sockaddr* address() { return reinterpret_cast<sockaddr*>(&at_); }
    sockaddr_in at_{};
    file_number listener_;
    std::vector<file_number> waiting_;
};

/// A name server that never answers.
class silent_name_server {
public:
    silent_name_server() : socket_(::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0))
    {
        sockaddr_in at{};
        at.sin_family = AF_INET;
        at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
        socklen_t size = sizeof at;
        auto* address = reinterpret_cast<sockaddr*>(&at);
        if (::bind(socket_, address, size) != 0 || ::getsockname(socket_, address, &size) != 0) throw std::runtime_error("bind");
        port_ = ntohs(at.sin_port);
    }
    std::string address() const { return "127.0.0.1:" + std::to_string(port_); }

private:
    file_number socket_;
    std::uint16_t port_ = 0;
};

awaitable<void> follow(http_client client, http_request request, std::string* got)
{
    http_exchange x = co_await open_following(std::move(client), std::move(request));
    *got = co_await net_tests::rest_of(x);
}

/// One exchange with a server that plays `script`, or with `target` when that is given.
class exchange_case final : public rt::cancel_case {
public:
    struct setup {
        rt::byte_script script = rt::byte_script().stall();
        std::string scheme = "http";
        std::string target;             ///< instead of the server's
        std::string name_server;        ///< look names up there
        bool proxied = false;           ///< the server is a proxy
        bool following = false;         ///< go along with redirects
        std::size_t upload = 0;         ///< bytes of the request's body
        errc ends_by = errc::deadline;  ///< the limit that ends it when nobody cancels
    };
    exchange_case(asio::io_context& io, const setup& s)
        : setup_(s), body_(s.upload, 'x'), server_(io.get_executor(), s.script), http_(io.get_executor(), options(io))
    {}
    awaitable<void> operation() override
    {
        const std::string target = setup_.target.empty() ? setup_.scheme + server_.origin().substr(4) + "/" : setup_.target;
        http_request request(body_.empty() ? "GET" : "POST", url::parse_or_throw(target, "url"));
        request.body = body_;
        request.limits.first_byte = 30s;
        if (setup_.following) {
            co_await follow(http_, std::move(request), &got_);
            co_return;
        }
        std::string text = co_await net_tests::fetch(http_, std::move(request));
        got_ = std::move(text);
    }
    void finish() override
    {
        if (setup_.following) http_.close_idle();  // the connection of the redirect
        const http_client_stats s = http_.stats();
        if (s.open != 0) trouble_ += std::to_string(s.open) + " connections left; ";
        if (clock_->armed() != 0) trouble_ += "a timer is left; ";
        server_.stop();
    }
    std::shared_ptr<rt::manual_clock> clock() override { return clock_; }
    std::string verify(const rt::cancel_outcome& o) override
    {
        if (o.failure && !is_cancellation(o.failure) && code_of(o.failure) == setup_.ends_by) return trouble_;
        if (!o.failure) trouble_ += "answered " + got_ + "; ";
        return trouble_ + complaints_of(o);
    }

private:
    http_client_options options(asio::io_context& io)
    {
        http_client_options o;
        o.clock = clock_;
        o.tls.system_store = false;
        o.tls.ca_file = setup_.scheme == "https" ? net_tests::certificates::shared().pem("root") : "";
        if (setup_.proxied) o.proxies.https(server_.origin());
        if (!setup_.name_server.empty()) {
            dns_options names;
            names.servers = {setup_.name_server};
            o.resolver = make_system_resolver(io.get_executor(), names);
        }
        return o;
    }
    setup setup_;
    std::string body_;
    std::shared_ptr<rt::manual_clock> clock_ = std::make_shared<rt::manual_clock>();
    rt::byte_server server_;
    http_client http_;
    std::string got_, trouble_;
};

void holds(const exchange_case::setup& s, std::size_t least)
{
    if (s.scheme == "https") net_tests::certificates::shared();  // made before descriptors are counted
    for (const bool repeatedly : {false, true}) {
        rt::cancel_options options;
        options.may_fail();
        if (repeatedly) options.again(impatience);
        const rt::cancel_report r = rt::cancel_everywhere([&s](asio::io_context& io) { return std::make_unique<exchange_case>(io, s); }, options);
        EXPECT_TRUE(r) << r;
        EXPECT_GE(r.aborted, least) << r;
    }
}

TEST(CancelNet, AConnectionThatHangs)
{
    const full_port port;
    exchange_case::setup s;
    s.target = "http://127.0.0.1:" + std::to_string(port.port()) + "/";
    s.ends_by = errc::connect_timeout;
    holds(s, 1);
}

TEST(CancelNet, AServerThatIsSilentInTheHandshake)
{
    exchange_case::setup s;
    s.scheme = "https";
    s.ends_by = errc::connect_timeout;
    holds(s, 2);
}

TEST(CancelNet, HalfAHandshake)
{
    exchange_case::setup s;
    s.scheme = "https";
    // The start of a server hello of 122 bytes.
    s.script = rt::byte_script().trickle(std::string("\x16\x03\x03\x00\x7a\x02\x00\x00\x76\x03\x03", 11)).stall();
    s.ends_by = errc::connect_timeout;
    holds(s, 5);
}

TEST(CancelNet, AProxyThatOpensTheTunnelAndSaysNoMore)
{
    exchange_case::setup s;
    s.scheme = "https";
    s.target = "https://api.test/";
    s.proxied = true;
    s.script = rt::byte_script().request().trickle("HTTP/1.1 200 OK\r\n\r\n").stall();
    s.ends_by = errc::connect_timeout;
    holds(s, 5);
}

TEST(CancelNet, AProxyThatAnswersHalf)
{
    exchange_case::setup s;
    s.scheme = "https";
    s.target = "https://api.test/";
    s.proxied = true;
    s.script = rt::byte_script().request().trickle("HTTP/1.1 20").stall();
    s.ends_by = errc::connect_timeout;
    holds(s, 5);
}

TEST(CancelNet, ARedirectThatIsFollowed)
{
    exchange_case::setup s;
    s.following = true;
    // Once with the connection kept between the two requests, once with a new one.
    for (const char* end : {"", "Connection: close\r\n"}) {
        const std::string there = "HTTP/1.1 302 Found\r\nLocation: /there\r\nContent-Length: 2\r\n" + std::string(end) + "\r\nno";
        s.script = rt::byte_script().request().send(there);
        if (*end == '\0') s.script.request().trickle("HTTP/1.1 20").stall();
        s.ends_by = *end == '\0' ? errc::first_byte_timeout : errc::redirect_refused;
        holds(s, 10);
    }
}

TEST(CancelNet, ANameServerThatIsSilent)
{
    const silent_name_server names;
    exchange_case::setup s;
    s.target = "http://somewhere.test/";
    s.name_server = names.address();
    s.ends_by = errc::connect_timeout;
    holds(s, 1);
}

TEST(CancelNet, AnUploadThatIsNotTaken)
{
    exchange_case::setup s;
    s.script = rt::byte_script().stop_reading().stall();
    s.upload = 8 * 1024 * 1024;
    s.ends_by = errc::idle_timeout;
    holds(s, 2);
}

TEST(CancelNet, AHeadThatDoesNotCome)
{
    exchange_case::setup s;
    s.script = rt::byte_script().request().trickle("HTTP/1.1 20").stall();
    s.ends_by = errc::first_byte_timeout;
    holds(s, 5);
}

TEST(CancelNet, ABodyThatStops)
{
    exchange_case::setup s;
    s.script = rt::byte_script().request().send(rt::http_head(200, {{"Content-Length", "100"}})).trickle("some of it").stall();
    s.ends_by = errc::idle_timeout;
    holds(s, 5);
}

awaitable<void> neighbour(http_client client, http_request request, int comes, int* served)
{
    co_await hops(comes);
    const std::string text = co_await net_tests::fetch(client, std::move(request));
    *served += text == "200 ok" ? 1 : 0;
}

/// One connection for all: one holds it, one comes later, and the one between them is cancelled.
class pool_case final : public rt::cancel_case {
public:
    explicit pool_case(asio::io_context& io)
        : io_(io), server_(io.get_executor(), rt::byte_script::answering(rt::http_response(200, "ok"))), http_(io.get_executor(), options())
    {}
    awaitable<void> operation() override
    {
        spawn(neighbour(http_, request(), 0, &served_));
        spawn(neighbour(http_, request(), 2, &served_));
        const std::string text = co_await net_tests::fetch(http_, request());
        answered_ = text == "200 ok";
    }
    void finish() override
    {
        rt::run_until(
            io_, [this] { return served_ == 2; }, 2s);
        const http_client_stats s = http_.stats();
        if (s.open != s.idle || s.waiting != 0) trouble_ += "a place in the pool is lost; ";
        if (s.pool_waits < 1) trouble_ += "nobody waited; ";
        if (clock_->armed() != 0) trouble_ += "a timer is left; ";
        http_.close_idle();
        server_.stop();
    }
    std::shared_ptr<rt::manual_clock> clock() override { return clock_; }
    std::string verify(const rt::cancel_outcome& o) override
    {
        if (served_ != 2) trouble_ += std::to_string(served_) + " of 2 neighbours were served; ";
        if (!o.failure && !answered_) trouble_ += "ended without an answer; ";
        return trouble_ + complaints_of(o);
    }

private:
    http_client_options options()
    {
        http_client_options o;
        o.clock = clock_;
        o.max_open_per_origin = 1;
        return o;
    }
    http_request request() const { return http_request("GET", url::parse_or_throw(server_.origin() + "/", "url")); }
    void spawn(awaitable<void> work)
    {
        asio::co_spawn(io_, std::move(work), [this](std::exception_ptr e) {
            if (e) trouble_ += "a neighbour failed: " + message_of(e) + "; ";
        });
    }
    asio::io_context& io_;
    std::shared_ptr<rt::manual_clock> clock_ = std::make_shared<rt::manual_clock>();
    rt::byte_server server_;
    http_client http_;
    int served_ = 0;
    bool answered_ = false;
    std::string trouble_;
};

TEST(CancelNet, AWaitForAPlaceInThePool)
{
    for (const bool repeatedly : {false, true}) {
        rt::cancel_options options;
        if (repeatedly) options.again(impatience);
        const rt::cancel_report r = rt::cancel_everywhere([](asio::io_context& io) { return std::make_unique<pool_case>(io); }, options);
        EXPECT_TRUE(r) << r;
        EXPECT_GT(r.aborted, 5u) << r;
    }
}

}  // namespace net_cancel_test
}  // namespace

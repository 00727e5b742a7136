#include "dial_race.hpp"
#include "net_world.hpp"

#include <gtest/gtest.h>

#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

namespace reagent {
namespace {
namespace dial_test {

using namespace net_tests;
using net_detail::dial_race;
using std::chrono::milliseconds;
using std::chrono::seconds;
using testing::byte_script;
using testing::http_response;

ip_address at(std::string_view text)
{
    return *ip_address::parse(text);
}

TEST(DialRace, FamiliesAlternateFromThatOfTheFirst)
{
    const dial_race race({at("2001:db8::1"), at("2001:db8::2"), at("2001:db8::3"), at("10.0.0.1"), at("10.0.0.2")});
    std::string order;
    for (const ip_address& a : race.order()) order += a.to_string() + " ";
    EXPECT_EQ(order, "2001:db8::1 10.0.0.1 2001:db8::2 10.0.0.2 2001:db8::3 ");
    EXPECT_TRUE(dial_race({at("127.0.0.1"), at("::1")}).order().front().is_v4());
}

TEST(DialRace, StartsByTheClockOrAtOnceAfterAFailure)
{
    dial_race race({at("10.0.0.1"), at("10.0.0.2"), at("10.0.0.3")});
    steady_time now{};
    EXPECT_NE(race.next(now), nullptr);
    EXPECT_EQ(race.due(), now + milliseconds(250));
    EXPECT_EQ(race.next(now + milliseconds(249)), nullptr);
    now += milliseconds(250);
    EXPECT_NE(race.next(now), nullptr);
    EXPECT_EQ(race.next(now), nullptr);
    race.failed();
    EXPECT_NE(race.next(now), nullptr);
    EXPECT_EQ(race.due(), steady_time::max());
    race.failed();
    EXPECT_FALSE(race.lost());
    race.failed();
    EXPECT_TRUE(race.lost());
    EXPECT_TRUE(dial_race({}).lost());
}

/// A listening socket whose queue is full: whoever connects waits for ever.
class full_listener {
public:
    full_listener(const sockaddr* where, socklen_t size) : fd_(::socket(where->sa_family, SOCK_STREAM | SOCK_CLOEXEC, 0))
    {
        if (::bind(fd_, where, size) != 0 || ::listen(fd_, 0) != 0) throw std::runtime_error("listen");
        for (int& c : clients_) {
            c = ::socket(where->sa_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
            ::connect(c, where, size);
        }
    }
    full_listener(const full_listener&) = delete;
    full_listener& operator=(const full_listener&) = delete;
    ~full_listener()
    {
        for (const int c : clients_) ::close(c);
        ::close(fd_);
    }
    int accept() const { return ::accept4(fd_, nullptr, nullptr, SOCK_CLOEXEC); }
    static sockaddr_in v4(std::string_view address, std::uint16_t port)
    {
        sockaddr_in to{};
        to.sin_family = AF_INET;
        to.sin_port = htons(port);
        to.sin_addr.s_addr = htonl(ip_address::parse(address)->v4_bits());
        return to;
    }

private:
    int fd_;
    int clients_[2] = {-1, -1};
};

// `api.test` leads to `found`; the server, when there is one, listens on 127.0.0.1.
struct dial_world : world {
    std::shared_ptr<table_resolver> names = std::make_shared<table_resolver>();
    testing::byte_server good = server(byte_script::answering(http_response(200, "good")));
    explicit dial_world(std::vector<ip_address> found)
    {
        names->names.emplace_back("api.test", std::move(found));
        options.resolver = names;
    }
    http_request request(std::uint16_t port = 0) const
    {
        return http_request("GET", url::parse_or_throw("http://api.test:" + std::to_string(port ? port : good.port()) + "/", "url"));
    }
};

TEST(Dial, Case_E7_ADeadAddressCostsAQuarterOfASecond)
{
    dial_world w({at("127.0.0.2"), at("127.0.0.1")});
    const sockaddr_in dead = full_listener::v4("127.0.0.2", w.good.port());
    const full_listener hole(reinterpret_cast<const sockaddr*>(&dead), sizeof dead);
    http_client client = w.client();
    w.idle();
    const std::size_t before = open_descriptors();
    cancellable op(w.context, fetch(client, w.request()));
    w.idle();
    EXPECT_EQ(open_descriptors(), before + 1);
    w.clock->advance(milliseconds(249));
    w.idle();
    EXPECT_FALSE(op.done());
    EXPECT_EQ(open_descriptors(), before + 1);
    w.clock->advance(milliseconds(1));
    ASSERT_TRUE(w.until([&] { return op.done(); }));
    EXPECT_EQ(op.value(), "200 good");
    w.idle();
    EXPECT_EQ(open_descriptors(), before + 2);  // both ends of the winner; the loser is closed
}

TEST(Dial, Case_E7_ARefusedAddressCostsNothing)
{
    dial_world w({at("::1"), at("127.0.0.1")});
    EXPECT_EQ(testing::complete(w.context, fetch(w.client(), w.request())), "200 good");
}

TEST(Dial, Case_E7_WhenAllFailEachIsNamed)
{
    const testing::refused_port refused;
    dial_world w({at("127.0.0.3"), at("127.0.0.1")});
    cancellable op(w.context, fetch(w.client(), w.request(refused.port())));
    ASSERT_TRUE(w.until([&] { return op.done(); }));
    EXPECT_EQ(op.code(), errc::connect_failed);
    EXPECT_NE(op.message().find("127.0.0.3: Connection refused; 127.0.0.1: Connection refused"), std::string::npos) << op.message();
    EXPECT_EQ(w.names->forgotten, std::vector<std::string>{"api.test"});
}

TEST(Dial, Case_E7_LimitAndCancellationEndAllAttempts)
{
    for (const bool cancel : {false, true}) {
        dial_world w({at("127.0.0.2"), at("127.0.0.3")});
        const sockaddr_in one = full_listener::v4("127.0.0.2", w.good.port()), two = full_listener::v4("127.0.0.3", w.good.port());
        const full_listener first(reinterpret_cast<const sockaddr*>(&one), sizeof one), second(reinterpret_cast<const sockaddr*>(&two), sizeof two);
        http_client client = w.client();
        w.idle();
        const std::size_t before = open_descriptors();
        cancellable op(w.context, fetch(client, w.request()));
        w.idle();
        w.clock->advance(milliseconds(250));
        w.idle();
        EXPECT_EQ(open_descriptors(), before + 2);
        if (cancel) op.cancel();
        else w.clock->advance(seconds(10));
        w.idle();
        ASSERT_TRUE(op.done());
        if (cancel) EXPECT_EQ(op.code(), asio::error::operation_aborted);
        else EXPECT_EQ(op.code(), errc::connect_timeout);
        EXPECT_EQ(open_descriptors(), before);
        EXPECT_EQ(client.stats().open, 0u);
        EXPECT_EQ(w.clock->armed(), 0u);
    }
}

TEST(Dial, Case_E4_ABusyConnectionFollowsTheName)
{
    dial_world w({at("127.0.0.1")});
    testing::byte_server moved(w.context.get_executor(), byte_script::answering(http_response(200, "moved")), "127.0.0.2", w.good.port());
    http_client client = w.client();
    const auto call = [&] { return testing::complete(w.context, fetch(client, w.request())); };
    EXPECT_EQ(call(), "200 good");
    w.names->names.front().second = {at("127.0.0.2")};
    for (int i = 0; i < 15; ++i) {
        w.clock->advance(seconds(19));  // never idle for long
        EXPECT_EQ(call(), "200 good");
    }
    w.clock->advance(seconds(15));
    EXPECT_EQ(call(), "200 moved");
    EXPECT_EQ(client.stats().dialed, 2u);
}

TEST(Dial, AnAddressThatIsNotAllowedIsNotConnectedTo)
{
    dial_world w({at("127.0.0.2"), at("127.0.0.1")});
    w.options.allow_address = [](const ip_address& a) { return a.to_string() != "127.0.0.2"; };
    EXPECT_EQ(testing::complete(w.context, fetch(w.client(), w.request())), "200 good");
    w.options.allow_address = [](const ip_address& a) { return !a.loopback(); };
    // By name and as a literal.
    for (const http_request& r : {w.request(), world::get(w.good)}) {
        cancellable op(w.context, fetch(w.client(), r));
        ASSERT_TRUE(w.until([&] { return op.done(); }));
        EXPECT_EQ(op.code(), errc::connect_failed);
        EXPECT_NE(op.message().find("127.0.0.1: not an address"), std::string::npos) << op.message();
    }
    EXPECT_EQ(w.good.log().connections.size(), 1u);
}

TEST(Dial, TheWaitForAConnectionIsMeasured)
{
    dial_world w({at("127.0.0.1")});
    w.options.max_open_per_origin = 1;
    testing::byte_server slow = w.server(byte_script().request().gate("go").send(http_response(200, "ok")).repeat());
    http_client client = w.client();
    std::vector<std::unique_ptr<cancellable>> calls;
    for (int i = 0; i < 3; ++i) calls.push_back(std::make_unique<cancellable>(w.context, fetch(client, world::get(slow))));
    w.idle();
    w.clock->advance(seconds(3));
    EXPECT_EQ(client.stats().waiting, 2u);
    EXPECT_EQ(client.stats().pool_wait_total, seconds(0));
    calls[2]->cancel();
    w.idle();
    w.clock->advance(seconds(2));
    slow.open("go");
    ASSERT_TRUE(w.until([&] { return calls[1]->done(); }));
    EXPECT_EQ(client.stats().pool_waits, 2u);
    EXPECT_EQ(client.stats().pool_wait_total, seconds(8));
    EXPECT_EQ(client.stats().pool_wait_longest, seconds(5));
}

// Serves one request over a socket that was accepted.
void answer_once(world& w, int fd, std::string& head)
{
    ASSERT_GE(fd, 0);
    char buffer[2048];
    while (head.find("\r\n\r\n") == std::string::npos) {
        w.idle();
        const ssize_t n = ::recv(fd, buffer, sizeof buffer, MSG_DONTWAIT);
        if (n > 0) head.append(buffer, static_cast<std::size_t>(n));
        ASSERT_NE(n, 0);
    }
    const std::string answer = http_response(200, "local");
    ASSERT_EQ(::send(fd, answer.data(), answer.size(), MSG_NOSIGNAL), static_cast<ssize_t>(answer.size()));
}

TEST(Dial, UnixDomainSocketsByOptionAndByRequest)
{
    const std::string path = (std::filesystem::temp_directory_path() / ("reagent-dial-" + std::to_string(::getpid()) + ".sock")).string();
    ::unlink(path.c_str());
    sockaddr_un where{};
    where.sun_family = AF_UNIX;
    path.copy(where.sun_path, sizeof where.sun_path - 1);
    for (const bool by_request : {false, true}) {
        const full_listener listener(reinterpret_cast<const sockaddr*>(&where), sizeof where);
        world w;
        const http_route route = http_route::unix_socket(path);
        http_request request("GET", url::parse_or_throw("http://docker/info", "url"));
        if (by_request) request.route = &route;
        else w.options.route = route;
        http_client client = w.client();
        cancellable op(w.context, fetch(client, request));
        w.idle();
        EXPECT_FALSE(op.done());  // the backlog is full, which nothing tells the end of
        const int first = listener.accept();
        const int ours = (w.clock->advance(milliseconds(10)), w.idle(), listener.accept());
        std::string head;
        answer_once(w, ours, head);
        ASSERT_TRUE(w.until([&] { return op.done(); }));
        EXPECT_EQ(op.value(), "200 local") << op.message();
        EXPECT_TRUE(head.starts_with("GET /info HTTP/1.1\r\nHost: docker\r\n")) << head;
        // Kept, and used again.
        cancellable again(w.context, fetch(client, request));
        head.clear();
        answer_once(w, ours, head);
        ASSERT_TRUE(w.until([&] { return again.done(); }));
        EXPECT_EQ(client.stats().reused, 1u);
        ::close(first);
        ::close(ours);
        ::unlink(path.c_str());
    }
    world w;
    w.options.route = http_route::unix_socket(path);
    cancellable gone(w.context, fetch(w.client(), http_request("GET", url::parse_or_throw("http://docker/info", "url"))));
    ASSERT_TRUE(w.until([&] { return gone.done(); }));
    EXPECT_EQ(gone.code(), errc::connect_failed);
    EXPECT_NE(gone.message().find(path + ": No such file or directory"), std::string::npos) << gone.message();
    EXPECT_THROW(http_route::unix_socket(""), validation_error);
    EXPECT_THROW(http_route::unix_socket(std::string(108, 'p')), validation_error);
    EXPECT_NO_THROW(http_route::unix_socket(std::string(107, 'p')));
}

}  // namespace dial_test
}  // namespace
}  // namespace reagent

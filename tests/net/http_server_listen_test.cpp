#include "http_server_world.hpp"

#include <reagent/base/error.hpp>

#include <gtest/gtest.h>

#include <cstring>
#include <sys/resource.h>

namespace reagent {
namespace {
namespace http_server_listen_test {

using net_tests::get;
using net_tests::ok;
using net_tests::server_client;
using net_tests::server_world;
using std::chrono::milliseconds;

TEST(HttpServerListen, GoesOnAcceptingWhenDescriptorsAreThereAgain)
{
    server_world w;
    w.echo();
    server_client first(w), second(w);  // in the backlog
    rlimit before{};
    ASSERT_EQ(::getrlimit(RLIMIT_NOFILE, &before), 0);
    const int lowest = ::dup(0);
    ::close(lowest);
    rlimit none = before;
    none.rlim_cur = static_cast<rlim_t>(lowest);
    ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &none), 0);
    w.idle();
    const auto failures = w.server->stats().accept_failures;
    w.advance(milliseconds(50));
    const auto more = w.server->stats().accept_failures;
    ::setrlimit(RLIMIT_NOFILE, &before);
    EXPECT_EQ(failures, 1u) << "it does not spin";
    EXPECT_EQ(more, 2u);
    w.advance(milliseconds(50));
    EXPECT_EQ(first.ask(get("/1")), ok("GET /1 "));
    EXPECT_EQ(second.ask(get("/2")), ok("GET /2 "));
}

TEST(HttpServerListen, ListensOnAUnixSocketAndReplacesAStaleOne)
{
    const std::string path = ::testing::TempDir() + "reagent_http_server_test_" + std::to_string(::getpid());
    {
        server_world w;
        w.options.unix_socket = path;
        w.options.limits.peer_rate = 0.001;
        w.options.limits.peer_burst = 1;
        w.echo();
        server_client c(w);
        EXPECT_EQ(c.ask(get("/1")), ok("GET /1 "));
        EXPECT_EQ(c.ask(get("/2")), ok("GET /2 ")) << "no peers there, so no rates";
        EXPECT_THROW(http_server(w.context.get_executor(), w.options), error) << "somebody listens there";
    }
    EXPECT_NE(::access(path.c_str(), F_OK), 0) << "removed at the end";
    sockaddr_un a{};
    a.sun_family = AF_UNIX;
    std::memcpy(a.sun_path, path.data(), path.size());
    const int stale = ::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    ASSERT_EQ(::bind(stale, reinterpret_cast<const sockaddr*>(&a), sizeof a), 0);
    ::close(stale);
    {
        server_world w;
        w.options.unix_socket = path;
        w.echo();
        server_client c(w);
        EXPECT_EQ(c.ask(get("/")), ok("GET / "));
        ASSERT_EQ(::unlink(path.c_str()), 0);
        const int another = ::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
        ASSERT_EQ(::bind(another, reinterpret_cast<const sockaddr*>(&a), sizeof a), 0);
        ::close(another);
    }
    EXPECT_EQ(::access(path.c_str(), F_OK), 0) << "the one that took its place is not ours to remove";
    ::unlink(path.c_str());
}

}  // namespace http_server_listen_test
}  // namespace
}  // namespace reagent

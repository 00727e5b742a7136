#include "net_world.hpp"

#include <boost/asio/steady_timer.hpp>
#include <gtest/gtest.h>

#include <arpa/inet.h>
#include <csignal>
#include <fcntl.h>
#include <sys/socket.h>

namespace reagent {
namespace {
namespace http_cancel_test {

using namespace net_tests;
using testing::byte_script;
using testing::http_response;

TEST(HttpCancel, Case_C5_TheServerSeesTheEndOfACancelledCall)
{
    world w;
    testing::byte_server server = w.server(byte_script().request().send(testing::sse_head() + testing::http_chunk("data: x\n\n")).stall());
    http_client client = w.client();
    cancellable op(w.context, fetch(client, world::get(server)));
    w.idle();
    ASSERT_FALSE(op.done());
    op.cancel();
    ASSERT_TRUE(w.until([&] { return op.done(); }));
    EXPECT_EQ(op.code(), asio::error::operation_aborted);
    EXPECT_EQ(client.stats().open, 0u);
    // The socket is closed when the call ends: the end is at the server without any time passing.
    w.idle();
    const testing::byte_log log = server.log();
    EXPECT_TRUE(log.saw("0 fin") || log.saw("0 reset"));
    EXPECT_EQ(log.open(), 0u);
}

enum class place { pool, look_up, head, body, write };

TEST(HttpCancel, Case_C5_AtEveryAwaitNothingIsLeft)
{
    for (const place at : {place::pool, place::look_up, place::head, place::body, place::write}) {
        SCOPED_TRACE(static_cast<int>(at));
        const std::size_t before = open_descriptors();
        {
            world w;
            const std::string big(16 * 1024 * 1024, 'x');
            byte_script script = byte_script().request().stall();
            if (at == place::body) script = byte_script().request().send(testing::sse_head()).stall();
            if (at == place::write) script = byte_script().stop_reading().stall();
            testing::byte_server server(std::vector<byte_script>{script});
            auto names = std::make_shared<silent_resolver>(w.context);
            w.options.resolver = names;
            w.options.max_open_per_origin = at == place::pool ? 1 : 0;
            http_client client = w.client();
            http_request r = at == place::look_up ? http_request("GET", url::parse_or_throw("http://silent.test/", "url")) : world::get(server);
            if (at == place::write) {
                r.method = "POST";
                r.body = big;
            }
            std::optional<cancellable> holder;
            if (at == place::pool) {
                holder.emplace(w.context, fetch(client, world::get(server)));
                w.idle();
            }
            cancellable op(w.context, fetch(client, std::move(r)));
            w.idle();
            ASSERT_FALSE(op.done()) << op.message();
            op.cancel();
            if (holder) holder->cancel();
            w.context.restart();
            w.context.run();  // by itself: nothing is left
            ASSERT_TRUE(op.done());
            EXPECT_EQ(op.code(), asio::error::operation_aborted);
            EXPECT_EQ(client.stats().open, 0u);
            EXPECT_EQ(client.stats().waiting, 0u);
            EXPECT_EQ(names->waiting, 0);
            EXPECT_EQ(w.clock->armed(), 0u);
        }
        EXPECT_EQ(open_descriptors(), before);
    }
}

TEST(HttpCancel, AtTheFirstWaitNothingIsLeft)
{
    world w;
    testing::byte_server server(byte_script::answering(http_response(200, "ok")));
    http_client client = w.client();
    // A signal before the coroutine runs is lost to it (Asio's rule), so it goes to one that waits for the first thing it may wait for: the connection.
    cancellable op(w.context, fetch(client, world::get(server)));
    ASSERT_EQ(w.context.poll_one(), 1u);
    ASSERT_FALSE(op.done());
    op.cancel();
    w.context.restart();
    w.context.run();
    ASSERT_TRUE(op.done());
    EXPECT_EQ(op.code(), asio::error::operation_aborted) << op.message();
    EXPECT_EQ(client.stats().open, 0u);
}

TEST(HttpCancel, ATimeoutIsNeverACancellation)
{
    // Both in one turn of the loop: the caller's wish is the one reported, whichever came first.
    for (const bool limit_first : {true, false}) {
        world w;
        testing::byte_server server = w.server(byte_script().request().send(testing::sse_head()).stall());
        http_request r = world::get(server);
        r.limits.idle = std::chrono::seconds(5);
        cancellable op(w.context, fetch(w.client(), std::move(r)));
        w.idle();
        if (limit_first) w.clock->advance(std::chrono::seconds(5));
        op.cancel();
        if (!limit_first) w.clock->advance(std::chrono::seconds(5));
        ASSERT_TRUE(w.until([&] { return op.done(); }));
        EXPECT_EQ(op.code(), asio::error::operation_aborted);
    }
}

awaitable<std::string> host_task(http_client client, http_request request, asio::io_context& context, bool& called)
{
    const std::string first = co_await fetch(client, std::move(request));
    called = true;
    asio::steady_timer forever(context);
    forever.expires_at(asio::steady_timer::time_point::max());
    co_await forever.async_wait(asio::use_awaitable);
    co_return first;
}

TEST(HttpCancel, AHostCoroutineIsCancellableAfterACallHasReturned)
{
    world w;
    testing::byte_server server(byte_script::answering(http_response(200, "ok")));
    bool called = false;
    cancellable host(w.context, host_task(w.client(), world::get(server), w.context, called));
    ASSERT_TRUE(w.until([&] { return called; }));
    w.idle();
    ASSERT_FALSE(host.done());
    host.cancel();
    w.context.restart();
    w.context.run();
    ASSERT_TRUE(host.done());
    EXPECT_EQ(host.code(), asio::error::operation_aborted);
}

TEST(HttpCancel, IdleConnectionsKeepNoContextAlive)
{
    const std::size_t before = open_descriptors();
    {
        world w;
        testing::byte_server server(byte_script::answering(http_response(200, "ok")));
        http_client client = w.client();
        testing::started<std::string> op(w.context, fetch(client, world::get(server)));
        w.context.run();
        EXPECT_EQ(op.get(), "200 ok");
        EXPECT_EQ(client.stats().idle, 1u);
        EXPECT_EQ(w.clock->armed(), 0u);
    }
    EXPECT_EQ(open_descriptors(), before);
}

TEST(HttpCancel, AContextMayDieWithCallsUnderWay)
{
    const std::size_t before = open_descriptors();
    {
        testing::byte_server server(byte_script().request().send(testing::sse_head()).stall());
        std::optional<world> w(std::in_place);
        w->options.resolver = std::make_shared<silent_resolver>(w->context);
        w->options.max_open_per_origin = 1;
        std::optional<http_client> client(w->client());
        cancellable reading(w->context, fetch(*client, world::get(server)));
        cancellable waiting(w->context, fetch(*client, world::get(server)));
        cancellable looking(w->context, fetch(*client, http_request("GET", url::parse_or_throw("http://silent.test/", "url"))));
        w->idle();
        EXPECT_FALSE(reading.done() || waiting.done() || looking.done());
        client.reset();
        w->options.resolver.reset();
        w.reset();
    }
    EXPECT_EQ(open_descriptors(), before);
}

TEST(HttpCancel, SocketsAreNotInheritedAndSignalsAreNotTouched)
{
    struct sigaction before {
    }, after{};
    ASSERT_EQ(::sigaction(SIGPIPE, nullptr, &before), 0);
    world w;
    testing::byte_server server = w.server(byte_script().request().send(testing::sse_head()).stall());
    std::vector<int> known;
    for (int fd = 0; fd < 1024; ++fd)
        if (::fcntl(fd, F_GETFD) != -1) known.push_back(fd);
    http_client client = w.client();
    http_exchange x = testing::complete(w.context, client.open(world::get(server)));
    int inherited = 0, fresh = 0;
    for (int fd = 0; fd < 1024; ++fd) {
        const int flags = ::fcntl(fd, F_GETFD);
        if (flags == -1 || std::find(known.begin(), known.end(), fd) != known.end()) continue;
        ++fresh;
        sockaddr_storage peer{};
        socklen_t size = sizeof peer;
        // The server's own end of the connection is not ours to judge.
        const bool ours =
            ::getpeername(fd, reinterpret_cast<sockaddr*>(&peer), &size) == 0 && ntohs(reinterpret_cast<sockaddr_in&>(peer).sin_port) == server.port();
        if (ours && (flags & FD_CLOEXEC) == 0) ++inherited;
    }
    EXPECT_GT(fresh, 0);
    EXPECT_EQ(inherited, 0);
    ASSERT_EQ(::sigaction(SIGPIPE, nullptr, &after), 0);
    EXPECT_EQ(before.sa_handler, after.sa_handler);
}

}  // namespace http_cancel_test
}  // namespace
}  // namespace reagent

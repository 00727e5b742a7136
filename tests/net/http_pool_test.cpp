#include "net_world.hpp"

#include <boost/asio/post.hpp>
#include <gtest/gtest.h>

namespace reagent {
namespace {
namespace http_pool_test {

using namespace net_tests;
using std::chrono::seconds;
using testing::byte_script;
using testing::http_chunk;
using testing::http_response;

TEST(HttpPool, Case_E1_SocketsClosedWhileIdleAreNotUsed)
{
    world w;
    const std::string ok = http_response(200, "ok");
    std::vector<byte_script> scripts;
    for (int i = 0; i < 20; ++i) scripts.push_back(byte_script().request().send(ok).gate("close" + std::to_string(i)).close());
    testing::byte_server server = w.server(scripts);
    http_client client = w.client();
    for (int i = 0; i < 20; ++i) {
        EXPECT_EQ(testing::complete(w.context, fetch(client, world::get(server))), "200 ok");
        server.open("close" + std::to_string(i));
        w.idle();
        w.clock->advance(seconds(1));
    }
    EXPECT_EQ(client.stats().dialed, 20u);
    EXPECT_EQ(client.stats().stale_dropped, 19u);
    EXPECT_EQ(client.stats().retried, 0u);  // found at checkout, not by failing
    EXPECT_EQ(server.log().requests(), 20u);
}

TEST(HttpPool, Case_E1_BytesNobodyAskedForMakeAnIdleConnectionStale)
{
    world w;
    testing::byte_server server = w.server({byte_script().request().send(http_response(200, "ok")).gate("late").send("HTTP/1.1 408 Timeout\r\n\r\n").stall(),
                                            byte_script::answering(http_response(200, "ok"))});
    http_client client = w.client();
    EXPECT_EQ(testing::complete(w.context, fetch(client, world::get(server))), "200 ok");
    server.open("late");
    w.idle();
    EXPECT_EQ(testing::complete(w.context, fetch(client, world::get(server))), "200 ok");
    EXPECT_EQ(client.stats().stale_dropped, 1u);
}

TEST(HttpPool, Case_E1_AgesAreMeasuredByTheClock)
{
    world w;
    testing::byte_server server = w.server(byte_script::answering(http_response(200, "ok")));
    http_client client = w.client();
    const auto call = [&] { EXPECT_EQ(testing::complete(w.context, fetch(client, world::get(server))), "200 ok"); };
    call();
    w.clock->advance(seconds(19));
    call();
    EXPECT_EQ(client.stats().dialed, 1u);
    w.clock->advance(seconds(20));
    call();
    EXPECT_EQ(client.stats().dialed, 2u);  // idle age
    for (int i = 0; i < 16; ++i) {
        w.clock->advance(seconds(19));
        call();
    }
    EXPECT_EQ(client.stats().dialed, 3u);  // total age
}

// A stream as a provider reads it: up to [DONE], then it is given up.
awaitable<std::string> read_stream(http_client client, http_request request)
{
    http_exchange x = co_await client.open(std::move(request));
    std::string body;
    while (body.find("[DONE]") == std::string::npos) {
        const std::span<const char> bytes = co_await x.read_some();
        if (bytes.empty()) break;
        body.append(bytes.data(), bytes.size());
    }
    x.finish();
    co_return body;
}

TEST(HttpPool, Case_E2_AHundredStreamsThroughAPoolOfTwo)
{
    const std::string done = http_chunk("data: x\n\n") + http_chunk("data: [DONE]\n\n");
    for (const bool with_end : {true, false}) {
        world w;
        w.options.max_open_per_origin = 2;
        byte_script script = byte_script().request().send(testing::sse_head() + done + (with_end ? http_chunk("") : std::string()));
        testing::byte_server server = w.server(with_end ? script.repeat() : script.stall());
        http_client client = w.client();
        std::vector<std::unique_ptr<testing::started<std::string>>> streams;
        for (int i = 0; i < 100; ++i) streams.push_back(std::make_unique<testing::started<std::string>>(w.context, read_stream(client, world::get(server))));
        const auto ended = [&] { return static_cast<std::size_t>(std::count_if(streams.begin(), streams.end(), [](const auto& s) { return s->done(); })); };
        ASSERT_TRUE(w.steadily(ended, 100)) << ended();
        for (const auto& s : streams) EXPECT_EQ(s->get(), "data: x\n\ndata: [DONE]\n\n");
        EXPECT_EQ(client.stats().dialed, with_end ? 2u : 100u);
        EXPECT_EQ(client.stats().waiting, 0u);
        EXPECT_EQ(client.stats().open, with_end ? 2u : 0u);
    }
}

awaitable<void> numbered(http_client client, http_request request, std::size_t number, std::vector<std::size_t>& order)
{
    http_exchange x = co_await client.open(std::move(request));
    order.push_back(number);
    const std::string body = co_await rest_of(x);
    EXPECT_EQ(body, "ok");
}

TEST(HttpPool, Case_E3_AThousandCallersOnSixteenSocketsAreServedInOrder)
{
    for (const std::size_t sockets : {std::size_t{1}, std::size_t{16}}) {
        world w;
        w.options.max_open_per_origin = sockets;
        testing::byte_server server = w.server(byte_script::answering(http_response(200, "ok")));
        http_client client = w.client();
        std::vector<std::size_t> order;
        std::vector<std::unique_ptr<testing::started<void>>> callers;
        for (std::size_t i = 0; i < 1000; ++i)
            callers.push_back(std::make_unique<testing::started<void>>(w.context, numbered(client, world::get(server), i, order)));
        ASSERT_TRUE(w.steadily([&] { return order.size(); }, 1000)) << order.size();
        ASSERT_TRUE(w.soon([&] { return std::all_of(callers.begin(), callers.end(), [](const auto& c) { return c->done(); }); })) << order.size();
        for (const auto& c : callers) EXPECT_NO_THROW(c->get());
        EXPECT_LE(client.stats().dialed, sockets);
        EXPECT_EQ(client.stats().pool_waits, 1000 - sockets);
        EXPECT_EQ(client.stats().waiting, 0u);
        // Granted first come first served: whoever is done has at most the other sockets' users of earlier callers before it unfinished.
        ASSERT_EQ(order.size(), 1000u);
        for (std::size_t place = 0; place < order.size(); ++place) EXPECT_GE(place + sockets, order[place] + 1) << sockets;
    }
}

TEST(HttpPool, Case_E3_AWaitHasItsOwnLimit)
{
    world w;
    w.options.max_open_per_origin = 1;
    w.options.pool_wait = seconds(12);
    testing::byte_server server = w.server(byte_script().request().send(testing::sse_head()).stall());
    http_client client = w.client();
    http_exchange holder = testing::complete(w.context, client.open(world::get(server)));
    cancellable late(w.context, fetch(client, world::get(server)));
    w.idle();
    EXPECT_EQ(client.stats().waiting, 1u);
    w.clock->advance(seconds(12) - std::chrono::milliseconds(1));
    w.idle();
    EXPECT_FALSE(late.done());
    w.clock->advance(std::chrono::milliseconds(1));
    ASSERT_TRUE(w.soon([&] { return late.done(); }));
    EXPECT_EQ(late.code(), errc::pool_timeout);
    EXPECT_EQ(late.code(), condition::timeout);
    EXPECT_EQ(client.stats().waiting, 0u);
    EXPECT_EQ(client.stats().open, 1u);
}

TEST(HttpPool, ACancelledWaiterLeavesNothing)
{
    world w;
    w.options.max_open_per_origin = 1;
    testing::byte_server server = w.server(
        {byte_script().request().send(testing::sse_head()).gate("end").send(http_chunk("")).request().send(http_response(200, "next")), byte_script().stall()});
    http_client client = w.client();
    http_exchange holder = testing::complete(w.context, client.open(world::get(server)));
    cancellable one(w.context, fetch(client, world::get(server))), two(w.context, fetch(client, world::get(server)));
    w.idle();
    EXPECT_EQ(client.stats().waiting, 2u);
    one.cancel();
    ASSERT_TRUE(w.until([&] { return one.done(); }));
    EXPECT_EQ(one.code(), asio::error::operation_aborted);
    EXPECT_EQ(client.stats().waiting, 1u);
    server.open("end");
    EXPECT_EQ(testing::complete(w.context, rest_of(holder)), "");
    ASSERT_TRUE(w.until([&] { return two.done(); }));
    EXPECT_EQ(two.message(), "200 next");
}

TEST(HttpPool, AGrantedConnectionThatHasEndedIsNotUsed)
{
    world w;
    w.options.max_open_per_origin = 1;
    testing::byte_server server = w.server(
        {byte_script().request().send(testing::sse_head()).gate("end").send(http_chunk("")).close(), byte_script::answering(http_response(200, "next"))});
    http_client client = w.client();
    http_exchange holder = testing::complete(w.context, client.open(world::get(server)));
    http_request once = world::get(server);
    once.resend = false;
    cancellable next(w.context, fetch(client, once));
    w.idle();
    EXPECT_EQ(client.stats().waiting, 1u);
    server.open("end");
    w.idle();  // last bytes and end are there, and nobody has read them
    EXPECT_EQ(testing::complete(w.context, rest_of(holder)), "");
    ASSERT_TRUE(w.until([&] { return next.done(); }));
    EXPECT_EQ(next.message(), "200 next");
    EXPECT_EQ(client.stats().dialed, 2u);
    EXPECT_EQ(client.stats().reused, 0u);
}

TEST(HttpPool, AGrantThatMeetsACancellationGoesToTheNext)
{
    world w;
    w.options.max_open_per_origin = 1;
    testing::byte_server server = w.server(
        {byte_script().request().send(testing::sse_head()).gate("end").send(http_chunk("")).request().send(http_response(200, "next")), byte_script().stall()});
    http_client client = w.client();
    http_exchange holder = testing::complete(w.context, client.open(world::get(server)));
    cancellable one(w.context, fetch(client, world::get(server))), two(w.context, fetch(client, world::get(server)));
    w.idle();
    server.open("end");
    w.idle();  // the server has sent the end, nobody has read it
    // Inside the context, where a signal takes effect at once.
    asio::post(w.context, [&] {
        holder.finish();  // reads it and grants `one`, whose coroutine has not run yet
        EXPECT_EQ(client.stats().waiting, 1u);
        one.cancel();
    });
    ASSERT_TRUE(w.until([&] { return two.done(); }));
    EXPECT_EQ(one.code(), asio::error::operation_aborted);
    EXPECT_EQ(two.message(), "200 next");
    EXPECT_EQ(client.stats().dialed, 1u);
}

}  // namespace http_pool_test
}  // namespace
}  // namespace reagent

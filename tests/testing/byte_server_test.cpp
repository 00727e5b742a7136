#include <reagent/testing/byte_server.hpp>
#include <reagent/testing/http_text.hpp>
#include <reagent/testing/run.hpp>

#include "raw_client.hpp"

#include <boost/asio/post.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/this_coro.hpp>

#include <gtest/gtest.h>

namespace {
namespace byte_server_test {

using namespace reagent;
using namespace reagent::testing;
using testing_tests::raw_client;

const std::string post_request = "POST /v1/x HTTP/1.1\r\nHost: a\r\nX-Key: v w \r\nContent-Length: 5\r\n\r\nhello";

TEST(ByteServer, PlaysAScriptAndRecordsTheRequest)
{
    byte_server server(byte_script::answering(http_response(200, "{}")));
    raw_client client(server.port());
    for (int i = 0; i < 2; ++i) {
        client.write(post_request);
        EXPECT_EQ(client.read(http_response(200, "{}").size()), http_response(200, "{}"));
    }
    const byte_log log = server.log();
    ASSERT_EQ(log.requests(), 2u);
    EXPECT_EQ(log.request(1).method(), "POST");
    EXPECT_EQ(log.request(1).target(), "/v1/x");
    EXPECT_EQ(log.request(1).header("x-key"), "v w");
    EXPECT_EQ(log.request(1).header("absent"), "");
    EXPECT_EQ(log.request(1).body, "hello");
    EXPECT_EQ(log.connections.at(0).received, 2 * post_request.size());
    EXPECT_THROW(log.request(2), std::out_of_range);
}

TEST(ByteServer, ReadsChunkedBodiesAndPipelinedRequests)
{
    byte_server server(byte_script().request().request().send("x"));
    raw_client client(server.port());
    client.write("POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n1\r\n");
    client.write("d\r\n0\r\n\r\nGET /two HTTP/1.1\r\n\r\n");
    EXPECT_EQ(client.read(1), "x");
    EXPECT_EQ(server.log().request(0).body, "abcd");
    EXPECT_EQ(server.log().request(1).target(), "/two");
}

TEST(ByteServer, AGateHoldsUntilTheTestOpensIt)
{
    byte_server server(byte_script().request().gate("go").send("after").close());
    raw_client client(server.port());
    client.write(post_request);
    ASSERT_TRUE(server.wait_until([](const byte_log& l) { return l.saw("0 at gate:go"); }));
    EXPECT_FALSE(client.readable());
    server.open("go");
    EXPECT_EQ(client.read_all(), "after");
    EXPECT_EQ(server.log().events, (std::vector<std::string>{"0 accept", "0 request", "0 at gate:go", "0 gate:go", "0 our close"}));
    raw_client late(server.port());
    late.write(post_request);
    EXPECT_EQ(late.read_all(), "after") << "an open gate stays open";
}

TEST(ByteServer, EachConnectionPlaysItsScriptAndTheLastServesTheRest)
{
    byte_server server(std::vector<byte_script>{byte_script().send("a").close(), byte_script().send("b").close()});
    EXPECT_EQ(raw_client(server.port()).read_all(), "a");
    EXPECT_EQ(raw_client(server.port()).read_all(), "b");
    EXPECT_EQ(raw_client(server.port()).read_all(), "b");
}

TEST(ByteServer, HalfCloseStillReads)
{
    byte_server server(byte_script().send("a").half_close().request());
    raw_client client(server.port());
    EXPECT_EQ(client.read_all(), "a");
    client.write(post_request);
    EXPECT_TRUE(server.wait_until([](const byte_log& l) { return l.requests() == 1; }));
}

TEST(ByteServer, ResetIsSeenAsAReset)
{
    byte_server server(byte_script().request().send("partial").gate("cut").reset());
    raw_client client(server.port());
    client.write(post_request);
    EXPECT_EQ(client.read(7), "partial");
    server.open("cut");
    EXPECT_EQ(client.read_all(), "");
    EXPECT_EQ(client.last_error(), ECONNRESET);
}

TEST(ByteServer, TellsFinFromRstAndWhen)
{
    byte_server server(byte_script().stall());
    const auto before = std::chrono::steady_clock::now();
    {
        raw_client client(server.port());
        client.write("x");
        ASSERT_TRUE(server.wait_until([](const byte_log& l) { return !l.connections.empty() && l.connections[0].received == 1; }));
    }
    ASSERT_TRUE(server.wait_until([](const byte_log& l) { return l.connections.at(0).end == byte_end::fin; }));
    {
        raw_client client(server.port());
        client.reset_on_close();
    }
    ASSERT_TRUE(server.wait_until([](const byte_log& l) { return l.connections.size() == 2 && l.connections[1].end == byte_end::reset; }));
    EXPECT_GE(server.log().connections[0].ended, before);
    EXPECT_EQ(server.log().open(), 0u);
}

TEST(ByteServer, SendsForeverUntilThePeerCloses)
{
    byte_server server(byte_script().send_forever(std::string(1000, 'x')));
    {
        raw_client client(server.port());
        EXPECT_EQ(client.read(5000), std::string(5000, 'x'));
    }
    EXPECT_TRUE(server.wait_until([](const byte_log& l) { return l.open() == 0; }));
    EXPECT_GE(server.log().connections[0].sent, 5000u);
}

TEST(ByteServer, NotReadingBlocksThePeer)
{
    byte_server server(byte_script().stop_reading().gate("on").read_again().stall());
    raw_client client(server.port());
    const std::size_t filled = client.write_until_blocked();
    EXPECT_GT(filled, 0u);
    EXPECT_EQ(server.log().connections.at(0).received, 0u);
    server.open("on");
    EXPECT_TRUE(server.wait_until([&](const byte_log& l) { return l.connections[0].received == filled; }));
}

TEST(ByteServer, OnASharedContextEveryTrickledByteIsReadAlone)
{
    asio::io_context context(1);
    byte_server server(context.get_executor(), byte_script().trickle("one byte at a time").close());
    testing_tests::async_reader reader(context, server.port());
    ASSERT_TRUE(run_until(context, [&] { return reader.ended(); }));
    EXPECT_EQ(reader.text(), "one byte at a time");
    EXPECT_EQ(reader.reads(), reader.text().size());
    server.stop();
    EXPECT_NO_THROW(context.run());
    EXPECT_TRUE(context.stopped());
}

TEST(ByteServer, MayDieBeforeItsContextOrWithOpenConnections)
{
    asio::io_context context(1);
    {
        byte_server server(context.get_executor(), byte_script().gate("never"));
        testing_tests::async_reader reader(context, server.port());
        run_until_idle(context);
        EXPECT_EQ(server.log().open(), 1u);
    }
    {
        byte_server server(byte_script().gate("never"));
        raw_client client(server.port());
        EXPECT_TRUE(server.wait_until([](const byte_log& l) { return l.open() == 1; }));
    }
}

TEST(ByteServer, RefusedPortRefuses)
{
    const refused_port refused;
    raw_client client(refused.port());
    EXPECT_EQ(client.last_error(), ECONNREFUSED);
}

TEST(HttpText, WritesWhatItSays)
{
    EXPECT_EQ(http_response(429, "no", {{"Retry-After", "1"}}),
              "HTTP/1.1 429 Too Many Requests\r\ncontent-type: application/json\r\nRetry-After: 1\r\ncontent-length: 2\r\n\r\nno");
    EXPECT_EQ(http_chunked(200, {"ab", ""}, {{"Content-Type", "text/plain"}}),
              "HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\ntransfer-encoding: chunked\r\n\r\n2\r\nab\r\n0\r\n\r\n");
    EXPECT_EQ(sse_response({"{}"}), sse_head() + "a\r\ndata: {}\n\n\r\n0\r\n\r\n");
    EXPECT_EQ(gzip("aaaa").substr(0, 2), "\x1f\x8b");
    EXPECT_EQ(zlib_deflate("aaaa")[0], '\x78');
}

TEST(RunHelpers, CompleteGivesTheValueOrTheException)
{
    asio::io_context context(1);
    struct ops {
        static awaitable<int> seven()
        {
            co_await asio::post(asio::use_awaitable);
            co_return 7;
        }
        static awaitable<void> fail()
        {
            co_await asio::post(asio::use_awaitable);
            throw std::runtime_error("no");
        }
        static awaitable<void> wait(std::shared_ptr<manual_clock> clock)
        {
            asio::steady_timer cv(co_await asio::this_coro::executor, asio::steady_timer::time_point::max());
            const auto timer = clock->make_timer(cv.get_executor(), [&cv] { cv.cancel(); });
            timer->arm(clock->now() + std::chrono::hours(1));
            error_code ignored;
            co_await cv.async_wait(asio::redirect_error(asio::use_awaitable, ignored));
        }
    };
    EXPECT_EQ(complete(context, ops::seven()), 7);
    EXPECT_THROW(complete(context, ops::fail()), std::runtime_error);
    const auto clock = std::make_shared<manual_clock>();
    EXPECT_NO_THROW(complete(context, *clock, ops::wait(clock)));
    EXPECT_THROW(complete(context, ops::wait(clock), std::chrono::milliseconds(1)), std::runtime_error) << "nobody moves the clock";
}

}  // namespace byte_server_test
}  // namespace

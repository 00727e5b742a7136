#include "http_server_world.hpp"

#include <gtest/gtest.h>

#include <vector>

namespace reagent {
namespace {
namespace http_server_streams_test {

using net_tests::get;
using net_tests::server_client;
using net_tests::server_world;

TEST(HttpServerStreams, StreamsInChunksOrUntilTheEnd)
{
    server_world w;
    http_responder out;
    w.start().fallback([&](server_request&&, http_responder r) {
        r.begin(200, "text/event-stream");
        out = std::move(r);
    });
    server_client c(w), old(w), head(w);
    const std::string start = "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n";
    EXPECT_EQ(c.ask(get("/")), start + "Transfer-Encoding: chunked\r\n\r\n") << "the head does not wait for the first bytes";
    EXPECT_TRUE(out.write("hello"));
    EXPECT_EQ(c.read(), "5\r\nhello\r\n");
    EXPECT_TRUE(out.write(""));
    EXPECT_TRUE(out.write(std::string(17, 'x')));
    out.end();
    EXPECT_EQ(c.read(), "11\r\n" + std::string(17, 'x') + "\r\n0\r\n\r\n");
    EXPECT_FALSE(c.ended);
    EXPECT_EQ(old.ask("GET / HTTP/1.0\r\nConnection: keep-alive\r\n\r\n"), start + "Connection: close\r\n\r\n") << "nothing but the end can tell where it ends";
    out.write("hello");
    out.end();
    EXPECT_EQ(old.read(), "hello");
    EXPECT_TRUE(old.ended);
    EXPECT_EQ(head.ask("HEAD / HTTP/1.1\r\nHost: a\r\n\r\n"), start + "Transfer-Encoding: chunked\r\n\r\n");
    EXPECT_TRUE(out.write("hello"));
    out.end();
    EXPECT_EQ(head.read(), "");
    EXPECT_FALSE(head.ended);
}

TEST(HttpServerStreams, AReaderThatStallsHoldsTheWriterBackAndMemoryStaysFlat)
{
    server_world w;
    http_responder out;
    w.start().fallback([&](server_request&&, http_responder r) {
        r.begin(200, "text/plain");
        out = std::move(r);
    });
    server_client c(w, 4096);
    c.write(get("/"));
    w.idle();
    const std::string piece(16 * 1024, 'x');
    std::size_t written = 0;
    while (out.write(piece)) written += piece.size();
    written += piece.size();
    EXPECT_LT(written, 8u << 20U) << "the kernel's buffers and one high-water mark";
    int rooms = 0;
    out.on_room([&] { ++rooms; });
    w.idle();
    EXPECT_EQ(rooms, 0) << "nothing was read, so there is no room";
    std::size_t got = 0;
    while (rooms == 0) {
        got += c.take().size();
        w.idle();
        ASSERT_LT(got, 2 * written);
    }
    EXPECT_TRUE(out.has_room());
    out.end();
    std::string last;
    for (std::string more = c.read(); !more.empty(); more = c.read()) {
        got += more.size();
        last = more;
    }
    EXPECT_GT(got, written);
    EXPECT_TRUE(last.ends_with("\r\n0\r\n\r\n"));
}

TEST(HttpServerStreams, TheEndOfAStreamIsNotWhatCutsIt)
{
    server_world w;
    w.options.limits.high_water = w.options.limits.max_unsent = 1U << 20U;
    constexpr std::size_t size = 24U << 20U;  // more than the kernel keeps
    w.start().fallback([](server_request&&, http_responder r) {
        r.begin(200, "text/plain");
        EXPECT_FALSE(r.write(std::string(size, 'x')));
        r.end();
    });
    server_client c(w);
    const std::string all = c.ask(get("/"));
    EXPECT_FALSE(c.was_reset);
    EXPECT_GT(all.size(), size);
    EXPECT_TRUE(all.ends_with("x\r\n0\r\n\r\n"));
}

TEST(HttpServerStreams, TheOneWhoAnswersHearsOfAClientThatGoes)
{
    for (const int how : {0, 1, 2, 3}) {
        server_world w;
        http_responder out;
        std::vector<peer_end> ends;
        w.start().fallback([&](server_request&&, http_responder r) {
            if (how != 3) r.begin(200, "text/plain");
            r.on_gone([&](peer_end e) { ends.push_back(e); });
            out = std::move(r);
        });
        server_client c(w);
        c.write(get("/") + (how == 1 ? get("/behind") : ""));
        w.idle();
        c.take();
        EXPECT_TRUE(ends.empty());
        if (how == 2) c.reset();
        else c.close();
        w.idle();
        EXPECT_EQ(ends, std::vector{how == 2 ? peer_end::reset : peer_end::fin}) << how;
        EXPECT_TRUE(out.gone());
        if (how != 3) EXPECT_FALSE(out.write("x"));
        else out.send(200, "text/plain", "late");
        EXPECT_EQ(w.server->stats().gone, 1u);
        EXPECT_EQ(w.server->stats().busy, 0u);
    }
}

TEST(HttpServerStreams, TheRawWireSendsWhatItIsGivenAndGivesTheConnectionBack)
{
    server_world w;
    w.start().fallback([](server_request&& r, http_responder out) {
        raw_wire wire = out.take_raw();
        std::size_t n = 0;
        wire.try_write("as it is " + r.target, n);
        if (r.target == "/keep") wire.done();
        else if (r.target == "/close") wire.close();
        else if (r.target == "/reset") wire.reset();
    });
    server_client c(w), d(w), e(w);
    EXPECT_EQ(c.ask(get("/keep") + get("/keep")), "as it is /keepas it is /keep");
    EXPECT_EQ(c.ask(get("/close") + get("/keep")), "as it is /close");
    EXPECT_TRUE(c.ended && !c.was_reset);
    d.ask(get("/reset"));
    EXPECT_TRUE(d.was_reset);
    e.ask(get("/dropped"));
    EXPECT_TRUE(e.was_reset);
}

}  // namespace http_server_streams_test
}  // namespace
}  // namespace reagent

#include "http_server_world.hpp"

#include <reagent/base/error.hpp>

#include <boost/asio/post.hpp>
#include <boost/asio/this_coro.hpp>
#include <boost/asio/use_awaitable.hpp>

#include <gtest/gtest.h>

#include <cstdlib>
#include <sys/resource.h>
#include <vector>

namespace reagent {
namespace {
namespace http_server_test {

using net_tests::get;
using net_tests::ok;
using net_tests::server_client;
using net_tests::server_world;
using std::chrono::milliseconds;
using std::chrono::seconds;

TEST(HttpServer, RoutesBySegmentsTheMostLiteralFirst)
{
    server_world w;
    http_server& s = w.start();
    const auto say = [](std::string word) {
        return [word](server_request&& r, http_responder out) {
            std::string text = word;
            for (const auto& [name, value] : r.parameters) text.append(" ").append(name).append("=").append(value);
            out.send(200, "text/plain", text);
        };
    };
    s.route("GET", "/files/*", say("files"));
    s.route("GET", "/runs/{id}", say("run"));
    s.route("GET", "/runs/last", say("last"));
    s.route("POST", "/runs/{id}", say("post"));
    s.route("GET", "/runs/{id}/events", say("events"));
    s.route("GET", "/", say("root"));
    server_client c(w);
    EXPECT_EQ(c.ask(get("/runs/last?x=1")), ok("last"));
    EXPECT_EQ(c.ask(get("/runs/7")), ok("run id=7"));
    EXPECT_EQ(c.ask(get("/runs/7/events")), ok("events id=7"));
    EXPECT_EQ(c.ask(get("/files/a/b")), ok("files *=a/b"));
    EXPECT_EQ(c.ask(get("/")), ok("root"));
    EXPECT_EQ(c.ask("POST /runs/last HTTP/1.1\r\nHost: a\r\n\r\n"), ok("post id=last"));
    EXPECT_EQ(c.ask(get("/runs/")).substr(0, 12), "HTTP/1.1 404");
    EXPECT_EQ(c.ask(get("/runs/7/")).substr(0, 12), "HTTP/1.1 404");
    EXPECT_EQ(c.ask("DELETE /runs/7 HTTP/1.1\r\nHost: a\r\n\r\n"),
              "HTTP/1.1 405 Method Not Allowed\r\nContent-Type: text/plain\r\nAllow: GET, HEAD, POST\r\nContent-Length: 29\r\n\r\nthis path has no "
              "such method\n");
    EXPECT_EQ(c.ask("HEAD /runs/7 HTTP/1.1\r\nHost: a\r\n\r\n"), "HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nContent-Length: 8\r\n\r\n");
    for (const char* bad : {"", "x", "/a/*/b", "/{", "/{}", "/runs/{other}"}) EXPECT_THROW(s.route("GET", bad, say("x")), config_error) << bad;
    EXPECT_EQ(w.server->stats().connections, 1u);
    s.route("OPTIONS", "/", say("options"));
    s.route("OPTIONS", "/*", say("any"));
    EXPECT_EQ(c.ask("OPTIONS * HTTP/1.1\r\nHost: a\r\n\r\n").substr(0, 12), "HTTP/1.1 404") << "no path at all";
}

TEST(HttpServer, KeepsAConnectionUntilEitherSideEndsIt)
{
    server_world w;
    w.options.limits.max_requests = 3;
    w.echo();
    server_client a(w), b(w), c(w), d(w);
    EXPECT_EQ(a.ask(get("/1")), ok("GET /1 "));
    EXPECT_EQ(a.ask("POST /2 HTTP/1.1\r\nHost: a\r\nContent-Length: 2\r\n\r\nhi"), ok("POST /2 hi"));
    EXPECT_EQ(a.ask(get("/3")), ok("GET /3 ", true)) << "the last it may send";
    EXPECT_TRUE(a.ended);
    EXPECT_EQ(b.ask(get("/", "Connection: close\r\n")), ok("GET / ", true));
    EXPECT_TRUE(b.ended);
    EXPECT_EQ(c.ask("GET / HTTP/1.0\r\n\r\n"), ok("GET / ", true));
    EXPECT_TRUE(c.ended);
    EXPECT_EQ(d.ask("GET / HTTP/1.0\r\nConnection: keep-alive\r\n\r\n").find("Connection: keep-alive\r\n") != std::string::npos, true);
    EXPECT_FALSE(d.ended);
    for (server_client* x : {&a, &b, &c, &d}) x->close();
    w.idle();
    EXPECT_EQ(w.server->stats().open, 0u);
}

// Holds answers until the test lets them go.
struct held {
    std::vector<std::pair<std::string, http_responder>> answers;
    void operator()(server_request&& r, http_responder out) { answers.emplace_back(r.target, std::move(out)); }
    void let_go(std::size_t i) { answers[i].second.send(200, "text/plain", answers[i].first); }
};

TEST(HttpServer, AnswersPipelinedRequestsInOrderOneAtATime)
{
    server_world w;
    held h;
    w.start().fallback(std::ref(h));
    server_client c(w);
    EXPECT_EQ(c.ask(get("/1") + get("/2") + "POST /3 HTTP/1.1\r\nHost: a\r\nContent-Length: 4\r\n\r\nab"), "");
    ASSERT_EQ(h.answers.size(), 1u);
    h.let_go(0);
    EXPECT_EQ(c.read(), ok("/1"));
    ASSERT_EQ(h.answers.size(), 2u);
    c.write("cd");
    h.let_go(1);
    EXPECT_EQ(c.read(), ok("/2"));
    ASSERT_EQ(h.answers.size(), 3u);
    h.let_go(2);
    EXPECT_EQ(c.read(), ok("/3"));
    EXPECT_FALSE(c.ended);
}

TEST(HttpServer, PipeliningIsBoundedByBytesAndByCount)
{
    server_world w;
    w.options.limits.max_pipelined = 3;
    w.options.limits.max_pipelined_bytes = 1000;
    held h;
    w.start().route("GET", "/held", std::ref(h));
    w.server->fallback([](server_request&& r, http_responder out) { out.send(200, "text/plain", r.target); });
    server_client many(w), large(w);
    std::string all;
    for (int i = 0; i < 6; ++i) all += get("/" + std::to_string(i));
    for (int i = 0; i < 6; ++i) EXPECT_EQ(many.ask(get("/x") + get("/y")), ok("/x") + ok("/y")) << "who has waited for its answers starts anew";
    EXPECT_EQ(many.ask(all), ok("/0") + ok("/1") + ok("/2") + ok("/3", true)) << "one, and three that did not wait for it";
    EXPECT_TRUE(many.ended);
    large.ask(get("/held") + get("/" + std::string(500, 'x')));
    large.ask(get("/" + std::string(500, 'y')));
    ASSERT_EQ(h.answers.size(), 1u);
    h.let_go(0);
    EXPECT_EQ(large.read(), ok("/held", true)) << "polite: the answer comes, and says that it is the last";
    EXPECT_TRUE(large.ended);
}

TEST(HttpServer, StreamsInChunksOrUntilTheEnd)
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

TEST(HttpServer, SomeAnswersHaveNoBodyWhateverTheirHandlerSays)
{
    server_world w;
    w.start().fallback([](server_request&& r, http_responder out) {
        const auto status = static_cast<unsigned>(std::stoi(r.target.substr(1)));
        http_fields f;
        if (r.query() == "last") f.add("Connection", "Close");
        if (r.query() != "stream") return out.send(status, f, "body");
        out.begin(status, f);
        out.write("body");
        out.end();
    });
    server_client c(w);
    for (const char* way : {"", "?stream"}) {
        EXPECT_EQ(c.ask(get("/204" + std::string(way))), "HTTP/1.1 204 No Content\r\n\r\n");
        EXPECT_EQ(c.ask(get("/304" + std::string(way))), "HTTP/1.1 304 Not Modified\r\n\r\n");
    }
    EXPECT_EQ(c.ask("HEAD /200 HTTP/1.1\r\nHost: a\r\n\r\n"), "HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\n");
    EXPECT_EQ(c.ask(get("/200?last")), "HTTP/1.1 200 OK\r\nContent-Length: 4\r\nConnection: close\r\n\r\nbody");
    EXPECT_TRUE(c.ended) << "a handler may end the connection";
}

TEST(HttpServer, AReaderThatStallsHoldsTheWriterBackAndMemoryStaysFlat)
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

TEST(HttpServer, AWriterThatDoesNotListenIsCutOff)
{
    server_world w;
    w.options.limits.high_water = 64 * 1024;
    w.options.limits.max_unsent = 128 * 1024;
    http_responder out;
    std::optional<peer_end> gone;
    w.start().fallback([&](server_request&&, http_responder r) {
        r.begin(200, "text/plain");
        r.on_gone([&](peer_end how) { gone = how; });
        out = std::move(r);
    });
    server_client c(w, 4096);
    c.write(get("/"));
    w.idle();
    const std::string piece(16 * 1024, 'x');
    for (int i = 0; i < 1000 && !out.gone(); ++i) out.write(piece);
    EXPECT_TRUE(out.gone());
    EXPECT_FALSE(gone.has_value()) << "not from inside write";
    w.idle();
    EXPECT_EQ(gone, peer_end::stopped);
    EXPECT_EQ(w.server->stats().open, 0u);
}

TEST(HttpServer, TheEndOfAStreamIsNotWhatCutsIt)
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

TEST(HttpServer, ARefusalWhoseWordsFailIsSaidPlainly)
{
    server_world w;
    int asked = 0;
    w.options.refusal = [&](unsigned, std::string_view) {
        if (++asked == 1) throw std::runtime_error("no words");
        return std::pair<std::string, std::string>("text/html\r\nSet-Cookie: a", "b");
    };
    w.echo();
    for (int i = 1; i <= 2; ++i) {
        server_client c(w);
        EXPECT_EQ(c.ask("nonsense\r\n\r\n"),
                  "HTTP/1.1 400 Bad Request\r\nContent-Type: text/plain\r\nContent-Length: 33\r\nConnection: close\r\n\r\nthe request head is not HTTP/1.1\n");
        EXPECT_EQ(asked, i);
    }
}

TEST(HttpServer, ALimitMayBeAsLongAsTime)
{
    server_world w;
    http_server_limits& l = w.options.limits;
    l.head = l.body_idle = l.write_idle = l.keep_alive = l.linger = std::chrono::nanoseconds::max();
    l.peer_rate = 1e-300;
    l.peer_burst = 1;
    held h;
    w.start().fallback(std::ref(h));
    server_client c(w), fast(w);
    c.ask(get("/1"));
    EXPECT_NE(fast.ask(get("/2")).find("Retry-After: 31536000\r\n"), std::string::npos);
    w.advance(std::chrono::hours(24 * 365));
    testing::started<bool> drain(w.context, w.server->drain(std::chrono::nanoseconds::max()));
    w.idle();
    EXPECT_FALSE(drain.done());
    h.let_go(0);
    EXPECT_EQ(c.read(), ok("/1", true));
    c.close();
    fast.close();
    w.idle();
    ASSERT_TRUE(drain.done());
    EXPECT_TRUE(drain.get());
}

TEST(HttpServer, ARefusedClientGetsItsAnswerThoughItGoesOnSending)
{
    server_world w;
    w.options.limits.max_body = 1000;
    w.options.limits.max_line = 100;
    w.options.limits.max_head = 1000;
    w.echo();
    const std::string post = "POST / HTTP/1.1\r\nHost: a\r\n";
    const std::pair<std::string, std::string> rows[] = {{"nonsense\r\n\r\n", "400"},
                                                        {get("/" + std::string(200, 'x')), "414"},
                                                        {get("/", "X: " + std::string(2000, 'x') + "\r\n"), "431"},
                                                        {post + "Content-Length: 1001\r\n\r\n", "413"},
                                                        {post + "Transfer-Encoding: chunked\r\n\r\n1000\r\n", "413"},
                                                        {post + "Content-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n", "400"},
                                                        {"GET / HTTP/3.0\r\n\r\n", "505"}};
    for (const auto& [request, status] : rows) {
        server_client c(w);
        const std::string answer = c.ask(request + std::string(100'000, 'z'));
        EXPECT_EQ(answer.substr(9, 3), status) << request.substr(0, 60);
        EXPECT_NE(answer.find("Connection: close\r\n"), std::string::npos);
        EXPECT_TRUE(c.ended && !c.was_reset) << request.substr(0, 60);
        c.write(std::string(50'000, 'z'));
        c.read();
        EXPECT_FALSE(c.was_reset) << "what it goes on sending is dropped";
        c.write(std::string(200'000, 'z'));
        w.idle();
        EXPECT_EQ(w.server->stats().open, 0u) << "though not for ever";
    }
    EXPECT_EQ(w.server->stats().refused, 7u);
}

TEST(HttpServer, EachTimeOutHolds)
{
    server_world w;
    http_responder stream;
    w.echo().route("GET", "/stream", [&](server_request&&, http_responder r) {
        r.begin(200, "text/plain");
        stream = std::move(r);
    });
    const auto opens = [&] { return w.server->stats().open; };
    const milliseconds step(1);
    {
        server_client silent(w);
        w.idle();
        w.advance(seconds(10) - step);
        EXPECT_EQ(opens(), 1u);
        w.advance(step);
        EXPECT_EQ(silent.read(), "");
        EXPECT_TRUE(silent.ended) << "a client that says nothing is told nothing";
        EXPECT_EQ(opens(), 0u);
    }
    {
        server_client slow(w);
        slow.ask("GET / HTTP/1.1\r\n");
        for (int i = 0; i < 9; ++i) {
            w.advance(seconds(1));
            slow.ask("X: y\r\n");
        }
        EXPECT_EQ(opens(), 1u);
        w.advance(seconds(1));
        EXPECT_EQ(slow.read().substr(0, 12), "HTTP/1.1 408") << "bytes do not move the limit of a head";
        EXPECT_TRUE(slow.ended);
        w.advance(seconds(2) - step);
        EXPECT_EQ(opens(), 1u) << "it lingers";
        w.advance(step);
        EXPECT_EQ(opens(), 0u) << "though no longer than two seconds";
    }
    {
        server_client slow(w);
        slow.ask("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 9\r\n\r\n");
        for (int i = 0; i < 5; ++i) {
            w.advance(seconds(29));
            slow.ask("x");
        }
        w.advance(seconds(30) - step);
        EXPECT_EQ(slow.read(), "") << "bytes move the limit of a body";
        w.advance(step);
        EXPECT_EQ(slow.read().substr(0, 12), "HTTP/1.1 408");
    }
    w.advance(seconds(5));
    EXPECT_EQ(opens(), 0u);
    {
        server_client kept(w);
        EXPECT_EQ(kept.ask(get("/")), ok("GET / "));
        w.advance(seconds(70));
        EXPECT_EQ(kept.ask(get("/")), ok("GET / "));
        w.advance(seconds(75) - step);
        EXPECT_EQ(opens(), 1u);
        w.advance(step);
        EXPECT_EQ(opens(), 0u);
        EXPECT_EQ(kept.read(), "");
        EXPECT_TRUE(kept.ended);
    }
    {
        server_client reader(w, 4096);
        reader.ask(get("/stream"));
        w.advance(std::chrono::hours(1));
        EXPECT_EQ(opens(), 1u) << "a handler may take its time";
        const std::string piece(64 * 1024, 'x');
        while (stream.write(piece)) {}
        w.idle();
        w.advance(seconds(29));
        EXPECT_FALSE(stream.gone());
        w.advance(seconds(2));
        EXPECT_TRUE(stream.gone()) << "a reader may not";
        EXPECT_EQ(opens(), 0u);
    }
    EXPECT_EQ(w.server->stats().timed_out, 4u);
}

TEST(HttpServer, APeerThatIsTooFastIsToldWhenToComeBack)
{
    server_world w;
    w.options.limits.peer_rate = 0.5;
    w.options.limits.peer_burst = 2;
    w.echo();
    server_client c(w), other(w);
    EXPECT_EQ(c.ask(get("/1")), ok("GET /1 "));
    EXPECT_EQ(other.ask(get("/2")), ok("GET /2 "));
    const std::string refusal = c.ask(get("/3"));
    EXPECT_EQ(refusal.substr(0, 12), "HTTP/1.1 429");
    EXPECT_NE(refusal.find("Retry-After: 2\r\n"), std::string::npos) << refusal;
    EXPECT_FALSE(c.ended) << "nothing of the request is unread";
    w.advance(seconds(2));
    EXPECT_EQ(c.ask(get("/4")), ok("GET /4 "));
    EXPECT_EQ(c.ask("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\n\r\n").substr(0, 12), "HTTP/1.1 429");
    EXPECT_TRUE(c.ended) << "its body is not waited for";
    EXPECT_EQ(w.server->stats().rate_limited, 2u);
}

TEST(HttpServer, AsksForABodyOnlyWhenItIsWanted)
{
    server_world w;
    w.start().route("POST", "/in", [](server_request&& r, http_responder out) { out.send(200, "text/plain", r.body); });
    const std::string rest = " HTTP/1.1\r\nHost: a\r\nExpect: 100-continue\r\nContent-Length: 2\r\n\r\n";
    server_client a(w), b(w), c(w);
    EXPECT_EQ(a.ask("POST /in" + rest), "HTTP/1.1 100 Continue\r\n\r\n");
    EXPECT_EQ(a.ask("hi"), ok("hi"));
    EXPECT_EQ(a.ask("POST /in" + rest + "hi"), ok("hi")) << "it did not wait to be asked";
    EXPECT_EQ(a.ask("POST /in HTTP/1.1\r\nHost: a\r\nExpect: 100-continue\r\n\r\n"), ok("")) << "there is no body";
    EXPECT_EQ(b.ask("POST /out" + rest).substr(0, 12), "HTTP/1.1 404");
    EXPECT_TRUE(b.ended);
    EXPECT_EQ(c.ask("PUT /in" + rest).substr(0, 12), "HTTP/1.1 405");
}

TEST(HttpServer, AnInvitationThatDoesNotFitGarblesNothing)
{
    server_world w;
    std::size_t filled = 0;
    w.start().fallback([&](server_request&&, http_responder out) {
        raw_wire wire = out.take_raw();
        const std::string piece(64 * 1024, 'x');
        for (std::size_t n = 0; wire.try_write(piece, n) == raw_wire::status::ok; filled += n) {}
        wire.done();
    });
    server_client c(w, 4096);
    c.write(get("/") + "POST / HTTP/1.1\r\nHost: a\r\nExpect: 100-continue\r\nContent-Length: 2\r\n\r\n");
    w.idle();
    EXPECT_EQ(w.server->stats().open, 0u) << "it reads no answers, and wants to be asked for more";
    const std::string all = c.read();
    EXPECT_EQ(all.size(), filled);
    EXPECT_EQ(all.find_first_not_of('x'), std::string::npos);
    EXPECT_TRUE(c.ended && !c.was_reset);
}

TEST(HttpServer, TheOneWhoAnswersHearsOfAClientThatGoes)
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

TEST(HttpServer, WhatAHandlerLeavesUndoneIsNotTakenForAnAnswer)
{
    server_world w;
    http_server& s = w.start();
    std::string logged;
    s.route("GET", "/silent", [](server_request&&, http_responder) {});
    s.route("GET", "/throws", [](server_request&&, http_responder) { throw std::runtime_error("oops"); });
    s.route("GET", "/half", [](server_request&&, http_responder r) {
        r.begin(200, "text/plain");
        r.write("half");
    });
    s.route("GET", "/split", [](server_request&&, http_responder r) {
        http_fields f;
        f.add("X", "a\r\nSet-Cookie: b");
        r.send(200, f, "");
    });
    s.route("GET", "/length", [](server_request&&, http_responder r) {
        http_fields f;
        f.add("Content-length", "7");
        r.send(200, f, "");
    });
    server_client c(w), half(w);
    for (const char* target : {"/silent", "/throws", "/split", "/length"}) EXPECT_EQ(c.ask(get(target)).substr(0, 12), "HTTP/1.1 500") << target;
    EXPECT_FALSE(c.ended);
    half.ask(get("/half"));
    EXPECT_TRUE(half.was_reset);
}

TEST(HttpServer, DrainLetsAnswersEndAndServesWhoHasConnected)
{
    server_world w;
    held h;
    w.start().fallback(std::ref(h));
    server_client idle(w), busy(w);
    busy.ask(get("/busy"));
    server_client waiting(w);  // in the backlog, its request in its socket
    waiting.write(get("/waiting"));
    testing::started<bool> drain(w.context, w.server->drain(seconds(30)));
    w.idle();
    EXPECT_FALSE(server_client(w).connected()) << "nobody listens";
    idle.read();
    EXPECT_TRUE(idle.ended);
    ASSERT_EQ(h.answers.size(), 2u);
    h.let_go(0);
    EXPECT_EQ(busy.read(), ok("/busy", true));
    EXPECT_FALSE(drain.done());
    h.let_go(1);
    EXPECT_EQ(waiting.read(), ok("/waiting", true));
    busy.close();
    waiting.close();
    w.idle();
    ASSERT_TRUE(drain.done());
    EXPECT_TRUE(drain.get());
}

TEST(HttpServer, DrainStopsWhatDoesNotEndInTime)
{
    server_world w;
    held h;
    w.start().fallback(std::ref(h));
    server_client busy(w);
    busy.ask(get("/busy"));
    testing::started<bool> drain(w.context, w.server->drain(seconds(30)));
    w.idle();
    w.advance(seconds(29));
    EXPECT_FALSE(drain.done());
    w.advance(seconds(1));
    ASSERT_TRUE(drain.done());
    EXPECT_FALSE(drain.get());
    EXPECT_TRUE(h.answers[0].second.gone());
}

TEST(HttpServer, TheRawWireSendsWhatItIsGivenAndGivesTheConnectionBack)
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

TEST(HttpServer, GoesOnAcceptingWhenDescriptorsAreThereAgain)
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

TEST(HttpServer, MoreConnectionsThanAllowedWaitTheirTurn)
{
    server_world w;
    w.options.limits.max_connections = 1;
    w.echo();
    server_client first(w), second(w);
    EXPECT_EQ(first.ask(get("/1")), ok("GET /1 "));
    EXPECT_EQ(second.ask(get("/2")), "");
    first.close();
    EXPECT_EQ(second.read(), ok("GET /2 "));
}

TEST(HttpServer, ListensOnAUnixSocketAndReplacesAStaleOne)
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

TEST(HttpServer, OptionsThatCannotHoldAreRefused)
{
    server_world w;
    const auto refused = [&](auto change) {
        http_server_options o;
        change(o);
        EXPECT_THROW(http_server(w.context.get_executor(), o), config_error);
    };
    refused([](http_server_options& o) { o.address = "localhost"; });
    refused([](http_server_options& o) { o.limits.head = seconds(-1); });
    refused([](http_server_options& o) { o.limits.max_head = 1 << 20; });
    refused([](http_server_options& o) { o.limits.max_pipelined = 0; });
    refused([](http_server_options& o) { o.limits.max_unsent = 1; });
    refused([](http_server_options& o) { o.limits.peer_rate = -1; });
    refused([](http_server_options& o) { o.unix_socket = std::string(200, 'x'); });
}

// ---- handlers that are coroutines

struct coroutine_log {
    std::vector<std::string> lines;
};

awaitable<void> stream_for_ever(coroutine_log& log, http_responder out)
{
    struct at_end {
        coroutine_log& log;
        ~at_end() { log.lines.emplace_back("unwound"); }
    } const unwound{log};
    out.begin(200, "text/plain");
    for (;;) {
        co_await out.write_some(std::string(32 * 1024, 'x'));
        log.lines.emplace_back("wrote");
    }
}

awaitable<void> never(std::shared_ptr<clock> c)
{
    co_await sleep_until(std::move(c), steady_time::max());
}

TEST(HttpServer, ACoroutineIsHeldBackByItsReaderAndEndsWithIt)
{
    server_world w;
    coroutine_log log;
    w.start().route_awaitable("GET", "/", [&](server_request, http_responder out) { return stream_for_ever(log, std::move(out)); });
    server_client c(w, 4096);
    c.write(get("/"));
    w.idle();
    const std::size_t before = log.lines.size();
    EXPECT_LT(before, 512u) << "it waits";
    while (log.lines.size() < before + 4) {
        ASSERT_FALSE(c.take().empty() && log.lines.size() > before + 512);
        w.idle();
    }
    c.close();
    w.idle();
    EXPECT_EQ(log.lines.back(), "unwound");
    EXPECT_EQ(w.server->stats().busy, 0u);
}

TEST(HttpServer, ACoroutineIsCancelledWithItsClientOrTheServer)
{
    for (const bool by_client : {true, false}) {
        server_world w;
        bool cancelled = false;
        w.start().route_awaitable("GET", "/", [&](server_request, http_responder out) -> awaitable<void> {
            const http_responder kept = std::move(out);
            try {
                co_await never(w.clock);
            } catch (...) {
                cancelled = is_cancellation(std::current_exception());
                throw;
            }
        });
        server_client c(w);
        c.write(get("/"));
        w.idle();
        EXPECT_FALSE(cancelled);
        if (by_client) {
            c.close();
            w.idle();
            EXPECT_TRUE(cancelled);
        } else {
            testing::complete(w.context, w.server->close());
            EXPECT_TRUE(cancelled) << "close waits for it";
        }
    }
}

// Takes its time when it is cancelled.
awaitable<void> tidies_up(std::shared_ptr<clock> c, bool& tidy)
{
    try {
        co_await never(std::move(c));
    } catch (const std::exception&) {}
    co_await asio::this_coro::reset_cancellation_state();
    for (int i = 0; i < 10; ++i) co_await asio::post(asio::use_awaitable);
    tidy = true;
}

TEST(HttpServer, CloseWaitsForWhatACancelledCoroutineHasLeftToDo)
{
    server_world w;
    bool tidy = false;
    w.start().route_awaitable("GET", "/", [&](server_request, http_responder) { return tidies_up(w.clock, tidy); });
    server_client c(w);
    c.ask(get("/"));
    testing::complete(w.context, w.server->close());
    EXPECT_TRUE(tidy);
}

awaitable<void> fails(http_responder out)
{
    const http_responder kept = std::move(out);
    throw error(errc::not_found, "the run is not there");
    co_return;
}

TEST(HttpServer, ACoroutineThatThrowsBecomesA500AndALogLine)
{
    server_world w;
    std::string logged;
    w.options.log = log_sink([&](log_level, std::string_view line) { logged += line; });
    w.start().route_awaitable("GET", "/", [](server_request, http_responder out) { return fails(std::move(out)); });
    server_client c(w);
    EXPECT_EQ(c.ask(get("/")).substr(0, 12), "HTTP/1.1 500");
    EXPECT_EQ(logged, "[http_server] a handler failed: the run is not there");
}

}  // namespace http_server_test
}  // namespace
}  // namespace reagent

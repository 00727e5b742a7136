#include "http_server_world.hpp"

#include <reagent/base/error.hpp>

#include <gtest/gtest.h>

#include <string>

namespace reagent {
namespace {
namespace http_server_test {

using net_tests::get;
using net_tests::held_answers;
using net_tests::ok;
using net_tests::server_client;
using net_tests::server_world;

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

TEST(HttpServer, AnswersPipelinedRequestsInOrderOneAtATime)
{
    server_world w;
    held_answers h;
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

}  // namespace http_server_test
}  // namespace
}  // namespace reagent

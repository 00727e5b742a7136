#include "http_server_world.hpp"

#include <reagent/base/error.hpp>

#include <gtest/gtest.h>

#include <optional>

namespace reagent {
namespace {
namespace http_server_limits_test {

using net_tests::get;
using net_tests::held_answers;
using net_tests::ok;
using net_tests::server_client;
using net_tests::server_world;
using std::chrono::milliseconds;
using std::chrono::seconds;

TEST(HttpServerLimits, PipeliningIsBoundedByBytesAndByCount)
{
    server_world w;
    w.options.limits.max_pipelined = 3;
    w.options.limits.max_pipelined_bytes = 1000;
    held_answers h;
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

TEST(HttpServerLimits, AWriterThatDoesNotListenIsCutOff)
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

TEST(HttpServerLimits, ARefusedClientGetsItsAnswerThoughItGoesOnSending)
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

TEST(HttpServerLimits, EachTimeOutHolds)
{
    server_world w;
    w.options.limits.body_rate = 0;
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

TEST(HttpServerLimits, ALimitMayBeAsLongAsTime)
{
    server_world w;
    http_server_limits& l = w.options.limits;
    l.head = l.body_idle = l.write_idle = l.keep_alive = l.linger = std::chrono::nanoseconds::max();
    l.peer_rate = 1e-300;
    l.peer_burst = 1;
    held_answers h;
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

TEST(HttpServerLimits, APeerThatIsTooFastIsToldWhenToComeBack)
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

TEST(HttpServerLimits, RefusedRequestsCountToTheRateOfTheirPeer)
{
    for (const bool slow : {false, true}) {
        server_world w;
        w.options.limits.peer_rate = 0.001;
        w.options.limits.peer_burst = 1;
        w.echo();
        server_client bad(w);
        std::string refusal = bad.ask(slow ? "GET / HTTP/1.1\r\n" : "nonsense\r\n\r\n");
        if (slow) {
            w.advance(seconds(10));
            refusal = bad.read();
        }
        EXPECT_EQ(refusal.substr(0, 12), slow ? "HTTP/1.1 408" : "HTTP/1.1 400");
        server_client good(w), worse(w);
        EXPECT_EQ(good.ask(get("/")).substr(0, 12), "HTTP/1.1 429");
        EXPECT_EQ(worse.ask("nonsense\r\n\r\n").substr(0, 12), "HTTP/1.1 429");
        EXPECT_TRUE(worse.ended) << "what stands behind it cannot be told";
        EXPECT_EQ(w.server->stats().rate_limited, 2u);
    }
}

TEST(HttpServerLimits, ABodyByteByByteMustEnd)
{
    server_world w;
    w.echo();
    const std::string post = "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 10000\r\n\r\n";
    const milliseconds step(1);
    server_client one(w), more(w), chunks(w);
    one.ask(post);
    more.ask(post + std::string(2560, 'x'));  // ten seconds more
    chunks.ask("POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n1;" + std::string(3000, 'x') + "\r\nx\r\n");
    w.advance(seconds(20));
    for (server_client* c : {&one, &more}) EXPECT_EQ(c->ask("x"), "");
    chunks.ask("1;" + std::string(3000, 'x') + "\r\nx\r\n");
    w.advance(seconds(10) - step);
    EXPECT_EQ(w.server->stats().timed_out, 0u);
    w.advance(step);
    EXPECT_EQ(one.read().substr(0, 12), "HTTP/1.1 408");
    EXPECT_EQ(chunks.read().substr(0, 12), "HTTP/1.1 408") << "what frames a body is none of it";
    w.advance(seconds(10) - step);
    EXPECT_EQ(more.ask("x"), "") << "each byte moves the other limit";
    EXPECT_EQ(w.server->stats().timed_out, 2u);
    w.advance(step);
    EXPECT_EQ(more.read().substr(0, 12), "HTTP/1.1 408");
    server_client whole(w);
    whole.ask(post);
    for (int i = 0; i < 3; ++i) {
        w.advance(seconds(12));
        EXPECT_EQ(whole.ask(std::string(3000, 'x')), "");
    }
    w.advance(seconds(12));
    EXPECT_EQ(whole.ask(std::string(1000, 'x')).substr(0, 12), "HTTP/1.1 200") << "who keeps the pace is served";
    EXPECT_EQ(w.server->stats().timed_out, 3u);
}

TEST(HttpServerLimits, MoreConnectionsThanAllowedWaitTheirTurn)
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

TEST(HttpServerLimits, OptionsThatCannotHoldAreRefused)
{
    server_world w;
    const auto refused = [&](auto change) {
        http_server_options o;
        change(o);
        EXPECT_THROW(http_server(w.context.get_executor(), o), config_error);
    };
    refused([](http_server_options& o) { o.address = "localhost"; });
    refused([](http_server_options& o) { o.limits.head = seconds(-1); });
    refused([](http_server_options& o) { o.limits.body_grace = seconds(-1); });
    refused([](http_server_options& o) { o.limits.max_head = 1 << 20; });
    refused([](http_server_options& o) { o.limits.max_pipelined = 0; });
    refused([](http_server_options& o) { o.limits.max_unsent = 1; });
    refused([](http_server_options& o) { o.limits.peer_rate = -1; });
    refused([](http_server_options& o) { o.unix_socket = std::string(200, 'x'); });
}

}  // namespace http_server_limits_test
}  // namespace
}  // namespace reagent

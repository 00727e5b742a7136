#include "net_world.hpp"

#include <gtest/gtest.h>

namespace reagent {
namespace {
namespace expect_test {

using namespace net_tests;
using testing::byte_script;
using testing::http_response;

const std::string body = "eleven byte";

http_request asking(const testing::byte_server& s)
{
    http_request r = world::get(s);
    r.method = "POST";
    r.body = body;
    r.expect_continue = true;
    return r;
}

TEST(Expect, WhatThePeerSaysDecidesAboutTheBody)
{
    const std::string go_on = "HTTP/1.1 100 Continue\r\n\r\n", hints = "HTTP/1.1 103 Early Hints\r\nLink: x\r\n\r\n";
    struct row {
        const char* name;
        std::string first;     // what the server says when it has the head
        bool late;             // a second passes after that
        std::string expected;  // status and body
        bool sent;             // the body left
        std::size_t idle;      // connections kept
    };
    const row rows[] = {
        {"100", go_on, false, "200 ok", true, 1},
        {"100 with words", "HTTP/1.1 100 \r\nX: y\r\n\r\n", false, "200 ok", true, 1},
        {"103, then 100", hints + go_on, false, "200 ok", true, 1},
        {"100 twice", go_on + go_on, false, "200 ok", true, 1},
        {"nothing", "", true, "200 ok", true, 1},
        {"103 alone", hints, true, "200 ok", true, 1},
        {"half a 100", "HTTP/1.1 100 Con", true, "malformed", true, 0},  // what follows is no end of it
        {"417", http_response(417, "no"), false, "417 no", false, 0},
        {"417 in 1.0", "HTTP/1.0 417 No\r\n\r\n", false, "", false, 0},
        {"200 at once", http_response(200, "early"), false, "200 early", false, 0},
        {"100 and the answer", go_on + http_response(200, "early"), false, "200 early", false, 0},
        {"401 and keep-alive", http_response(401, "", {{"Connection", "keep-alive"}}), false, "401 ", false, 0},
    };
    for (const row& r : rows) {
        SCOPED_TRACE(r.name);
        world w;
        testing::byte_server server = w.server(byte_script().gate("go").send(r.first).request().send(http_response(200, "ok")));
        http_client client = w.client();
        cancellable op(w.context, fetch(client, asking(server)));
        w.idle();
        const std::size_t head = server.log().connections.at(0).received;
        ASSERT_GT(head, 0u);
        EXPECT_FALSE(op.done());
        // Nothing but the head leaves before the peer speaks or the second is over.
        w.clock->advance(std::chrono::milliseconds(999));
        w.idle();
        EXPECT_EQ(server.log().connections.at(0).received, head);
        server.open("go");
        w.idle();
        if (r.late) {
            EXPECT_EQ(server.log().connections.at(0).received, head);
            w.clock->advance(std::chrono::milliseconds(1));
            w.idle();
        }
        EXPECT_EQ(server.log().connections.at(0).received, head + (r.sent ? body.size() : 0));
        if (r.expected.empty()) {
            EXPECT_FALSE(op.done());  // a body that ends with the connection
            continue;
        }
        ASSERT_TRUE(op.done());
        if (r.expected == "malformed") EXPECT_EQ(op.code(), errc::malformed_response) << op.message();
        else EXPECT_EQ(op.message(), r.expected);
        EXPECT_EQ(client.stats().idle, r.idle);
        EXPECT_EQ(client.stats().open, r.idle);
        if (r.sent && r.idle == 1) { EXPECT_EQ(server.log().request().body, body); }
    }
}

TEST(Expect, TheHeadSaysItOnlyWithABody)
{
    world w;
    testing::byte_server server = w.server(byte_script::answering(http_response(200, "ok")));
    http_client client = w.client();
    http_request empty = asking(server);
    empty.body = {};
    EXPECT_EQ(testing::complete(w.context, fetch(client, empty)), "200 ok");
    EXPECT_EQ(server.log().request(0).header("expect"), "");
    // Without patience it is said and not waited for.
    w.options.continue_wait = std::chrono::nanoseconds(0);
    EXPECT_EQ(testing::complete(w.context, fetch(w.client(), asking(server))), "200 ok");
    EXPECT_EQ(server.log().request(1).header("expect"), "100-continue");
    http_request by_hand = asking(server);
    by_hand.header_lines = "expect: 100-continue\r\n";
    EXPECT_THROW(testing::complete(w.context, fetch(client, by_hand)), validation_error);
}

TEST(Expect, TheWaitIsOneOfTheLimitsAndOfTheCancellations)
{
    for (const bool cancel : {false, true}) {
        world w;
        testing::byte_server server = w.server(byte_script().stall());
        http_request r = asking(server);
        r.limits.idle = std::chrono::milliseconds(500);
        http_client client = w.client();
        cancellable op(w.context, fetch(client, std::move(r)));
        w.idle();
        if (cancel) op.cancel();
        else w.clock->advance(std::chrono::milliseconds(500));
        w.idle();
        ASSERT_TRUE(op.done());
        if (cancel) EXPECT_EQ(op.code(), asio::error::operation_aborted);
        else EXPECT_EQ(op.code(), errc::idle_timeout);
        EXPECT_EQ(client.stats().open, 0u);
        EXPECT_EQ(w.clock->armed(), 0u);
    }
}

TEST(Expect, AReusedConnectionThatDiedIsReplacedAndAskedAgain)
{
    world w;
    testing::byte_server server = w.server({byte_script().request().send(http_response(200, "one")).gate("on").close(),
                                            byte_script().gate("go").send("HTTP/1.1 100 Continue\r\n\r\n").request().send(http_response(200, "two"))});
    http_client client = w.client();
    EXPECT_EQ(testing::complete(w.context, fetch(client, world::get(server))), "200 one");
    cancellable op(w.context, fetch(client, asking(server)));
    w.idle();
    EXPECT_FALSE(op.done());
    server.open("on");  // it ends while the client waits for the 100
    w.idle();
    server.open("go");
    ASSERT_TRUE(w.until([&] { return op.done(); }));
    EXPECT_EQ(op.message(), "200 two");
    EXPECT_EQ(client.stats().retried, 1u);
    EXPECT_EQ(server.log().connections.at(1).requests.at(0).body, body);
}

}  // namespace expect_test
}  // namespace
}  // namespace reagent

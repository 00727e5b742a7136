#include "net_world.hpp"

#include <gtest/gtest.h>

namespace reagent {
namespace {
namespace http_limits_test {

using namespace net_tests;
using std::chrono::milliseconds;
using std::chrono::seconds;
using testing::byte_script;
using testing::http_chunk;

const std::string stream_head = testing::sse_head();

TEST(HttpLimits, Case_C1_SilenceAfterTheHeadIsIdle)
{
    world w;
    testing::byte_server server = w.server(byte_script().request().send(stream_head).gate("late").send(http_chunk("x")).stall());
    http_request r = world::get(server);
    r.limits.idle = seconds(30);
    cancellable op(w.context, fetch(w.client(), std::move(r)));
    w.idle();
    w.clock->advance(seconds(20));
    w.idle();
    server.open("late");
    w.idle();
    // The silence is counted from the last byte, not from the head.
    w.clock->advance(seconds(30) - milliseconds(1));
    w.idle();
    EXPECT_FALSE(op.done());
    w.clock->advance(milliseconds(1));
    ASSERT_TRUE(w.until([&] { return op.done(); }));
    EXPECT_EQ(op.code(), errc::idle_timeout);
    EXPECT_EQ(op.code(), condition::timeout);
    EXPECT_NE(op.message().find("30000 ms"), std::string::npos) << op.message();
    ASSERT_TRUE(w.until([&] { return server.log().open() == 0; }));
}

TEST(HttpLimits, Case_C1_ABytePerNineTenthsOfIdleIsNot)
{
    world w;
    byte_script script;
    script.request().send(stream_head + "b\r\n");
    for (int i = 0; i < 11; ++i) script.gate(std::to_string(i)).send("x");
    script.gate("end").send("\r\n" + http_chunk("")).stall();
    testing::byte_server server = w.server(script);
    http_request r = world::get(server);
    r.limits.idle = seconds(10);
    cancellable op(w.context, fetch(w.client(), std::move(r)));
    w.idle();
    for (int i = 0; i < 11; ++i) {
        w.clock->advance(seconds(9));
        w.idle();
        ASSERT_FALSE(op.done()) << op.message();
        server.open(std::to_string(i));
        w.idle();
    }
    server.open("end");
    ASSERT_TRUE(w.until([&] { return op.done(); }));
    EXPECT_EQ(op.message(), "200 xxxxxxxxxxx");
}

TEST(HttpLimits, Case_C1_AHeadThatDripsIsNotIdle)
{
    world w;
    byte_script script;
    script.request();
    const std::string head = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\nX: y\r\n\r\n";
    for (std::size_t at = 0, i = 0; at < head.size(); at += 4, ++i) script.gate(std::to_string(i)).send(head.substr(at, 4));
    testing::byte_server server = w.server(script.send("ok").stall());
    http_request r = world::get(server);
    r.limits.idle = seconds(10);
    cancellable op(w.context, fetch(w.client(), std::move(r)));
    w.idle();
    for (std::size_t at = 0, i = 0; at < head.size(); at += 4, ++i) {
        ASSERT_FALSE(op.done()) << op.message();
        w.clock->advance(seconds(9));
        w.idle();
        server.open(std::to_string(i));
        w.idle();
    }
    ASSERT_TRUE(w.until([&] { return op.done(); }));
    EXPECT_EQ(op.message(), "200 ok");
}

// Where the peer falls silent.
enum class silence { connect, head, body };

struct setting {
    duration connect{}, first_byte{}, idle{}, deadline{};
};

struct verdict {
    errc which{};
    duration when = duration::max();
};

// The rule itself: the earliest of the limits that watch this stage.
verdict expected(silence where, const setting& s)
{
    verdict v;
    const auto consider = [&](duration d, errc e) {
        if (d > duration::zero() && d < v.when) {
            v.when = d;
            v.which = e;
        }
    };
    consider(s.deadline, errc::deadline);
    if (where == silence::connect) consider(s.connect, errc::connect_timeout);
    if (where == silence::head) consider(s.first_byte, errc::first_byte_timeout);
    if (where != silence::connect) consider(s.idle, errc::idle_timeout);
    return v;
}

void check(silence where, const setting& s)
{
    SCOPED_TRACE("silent at " + std::to_string(static_cast<int>(where)) + ", connect " + std::to_string(s.connect / seconds(1)) + " first byte " +
                 std::to_string(s.first_byte / seconds(1)) + " idle " + std::to_string(s.idle / seconds(1)) + " deadline " +
                 std::to_string(s.deadline / seconds(1)));
    world w;
    byte_script script;
    if (where == silence::body) script.request().send(stream_head).stall();
    else script.request().stall();
    testing::byte_server server = w.server(script);
    auto names = std::make_shared<silent_resolver>(w.context);
    w.options.resolver = names;
    http_request r = where == silence::connect ? http_request("GET", url::parse_or_throw("http://silent.test/", "url")) : world::get(server);
    r.limits.connect = s.connect;
    r.limits.first_byte = s.first_byte;
    r.limits.idle = s.idle;
    if (s.deadline > duration::zero()) r.limits.deadline = w.clock->now() + s.deadline;
    http_client client = w.client();
    cancellable op(w.context, fetch(client, std::move(r)));
    w.idle();
    const verdict v = expected(where, s);
    if (v.which == errc{}) {
        w.clock->advance(seconds(100'000));
        w.idle();
        EXPECT_FALSE(op.done());
        op.cancel();
        ASSERT_TRUE(w.soon([&] { return op.done(); }));
        EXPECT_EQ(op.code(), asio::error::operation_aborted);
    } else {
        w.clock->advance(v.when - milliseconds(1));
        w.idle();
        EXPECT_FALSE(op.done());
        w.clock->advance(milliseconds(1));
        ASSERT_TRUE(w.soon([&] { return op.done(); }));
        EXPECT_EQ(op.code(), v.which) << op.message();
    }
    EXPECT_EQ(client.stats().open, 0u);
    EXPECT_EQ(names->waiting, 0);
    EXPECT_EQ(w.clock->armed(), 0u);
}

TEST(HttpLimits, Case_C2_FourLimitsNoneClampsAnother)
{
    for (const silence where : {silence::connect, silence::head, silence::body})
        for (unsigned on = 0; on < 16; ++on) {
            // In the order a user would set them, and the other way round.
            for (const auto& order : {std::array<int, 4>{3, 5, 300, 600}, std::array<int, 4>{600, 300, 5, 3}, std::array<int, 4>{400, 200, 300, 100}}) {
                setting s;
                if (on & 1) s.connect = seconds(order[0]);
                if (on & 2) s.first_byte = seconds(order[1]);
                if (on & 4) s.idle = seconds(order[2]);
                if (on & 8) s.deadline = seconds(order[3]);
                check(where, s);
                if (HasFatalFailure()) return;
            }
        }
}

TEST(HttpLimits, Case_C3_DefaultLimitsAreOn)
{
    const http_limits l;
    EXPECT_EQ(l.connect, seconds(10));
    EXPECT_EQ(l.first_byte, seconds(0));
    EXPECT_EQ(l.idle, seconds(600));
    EXPECT_EQ(l.deadline, steady_time::max());
    EXPECT_EQ(l.max_head, 65536u);
    EXPECT_EQ(l.max_body, 64u * 1024 * 1024);
    const http_client_options o;
    EXPECT_EQ(o.max_open_per_origin, 0u);
    EXPECT_EQ(o.pool_wait, seconds(10));
    EXPECT_EQ(o.max_idle_per_origin, 64u);
    EXPECT_EQ(o.max_idle_age, seconds(20));
    EXPECT_EQ(o.max_total_age, seconds(300));
}

TEST(HttpLimits, Case_C1_ADeadlineFiresWhileBytesMove)
{
    world w;
    byte_script script;
    script.request().send(stream_head);
    for (int i = 0; i < 5; ++i) script.gate(std::to_string(i)).send(http_chunk("x"));
    testing::byte_server server = w.server(script);
    http_request r = world::get(server);
    r.limits.idle = seconds(10);
    r.limits.deadline = w.clock->now() + seconds(40);
    cancellable op(w.context, fetch(w.client(), std::move(r)));
    w.idle();
    for (int i = 0; i < 5; ++i) {
        EXPECT_FALSE(op.done());
        w.clock->advance(seconds(8));
        w.idle();
        server.open(std::to_string(i));
        w.idle();
    }
    ASSERT_TRUE(op.done());
    EXPECT_EQ(op.code(), errc::deadline);
}

TEST(HttpLimits, Case_C1_IdleCountsBytesSentAsWell)
{
    world w;
    testing::byte_server server = w.server(byte_script().stop_reading().gate("go").read_again().request().send(testing::http_response(200, "ok")));
    const std::string body(16 * 1024 * 1024, 'x');
    http_request r = world::get(server);
    r.method = "POST";
    r.body = body;
    r.limits.idle = seconds(10);
    cancellable stuck(w.context, fetch(w.client(), std::move(r)));
    w.idle();
    w.clock->advance(seconds(9));
    w.idle();
    server.open("go");
    ASSERT_TRUE(w.until([&] { return stuck.done(); }));
    EXPECT_EQ(stuck.message(), "200 ok");

    testing::byte_server deaf = w.server(byte_script().stop_reading().stall());
    http_request again = world::get(deaf);
    again.method = "POST";
    again.body = body;
    again.limits.idle = seconds(10);
    cancellable op(w.context, fetch(w.client(), std::move(again)));
    w.idle();
    w.clock->advance(seconds(10));
    ASSERT_TRUE(w.until([&] { return op.done(); }));
    EXPECT_EQ(op.code(), errc::idle_timeout);
}

awaitable<void> read_once(http_exchange& x)
{
    co_await x.read_some();
}

TEST(HttpLimits, ACallerThatDoesNotReadIsNotIdle)
{
    world w;
    testing::byte_server server = w.server(byte_script().request().send(stream_head).gate("go").send(http_chunk("late") + http_chunk("")));
    http_request r = world::get(server);
    r.limits.idle = seconds(10);
    http_client client = w.client();
    http_exchange x = testing::complete(w.context, client.open(std::move(r)));
    for (int i = 0; i < 5; ++i) {
        w.clock->advance(seconds(60));
        w.idle();
    }
    server.open("go");
    EXPECT_EQ(testing::complete(w.context, rest_of(x)), "late");
}

TEST(HttpLimits, ACallerThatReadsAgainIsGuardedAgain)
{
    world w;
    testing::byte_server server = w.server(byte_script().request().send(stream_head).stall());
    http_request r = world::get(server);
    r.limits.idle = seconds(30);
    http_client client = w.client();
    http_exchange x = testing::complete(w.context, client.open(std::move(r)));
    w.clock->advance(seconds(70));  // it has let the limit pass twice
    w.idle();
    cancellable op(w.context, rest_of(x));
    w.idle();
    w.clock->advance(seconds(30) - milliseconds(1));
    w.idle();
    EXPECT_FALSE(op.done());
    w.clock->advance(milliseconds(1));
    ASSERT_TRUE(w.soon([&] { return op.done(); }));
    EXPECT_EQ(op.code(), errc::idle_timeout);
}

TEST(HttpLimits, ADeadlinePassedBetweenReadsIsMetByTheNext)
{
    world w;
    testing::byte_server server = w.server(byte_script().request().send(stream_head + http_chunk("early")).stall());
    http_request r = world::get(server);
    r.limits.deadline = w.clock->now() + seconds(10);
    http_client client = w.client();
    http_exchange x = testing::complete(w.context, client.open(std::move(r)));
    w.clock->advance(seconds(11));
    w.idle();
    std::span<const char> bytes;
    EXPECT_TRUE(x.try_read_some(bytes));  // what is here is here
    EXPECT_EQ(std::string(bytes.data(), bytes.size()), "early");
    testing::started<void> op(w.context, read_once(x));
    ASSERT_TRUE(w.until([&] { return op.done(); }));
    EXPECT_EQ(code_of_failure(op.failure()), errc::deadline);
    EXPECT_EQ(client.stats().open, 0u);
}

TEST(HttpLimits, Case_C3_HalfCloseIsSeenAtOnce)
{
    struct row {
        std::string sent;
        errc expected;
    };
    for (const row& r : {row{"", errc::transport_failed}, row{"HTTP/1.1 200 OK\r\nContent-Le", errc::transport_failed},
                         row{"HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\n", errc::stream_truncated}, row{stream_head, errc::stream_truncated},
                         row{stream_head + http_chunk("x"), errc::stream_truncated}}) {
        world w;
        testing::byte_server server = w.server(byte_script().request().send(r.sent).half_close());
        http_client client = w.client();
        cancellable op(w.context, fetch(client, world::get(server)));
        ASSERT_TRUE(testing::run_until(
            w.context, [&] { return op.done(); }, seconds(1)))
            << r.sent;  // no time passes on the clock
        EXPECT_EQ(op.code(), r.expected) << r.sent;
        EXPECT_EQ(client.stats().open, 0u);
    }
}

TEST(HttpLimits, Case_C3_APeerThatFallsSilentIsLeftWithoutAnyLimitBeingSet)
{
    for (const bool head : {false, true}) {
        world w;
        byte_script script = byte_script().request();
        if (head) script.send(stream_head);
        testing::byte_server server = w.server(script.stall());
        cancellable op(w.context, fetch(w.client(), world::get(server)));
        w.idle();
        w.clock->advance(seconds(599));
        w.idle();
        EXPECT_FALSE(op.done());
        w.clock->advance(seconds(1));
        ASSERT_TRUE(w.soon([&] { return op.done(); }));
        EXPECT_EQ(op.code(), errc::idle_timeout);
    }
}

TEST(HttpLimits, Case_C4_AnErrorBodyIsBoundedInBytesAndTime)
{
    const std::string head = "HTTP/1.1 500 Oops\r\nTransfer-Encoding: chunked\r\n\r\n";
    {
        world w;
        testing::byte_server server = w.server(byte_script().request().send(head).send_forever(http_chunk(std::string(16 * 1024, 'e'))));
        http_request r = world::get(server);
        r.limits.max_body = 1024 * 1024;
        cancellable op(w.context, fetch(w.client(), std::move(r)));
        const auto sent = [&server] { return server.log().connections.empty() ? 0 : server.log().connections[0].sent; };
        ASSERT_TRUE(w.until([&] { return op.done() || sent() > 16u * 1024 * 1024; }));
        ASSERT_TRUE(op.done()) << sent() << " bytes were sent";
        EXPECT_EQ(op.code(), errc::body_too_large);
        ASSERT_TRUE(w.until([&] { return server.log().open() == 0; }));
        EXPECT_GT(sent(), 1024u * 1024);
        EXPECT_LT(sent(), 16u * 1024 * 1024);
    }
    {
        world w;  // trailers without end
        testing::byte_server server = w.server(byte_script().request().send(head + "0\r\n").send_forever("X-Trailer: 1\r\n"));
        cancellable op(w.context, fetch(w.client(), world::get(server)));
        ASSERT_TRUE(w.until([&] { return op.done(); }));
        EXPECT_EQ(op.code(), errc::headers_too_large);
    }
    {
        world w;  // a byte now and then
        byte_script script;
        script.request().send(head);
        for (int i = 0; i < 30; ++i) script.gate(std::to_string(i)).send(http_chunk("e"));
        testing::byte_server server = w.server(script);
        http_request r = world::get(server);
        r.limits.idle = seconds(10);
        r.limits.deadline = w.clock->now() + seconds(60);
        cancellable op(w.context, fetch(w.client(), std::move(r)));
        w.idle();
        int i = 0;
        for (; i < 30 && !op.done(); ++i) {
            w.clock->advance(seconds(5));
            w.idle();
            server.open(std::to_string(i));
            w.idle();
        }
        EXPECT_EQ(op.code(), errc::deadline);
        EXPECT_EQ(i, 12);
    }
}

}  // namespace http_limits_test
}  // namespace
}  // namespace reagent

#include "memory_transport.hpp"
#include "net_world.hpp"
#include "websocket_frames.hpp"
#include "websocket_impl.hpp"

#include <reagent/net/proxy.hpp>
#include <reagent/net/websocket.hpp>

#include <gtest/gtest.h>

#include <list>

namespace reagent {
namespace {
namespace websocket_test {

using namespace net_tests;
using namespace std::chrono_literals;

/// `text hi|binary xy|closed 1000 bye`, or how it failed.
awaitable<std::string> all_of(websocket& ws)
{
    std::string seen;
    websocket_message m;
    std::exception_ptr trouble;
    try {
        for (;;) {
            const bool more = co_await ws.read(m);
            if (!more) break;
            seen += (m.kind == websocket_kind::text ? "text " : "binary ") + (m.bytes.size() > 20 ? std::to_string(m.bytes.size()) + " bytes" : m.bytes) + "|";
        }
        seen += "closed " + std::to_string(ws.close_code()) + " " + std::string(ws.close_reason());
    } catch (const boost::system::system_error& e) {
        seen += e.code().message();
    }
    co_return seen;
}

awaitable<std::string> one_of(websocket& ws)
{
    websocket_message m;
    const bool more = co_await ws.read(m);
    co_return more ? m.bytes : "closed " + std::to_string(ws.close_code());
}

awaitable<std::string> sent(websocket& ws, std::string text)
{
    co_await ws.send_text(std::move(text));
    co_return "sent";
}

awaitable<std::string> pinged(websocket& ws)
{
    co_await ws.ping("are you there");
    co_return "pinged";
}

awaitable<std::string> closed(websocket& ws, unsigned code, std::string reason)
{
    const bool proper = co_await ws.close(code, std::move(reason));
    co_return proper ? "proper" : "alone";
}

std::string words(websocket_fault f)
{
    return make_error_code(f).message();
}

struct socket_world : world {
    socket_world() { peer.help(context); }
    ws_peer peer;
    websocket_options o;
    url to() { return websocket_url("ws://127.0.0.1:" + std::to_string(peer.port()) + "/chat?x=1"); }
    void look()
    {
        idle();
        peer.look();
    }
    websocket open()
    {
        testing::started<websocket> op(context, websocket::connect(client(), to(), o));
        look();
        peer.say(peer.consent());
        idle();
        return op.get();
    }
};

TEST(WebSocket, TheHandshakeAsksForTheSwitch)
{
    socket_world w;
    w.o.header_lines = "Authorization: Bearer k\r\n";
    w.o.protocols = {"chat.v2", "chat.v1"};
    testing::started<websocket> op(w.context, websocket::connect(w.client(), w.to(), w.o));
    w.look();
    const std::string head = w.peer.head();
    EXPECT_TRUE(head.starts_with("GET /chat?x=1 HTTP/1.1\r\nHost: 127.0.0.1:" + std::to_string(w.peer.port()) + "\r\nAuthorization: Bearer k\r\n")) << head;
    for (const char* line :
         {"\r\nConnection: Upgrade\r\n", "\r\nUpgrade: websocket\r\n", "\r\nSec-WebSocket-Version: 13\r\n", "\r\nSec-WebSocket-Protocol: chat.v2, chat.v1\r\n"})
        EXPECT_NE(head.find(line), std::string::npos) << line << head;
    EXPECT_EQ(w.peer.key().size(), 24u);
    w.peer.say(w.peer.consent("Sec-WebSocket-Protocol: chat.v1\r\nX-Served-By: a\r\n"));
    w.idle();
    websocket ws = op.get();
    EXPECT_TRUE(ws.is_open());
    EXPECT_EQ(ws.protocol(), "chat.v1");
    EXPECT_EQ(ws.head().fields.get("x-served-by"), "a");
    EXPECT_EQ(ws.close_code(), 1006u);
    socket_world other;
    testing::started<websocket> second(other.context, websocket::connect(other.client(), other.to(), other.o));
    other.look();
    EXPECT_NE(other.peer.key(), w.peer.key());
}

TEST(WebSocket, WhatCannotBeAskedIsRefusedBeforeAnyIo)
{
    socket_world w;
    const auto refused = [&](const std::function<void(websocket_options&)>& change) {
        websocket_options o;
        change(o);
        EXPECT_THROW(testing::complete(w.context, websocket::connect(w.client(), w.to(), o)), validation_error);
    };
    refused([](websocket_options& o) { o.header_lines = "Upgrade: h2c\r\n"; });
    refused([](websocket_options& o) { o.header_lines = "X: y\r\nSEC-WebSocket-Key: x\r\n"; });
    refused([](websocket_options& o) { o.header_lines = "no line"; });
    refused([](websocket_options& o) { o.protocols = {"a b"}; });
    refused([](websocket_options& o) { o.protocols = {""}; });
    refused([](websocket_options& o) { o.protocols = {"a", "b", "a"}; });
    refused([](websocket_options& o) { o.message_max = 0; });
    refused([](websocket_options& o) { o.pong_within = -1s; });
    EXPECT_FALSE(w.peer.look());
    EXPECT_EQ(websocket_url("WSS://Example.com/x").text(), "https://example.com/x");
    EXPECT_EQ(websocket_url("ws://example.com:80/").text(), "http://example.com/");
    EXPECT_EQ(websocket_url("https://example.com/").text(), "https://example.com/");
    EXPECT_THROW(websocket_url("ftp://example.com/"), validation_error);
    EXPECT_THROW(websocket_url("ws:"), validation_error);
}

TEST(WebSocket, EveryAnswerButAConsentIsAnErrorThatSaysWhich)
{
    struct row {
        const char* name;
        std::string answer;  // $ stands for the right value of Sec-WebSocket-Accept
        const char* outcome;
        unsigned status = 0;
        std::size_t body = 0;
        bool end = false;  // the peer ends the connection
    };
    const std::string start = "HTTP/1.1 101 Switching Protocols\r\n", upgrade = "Upgrade: websocket\r\n", connection = "Connection: Upgrade\r\n",
                      accept = "Sec-WebSocket-Accept: $\r\n";
    const std::string good = start + upgrade + connection + accept;
    const row rows[] = {
        {"consent", good + "\r\n", "open"},
        {"in other words", start + "upgrade: WebSocket\r\nCONNECTION: keep-alive, uPGRADE\r\nsec-websocket-accept: $\r\n\r\n", "open"},
        {"after 103", "HTTP/1.1 103 Hints\r\n\r\n" + good + "\r\n", "open"},
        {"our protocol", good + "Sec-WebSocket-Protocol: mine\r\n\r\n", "open"},
        {"another protocol", good + "Sec-WebSocket-Protocol: yours\r\n\r\n", "sub-protocol"},
        {"two protocols", good + "Sec-WebSocket-Protocol: mine\r\nSec-WebSocket-Protocol: mine\r\n\r\n", "several"},
        {"an extension", good + "Sec-WebSocket-Extensions: permessage-deflate\r\n\r\n", "extension"},
        {"no upgrade", start + connection + accept + "\r\n", "does not switch"},
        {"another upgrade", start + "Upgrade: h2c\r\n" + connection + accept + "\r\n", "does not switch"},
        {"no connection", start + upgrade + accept + "\r\n", "Connection"},
        {"no accept", start + upgrade + connection + "\r\n", "Accept"},
        {"a wrong accept", start + upgrade + connection + "Sec-WebSocket-Accept: s3pPLMBiTxaQ9kYGzzhZRbK+xOo=\r\n\r\n", "Accept"},
        {"two accepts", good + accept + "\r\n", "Accept"},
        {"HTTP/1.0", "HTTP/1.0 101 X\r\n" + upgrade + connection + accept + "\r\n", "HTTP/1.0"},
        {"no HTTP", "SSH-2.0\r\n\r\n", "does not start with HTTP/1."},
        {"a head without end", start + "X: " + std::string(70'000, 'x'), "passes its limit"},
        {"nothing", "", "closed before", 0, 0, true},
        {"half a head", start + upgrade, "closed before", 0, 0, true},
        {"200", "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nhi", "status 200", 200, 2},
        {"a redirect", "HTTP/1.1 302 Found\r\nLocation: /x\r\nContent-Length: 0\r\n\r\n", "status 302", 302},
        {"401 with much to say", "HTTP/1.1 401 No\r\nContent-Length: 5000\r\n\r\n" + std::string(5000, 'n'), "status 401", 401, 1024},
        {"403 to the end", "HTTP/1.1 403 No\r\n\r\nnever", "status 403", 403, 5, true},
        {"403 cut", "HTTP/1.1 403 No\r\nContent-Length: 9\r\n\r\nnever", "status 403", 403, 5, true},
        {"426 in chunks", "HTTP/1.1 426 X\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n1\r\nd\r\n0\r\n\r\n", "status 426", 426, 4},
        {"chunks that are none", "HTTP/1.1 503 X\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabcX\r\n0\r\n\r\n", "status 503", 503, 3},
    };
    for (const row& r : rows) {
        for (const bool bytewise : {false, true}) {
            SCOPED_TRACE(r.name);
            if (bytewise && r.answer.size() > 1000) continue;
            socket_world w;
            w.o.protocols = {"mine"};
            http_client client = w.client();
            testing::started<websocket> op(w.context, websocket::connect(client, w.to(), w.o));
            w.look();
            std::string answer = r.answer;
            for (std::size_t at = answer.find('$'); at != std::string::npos; at = answer.find('$')) answer.replace(at, 1, w.peer.accept());
            if (bytewise) w.peer.say_bytewise(answer, w.context);
            else w.peer.say(answer);
            if (r.end) w.peer.hang_up();
            ASSERT_TRUE(w.until([&] { return op.done(); }));
            try {
                op.get();
                EXPECT_STREQ(r.outcome, "open");
            } catch (const websocket_error& e) {
                EXPECT_NE(e.message().find(r.outcome), std::string::npos) << e.what();
                EXPECT_TRUE(e.message().starts_with("[websocket] " + w.to().redacted())) << e.what();
                EXPECT_EQ(e.status(), r.status);
                EXPECT_EQ(e.body().size(), r.body);
                EXPECT_EQ(e.fault(), r.status != 0 ? websocket_fault::refused : r.end ? websocket_fault::cut : websocket_fault::bad_handshake);
                EXPECT_EQ(e.retryable(), r.status >= 500 || (r.end && r.status == 0));
                EXPECT_EQ(e.code() == condition::malformed, e.fault() == websocket_fault::bad_handshake);
                EXPECT_EQ(e.code() == condition::unavailable, e.fault() == websocket_fault::cut);
            }
            w.idle();
            EXPECT_TRUE(w.peer.ended());  // refused or gone out of scope
        }
    }
}

TEST(WebSocket, EveryFrameIsReadOrNamedForWhatItIs)
{
    struct row {
        const char* name;
        std::string frames;
        std::string expected;
        unsigned answer;  // the code of the close frame that the client sends
    };
    const std::string bye = frame(8,
                                  std::string("\x03\xe8"
                                              "bye",
                                              5)),
                      tail = "|closed 1000 bye";
    const std::string malformed_text = words(websocket_fault::bad_text), fragment = words(websocket_fault::bad_fragment),
                      control = words(websocket_fault::bad_control);
    const std::string bad_close = words(websocket_fault::bad_close), length = words(websocket_fault::bad_length), bits = words(websocket_fault::reserved_bits);
    const row rows[] = {
        {"text", frame(1, "hi") + bye, "text hi" + tail, 1000},
        {"binary", frame(2, "\xff\xfe") + bye, "binary \xff\xfe" + tail, 1000},
        {"empty", frame(1, "") + bye, "text " + tail, 1000},
        {"two", frame(1, "a") + frame(2, "b") + bye, "text a|binary b" + tail, 1000},
        {"126 bytes", frame(2, std::string(126, 'x')) + bye, "binary 126 bytes" + tail, 1000},
        {"65536 bytes", frame(2, std::string(65536, 'x')) + bye, "binary 65536 bytes" + tail, 1000},
        {"fragments", frame(1, "a", false) + frame(0, "b", false) + frame(0, "c") + bye, "text abc" + tail, 1000},
        {"empty fragments", frame(1, "", false) + frame(0, "", false) + frame(0, "") + bye, "text " + tail, 1000},
        {"a ping between fragments", frame(1, "a", false) + frame(9, "p") + frame(0, "b") + bye, "text ab" + tail, 1000},
        {"a pong nobody asked for", frame(10, "p") + frame(1, "a") + bye, "text a" + tail, 1000},
        {"a character in two fragments", frame(1, "\xc3", false) + frame(0, "\xa9") + bye, "text \xc3\xa9" + tail, 1000},
        {"close alone", bye, "closed 1000 bye", 1000},
        {"close without a code", frame(8, ""), "closed 1005 ", 1000},
        {"close with a code of ours", frame(8, std::string("\x0f\xa0", 2)), "closed 4000 ", 4000},
        {"close between fragments", frame(1, "a", false) + bye, "closed 1000 bye", 1000},
        {"no UTF-8", frame(1, "\xc3("), malformed_text, 1007},
        {"half a character", frame(1, "\xc3"), malformed_text, 1007},
        {"a surrogate", frame(1, "\xed\xa0\x80"), malformed_text, 1007},
        {"an overlong form", frame(1, "\xc0\xaf"), malformed_text, 1007},
        {"no UTF-8 in fragments", frame(1, "\xc3", false) + frame(0, "("), malformed_text, 1007},
        {"half a character and an empty end", frame(1, "\xc3", false) + frame(0, ""), malformed_text, 1007},
        {"masked", std::string("\x81\x82\x01\x02\x03\x04\x69\x6b", 8), words(websocket_fault::masked), 1002},
        {"opcode 3", frame(3, "x"), words(websocket_fault::bad_opcode), 1002},
        {"opcode 11", frame(11, "x"), words(websocket_fault::bad_opcode), 1002},
        {"rsv1", frame(1, "x", true, 4), bits, 1002},
        {"rsv2", frame(1, "x", true, 2), bits, 1002},
        {"rsv3 in a ping", frame(9, "x", true, 1), bits, 1002},
        {"a continuation of nothing", frame(0, "x"), fragment, 1002},
        {"a message inside another", frame(1, "a", false) + frame(1, "b"), fragment, 1002},
        {"a ping in fragments", frame(9, "x", false), control, 1002},
        {"a long ping", frame(9, std::string(126, 'x')), control, 1002},
        {"a long close", frame(8, std::string("\x03\xe8") + std::string(130, 'x')), control, 1002},
        {"close of one byte", frame(8, "\x03"), bad_close, 1002},
        {"close 1005", frame(8, std::string("\x03\xed", 2)), bad_close, 1002},
        {"close 999", frame(8, std::string("\x03\xe7", 2)), bad_close, 1002},
        {"close 2000", frame(8, std::string("\x07\xd0", 2)), bad_close, 1002},
        {"close with a bad reason", frame(8, std::string("\x03\xe8\xff", 3)), bad_close, 1002},
        {"125 as 16 bits", std::string("\x82\x7e\x00\x7d", 4) + std::string(125, 'x'), length, 1002},
        {"65535 as 64 bits", std::string("\x82\x7f\x00\x00\x00\x00\x00\x00\xff\xff", 10), length, 1002},
        {"larger than the limit", frame(2, std::string(65537, 'x')), words(websocket_fault::too_large), 1009},
        {"fragments larger than the limit", frame(2, std::string(65536, 'x'), false) + frame(0, "x"), words(websocket_fault::too_large), 1009},
        {"a length without end", std::string("\x82\x7f\xff\xff\xff\xff\xff\xff\xff\xff", 10), words(websocket_fault::too_large), 1009},
    };
    for (const row& r : rows) {
        for (const bool bytewise : {false, true}) {
            SCOPED_TRACE(std::string(r.name) + (bytewise ? " by bytes" : ""));
            if (bytewise && r.frames.size() > 1000) continue;
            socket_world w;
            w.o.message_max = 65536;
            websocket ws = w.open();
            cancellable op(w.context, all_of(ws));
            if (bytewise) w.peer.say_bytewise(r.frames, w.context);
            else w.peer.say(r.frames);
            ASSERT_TRUE(w.until([&] { return op.done(); }));
            EXPECT_EQ(op.message(), r.expected);
            EXPECT_FALSE(ws.is_open());
            w.look();
            EXPECT_TRUE(w.peer.ended());
            const std::vector<seen_frame> back = frames_of(w.peer.seen());
            ASSERT_FALSE(back.empty());
            EXPECT_TRUE(back.back().masked && back.back().fin);
            const std::string code = {static_cast<char>(r.answer >> 8), static_cast<char>(r.answer & 255)};
            EXPECT_EQ(back.back().text(), "8 " + code);
            // A failure stays, an end too.
            EXPECT_EQ(testing::complete(w.context, all_of(ws)), r.expected.substr(r.expected.rfind('|') + 1));
        }
    }
}

TEST(WebSocket, AConnectionThatEndsWithoutACloseFrameIsCut)
{
    for (const std::string& before : {std::string(), frame(1, "a", false), std::string("\x81"), frame(1, "whole")}) {
        socket_world w;
        websocket ws = w.open();
        cancellable op(w.context, all_of(ws));
        w.peer.say(before);
        w.peer.hang_up();
        ASSERT_TRUE(w.until([&] { return op.done(); }));
        EXPECT_EQ(op.message(), (before.ends_with("whole") ? "text whole|" : "") + words(websocket_fault::cut));
        EXPECT_EQ(ws.close_code(), 1006u);
        cancellable after(w.context, sent(ws, "x"));
        w.idle();
        EXPECT_EQ(after.code(), websocket_fault::cut) << after.message();
    }
}

TEST(WebSocket, MessagesLeaveMaskedAndInTheirOrder)
{
    socket_world w;
    websocket ws = w.open();
    cancellable reader(w.context, one_of(ws));  // at the same time
    const std::string big(1'000'000, 'b');
    std::list<cancellable> ops;
    for (const std::string& text : {std::string("one"), big, std::string(), std::string("\xc3\xa9")}) ops.emplace_back(w.context, sent(ws, text));
    ops.emplace_back(w.context, pinged(ws));
    ops.emplace_back(w.context, sent(ws, "last"));
    ASSERT_TRUE(w.until([&] {
        w.peer.look();
        return ops.back().done();
    }));
    w.look();
    const std::vector<seen_frame> seen = frames_of(w.peer.seen());
    ASSERT_EQ(seen.size(), 6u);
    const std::string expected[] = {"1 one", "1 " + big, "1 ", "1 \xc3\xa9", "9 are you there", "1 last"};
    for (std::size_t i = 0; i < 6; ++i) {
        EXPECT_TRUE(seen[i].masked && seen[i].fin) << i;
        EXPECT_TRUE(seen[i].text() == expected[i]) << i << " " << seen[i].text().substr(0, 30);
    }
    EXPECT_NE(seen[0].mask, seen[5].mask);
    EXPECT_FALSE(reader.done());
    w.peer.say(frame(10, "are you there") + frame(2, big));
    ASSERT_TRUE(w.until([&] { return reader.done(); }));
    EXPECT_TRUE(reader.value() == big);
    EXPECT_EQ(ws.pongs(), 1u);
    EXPECT_THROW(testing::complete(w.context, sent(ws, "\xff")), validation_error);
    EXPECT_THROW(testing::complete(w.context, ws.ping(std::string(126, 'x'))), validation_error);
}

TEST(WebSocket, PingsAreAnsweredWhileAMessageIsRead)
{
    socket_world w;
    websocket ws = w.open();
    cancellable reader(w.context, one_of(ws));
    w.peer.say(frame(9, "x") + frame(1, "a", false) + frame(9, ""));
    w.look();
    EXPECT_EQ(texts_of(w.peer.seen()), "10 x|10 |");
    cancellable second(w.context, one_of(ws));
    w.idle();
    EXPECT_EQ(second.code(), errc::invalid_argument) << second.message();  // one reader
    w.peer.say(frame(0, "b"));
    w.idle();
    EXPECT_EQ(reader.value(), "ab");
}

TEST(WebSocket, ASilentPeerGetsAPingAndThenTheEnd)
{
    socket_world w;
    websocket ws = w.open();
    w.clock->advance(100s);
    w.look();
    EXPECT_EQ(w.peer.seen(), "");  // nobody listens
    cancellable reader(w.context, all_of(ws));
    w.idle();
    w.clock->advance(30s - 1ns);
    w.look();
    EXPECT_EQ(w.peer.seen(), "");
    w.clock->advance(1ns);
    w.look();
    EXPECT_EQ(texts_of(w.peer.seen()), "9 |");
    // Any byte is a sign of life.
    w.clock->advance(9s);
    w.peer.say(frame(10, "") + frame(1, "hi").substr(0, 1));
    w.look();
    w.clock->advance(29s);
    w.look();
    EXPECT_FALSE(reader.done());
    EXPECT_EQ(texts_of(w.peer.seen()), "9 |");
    w.clock->advance(1s);
    w.look();
    EXPECT_EQ(texts_of(w.peer.seen()), "9 |9 |");
    w.clock->advance(10s - 1ns);
    w.idle();
    EXPECT_FALSE(reader.done());
    w.clock->advance(1ns);
    w.look();
    ASSERT_TRUE(reader.done());
    EXPECT_EQ(reader.value(), make_error_code(errc::idle_timeout).message());
    EXPECT_TRUE(w.peer.ended());
    EXPECT_EQ(w.clock->armed(), 0u);
}

TEST(WebSocket, WithoutPingsTheIdleLimitEndsIt)
{
    for (const bool writing : {false, true}) {
        socket_world w;
        w.o.ping_every = 0s;
        w.o.idle = 5s;
        websocket ws = w.open();
        cancellable op(w.context, writing ? sent(ws, std::string(20'000'000, 'x')) : one_of(ws));
        w.idle();
        w.clock->advance(5s - 1ns);
        w.idle();
        EXPECT_FALSE(op.done());
        w.clock->advance(1ns);
        w.idle();
        ASSERT_TRUE(op.done());
        EXPECT_EQ(op.code(), errc::idle_timeout);
    }
}

TEST(WebSocket, TheWayThereHasItsLimits)
{
    for (const bool connected : {false, true}) {
        socket_world w;
        auto names = std::make_shared<silent_resolver>(w.context);
        w.options.resolver = names;
        const url to = connected ? w.to() : websocket_url("ws://silent.test/");
        testing::started<websocket> op(w.context, websocket::connect(w.client(), to, w.o));
        w.look();
        w.clock->advance(10s - 1ns);
        w.idle();
        EXPECT_FALSE(op.done());
        w.clock->advance(1ns);
        w.idle();
        ASSERT_TRUE(op.done());
        EXPECT_EQ(code_of_failure(op.failure()), connected ? errc::first_byte_timeout : errc::connect_timeout);
        EXPECT_EQ(names->waiting, 0);
        EXPECT_EQ(w.clock->armed(), 0u);
    }
    // A refusal that never ends is told when the limit is reached.
    socket_world w;
    testing::started<websocket> op(w.context, websocket::connect(w.client(), w.to(), w.o));
    w.look();
    w.peer.say("HTTP/1.1 403 No\r\nContent-Length: 100\r\n\r\nbecause");
    w.idle();
    w.clock->advance(10s);
    w.idle();
    ASSERT_TRUE(op.done());
    EXPECT_EQ(code_of_failure(op.failure()), websocket_fault::refused);
}

TEST(WebSocket, OurGoodbyeWaitsForThePeersAndNotLong)
{
    enum class peer_does { answers, talks_on, is_silent, hangs_up };
    for (const peer_does p : {peer_does::answers, peer_does::talks_on, peer_does::is_silent, peer_does::hangs_up}) {
        SCOPED_TRACE(static_cast<int>(p));
        for (const bool reading : {false, true}) {
            socket_world w;
            websocket ws = w.open();
            std::optional<cancellable> reader;
            if (reading) reader.emplace(w.context, all_of(ws));
            w.idle();
            cancellable op(w.context, closed(ws, 4001, "done"));
            cancellable late(w.context, sent(ws, "too late"));
            w.look();
            EXPECT_EQ(texts_of(w.peer.seen()),
                      "8 \x0f\xa1"
                      "done|");
            EXPECT_EQ(late.code(), errc::closed);
            EXPECT_FALSE(ws.is_open());
            EXPECT_FALSE(op.done());
            const std::string bye = frame(8, std::string("\x03\xe8", 2));
            if (p == peer_does::answers) w.peer.say(bye);
            if (p == peer_does::talks_on) w.peer.say(frame(9, "x") + frame(1, "more", false) + frame(0, std::string(5000, 'x')) + bye);
            if (p == peer_does::hangs_up) w.peer.hang_up();
            if (p == peer_does::is_silent) {
                w.clock->advance(5s - 1ns);
                w.idle();
                EXPECT_FALSE(op.done());
                w.clock->advance(1ns);
            }
            ASSERT_TRUE(w.until([&] { return op.done() && (!reader || reader->done()); }));
            const bool proper = p == peer_does::answers || p == peer_does::talks_on;
            EXPECT_EQ(op.message(), proper ? "proper" : "alone");
            EXPECT_EQ(ws.close_code(), proper ? 1000u : 1006u);
            const std::string end = proper ? "closed 1000 " : "closed 1006 ";
            EXPECT_EQ(reader ? reader->message() : end, end);
            EXPECT_EQ(testing::complete(w.context, closed(ws, 1000, "")), op.message());
            w.look();
            EXPECT_TRUE(w.peer.ended());
            EXPECT_EQ(texts_of(w.peer.seen()),
                      "8 \x0f\xa1"
                      "done|");
            EXPECT_EQ(w.clock->armed(), 0u);
        }
    }
    socket_world w;
    websocket ws = w.open();
    for (const unsigned code : {0u, 999u, 1004u, 1005u, 1006u, 1010u, 1014u, 1015u, 2999u, 5000u})
        EXPECT_THROW(testing::complete(w.context, closed(ws, code, "")), validation_error) << code;
    EXPECT_THROW(testing::complete(w.context, closed(ws, 1000, std::string(124, 'x'))), validation_error);
    EXPECT_THROW(testing::complete(w.context, closed(ws, 1000, "\xff")), validation_error);
    EXPECT_TRUE(ws.is_open());
}

TEST(WebSocket, AGoodbyeThatMeetsABrokenFrameEndsAllTheSame)
{
    websocket_options o;
    o.random = [] { return std::uint64_t(0); };
    // The goodbye comes before the frames, or when so many handlers have run since they came: Beast's close reads frames, too, and between a
    // read and its handler.
    for (int handlers = -1; handlers < 16; ++handlers) {
        for (const std::string& broken : {frame(3, "x"), frame(1, "C") + frame(1, "D", false) + frame(1, "E")}) {
            SCOPED_TRACE(handlers);
            world w;
            auto ends = memory_transport::pair(w.context.get_executor());
            const auto client = std::make_shared<http_client::impl>(w.context.get_executor(), w.options);
            testing::started<websocket> op(w.context, net_detail::upgrade(client, std::move(ends.first), websocket_url("ws://peer.test/"), o));
            w.idle();
            ends.second->try_write(consent_for(base64_encode(std::string(16, '\0'))), {});
            w.idle();
            std::optional<websocket> ws(op.get());
            cancellable reader(w.context, all_of(*ws));
            w.idle();
            std::optional<cancellable> closer;
            // In this order Beast's close and its read wait for each other.
            if (handlers < 0) closer.emplace(w.context, closed(*ws, 1000, ""));
            ends.second->try_write(broken, {});
            for (int n = 0; n < handlers; ++n) w.context.poll_one();
            if (handlers >= 0) closer.emplace(w.context, closed(*ws, 1000, ""));
            w.idle();
            w.clock->advance(5s);
            w.idle();
            ASSERT_TRUE(closer->done() && reader.done());
            if (handlers < 0) { EXPECT_EQ(closer->message(), "alone"); }
            using ::testing::EndsWith;
            EXPECT_THAT(reader.message(),
                        ::testing::AnyOf(EndsWith("closed 1006 "), EndsWith("a frame continues no message, or begins one inside another"),
                                         EndsWith("a frame is of no known kind")));
            EXPECT_THAT(reader.message(), ::testing::Not(::testing::HasSubstr("text D")));
            ws.reset();
            w.context.restart();
            w.context.poll();
            EXPECT_TRUE(w.context.stopped());  // nothing is left that waits
        }
    }
}

TEST(WebSocket, WhatIsCancelledGoesOnWithoutItsCaller)
{
    socket_world w;
    websocket ws = w.open();
    {
        cancellable reader(w.context, one_of(ws));
        w.peer.say(frame(1, "a", false));
        w.idle();
        reader.cancel();
        w.idle();
        EXPECT_EQ(reader.code(), asio::error::operation_aborted);
    }
    const std::string big(20'000'000, 'x');
    cancellable first(w.context, sent(ws, big)), waiting(w.context, sent(ws, "never")), third(w.context, sent(ws, "after"));
    w.idle();
    EXPECT_FALSE(first.done() || waiting.done() || third.done());
    waiting.cancel();  // its turn has not come
    first.cancel();
    w.idle();
    EXPECT_EQ(first.code(), asio::error::operation_aborted);
    EXPECT_EQ(waiting.code(), asio::error::operation_aborted);
    ASSERT_TRUE(w.until([&] {
        w.peer.look();
        return third.done();
    }));
    w.look();
    const std::vector<seen_frame> seen = frames_of(w.peer.seen());
    ASSERT_EQ(seen.size(), 2u);
    EXPECT_TRUE(seen[0].text() == "1 " + big);
    EXPECT_EQ(seen[1].text(), "1 after");
    w.peer.say(frame(0, "b") + frame(1, "next"));
    w.idle();
    EXPECT_EQ(testing::complete(w.context, one_of(ws)), "ab");
    EXPECT_EQ(testing::complete(w.context, one_of(ws)), "next");
}

TEST(WebSocket, DestroyedInTheMiddleNothingIsLeft)
{
    const std::size_t before = open_descriptors();
    {
        socket_world w;
        std::optional<websocket> ws(w.open());
        cancellable reader(w.context, one_of(*ws)), writer(w.context, sent(*ws, std::string(20'000'000, 'x'))), queued(w.context, sent(*ws, "x")),
            closer(w.context, closed(*ws, 1000, ""));
        w.idle();
        for (cancellable* op : {&reader, &writer, &queued, &closer}) op->cancel();
        w.idle();
        EXPECT_TRUE(reader.done() && writer.done() && queued.done() && closer.done());
        cancellable again(w.context, one_of(*ws));
        w.idle();
        ws.reset();
        w.context.restart();
        w.context.run();  // by itself
        EXPECT_EQ(again.code(), errc::closed);
        EXPECT_EQ(w.clock->armed(), 0u);
        w.peer.look();
        EXPECT_TRUE(w.peer.ended());
    }
    EXPECT_EQ(open_descriptors(), before);
    {
        // A context that dies takes along what is under way.
        std::optional<socket_world> w(std::in_place);
        auto ws = std::make_unique<websocket>(w->open());
        cancellable reader(w->context, one_of(*ws)), writer(w->context, sent(*ws, std::string(20'000'000, 'x'))), queued(w->context, pinged(*ws));
        w->peer.say(frame(9, "x"));
        w->idle();
        EXPECT_FALSE(reader.done() || writer.done() || queued.done());
        ws.reset();
        EXPECT_FALSE(reader.done());
        w.reset();
    }
    EXPECT_EQ(open_descriptors(), before);
}

TEST(WebSocket, ThroughAProxyItIsAlwaysATunnel)
{
    socket_world w;
    w.options.proxies.http("http://me:pw@127.0.0.1:" + std::to_string(w.peer.port()));
    testing::started<websocket> op(w.context, websocket::connect(w.client(), websocket_url("ws://chat.test/x"), w.o));
    w.look();
    EXPECT_TRUE(w.peer.seen().starts_with("CONNECT chat.test:80 HTTP/1.1\r\nHost: chat.test:80\r\nProxy-Authorization: Basic ")) << w.peer.seen();
    w.peer.forget();
    w.peer.say("HTTP/1.1 200 OK\r\n\r\n");
    w.look();
    EXPECT_TRUE(w.peer.head().starts_with("GET /x HTTP/1.1\r\nHost: chat.test\r\n")) << w.peer.head();
    EXPECT_EQ(w.peer.head().find("Proxy-Authorization"), std::string::npos);
    w.peer.say(w.peer.consent() + frame(1, "through"));
    w.idle();
    websocket ws = op.get();
    EXPECT_EQ(testing::complete(w.context, one_of(ws)), "through");
}

TEST(WebSocket, AnAddressThatMayNotBeReachedIsNot)
{
    socket_world w;
    w.options.allow_address = [](const ip_address&) { return false; };
    try {
        testing::complete(w.context, websocket::connect(w.client(), w.to(), w.o));
        FAIL();
    } catch (const transport_error& e) {
        EXPECT_EQ(e.code(), errc::connect_failed);
    }
    EXPECT_FALSE(w.peer.look());
}

}  // namespace websocket_test
}  // namespace
}  // namespace reagent

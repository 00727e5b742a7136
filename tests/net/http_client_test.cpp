#include "net_world.hpp"

#include <reagent/net/sse_parser.hpp>

#include <gtest/gtest.h>

#include <cerrno>

namespace reagent {
namespace {
namespace http_client_test {

using namespace net_tests;
using testing::byte_script;
using testing::http_chunk;
using testing::http_response;

std::string fetch_or_error(world& w, http_client client, http_request request)
{
    testing::started<std::string> op(w.context, fetch(std::move(client), std::move(request)));
    if (!w.until([&] { return op.done(); })) return "did not end";
    if (op.failure()) return code_of(op.failure()).message();
    return op.get();
}

std::string text_of(errc e)
{
    return make_error_code(e).message();
}

TEST(HttpClient, ReadsEveryFraming)
{
    world w;
    const std::string chunked = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n" + http_chunk("hello ") + http_chunk("world") + http_chunk("");
    const std::string until_close = "HTTP/1.1 200 OK\r\n\r\nhello world";
    testing::byte_server server = w.server({byte_script().request().send(http_response(200, "hello world")).close(),
                                            byte_script().request().trickle(chunked).close(), byte_script().request().trickle(until_close).close()});
    const http_client client = w.client();
    for (int i = 0; i < 3; ++i) {
        EXPECT_EQ(fetch_or_error(w, client, world::get(server)), "200 hello world") << i;
        w.idle();
    }
}

TEST(HttpClient, SendsHeadAndBody)
{
    world w;
    testing::byte_server server = w.server(byte_script::answering(http_response(200, "ok")));
    const std::string body(3 * 1024 * 1024, 'b');  // more than the socket takes at once
    http_request r = world::get(server, "/v1/x?y=z");
    r.method = "POST";
    r.header_lines = "X-One: 1\r\n";
    r.body = body;
    EXPECT_EQ(fetch_or_error(w, w.client(), std::move(r)), "200 ok");
    const testing::byte_log log = server.log();
    ASSERT_EQ(log.requests(), 1u);
    EXPECT_EQ(log.request().method(), "POST");
    EXPECT_EQ(log.request().target(), "/v1/x?y=z");
    EXPECT_EQ(log.request().header("x-one"), "1");
    EXPECT_EQ(log.request().header("content-length"), std::to_string(body.size()));
    EXPECT_TRUE(log.request().body == body);
}

TEST(HttpClient, ReusesAConnection)
{
    world w;
    testing::byte_server server = w.server(byte_script::answering(http_response(200, "ok")));
    http_client client = w.client();
    for (int i = 0; i < 5; ++i) EXPECT_EQ(fetch_or_error(w, client, world::get(server)), "200 ok");
    EXPECT_EQ(client.stats().dialed, 1u);
    EXPECT_EQ(client.stats().reused, 4u);
    EXPECT_EQ(client.stats().idle, 1u);
    EXPECT_EQ(server.log().connections.size(), 1u);
    client.close_idle();
    EXPECT_EQ(client.stats().open, 0u);
}

TEST(HttpClient, ConnectionsThatMustNotBeReusedAreNot)
{
    for (const std::string& response :
         {std::string("HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 2\r\n\r\nok"), std::string("HTTP/1.0 200 OK\r\nContent-Length: 2\r\n\r\nok"),
          std::string("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok and more"),
          std::string("HTTP/1.1 200 OK\r\nContent-Length: 9\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nok\r\n0\r\n\r\n")}) {
        world w;
        testing::byte_server server = w.server(byte_script::answering(response));
        http_client client = w.client();
        for (int i = 0; i < 2; ++i) EXPECT_EQ(fetch_or_error(w, client, world::get(server)), "200 ok") << response;
        EXPECT_EQ(client.stats().dialed, 2u) << response;
        EXPECT_EQ(client.stats().idle, 0u) << response;
    }
}

TEST(HttpClient, Case_E1_RetriesOnceWhenAReusedConnectionDiesWithoutAByte)
{
    world w;
    const std::string ok = http_response(200, "ok");
    testing::byte_server server =
        w.server({byte_script().request().send(ok).request().close(), byte_script().request().send(ok).request().reset(), byte_script().request().send(ok)});
    http_client client = w.client();
    for (int i = 0; i < 3; ++i) EXPECT_EQ(fetch_or_error(w, client, world::get(server)), "200 ok") << i;
    EXPECT_EQ(client.stats().retried, 2u);
    EXPECT_EQ(server.log().requests(), 5u);
}

TEST(HttpClient, Case_E1_TheSecondTryCarriesTheWholeRequest)
{
    world w;
    const std::string ok = http_response(200, "ok");
    testing::byte_server server = w.server({byte_script().request().send(ok).request().close(), byte_script::answering(ok)});
    http_client client = w.client();
    for (int i = 0; i < 2; ++i) {
        http_request r = world::get(server);
        r.method = "POST";
        r.body = "all of it";
        cancellable op(w.context, fetch(client, std::move(r)));
        ASSERT_TRUE(w.soon([&] { return op.done(); })) << i;
        EXPECT_EQ(op.message(), "200 ok") << i;
    }
    EXPECT_EQ(client.stats().retried, 1u);
    ASSERT_EQ(server.log().connections.size(), 2u);
    ASSERT_EQ(server.log().connections[1].requests.size(), 1u);
    EXPECT_EQ(server.log().connections[1].requests[0].body, "all of it");
}

TEST(HttpClient, Case_E1_DoesNotRetryOtherwise)
{
    const std::string ok = http_response(200, "ok");
    {
        world w;  // a fresh connection
        testing::byte_server server = w.server({byte_script().request().close(), byte_script::answering(ok)});
        http_client client = w.client();
        EXPECT_EQ(fetch_or_error(w, client, world::get(server)), text_of(errc::transport_failed));
        EXPECT_EQ(client.stats().retried, 0u);
    }
    {
        world w;  // a byte of an answer came
        testing::byte_server server = w.server({byte_script().request().send(ok).request().send("H").close(), byte_script::answering(ok)});
        http_client client = w.client();
        EXPECT_EQ(fetch_or_error(w, client, world::get(server)), "200 ok");
        EXPECT_EQ(fetch_or_error(w, client, world::get(server)), text_of(errc::transport_failed));
        EXPECT_EQ(client.stats().retried, 0u);
        EXPECT_EQ(server.log().connections.size(), 1u);
    }
    {
        world w;  // the second try fails as well
        testing::byte_server server =
            w.server({byte_script().request().send(ok).request().close(), byte_script().request().close(), byte_script::answering(ok)});
        http_client client = w.client();
        EXPECT_EQ(fetch_or_error(w, client, world::get(server)), "200 ok");
        EXPECT_EQ(fetch_or_error(w, client, world::get(server)), text_of(errc::transport_failed));
        EXPECT_EQ(client.stats().retried, 1u);
        EXPECT_EQ(server.log().requests(), 3u);
    }
}

TEST(HttpClient, RefusedConnection)
{
    world w;
    const testing::refused_port nobody;
    bool left = true;
    http_client client = w.client();
    http_request r("POST", url::parse_or_throw("http://127.0.0.1:" + std::to_string(nobody.port()) + "/v1?key=secret", "url"));
    r.body = "x";
    testing::started<http_exchange> op(w.context, client.open(std::move(r), &left));
    w.context.run();
    try {
        op.get();
        FAIL();
    } catch (const transport_error& e) {
        EXPECT_EQ(e.code(), errc::connect_failed);
        EXPECT_EQ(e.code(), condition::unavailable);
        EXPECT_EQ(e.cause().value(), ECONNREFUSED);
        EXPECT_TRUE(e.retryable());
        EXPECT_NE(std::string(e.what()).find("127.0.0.1:" + std::to_string(nobody.port())), std::string::npos) << e.what();
        EXPECT_EQ(std::string(e.what()).find("secret"), std::string::npos) << e.what();
    }
    EXPECT_FALSE(left);
    EXPECT_EQ(client.stats().open, 0u);
}

TEST(HttpClient, TheNextAddressIsTriedAndNamesCanFail)
{
    world w;
    testing::byte_server server = w.server(byte_script::answering(http_response(200, "ok")));
    auto names = std::make_shared<table_resolver>();
    names->names.push_back({"two.test", {*ip_address::parse("127.0.0.2"), *ip_address::parse("127.0.0.1")}});
    w.options.resolver = names;
    http_client client = w.client();
    const std::string port = std::to_string(server.port());
    http_request good("GET", url::parse_or_throw("http://two.test:" + port + "/", "url"));
    EXPECT_EQ(fetch_or_error(w, client, std::move(good)), "200 ok");
    EXPECT_EQ(server.log().request().header("host"), "two.test:" + port);
    http_request bad("GET", url::parse_or_throw("http://none.test:" + port + "/", "url"));
    EXPECT_EQ(fetch_or_error(w, client, std::move(bad)), text_of(errc::resolve_failed));
    EXPECT_EQ(client.stats().open, 1u);
}

TEST(HttpClient, RequestLeftTellsWhetherAByteWent)
{
    world w;
    testing::byte_server server = w.server(byte_script().request().close());
    http_client client = w.client();
    bool left = false;
    http_request r = world::get(server);
    testing::started<http_exchange> op(w.context, client.open(std::move(r), &left));
    ASSERT_TRUE(w.until([&] { return op.done(); }));
    EXPECT_TRUE(op.failure());
    EXPECT_TRUE(left);
}

TEST(HttpClient, RequestsThatCannotBeWrittenFailBeforeAnyIo)
{
    world w;
    http_client client = w.client();
    http_request r("GET", url::parse_or_throw("http://127.0.0.1:1/", "url"));
    r.header_lines = "X: 1\nY: 2\r\n";
    testing::started<http_exchange> op(w.context, client.open(std::move(r)));
    w.context.run();
    EXPECT_THROW(op.get(), validation_error);
    EXPECT_EQ(client.stats().exchanges, 0u);
}

TEST(HttpClient, ARequestRefusedLeavesThePoolAlone)
{
    world w;
    testing::byte_server server = w.server(byte_script::answering(http_response(200, "ok")));
    http_client client = w.client();
    EXPECT_EQ(fetch_or_error(w, client, world::get(server)), "200 ok");
    http_request r = world::get(server);
    r.header_lines = "no line end";
    EXPECT_EQ(fetch_or_error(w, client, std::move(r)), text_of(errc::invalid_argument));
    cancellable unwanted(w.context, fetch(client, world::get(server)));
    w.context.restart();
    w.context.run_one();
    unwanted.cancel();
    ASSERT_TRUE(w.until([&] { return unwanted.done(); }));
    EXPECT_EQ(client.stats().open, client.stats().idle);
    EXPECT_EQ(fetch_or_error(w, client, world::get(server)), "200 ok");
}

TEST(HttpClient, ADeadlineAlreadyPassedFailsBeforeAnyIo)
{
    world w;
    http_request r("GET", url::parse_or_throw("http://127.0.0.1:1/", "url"));
    r.limits.deadline = w.clock->now();
    http_client client = w.client();
    testing::started<http_exchange> op(w.context, client.open(std::move(r)));
    w.context.run();
    EXPECT_EQ(code_of_failure(op.failure()), errc::deadline);
    EXPECT_EQ(client.stats().open, 0u);
}

TEST(HttpClient, MayDieBeforeItsCallStarts)
{
    world w;
    testing::byte_server server = w.server(byte_script::answering(http_response(200, "ok")));
    std::optional<http_client> client(w.client());
    awaitable<http_exchange> call = client->open(world::get(server));
    client.reset();
    http_exchange x = testing::complete(w.context, std::move(call));
    EXPECT_EQ(testing::complete(w.context, rest_of(x)), "ok");
}

TEST(HttpClient, WhatIsNotHttpIsMalformed)
{
    for (const char* garbage : {"SSH-2.0-x\r\n", "HTTP/1.1 200 OK\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\nx", "\x16\x03\x01"}) {
        world w;
        testing::byte_server server = w.server(byte_script().request().send(garbage).stall());
        EXPECT_EQ(fetch_or_error(w, w.client(), world::get(server)), text_of(errc::malformed_response));
        ASSERT_TRUE(w.until([&] { return server.log().open() == 0; }));
    }
}

TEST(HttpClient, AnAnswerBeforeTheWholeRequestIsRead)
{
    const std::string body(16 * 1024 * 1024, 'x');
    // The server answers at once and reads nothing more, closing or not: the rest of the request cannot be written.
    for (const bool closes : {false, true}) {
        world w;
        byte_script script = byte_script().stop_reading().send(http_response(413, "too large"));
        if (closes) script.close();
        else script.stall();
        testing::byte_server server = w.server(std::move(script));
        http_request r = world::get(server);
        r.method = "POST";
        r.body = body;
        http_client client = w.client();
        // No time passes.
        testing::started<std::string> op(w.context, fetch(client, std::move(r)));
        ASSERT_TRUE(w.until([&] { return op.done(); })) << closes;
        EXPECT_EQ(op.get(), "413 too large") << closes;
        EXPECT_EQ(client.stats().open, 0u) << closes;  // half a request was sent on it
    }
}

TEST(HttpClient, HeadsBeforeTheAnswerDoNotStopTheSending)
{
    const std::string body(16 * 1024 * 1024, 'x');
    world w;
    testing::byte_server server =
        w.server(byte_script().stop_reading().send("HTTP/1.1 100 Continue\r\n\r\n").gate("read").read_again().request().send(http_response(200, "ok")));
    http_request r = world::get(server);
    r.method = "POST";
    r.body = body;
    http_client client = w.client();
    testing::started<std::string> op(w.context, fetch(client, std::move(r)));
    w.idle();
    EXPECT_FALSE(op.done());
    server.open("read");
    ASSERT_TRUE(w.until([&] { return op.done(); }));
    EXPECT_EQ(op.get(), "200 ok");
    EXPECT_EQ(server.log().request().body.size(), body.size());
    EXPECT_EQ(client.stats().idle, 1u);
}

TEST(HttpClient, NegativeLimitsAreRefusedBeforeAnyConnection)
{
    world w;
    testing::byte_server server = w.server(byte_script().close());
    for (std::chrono::nanoseconds http_limits::*limit : {&http_limits::connect, &http_limits::first_byte, &http_limits::idle}) {
        http_request r = world::get(server);
        r.limits.*limit = std::chrono::nanoseconds(-1);
        EXPECT_EQ(fetch_or_error(w, w.client(), std::move(r)), text_of(errc::invalid_argument));
    }
    w.context.restart();
    w.context.poll();
    EXPECT_TRUE(server.log().connections.empty());
}

TEST(HttpExchange, EverythingThatCameAtOnceIsReadWithoutSuspending)
{
    world w;
    testing::byte_server server = w.server(byte_script::answering(http_response(200, "hello")));
    http_client client = w.client();
    http_exchange x = testing::complete(w.context, client.open(world::get(server)));
    EXPECT_EQ(x.ended(), body_end::open);
    EXPECT_EQ(client.stats().idle, 1u);  // the connection serves others already
    std::span<const char> bytes;
    ASSERT_TRUE(x.try_read_some(bytes));
    EXPECT_EQ(std::string(bytes.data(), bytes.size()), "hello");
    ASSERT_TRUE(x.try_read_some(bytes));
    EXPECT_TRUE(bytes.empty());
    EXPECT_EQ(x.ended(), body_end::complete);
}

awaitable<std::vector<std::string>> events_of(http_client client, http_request request)
{
    http_exchange x = co_await client.open(std::move(request));
    sse_parser parser;
    sse_event e;
    std::vector<std::string> events;
    for (;;) {
        const std::span<const char> bytes = co_await x.read_some();
        if (bytes.empty()) break;
        parser.feed({bytes.data(), bytes.size()});
        while (parser.next(e)) events.emplace_back(e.data);
    }
    if (parser.finish(e)) events.emplace_back(e.data);
    co_return events;
}

TEST(HttpExchange, Case_A1_EventsComeOutTheSameHoweverTheyAreSent)
{
    const std::vector<std::string> sent = {"\xE6\x97\xA5\xE6\x9C\xAC", "\xF0\x9F\x98\x80 \xC3\xA9", "[DONE]"};
    std::string body, one_by_one;
    for (const std::string& e : sent) body += testing::sse_event(e);
    for (const char c : body) one_by_one += http_chunk({&c, 1});
    world w;
    testing::byte_server server = w.server({byte_script().request().send(testing::sse_head() + http_chunk(body) + http_chunk("")).close(),
                                            byte_script().request().trickle(testing::sse_head() + http_chunk(body) + http_chunk("")).close(),
                                            byte_script().request().send(testing::sse_head() + one_by_one + http_chunk("")).close(),
                                            byte_script().request().trickle(testing::sse_head() + one_by_one + http_chunk("")).close()});
    http_client client = w.client();
    for (int i = 0; i < 4; ++i) {
        EXPECT_EQ(testing::complete(w.context, events_of(client, world::get(server))), sent) << i;
        w.idle();
    }
}

TEST(HttpExchange, UnreadBytesSurviveAnotherExchange)
{
    world w;
    const std::string one(30'000, '1'), two(40'000, '2');
    testing::byte_server first = w.server(byte_script::answering(http_response(200, one)));
    testing::byte_server second = w.server(byte_script::answering(http_response(200, two)));
    http_client client = w.client();
    http_exchange a = testing::complete(w.context, client.open(world::get(first)));
    http_exchange b = testing::complete(w.context, client.open(world::get(second)));
    EXPECT_EQ(testing::complete(w.context, rest_of(a)), one);
    EXPECT_EQ(testing::complete(w.context, rest_of(b)), two);
}

TEST(HttpExchange, Case_E2_GivenUpEarlyItClosesTheConnection)
{
    world w;
    testing::byte_server server = w.server(byte_script().request().send("HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nhalf").stall());
    http_client client = w.client();
    {
        const http_exchange x = testing::complete(w.context, client.open(world::get(server)));
        EXPECT_EQ(client.stats().open, 1u);
    }
    EXPECT_EQ(client.stats().open, 0u);
    ASSERT_TRUE(w.soon([&] { return server.log().open() == 0; }));
    // What it had not read goes with it, and the next one reads its own.
    testing::byte_server other = w.server(byte_script::answering(http_response(200, "ok")));
    EXPECT_EQ(fetch_or_error(w, client, world::get(other)), "200 ok");
}

TEST(HttpExchange, Case_E2_FinishKeepsTheConnectionWhenTheEndIsThere)
{
    const std::string head = testing::sse_head(), done = http_chunk("data: [DONE]\n\n");
    struct row {
        const char* what;
        byte_script script;
        std::size_t kept;
    };
    for (const row& r : {row{"together", byte_script().request().send(head + done + http_chunk("")).repeat(), 1},
                         row{"after the event", byte_script().request().send(head + done).gate("end").send(http_chunk("")).repeat(), 1},
                         row{"never", byte_script().request().send(head + done).stall(), 0}}) {
        world w;
        testing::byte_server server = w.server(r.script);
        http_client client = w.client();
        http_exchange x = testing::complete(w.context, client.open(world::get(server)));
        std::span<const char> bytes;
        ASSERT_TRUE(x.try_read_some(bytes) || w.idle() > 0) << r.what;
        server.open("end");
        w.idle();
        x.finish();
        x.finish();
        EXPECT_EQ(client.stats().idle, r.kept) << r.what;
        EXPECT_EQ(client.stats().open, r.kept) << r.what;
    }
}

TEST(HttpExchange, TruncatedBodiesAreToldFromCompleteOnes)
{
    struct row {
        const char* what;
        byte_script script;
    };
    const std::string half = "HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nhalf",
                      chunked = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n4\r\nhalf\r\n";
    for (const row& r : {row{"fin", byte_script().request().send(half).close()}, row{"half close", byte_script().request().send(half).half_close()},
                         row{"chunked", byte_script().request().send(chunked).close()}, row{"reset", byte_script().request().send(half).gate("read").reset()},
                         row{"until close, reset", byte_script().request().send("HTTP/1.1 200 OK\r\n\r\nhalf").gate("read").reset()}}) {
        world w;
        testing::byte_server server = w.server(r.script);
        http_client client = w.client();
        http_exchange x = testing::complete(w.context, client.open(world::get(server)));
        std::span<const char> bytes;
        ASSERT_TRUE(x.try_read_some(bytes)) << r.what;
        EXPECT_EQ(std::string(bytes.data(), bytes.size()), "half") << r.what;
        server.open("read");
        testing::started<std::string> op(w.context, rest_of(x));
        ASSERT_TRUE(w.until([&] { return op.done(); })) << r.what;
        EXPECT_EQ(code_of_failure(op.failure()), errc::stream_truncated) << r.what;
        EXPECT_EQ(x.ended(), body_end::aborted) << r.what;
        EXPECT_EQ(client.stats().open, 0u) << r.what;
    }
}

TEST(HttpExchange, CodedBodiesAreDecoded)
{
    const std::string text(100'000, 'z');
    for (const auto& [coding, bytes] : {std::pair<std::string, std::string>{"gzip", testing::gzip(text)}, {"deflate", testing::zlib_deflate(text)}}) {
        world w;
        testing::byte_server server =
            w.server({byte_script().request().send(http_response(200, bytes, {{"Content-Encoding", coding}})).close(),
                      byte_script().request().trickle(http_response(200, bytes, {{"Content-Encoding", coding}})).close(),
                      byte_script().request().send(http_response(200, bytes.substr(0, bytes.size() - 3), {{"Content-Encoding", coding}})).close()});
        http_client client = w.client();
        for (int i = 0; i < 2; ++i) {
            EXPECT_EQ(fetch_or_error(w, client, world::get(server)), "200 " + text) << coding;
            w.idle();
        }
        EXPECT_EQ(fetch_or_error(w, client, world::get(server)), text_of(errc::stream_truncated)) << coding;
    }
    world w;
    testing::byte_server server = w.server(byte_script::answering(http_response(200, "xx", {{"Content-Encoding", "br"}})));
    EXPECT_EQ(fetch_or_error(w, w.client(), world::get(server)), text_of(errc::bad_encoding));
}

TEST(HttpExchange, BodyLimitIsExactAndCountsDecodedBytes)
{
    for (const bool coded : {false, true})
        for (const std::size_t size : {999u, 1000u, 1001u}) {
            world w;
            const std::string text(size, 'x');
            testing::byte_server server =
                w.server(byte_script::answering(coded ? http_response(200, testing::gzip(text), {{"Content-Encoding", "gzip"}}) : http_response(200, text)));
            http_request r = world::get(server);
            r.limits.max_body = 1000;
            EXPECT_EQ(fetch_or_error(w, w.client(), std::move(r)), size > 1000 ? text_of(errc::body_too_large) : "200 " + text);
        }
}

TEST(HttpExchange, HeadLimit)
{
    world w;
    testing::byte_server server = w.server(byte_script().request().send("HTTP/1.1 200 OK\r\nX: " + std::string(70'000, 'x')).stall());
    EXPECT_EQ(fetch_or_error(w, w.client(), world::get(server)), text_of(errc::headers_too_large));
}

TEST(HttpExchange, Case_E5_LargeBodiesAndStreams)
{
    {
        world w;
        const std::string body(20 * 1024 * 1024, 'b');
        testing::byte_server server = w.server(byte_script::answering(http_response(200, body)));
        const std::string got = fetch_or_error(w, w.client(), world::get(server));
        EXPECT_EQ(got.size(), body.size() + 4);
    }
    world w;
    const std::string piece = http_chunk("data: " + std::string(32 * 1024, 's') + "\n\n");
    testing::byte_server server = w.server(byte_script().request().send(testing::sse_head()).send_forever(piece));
    http_client client = w.client();
    http_request r = world::get(server);
    r.limits.max_body = 0;
    http_exchange x = testing::complete(w.context, client.open(std::move(r)));
    const auto read_much = [](http_exchange& from) -> awaitable<std::size_t> {
        std::size_t total = 0;
        while (total < 100u * 1024 * 1024) {
            const std::span<const char> bytes = co_await from.read_some();
            if (bytes.empty()) break;
            total += bytes.size();
        }
        co_return total;
    };
    EXPECT_GE(testing::complete(w.context, read_much(x), std::chrono::seconds(120)), 100u * 1024 * 1024);
}

}  // namespace http_client_test
}  // namespace
}  // namespace reagent

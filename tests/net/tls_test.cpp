#include "net_world.hpp"
#include "tls_server.hpp"
#include "tls_sessions.hpp"

#include <reagent/net/websocket.hpp>

#include <gtest/gtest.h>

#include <fstream>

namespace reagent {
namespace {
namespace tls_test {

using namespace net_tests;

const std::string ok = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok";

struct outcome {
    error_code code;
    std::string text;
    bool retryable = false;
};

outcome call(world& w, http_client client, const tls_server& server, const std::string& host = "127.0.0.1")
{
    http_request r("GET", url::parse_or_throw("https://" + host + ":" + std::to_string(server.port()) + "/", "url"));
    testing::started<std::string> op(w.context, fetch(std::move(client), std::move(r)));
    outcome o;
    if (!w.until([&] { return op.done(); })) {
        o.text = "did not end";
        return o;
    }
    try {
        o.text = op.get();
    } catch (const error& e) {
        o.code = e.code();
        o.text = e.what();
        o.retryable = e.retryable();
    }
    return o;
}

TEST(Tls, ReadsReusesAndEndsProperly)
{
    const std::size_t before = (certificates::shared(), open_descriptors());
    {
        world w;
        w.options.tls.ca_file = certificates::shared().pem("root");
        tls_server server("good", ok, tls_end::keep);
        {
            http_client client = w.client();
            for (const std::string host : {"127.0.0.1", "127.0.0.1", "127.0.0.1"}) EXPECT_EQ(call(w, client, server, host).text, "200 ok");
            EXPECT_EQ(client.stats().dialed, 1u);  // session tickets behind the handshake do not make it stale
            EXPECT_EQ(client.stats().reused, 2u);
            EXPECT_EQ(server.server_name(), "");
        }
        // The client is gone: its idle connection was ended with close_notify.
        for (int i = 0; i < 2000 && server.notified() == 0; ++i) std::this_thread::yield();
        http_client again = w.client();
        EXPECT_EQ(call(w, again, server, "localhost").text, "200 ok");
        EXPECT_EQ(server.server_name(), "localhost");
        EXPECT_EQ(server.notified(), 1);
    }
    EXPECT_EQ(open_descriptors(), before);
}

TEST(Tls, AConsentThatIsCutIsNotWaitedForAndNoBodyLeaves)
{
    for (const tls_end end : {tls_end::notify, tls_end::cut}) {
        world w;
        w.options.tls.ca_file = certificates::shared().pem("root");
        tls_server server("good", "HTTP/1.1 100 Con", end);
        http_client client = w.client();
        http_request r("POST", url::parse_or_throw("https://127.0.0.1:" + std::to_string(server.port()) + "/", "url"));
        r.body = "eleven byte";
        r.expect_continue = true;
        testing::started<std::string> op(w.context, fetch(client, std::move(r)));
        ASSERT_TRUE(w.until([&] { return op.done(); })) << "its end is inside TLS, where no socket shows it";
        EXPECT_EQ(code_of_failure(op.failure()), errc::transport_failed);
        EXPECT_EQ(message_of(op.failure()).find("TLS broke off") != std::string::npos, end == tls_end::cut) << message_of(op.failure());
        EXPECT_TRUE(server.last_request().ends_with("\r\n\r\n")) << server.last_request();
        EXPECT_EQ(client.stats().open, 0u);
    }
}

awaitable<std::string> first_message(http_client client, url to)
{
    websocket_options o;
    o.random = [] { return std::uint64_t(0); };
    websocket ws = co_await websocket::connect(client, to, o);
    websocket_message m;
    const bool more = co_await ws.read(m);
    co_await ws.send_text(std::string(100'000, 'x'));
    co_return more ? m.bytes : "closed";
}

TEST(Tls, AWebSocketOverItIsVerifiedAndEndsProperly)
{
    const std::string consent =
        "HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Accept: ICX+Yqv66kxgM0FcWaLWlFLwTAI=\r\n\r\n";
    for (const bool trusted : {true, false}) {
        world w;
        if (trusted) w.options.tls.ca_file = certificates::shared().pem("root");
        tls_server server("good", consent + "\x81\x04over", tls_end::keep);
        testing::started<std::string> op(w.context, first_message(w.client(), websocket_url("wss://127.0.0.1:" + std::to_string(server.port()) + "/")));
        ASSERT_TRUE(w.until([&] { return op.done(); }));
        if (trusted) {
            EXPECT_EQ(op.get(), "over");
            for (int i = 0; i < 20'000 && server.notified() == 0; ++i) std::this_thread::yield();
            EXPECT_EQ(server.notified(), 1);
        } else {
            EXPECT_EQ(code_of_failure(op.failure()), errc::tls_failed);
        }
    }
}

TEST(Tls, Case_E9_EveryCertificateProblemHasItsOwnMessage)
{
    struct row {
        const char* certificate;
        const char* host;
        const char* words;  // null: accepted
    };
    const row rows[] = {
        {"good", "localhost", nullptr},
        {"good", "localhost.", nullptr},  // the dot of a whole name is in no certificate
        {"chained", "127.0.0.1", nullptr},
        {"reversed", "127.0.0.1", nullptr},
        {"expired", "127.0.0.1", "the peer's certificate has expired: it was valid until Jan  2 00:00:00 2020 GMT"},
        {"future", "127.0.0.1", "the peer's certificate is not yet valid: it will be from Jan  1 00:00:00 2090 GMT"},
        {"elsewhere", "127.0.0.1", "IP address mismatch: the certificate is for DNS:elsewhere.test"},
        {"elsewhere", "localhost", "hostname mismatch: the certificate is for DNS:elsewhere.test"},
        {"self", "127.0.0.1", "a self-signed certificate that is not trusted: \"CN=localhost\""},
        {"unknown", "127.0.0.1", "the chain leads to a root that is not trusted: \"CN=Other root\""},
        {"lonely", "127.0.0.1", "the peer sent no intermediate certificate, or the root is not trusted: \"CN=inter\""},
        {"stranger", "127.0.0.1", "the peer sent no intermediate certificate, or the root is not trusted: \"CN=Other root\""},
        {"weak", "127.0.0.1", "the peer's certificate is signed with a weak digest: ecdsa-with-SHA1"},
    };
    for (const row& r : rows) {
        world w;
        w.options.tls.ca_file = certificates::shared().pem("root");
        const tls_server server(r.certificate, ok, tls_end::keep);
        http_client client = w.client();
        const outcome o = call(w, client, server, r.host);
        if (!r.words) {
            EXPECT_EQ(o.text, "200 ok") << r.certificate;
            continue;
        }
        EXPECT_EQ(o.code, errc::tls_failed) << r.certificate;
        EXPECT_NE(o.text.find("TLS: certificate verify failed: "), std::string::npos) << o.text;
        EXPECT_NE(o.text.find(r.words), std::string::npos) << o.text;
        EXPECT_FALSE(o.retryable) << r.certificate;
        EXPECT_EQ(server.requests(), 0);
        EXPECT_EQ(client.stats().open, 0u);
    }
}

TEST(Tls, WithoutOurRootTheChainIsRefused)
{
    world w;  // the system's store only
    const tls_server server("good", ok, tls_end::keep);
    const outcome o = call(w, w.client(), server);
    EXPECT_EQ(o.code, errc::tls_failed);
    world trusting_self;
    trusting_self.options.tls.ca_file = certificates::shared().pem("self");
    const tls_server self("self", ok, tls_end::keep);
    EXPECT_EQ(call(trusting_self, trusting_self.client(), self).text, "200 ok");
}

TEST(Tls, Case_E9_OldProtocolsAreRefused)
{
    world w;
    w.options.tls.ca_file = certificates::shared().pem("root");
    const tls_server old("good", ok, tls_end::keep, TLS1_1_VERSION);
    const outcome o = call(w, w.client(), old);
    EXPECT_EQ(o.code, errc::tls_failed);
    EXPECT_NE(o.text.find("the peer speaks no TLS 1.2 or later"), std::string::npos) << o.text;
    EXPECT_EQ(old.handshakes(), 0);
    // It is the version: a client that takes the old one gets through.
    const std::string port = std::to_string(old.port());
    EXPECT_EQ(std::system(("openssl s_client -tls1_1 -cipher ALL:@SECLEVEL=0 -connect 127.0.0.1:" + port + " </dev/null >/dev/null 2>&1").c_str()), 0);
    for (int i = 0; i < 100'000 && old.handshakes() == 0; ++i) std::this_thread::yield();
    EXPECT_EQ(old.handshakes(), 1);
    const tls_server twelve("good", ok, tls_end::keep, TLS1_2_VERSION);
    EXPECT_EQ(call(w, w.client(), twelve).text, "200 ok");
}

TEST(Tls, SessionsAreResumedForTheSameHostOnly)
{
    for (const int version : {TLS1_2_VERSION, TLS1_3_VERSION}) {
        world w;
        w.options.tls.ca_file = certificates::shared().pem("root");
        w.options.max_idle_per_origin = 0;  // each call dials
        tls_server server("good", ok, tls_end::keep, version), other("good", ok, tls_end::keep, version);
        http_client client = w.client();
        EXPECT_EQ(call(w, client, server).text, "200 ok");
        EXPECT_EQ(client.stats().resumed, 0u);
        for (std::uint64_t i = 1; i <= 4; ++i) {
            EXPECT_EQ(call(w, client, server).text, "200 ok");
            EXPECT_EQ(client.stats().resumed, i);
        }
        EXPECT_EQ(call(w, client, server, "localhost").text, "200 ok");
        EXPECT_EQ(call(w, client, other).text, "200 ok");
        EXPECT_EQ(client.stats().resumed, 4u);
        EXPECT_EQ(client.stats().dialed, 7u);
        http_client stranger = w.client();
        EXPECT_EQ(call(w, stranger, server).text, "200 ok");
        EXPECT_EQ(stranger.stats().resumed, 0u);
    }
}

TEST(Tls, AClientCertificateIsShownWhenAsked)
{
    const certificates& c = certificates::shared();
    world w;
    w.options.tls.ca_file = c.pem("root");
    const tls_server server("good", ok, tls_end::keep, TLS1_2_VERSION, {.client_root = "root"});
    EXPECT_EQ(call(w, w.client(), server).code, errc::tls_failed);
    w.options.tls.certificate_file = c.pem("client");
    w.options.tls.key_file = c.key("client");
    EXPECT_EQ(call(w, w.client(), server).text, "200 ok");
}

// A variable of the environment for as long as it lives.
class variable {
public:
    variable(const char* name, const std::string& value) : name_(name) { ::setenv(name, value.c_str(), 1); }
    variable(const variable&) = delete;
    variable& operator=(const variable&) = delete;
    ~variable() { ::unsetenv(name_); }

private:
    const char* name_;
};

TEST(Tls, Case_E9_TheEnvironmentNamesTheSystemsStore)
{
    const tls_server server("good", ok, tls_end::keep);
    {
        world w;
        const variable file("SSL_CERT_FILE", certificates::shared().pem("root"));
        EXPECT_EQ(call(w, w.client(), server).text, "200 ok");
        w.options.tls.system_store = false;
        EXPECT_EQ(call(w, w.client(), server).code, errc::tls_failed);
    }
    {
        const scratch_directory roots;
        std::filesystem::copy_file(certificates::shared().pem("root"), roots.file("root.pem"));
        ASSERT_EQ(std::system(("openssl rehash '" + roots.path() + "' >/dev/null 2>&1").c_str()), 0);
        world w;
        const variable directory("SSL_CERT_DIR", "/nowhere:" + roots.path());
        EXPECT_EQ(call(w, w.client(), server).text, "200 ok");
    }
    for (const char* name : {"SSL_CERT_FILE", "SSL_CERT_DIR"}) {
        world w;
        const variable wrong(name, "/nowhere/at.all");
        const outcome o = call(w, w.client(), server);
        EXPECT_EQ(o.code, errc::invalid_config);
        EXPECT_TRUE(o.text.starts_with(std::string(name) + ": ")) << o.text;
    }
}

TEST(Tls, Case_E8_ATunnelCarriesTlsToTheHostItself)
{
    world w;
    w.options.tls.ca_file = certificates::shared().pem("root");
    const tls_server server("good", ok, tls_end::keep, TLS1_3_VERSION, {.proxy_answer = "HTTP/1.1 200 Connection established\r\nContent-Length: 5\r\n\r\n"});
    w.options.proxies.https("127.0.0.1:" + std::to_string(server.port()));
    http_client client = w.client();
    const auto ask = [&](const char* target) {
        testing::started<std::string> op(w.context, fetch(client, http_request("GET", url::parse_or_throw(target, "url"))));
        return w.until([&] { return op.done(); }) ? (op.failure() ? message_of(op.failure()) : op.get()) : std::string("did not end");
    };
    EXPECT_EQ(ask("https://api.test/"), "200 ok");  // no resolver knows the name
    EXPECT_EQ(server.proxy_request(), "CONNECT api.test:443 HTTP/1.1\r\nHost: api.test:443\r\n\r\n");
    EXPECT_EQ(server.server_name(), "api.test");
    EXPECT_EQ(ask("https://api.test/"), "200 ok");
    EXPECT_EQ(client.stats().reused, 1u);
    client.close_idle();
    // The name is verified, not the proxy's.
    EXPECT_NE(ask("https://elsewhere.test/").find("hostname mismatch"), std::string::npos);
    EXPECT_EQ(client.stats().dialed, 1u);
}

TEST(Tls, Case_E8_AProxyReachedByTls)
{
    world w;
    w.options.tls.ca_file = certificates::shared().pem("root");
    const tls_server server("good", ok, tls_end::keep), other("elsewhere", ok, tls_end::keep);
    const tls_server proxy("good", ok, tls_end::keep, TLS1_3_VERSION, {.forward_to = server.port()});
    const auto ask = [&](const http_client& client, const char* target) {
        testing::started<std::string> op(w.context, fetch(client, http_request("GET", url::parse_or_throw(target, "url"))));
        return w.until([&] { return op.done(); }) ? (op.failure() ? message_of(op.failure()) : op.get()) : std::string("did not end");
    };
    w.options.proxies.https("https://me:word@localhost:" + std::to_string(proxy.port()));
    {
        const http_client client = w.client();
        EXPECT_EQ(ask(client, "https://api.test/"), "200 ok");  // TLS to the host inside TLS to the proxy
        EXPECT_EQ(ask(client, "https://api.test/"), "200 ok");
        EXPECT_EQ(client.stats().dialed, 1u);
    }
    EXPECT_EQ(proxy.proxy_request(), "CONNECT api.test:443 HTTP/1.1\r\nHost: api.test:443\r\nProxy-Authorization: Basic bWU6d29yZA==\r\n\r\n");
    EXPECT_EQ(proxy.server_name(), "localhost");
    EXPECT_EQ(server.server_name(), "api.test");
    EXPECT_EQ(server.last_request(), "GET / HTTP/1.1\r\nHost: api.test\r\nAccept-Encoding: identity\r\n\r\n") << "nothing of the proxy in it";
    w.options.proxies.https({}).http("https://127.0.0.1:" + std::to_string(server.port()));
    EXPECT_EQ(ask(w.client(), "http://plain.test/"), "200 ok");  // hidden on the way to the proxy only
    EXPECT_TRUE(server.last_request().starts_with("GET http://plain.test/ HTTP/1.1\r\nHost: plain.test\r\n")) << server.last_request();
    const std::string at = "https://127.0.0.1:" + std::to_string(other.port());
    w.options.proxies.https(at);
    const std::string refused = ask(w.client(), "https://api.test/");
    EXPECT_NE(refused.find("TLS to the proxy " + at + ": certificate verify failed: IP address mismatch"), std::string::npos) << refused;
    EXPECT_EQ(other.requests(), 0);
}

TEST(TlsSessions, AreKeptForABoundedNumberOfOriginsTheLastUsed)
{
    using net_detail::session_ptr;
    net_detail::tls_sessions kept;
    const auto session = [](int version, long timeout) {
        session_ptr s(SSL_SESSION_new());
        SSL_SESSION_set_protocol_version(s.get(), version);
        SSL_SESSION_set_timeout(s.get(), timeout);
        return s;
    };
    const session_ptr any = session(TLS1_2_VERSION, 1);
    for (std::size_t i = 0; i < net_detail::tls_sessions::max_origins; ++i) kept.keep("host" + std::to_string(i), any.get());
    EXPECT_EQ(kept.origins(), 256u);
    EXPECT_NE(kept.take("host0"), nullptr);  // used of late
    kept.keep("another", any.get());
    EXPECT_EQ(kept.origins(), 256u);
    EXPECT_NE(kept.take("host0"), nullptr);
    EXPECT_EQ(kept.take("host1"), nullptr);
    EXPECT_NE(kept.take("another"), nullptr);
    // Of one origin two, the newest first; a ticket of TLS 1.3 once.
    for (const long n : {1, 2, 3}) kept.keep("host2", session(TLS1_3_VERSION, n).get());
    EXPECT_EQ(SSL_SESSION_get_timeout(kept.take("host2").get()), 3);
    EXPECT_EQ(SSL_SESSION_get_timeout(kept.take("host2").get()), 2);
    EXPECT_EQ(kept.take("host2"), nullptr);
}

TEST(Tls, Case_E9_ACutIsToldFromAnEnd)
{
    const std::string until_close = "HTTP/1.1 200 OK\r\n\r\nall of it", chunked = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nok\r\n0\r\n\r\n";
    struct row {
        std::string response;
        tls_end end;
        std::string text;
        errc code;
    };
    for (const row& r : {row{until_close, tls_end::shutdown, "200 all of it", errc{}}, row{until_close, tls_end::cut, "", errc::stream_truncated},
                         row{chunked, tls_end::cut, "200 ok", errc{}}, row{ok, tls_end::cut, "200 ok", errc{}},
                         row{"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nok", tls_end::shutdown, "", errc::stream_truncated},
                         row{"HTTP/1.1 200 OK\r\n", tls_end::cut, "", errc::transport_failed}}) {
        world w;
        w.options.tls.ca_file = certificates::shared().pem("root");
        const tls_server server("good", r.response, r.end);
        http_client client = w.client();
        const outcome o = call(w, client, server);
        if (r.code == errc{}) EXPECT_EQ(o.text, r.text);
        else EXPECT_EQ(o.code, r.code) << o.text;
        if (r.code != errc{} && r.end == tls_end::cut) { EXPECT_NE(o.text.find("TLS broke off without close_notify"), std::string::npos) << o.text; }
        // And what the server closed is not used again.
        if (r.code == errc{}) { EXPECT_EQ(call(w, client, server).text, r.text); }
    }
}

TEST(Tls, AnEndBehindTheLastBytesIsSeenWithoutAnyMoreOfThem)
{
    world w;
    w.options.tls.ca_file = certificates::shared().pem("root");
    const tls_server server("good", "HTTP/1.1 200 OK\r\n\r\nall of it", tls_end::notify);
    http_client client = w.client();
    // No time passes: nothing but the end itself may end the call.
    EXPECT_EQ(call(w, client, server).text, "200 all of it");
    EXPECT_EQ(client.stats().open, 0u);
    const tls_server early("good", "HTTP/1.1 200 OK\r\nContent-Length: 99\r\n\r\nnot all", tls_end::notify);
    EXPECT_EQ(call(w, client, early).code, errc::stream_truncated);
}

TEST(Tls, LargeBodiesBothWays)
{
    world w;
    w.options.tls.ca_file = certificates::shared().pem("root");
    const std::string body(3 * 1024 * 1024, 'r');
    const tls_server server("good", "HTTP/1.1 200 OK\r\nContent-Length: " + std::to_string(body.size()) + "\r\n\r\n" + body, tls_end::keep);
    http_client client = w.client();
    for (int i = 0; i < 2; ++i) EXPECT_EQ(call(w, client, server).text, "200 " + body);
    EXPECT_EQ(client.stats().dialed, 1u);
}

TEST(Tls, NotTlsAtAll)
{
    world w;
    testing::byte_server plain = w.server(testing::byte_script().send("HTTP/1.1 400 Bad Request\r\n\r\n").close());
    http_client client = w.client();
    http_request r("GET", url::parse_or_throw("https://127.0.0.1:" + std::to_string(plain.port()) + "/", "url"));
    testing::started<std::string> op(w.context, fetch(client, std::move(r)));
    ASSERT_TRUE(w.until([&] { return op.done(); }));
    EXPECT_EQ(code_of_failure(op.failure()), errc::tls_failed);
    EXPECT_NE(message_of(op.failure()).find("the peer does not speak TLS"), std::string::npos) << message_of(op.failure());
}

TEST(Tls, TheHandshakeIsPartOfTheConnectLimit)
{
    world w;
    testing::byte_server deaf = w.server(testing::byte_script().stall());
    http_client client = w.client();
    http_request r("GET", url::parse_or_throw("https://127.0.0.1:" + std::to_string(deaf.port()) + "/", "url"));
    cancellable op(w.context, fetch(client, std::move(r)));
    w.idle();
    w.clock->advance(std::chrono::seconds(10));
    ASSERT_TRUE(w.until([&] { return op.done(); }));
    EXPECT_EQ(op.code(), errc::connect_timeout);
    EXPECT_NE(op.message().find("the peer may not speak TLS"), std::string::npos) << op.message();
    EXPECT_EQ(client.stats().open, 0u);
}

TEST(Tls, BadFilesAreConfigurationErrors)
{
    asio::io_context context;
    const scratch_directory directory;
    const std::string empty = directory.file("empty.pem");
    std::ofstream(empty).close();
    for (const auto& [certificate, key, words] :
         {std::tuple<std::string, std::string, std::string>{empty, certificates::shared().key("client"), "tls.certificate_file"},
          {certificates::shared().pem("client"), certificates::shared().key("good"), "tls.key_file"},
          {certificates::shared().pem("client"), "", "tls.key_file"}}) {
        http_client_options options;
        options.tls.certificate_file = certificate;
        options.tls.key_file = key;
        try {
            const http_client client(context.get_executor(), options);
            FAIL() << words;
        } catch (const config_error& e) {
            EXPECT_TRUE(std::string(e.what()).starts_with(words)) << e.what();
        }
    }
    for (const auto& [file, dir, key] : {std::tuple<std::string, std::string, std::string>{"/nowhere/ca.pem", "", "tls.ca_file"},
                                         {empty, "", "tls.ca_file"},
                                         {"", "/nowhere", "tls.ca_dir"}}) {
        http_client_options options;
        options.tls.ca_file = file;
        options.tls.ca_dir = dir;
        try {
            const http_client client(context.get_executor(), options);
            FAIL() << key;
        } catch (const config_error& e) {
            EXPECT_TRUE(std::string(e.what()).starts_with(key)) << e.what();
        }
    }
}

TEST(Tls, ADirectoryOfRootsServes)
{
    const scratch_directory directory;
    const std::string copy = directory.file("root.pem");
    std::filesystem::copy_file(certificates::shared().pem("root"), copy);
    ASSERT_EQ(std::system(("openssl rehash '" + directory.path() + "' >/dev/null 2>&1").c_str()), 0);
    world w;
    w.options.tls.ca_dir = directory.path();
    w.options.tls.system_store = false;
    const tls_server server("good", ok, tls_end::keep);
    EXPECT_EQ(call(w, w.client(), server).text, "200 ok");
}

}  // namespace tls_test
}  // namespace
}  // namespace reagent

#include "net_world.hpp"
#include "tls_server.hpp"

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

TEST(Tls, CertificateProblemsAreNamed)
{
    struct row {
        const char* certificate;
        const char* host;
        const char* words;
    };
    for (const row& r : {row{"expired", "127.0.0.1", "certificate has expired"}, row{"elsewhere", "127.0.0.1", "IP address mismatch"}, row{"elsewhere", "localhost", "hostname mismatch"},
                         row{"self", "127.0.0.1", "self-signed certificate"}, row{"stranger", "127.0.0.1", "unable to get local issuer certificate"}}) {
        world w;
        w.options.tls.ca_file = certificates::shared().pem("root");
        const tls_server server(r.certificate, ok, tls_end::keep);
        http_client client = w.client();
        const outcome o = call(w, client, server, r.host);
        EXPECT_EQ(o.code, errc::tls_failed) << r.certificate;
        EXPECT_NE(o.text.find(r.words), std::string::npos) << o.text;
        EXPECT_NE(o.text.find("certificate verify failed"), std::string::npos) << o.text;
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

TEST(Tls, OldProtocolsAreRefused)
{
    world w;
    w.options.tls.ca_file = certificates::shared().pem("root");
    const tls_server old("good", ok, tls_end::keep, TLS1_1_VERSION);
    EXPECT_EQ(call(w, w.client(), old).code, errc::tls_failed);
    const tls_server twelve("good", ok, tls_end::keep, TLS1_2_VERSION);
    EXPECT_EQ(call(w, w.client(), twelve).text, "200 ok");
}

TEST(Tls, ACutIsToldFromAnEnd)
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
        // And what the server closed is not used again.
        if (r.code == errc{}) {
            EXPECT_EQ(call(w, client, server).text, r.text);
        }
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
    EXPECT_EQ(client.stats().open, 0u);
}

TEST(Tls, BadFilesAreConfigurationErrors)
{
    asio::io_context context;
    const scratch_directory directory;
    const std::string empty = directory.file("empty.pem");
    std::ofstream(empty).close();
    for (const auto& [file, dir, key] : {std::tuple<std::string, std::string, std::string>{"/nowhere/ca.pem", "", "tls.ca_file"}, {empty, "", "tls.ca_file"}, {"", "/nowhere", "tls.ca_dir"}}) {
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

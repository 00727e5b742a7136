#include "http_server_world.hpp"
#include "net_world.hpp"
#include "tls_server.hpp"

#include <gtest/gtest.h>

#include <fcntl.h>
#include <fstream>

namespace reagent {
namespace {
namespace http_server_tls_test {

using namespace net_tests;
using std::chrono::milliseconds;
using std::chrono::seconds;

struct tls_world : server_world {
    tls_world()
    {
        options.tls.emplace();
        options.tls->certificate_file = certificates::shared().pem("chained");
        options.tls->key_file = certificates::shared().key("chained");
    }
    http_client client(const std::string& certificate = {})
    {
        http_client_options o;
        o.clock = clock;
        o.tls.system_store = false;
        o.tls.ca_file = certificates::shared().pem("root");
        if (!certificate.empty()) o.tls.certificate_file = certificates::shared().pem(certificate), o.tls.key_file = certificates::shared().key(certificate);
        return http_client(context.get_executor(), o);
    }
    /// `200 body`, or what went wrong.
    std::string ask(const http_client& c, const std::string& target)
    {
        testing::started<std::string> op(
            context, fetch(c, http_request("GET", url::parse_or_throw("https://127.0.0.1:" + std::to_string(server->port()) + target, "url"))));
        if (!testing::run_until(context, [&] { return op.done(); })) return "did not end";
        failed = code_of_failure(op.failure());
        return op.failure() ? message_of(op.failure()) : op.get();
    }
    error_code failed;
};

/// A client whose every step is the test's. It verifies nothing.
class tls_client {
public:
    explicit tls_client(server_world& w, int max_version = TLS1_3_VERSION, int receive_buffer = 0) : world_(w), ctx_(SSL_CTX_new(TLS_client_method()))
    {
        // OpenSSL writes without MSG_NOSIGNAL, also to a server that has gone against the rules.
        sigset_t pipe;
        ::sigemptyset(&pipe);
        ::sigaddset(&pipe, SIGPIPE);
        ::pthread_sigmask(SIG_BLOCK, &pipe, nullptr);
        SSL_CTX_set_security_level(ctx_, 0);
        SSL_CTX_set_min_proto_version(ctx_, TLS1_VERSION);
        SSL_CTX_set_max_proto_version(ctx_, max_version);
        SSL_CTX_set_mode(ctx_, SSL_MODE_ENABLE_PARTIAL_WRITE | SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER);
        fd_ = w.connect(receive_buffer);
        if (fd_ < 0) throw std::runtime_error("connect");
        ::fcntl(fd_, F_SETFL, O_NONBLOCK);
        ssl_ = SSL_new(ctx_);
        SSL_set_fd(ssl_, fd_);
        SSL_set_connect_state(ssl_);
    }
    tls_client(const tls_client&) = delete;
    tls_client& operator=(const tls_client&) = delete;
    ~tls_client()
    {
        SSL_free(ssl_);
        SSL_CTX_free(ctx_);
        ::close(fd_);
    }
    bool shake()
    {
        for (int i = 0; i < 50; ++i) {
            ERR_clear_error();
            const int r = SSL_do_handshake(ssl_);
            if (r == 1) return true;
            if (SSL_get_error(ssl_, r) != SSL_ERROR_WANT_READ) {
                reason = ERR_GET_REASON(ERR_peek_error());
                return false;
            }
            world_.idle();
        }
        return false;
    }
    void write(std::string_view bytes)
    {
        for (int i = 0; i < 100 && !bytes.empty(); ++i) {
            std::size_t n = 0;
            if (SSL_write_ex(ssl_, bytes.data(), bytes.size(), &n) != 1) world_.idle();
            bytes.remove_prefix(n);
        }
    }
    std::string take()
    {
        std::string out, block(65536, '\0');
        while (!cut && !notified) {
            ERR_clear_error();
            std::size_t n = 0;
            const int r = SSL_read_ex(ssl_, block.data(), block.size(), &n);
            if (r == 1) {
                out.append(block, 0, n);
                continue;
            }
            const int why = SSL_get_error(ssl_, r);
            notified = why == SSL_ERROR_ZERO_RETURN;
            cut = why != SSL_ERROR_ZERO_RETURN && why != SSL_ERROR_WANT_READ;
            break;
        }
        return out;
    }
    bool was_reset() const
    {
        char byte = 0;
        return ::recv(fd_, &byte, 1, MSG_PEEK) < 0 && errno == ECONNRESET;
    }
    /// Lets the server run, and gives what came without its Date.
    std::string read() { return all_that_comes(world_, *this); }
    std::string ask(std::string_view request)
    {
        write(request);
        return read();
    }
    bool notified = false, cut = false;  ///< the server ended with close_notify; without it, or in an error
    int reason = 0;

private:
    server_world& world_;
    SSL_CTX* ctx_;
    SSL* ssl_ = nullptr;
    int fd_ = -1;
};

TEST(HttpServerTls, ServesOurClientColdAndResumed)
{
    const std::size_t before = (certificates::shared(), open_descriptors());
    {
        tls_world w;
        w.echo();
        EXPECT_EQ(w.server->origin(), "https://127.0.0.1:" + std::to_string(w.server->port()));
        http_client c = w.client();
        EXPECT_EQ(w.ask(c, "/1"), "200 GET /1 ");
        EXPECT_EQ(w.ask(c, "/2"), "200 GET /2 ");
        EXPECT_EQ(w.server->stats().handshakes, 1u);
        EXPECT_EQ(w.server->stats().resumed, 0u);
        for (std::uint64_t i = 1; i <= 2; ++i) {
            c.close_idle();
            w.idle();
            EXPECT_EQ(w.server->stats().open, 0u);
            EXPECT_EQ(w.ask(c, "/3"), "200 GET /3 ");
            EXPECT_EQ(c.stats().resumed, i);
            EXPECT_EQ(w.server->stats().resumed, i);
        }
        EXPECT_EQ(w.server->stats().handshakes, 3u);
        EXPECT_EQ(w.server->stats().handshakes_failed, 0u);
        EXPECT_EQ(w.server->stats().requests, 4u);
    }
    EXPECT_EQ(open_descriptors(), before);
}

TEST(HttpServerTls, AsksClientsForACertificate)
{
    tls_world w;
    w.options.tls->client_ca_file = certificates::shared().pem("root");
    w.echo();
    http_client known = w.client("client"), nobody = w.client(), stranger = w.client("stranger");
    EXPECT_EQ(w.ask(known, "/1"), "200 GET /1 ");
    EXPECT_NE(w.ask(nobody, "/2").find("certificate required"), std::string::npos);
    EXPECT_EQ(w.failed, errc::tls_failed);
    EXPECT_NE(w.ask(stranger, "/3").find("unknown ca"), std::string::npos);
    EXPECT_EQ(w.ask(known, "/4"), "200 GET /4 ");
    EXPECT_EQ(known.stats().dialed, 1u) << "others do not disturb it";
    EXPECT_EQ(w.server->stats().handshakes_failed, 2u);
    EXPECT_EQ(w.server->stats().requests, 2u);
    w.server.reset();
    w.options.tls->client_certificate_required = false;
    w.echo();
    EXPECT_EQ(w.ask(nobody, "/5"), "200 GET /5 ");
    EXPECT_EQ(w.ask(w.client("client"), "/6"), "200 GET /6 ");
    EXPECT_NE(w.ask(w.client("stranger"), "/7").find("unknown ca"), std::string::npos) << "one that is shown is verified";
}

TEST(HttpServerTls, WhoSpeaksAnotherProtocolGetsACleanEnd)
{
    tls_world w;
    std::string logged;
    w.options.log = log_sink([&](log_level, std::string_view line) { logged += line; });
    w.echo();
    server_client plain(w);
    plain.ask(get("/", "X: " + std::string(30'000, 'x') + "\r\n"));
    EXPECT_TRUE(plain.ended && !plain.was_reset);
    plain.write(std::string(100'000, 'z'));
    plain.read();
    EXPECT_FALSE(plain.was_reset) << "what it goes on sending is dropped";
    EXPECT_EQ(logged, "[http_server] the TLS handshake with 127.0.0.1 failed: the peer does not speak TLS (http request)");
    plain.close();
    tls_client old(w, TLS1_1_VERSION), twelve(w, TLS1_2_VERSION);
    EXPECT_FALSE(old.shake());
    EXPECT_EQ(old.reason, SSL_R_TLSV1_ALERT_PROTOCOL_VERSION);
    EXPECT_TRUE(twelve.shake());
    EXPECT_EQ(twelve.ask(get("/")), ok("GET / "));
    EXPECT_EQ(w.server->stats().handshakes_failed, 2u);
    EXPECT_EQ(w.server->stats().handshakes, 1u);
}

TEST(HttpServerTls, APlainServerIsToldFromOneThatIsSlow)
{
    tls_world w;
    w.options.tls.reset();
    w.echo();
    EXPECT_NE(w.ask(w.client(), "/").find("TLS: the peer does not speak TLS"), std::string::npos);
    EXPECT_EQ(w.failed, errc::tls_failed);
}

TEST(HttpServerTls, ASlowHandshakeIsASlowClient)
{
    tls_world w;
    w.echo();
    server_client silent(w);
    silent.ask(std::string("\x16\x03\x01\x01\x00", 5));
    tls_client c(w);
    w.idle();
    w.advance(seconds(10) - milliseconds(1));
    EXPECT_EQ(w.server->stats().open, 2u);
    EXPECT_TRUE(c.shake());
    w.idle();
    w.advance(milliseconds(1));
    silent.read();
    EXPECT_TRUE(silent.ended);
    EXPECT_EQ(w.server->stats().timed_out, 1u);
    w.advance(seconds(10) - milliseconds(2));
    c.read();
    EXPECT_FALSE(c.notified) << "its head has a limit of its own, from the end of the handshake on";
    w.advance(milliseconds(1));
    c.read();
    EXPECT_TRUE(c.notified);
    EXPECT_EQ(w.server->stats().timed_out, 2u);
}

TEST(HttpServerTls, AReaderThatStallsHoldsTheWriterBack)
{
    tls_world w;
    http_responder out;
    w.start().fallback([&](server_request&&, http_responder r) {
        r.begin(200, "text/plain");
        out = std::move(r);
    });
    tls_client c(w, TLS1_3_VERSION, 4096);
    ASSERT_TRUE(c.shake());
    c.write(get("/"));
    w.idle();
    const std::string piece(16 * 1024, 'x');
    std::size_t written = 0;
    while (out.write(piece)) written += piece.size();
    written += piece.size();
    EXPECT_LT(written, 8u << 20U);
    bool room = false;
    out.on_room([&] { room = true; });
    w.idle();
    EXPECT_FALSE(room);
    std::string got;
    for (int i = 0; i < 10'000 && !room; ++i) {
        got += c.take();
        w.idle();
    }
    ASSERT_TRUE(room);
    out.end();
    for (std::string more = c.read(); !more.empty(); more = c.read()) got += more;
    EXPECT_EQ(static_cast<std::size_t>(std::count(got.begin(), got.end(), 'x')), written + 1) << "and one in text/plain's head";
    EXPECT_TRUE(got.ends_with("\r\n0\r\n\r\n"));
    EXPECT_FALSE(c.cut || c.notified);
}

TEST(HttpServerTls, ARefusedClientGetsItsAnswerThoughItGoesOnSending)
{
    tls_world w;
    w.options.limits.max_body = 1000;
    w.echo();
    tls_client c(w);
    ASSERT_TRUE(c.shake());
    c.write("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 200000\r\n\r\n");
    c.write(std::string(100'000, 'z'));
    EXPECT_EQ(c.read().substr(0, 12), "HTTP/1.1 413");
    EXPECT_TRUE(c.notified && !c.cut);
    EXPECT_EQ(w.server->stats().open, 1u) << "it lingers";
    c.write(std::string(100'000, 'z'));
    w.idle();
    EXPECT_FALSE(c.was_reset());
    w.advance(seconds(2));
    EXPECT_EQ(w.server->stats().open, 0u);
}

TEST(HttpServerTls, ABodyLongerThanATurnOfReadingGoesOn)
{
    tls_world w;
    w.start().fallback([](server_request&& r, http_responder out) { out.send(200, "text/plain", std::to_string(r.body.size())); });
    tls_client c(w);
    ASSERT_TRUE(c.shake());
    w.idle();
    // A turn ends after a megabyte, in the middle of a record: what is left of that one no socket shows.
    const std::string body(1024 * 1024, 'z');
    c.write("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: " + std::to_string(body.size()) + "\r\n\r\n");
    c.write(body);
    EXPECT_EQ(c.read(), ok("1048576"));
}

TEST(HttpServerTls, SaysGoodbyeUnlessItCutsAnAnswer)
{
    tls_world w;
    std::vector<http_responder> held;
    w.start().fallback([&](server_request&& r, http_responder out) {
        if (r.target == "/stream") out.begin(200, "text/plain");
        held.push_back(std::move(out));
    });
    tls_client idle(w), busy(w), stream(w), late(w);
    for (tls_client* c : {&idle, &busy, &stream}) ASSERT_TRUE(c->shake());
    busy.ask(get("/busy"));
    stream.ask(get("/stream"));
    testing::started<bool> drain(w.context, w.server->drain(seconds(30)));
    idle.read();
    EXPECT_TRUE(idle.notified);
    ASSERT_TRUE(late.shake()) << "it had connected";
    late.ask(get("/late"));
    ASSERT_EQ(held.size(), 3u);
    for (const std::size_t i : {0u, 2u}) held[i].send(200, "text/plain", "done");
    EXPECT_EQ(busy.read(), ok("done", true));
    EXPECT_EQ(late.read(), ok("done", true));
    EXPECT_TRUE(busy.notified && late.notified);
    EXPECT_FALSE(drain.done());
    w.server->stop();
    stream.read();
    EXPECT_TRUE(stream.cut && !stream.notified);
}

TEST(HttpServerTls, TheRawWireIsInsideTls)
{
    tls_world w;
    w.start().fallback([](server_request&& r, http_responder out) {
        raw_wire wire = out.take_raw();
        std::size_t n = 0;
        EXPECT_GE(wire.native_handle(), 0);
        wire.try_write("as it is " + r.target, n);
        if (r.target == "/keep") wire.done();
        else if (r.target == "/close") wire.close();
    });
    tls_client c(w), d(w);
    ASSERT_TRUE(c.shake() && d.shake());
    EXPECT_EQ(c.ask(get("/keep") + get("/keep")), "as it is /keepas it is /keep");
    EXPECT_EQ(c.ask(get("/close")), "as it is /close");
    EXPECT_TRUE(c.notified);
    d.ask(get("/dropped"));
    EXPECT_TRUE(d.cut && !d.notified);
}

TEST(HttpServerTls, WhatCannotBeUsedIsNamedAtOnce)
{
    const certificates& c = certificates::shared();
    const scratch_directory directory;
    const std::string bad = directory.file("bad.pem");
    std::ofstream(bad) << "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n";
    const auto problem = [&](auto change) {
        tls_world w;
        change(*w.options.tls);
        try {
            w.start();
        } catch (const config_error& e) {
            return std::string(e.what());
        }
        return std::string("no problem");
    };
    const auto text_of = [](const std::string& file) {
        std::ifstream in(file);
        return std::string(std::istreambuf_iterator<char>(in), {});
    };
    using options = tls_server_options;
    EXPECT_EQ(problem([](options& o) { o.certificate_file.clear(); }), "tls.certificate_file: a server must have a certificate");
    EXPECT_EQ(problem([](options& o) { o.key_file.clear(); }), "tls.key_file: a server must have the key of its certificate");
    EXPECT_EQ(problem([](options& o) { o.certificate_file = "/nowhere/a.pem"; }),
              "tls.certificate_file: it cannot be read: /nowhere/a.pem: No such file or directory");
    EXPECT_TRUE(problem([&](options& o) { o.certificate_file = bad; }).starts_with("tls.certificate_file: a certificate cannot be read: " + bad));
    EXPECT_TRUE(
        problem([&](options& o) { o.certificate_file = c.key("good"); }).starts_with("tls.certificate_file: there is no certificate in it: " + c.key("good")));
    EXPECT_TRUE(problem([&](options& o) { o.key_file = c.key("good"); }).starts_with("tls.key_file: it is not the key of the certificate: " + c.key("good")));
    EXPECT_TRUE(problem([&](options& o) { o.key_file = bad; }).starts_with("tls.key_file: there is no unencrypted key in it: " + bad));
    EXPECT_TRUE(problem([&](options& o) { o.client_ca_file = c.key("good"); }).starts_with("tls.client_ca_file: there is no certificate in it"));
    EXPECT_TRUE(problem([&](options& o) { o.client_ca = "none"; }).starts_with("tls.client_ca: there is no certificate in it"));
    EXPECT_TRUE(problem([&](options& o) { o.certificate = "twice"; }).starts_with("tls.certificate: it is given twice"));
    tls_world w;
    options o;
    o.certificate = text_of(c.pem("chained"));
    o.key = secret(text_of(c.key("chained")));
    w.options.tls = o;
    w.echo();
    EXPECT_EQ(w.ask(w.client(), "/"), "200 GET / ") << "text instead of files, the intermediate with it";
}

}  // namespace http_server_tls_test
}  // namespace
}  // namespace reagent

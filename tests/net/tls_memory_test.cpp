#include "memory_transport.hpp"
#include "net_world.hpp"
#include "tls.hpp"
#include "tls_server.hpp"

#include <gtest/gtest.h>

namespace reagent {
namespace {
namespace tls_memory_test {

using namespace net_tests;
using net_detail::io_result;
using net_detail::io_status;
using net_detail::peeked;
using net_detail::transport;

struct two_ends {
    std::unique_ptr<transport> client, server;
};

tls_options trusting()
{
    tls_options o;
    o.system_store = false;
    o.ca_file = certificates::shared().pem("root");
    return o;
}

tls_server_options serving(const std::string& clients = {})
{
    tls_server_options o;
    o.certificate_file = certificates::shared().pem("chained");
    o.key_file = certificates::shared().key("chained");
    if (!clients.empty()) o.client_ca_file = certificates::shared().pem(clients);
    return o;
}

// Until both are done or one has failed.
void shake(two_ends& e)
{
    for (int i = 0; i < 100; ++i) {
        const io_status c = e.client->handshake().status, s = e.server->handshake().status;
        if (c == io_status::ok) e.client->peek();  // takes the tickets, for which a small pipe has no room
        if (c != io_status::would_block && (s != io_status::would_block || c != io_status::ok)) return;
    }
}

std::string sent_through(transport& from, transport& to, const std::string& text)
{
    std::string got;
    std::size_t sent = 0;
    char buffer[4096];
    for (int i = 0; i < 10'000 && got.size() < text.size(); ++i) {
        if (sent < text.size()) {
            const io_result w = from.try_write(std::string_view(text).substr(sent), {});
            if (w.status == io_status::ok) sent += w.bytes;
        }
        const io_result r = to.try_read(buffer, sizeof buffer);
        if (r.status == io_status::ok) got.append(buffer, r.bytes);
    }
    return got;
}

TEST(TlsMemory, NeedsNoSocketAndGoesThroughItself)
{
    asio::io_context context;
    for (const std::size_t room : {std::size_t{100}, std::size_t{64 * 1024}}) {
        auto [a, b] = memory_transport::pair(context.get_executor(), room);
        two_ends e{std::move(a), std::move(b)};
        net_detail::tls_context ours(trusting());
        net_detail::tls_server_context theirs(serving());
        const std::string text(100'000, 't');
        // TLS inside TLS, as to a host behind an https proxy.
        for (int layer = 0; layer < 2; ++layer) {
            e.client = ours.wrap(std::move(e.client), layer == 0 ? "127.0.0.1" : "api.test", 443, layer == 0);
            e.server = theirs.wrap(std::move(e.server));
            shake(e);
            ASSERT_EQ(e.client->handshake().status, io_status::ok) << e.client->failure_text();
            EXPECT_TRUE(sent_through(*e.client, *e.server, text) == text) << layer << " " << room;
            EXPECT_TRUE(sent_through(*e.server, *e.client, text) == text) << layer << " " << room;
            EXPECT_EQ(e.client->peek(), peeked::quiet);
            EXPECT_FALSE(e.client->stale());
        }
        for (const char* record : {"x", "y"}) ASSERT_EQ(e.server->try_write(record, {}).status, io_status::ok);
        char byte = 0;
        for (const char expected : {'x', 'y'}) {
            EXPECT_EQ(e.client->peek(), peeked::bytes) << "the second was read ahead";
            EXPECT_EQ(e.client->try_read(&byte, 1).status, io_status::ok);
            EXPECT_EQ(byte, expected);
        }
        e.server->farewell();
        EXPECT_TRUE(e.client->stale());
        EXPECT_EQ(e.client->try_read(&byte, 1).status, io_status::closed);
    }
}

TEST(TlsMemory, AServerMayAskForACertificate)
{
    asio::io_context context;
    net_detail::tls_server_context theirs(serving("root"));
    for (const bool known : {false, true}) {
        auto [a, b] = memory_transport::pair(context.get_executor());
        two_ends e{std::move(a), std::move(b)};
        tls_options o = trusting();
        if (known) o.certificate_file = certificates::shared().pem("client"), o.key_file = certificates::shared().key("client");
        net_detail::tls_context ours(o);
        e.client = ours.wrap(std::move(e.client), "127.0.0.1", 443, true);
        e.server = theirs.wrap(std::move(e.server));
        shake(e);
        EXPECT_EQ(e.server->handshake().status, known ? io_status::ok : io_status::failed) << e.server->failure_text();
    }
    tls_server_options wrong = serving();
    wrong.key_file = certificates::shared().key("good");
    EXPECT_THROW(net_detail::tls_server_context{wrong}, config_error);
}

TEST(TlsMemory, AnEndWithoutGoodbyeIsACut)
{
    asio::io_context context;
    auto [a, b] = memory_transport::pair(context.get_executor());
    two_ends e{std::move(a), std::move(b)};
    net_detail::tls_context ours(trusting());
    net_detail::tls_server_context theirs(serving());
    e.client = ours.wrap(std::move(e.client), "127.0.0.1", 443, true);
    e.server = theirs.wrap(std::move(e.server));
    shake(e);
    bool told = false;
    e.client->when_ready(net_detail::direction::read, [&](const error_code& ec) { told = !ec; });
    char byte = 0;
    while (e.client->try_read(&byte, 1).status == io_status::ok) {}
    e.server.reset();
    context.run();
    EXPECT_TRUE(told);
    EXPECT_EQ(e.client->try_read(&byte, 1).status, io_status::truncated);
}

}  // namespace tls_memory_test
}  // namespace
}  // namespace reagent

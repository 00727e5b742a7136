#include "net_world.hpp"

#include <boost/asio/ip/udp.hpp>
#include <gtest/gtest.h>

#include <map>
#include <set>

namespace reagent {
namespace {
namespace resolver_test {

using namespace net_tests;

std::vector<std::string> texts(const std::vector<ip_address>& addresses)
{
    std::vector<std::string> out;
    for (const ip_address& a : addresses) out.push_back(a.to_string());
    return out;
}

using list = std::vector<std::string>;

/// A name server on loopback: A records from a table, silence for some names, "no such name" for the rest.
class name_server {
public:
    explicit name_server(asio::io_context& context) : socket_(context, asio::ip::udp::endpoint(asio::ip::make_address("127.0.0.1"), 0)) { receive(); }
    std::map<std::string, std::vector<std::uint8_t>> addresses;  // the last byte of 10.0.0.x
    std::set<std::string> silent;
    int queries = 0;
    std::string at() const { return "127.0.0.1:" + std::to_string(socket_.local_endpoint().port()); }
    void stop() { socket_.close(); }

private:
    void receive()
    {
        socket_.async_receive_from(asio::buffer(packet_), from_, [this](const error_code& ec, std::size_t n) {
            if (ec) return;
            answer(n);
            receive();
        });
    }
    void answer(std::size_t n)
    {
        ++queries;
        std::string name;
        std::size_t at = 12;
        while (at < n && packet_[at] != 0) {
            const auto size = static_cast<std::size_t>(packet_[at]);
            if (!name.empty()) name += '.';
            name.append(packet_.data() + at + 1, size);
            at += size + 1;
        }
        if (silent.count(name)) return;
        const std::size_t question_end = at + 5;
        const bool a_record = packet_[at + 2] == 1;
        const auto known = addresses.find(name);
        std::string reply(packet_.data(), question_end);
        reply[2] = static_cast<char>(0x81);
        reply[3] = static_cast<char>(known == addresses.end() ? 0x83 : 0x80);
        reply[7] = static_cast<char>(known != addresses.end() && a_record ? known->second.size() : 0);
        for (std::size_t i = 8; i < 12; ++i) reply[i] = 0;
        if (known != addresses.end() && a_record)
            for (const std::uint8_t last : known->second)
                reply += std::string("\xc0\x0c\x00\x01\x00\x01\x00\x00\x00\x3c\x00\x04\x0a\x00\x00", 15) + static_cast<char>(last);
        socket_.send_to(asio::buffer(reply), from_);
    }
    asio::ip::udp::socket socket_;
    asio::ip::udp::endpoint from_;
    std::array<char, 1024> packet_{};
};

resolver_ptr resolver_for(asio::io_context& context, const name_server& server)
{
    dns_options o;
    o.servers = {server.at()};
    return make_system_resolver(context.get_executor(), o);
}

awaitable<std::string> look_up(resolver_ptr r, std::string host)
{
    const std::vector<ip_address> found = co_await r->resolve(std::move(host));
    std::string text;
    for (const ip_address& a : found) text += (text.empty() ? "" : " ") + a.to_string();
    co_return text;
}

TEST(Resolver, LiteralsAndLocalhostNeedNoServer)
{
    asio::io_context context;
    const resolver_ptr r = make_system_resolver(context.get_executor());
    EXPECT_EQ(texts(testing::complete(context, r->resolve("192.0.2.7"))), list({"192.0.2.7"}));
    EXPECT_EQ(texts(testing::complete(context, r->resolve("2001:db8::1"))), list({"2001:db8::1"}));
    EXPECT_EQ(texts(testing::complete(context, r->resolve("localhost"))), list({"127.0.0.1", "::1"}));
    EXPECT_EQ(texts(testing::complete(context, r->resolve("api.localhost"))), list({"127.0.0.1", "::1"}));
    EXPECT_THROW(testing::complete(context, r->resolve("")), error);
    EXPECT_THROW(testing::complete(context, r->resolve(std::string(300, 'a'))), error);
}

TEST(Resolver, AsksAServer)
{
    const std::size_t before = open_descriptors();
    {
        asio::io_context context;
        name_server server(context);
        server.addresses["api.test"] = {1, 2, 3};
        const resolver_ptr r = resolver_for(context, server);
        std::vector<std::string> found = texts(testing::complete(context, r->resolve("api.test")));
        std::sort(found.begin(), found.end());
        EXPECT_EQ(found, list({"10.0.0.1", "10.0.0.2", "10.0.0.3"}));
        EXPECT_GT(server.queries, 0);
        try {
            testing::complete(context, r->resolve("nobody.test"));
            FAIL();
        } catch (const error& e) {
            EXPECT_EQ(e.code(), errc::resolve_failed);
            EXPECT_NE(std::string(e.what()).find("nobody.test"), std::string::npos) << e.what();
        }
        server.stop();
        context.restart();
        context.run();  // nothing of a look-up is left
    }
    EXPECT_EQ(open_descriptors(), before);
}

TEST(Resolver, CancelledAtOnceAndLateAnswersAreHarmless)
{
    const std::size_t before = open_descriptors();
    {
        asio::io_context context;
        name_server server(context);
        server.silent.insert("slow.test");
        server.addresses["fast.test"] = {9};
        const resolver_ptr r = resolver_for(context, server);
        std::vector<std::unique_ptr<cancellable>> slow;
        for (int i = 0; i < 100; ++i) slow.push_back(std::make_unique<cancellable>(context, look_up(r, "slow.test")));
        testing::run_until_idle(context);
        // Slow look-ups hold nobody else up.
        EXPECT_EQ(testing::complete(context, look_up(r, "fast.test")), "10.0.0.9");
        for (const auto& s : slow) {
            EXPECT_FALSE(s->done());
            s->cancel();
        }
        server.stop();
        context.restart();
        context.run();
        for (const auto& s : slow) EXPECT_EQ(s->code(), asio::error::operation_aborted);
        EXPECT_EQ(open_descriptors(), before + 3);  // the context's own
    }
    EXPECT_EQ(open_descriptors(), before);
}

TEST(Resolver, AClientUsesIt)
{
    world w;
    name_server names(w.context);
    names.addresses["api.test"] = {};
    testing::byte_server server = w.server(testing::byte_script::answering(testing::http_response(200, "ok")));
    w.options.resolver = resolver_for(w.context, names);
    cancellable op(w.context, fetch(w.client(), http_request("GET", url::parse_or_throw("http://api.test:" + std::to_string(server.port()) + "/", "url"))));
    ASSERT_TRUE(w.until([&] { return op.done(); }));
    EXPECT_EQ(op.code(), errc::resolve_failed) << op.message();
    EXPECT_NE(op.message().find("api.test"), std::string::npos) << op.message();
}

}  // namespace resolver_test
}  // namespace
}  // namespace reagent

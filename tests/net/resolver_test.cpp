#include "name_cache.hpp"
#include "net_world.hpp"

#include <boost/asio/ip/udp.hpp>
#include <gtest/gtest.h>

#include <fstream>
#include <map>
#include <set>

#include <unistd.h>

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

/// A name server on loopback: records from a table, silence for some names or IPv6 alone, "no such name" for the rest.
class name_server {
public:
    explicit name_server(asio::io_context& context) : socket_(context, asio::ip::udp::endpoint(asio::ip::make_address("127.0.0.1"), 0)) { receive(); }
    std::map<std::string, std::vector<std::uint8_t>> addresses;   // the last byte of 10.0.0.x
    std::set<std::string> silent, silent_v6, silent_v4, with_v6;  // with_v6: 2001:db8::x as well
    std::uint32_t ttl = 60;
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
        if ((a_record ? silent_v4 : silent_v6).count(name)) return;
        const auto known = addresses.find(name);
        std::string reply(packet_.data(), question_end);
        reply[2] = static_cast<char>(0x81);
        reply[3] = static_cast<char>(known == addresses.end() ? 0x83 : 0x80);
        const bool some = known != addresses.end() && (a_record || with_v6.count(name));
        reply[7] = static_cast<char>(some ? known->second.size() : 0);
        for (std::size_t i = 8; i < 12; ++i) reply[i] = 0;
        if (some) {
            std::string life(4, '\0');
            for (std::size_t i = 0; i < 4; ++i) life[i] = static_cast<char>(ttl >> (24 - 8 * i));
            for (const std::uint8_t last : known->second) {
                reply += std::string("\xc0\x0c\x00", 3) + (a_record ? '\x01' : '\x1c') + std::string("\x00\x01", 2) + life;
                reply += a_record ? std::string("\x00\x04\x0a\x00\x00", 5) : std::string("\x00\x10\x20\x01\x0d\xb8", 6) + std::string(11, '\0');
                reply += static_cast<char>(last);
            }
        }
        socket_.send_to(asio::buffer(reply), from_);
    }
    asio::ip::udp::socket socket_;
    asio::ip::udp::endpoint from_;
    std::array<char, 1024> packet_{};
};

resolver_ptr resolver_for(asio::io_context& context, const name_server& server, clock_ptr clock = nullptr)
{
    dns_options o;
    o.servers = {server.at()};
    o.clock = std::move(clock);
    o.hosts_file.clear();
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

std::size_t threads()
{
    std::size_t n = 0;
    for ([[maybe_unused]] const auto& entry : std::filesystem::directory_iterator("/proc/self/task")) ++n;
    return n;
}

// A context with a name server, manual time, and a resolver that asks it.
struct names_world {
    asio::io_context context;
    std::shared_ptr<testing::manual_clock> clock = std::make_shared<testing::manual_clock>();
    name_server server{context};
    resolver_ptr names = resolver_for(context, server, clock);
    std::string ask(const std::string& host)
    {
        try {
            return testing::complete(context, look_up(names, host));
        } catch (const error& e) {
            return "failed";
        }
    }
};

TEST(Resolver, Case_E6_AHundredSlowNamesAtOnceWithoutAThread)
{
    const std::size_t before = open_descriptors(), running = threads();
    {
        names_world w;
        std::vector<std::unique_ptr<cancellable>> slow;
        for (int i = 0; i < 100; ++i) {
            w.server.silent.insert("slow" + std::to_string(i) + ".test");
            slow.push_back(std::make_unique<cancellable>(w.context, look_up(w.names, "slow" + std::to_string(i) + ".test")));
        }
        testing::run_until_idle(w.context);
        EXPECT_EQ(w.server.queries, 200);  // all are under way
        EXPECT_EQ(threads(), running);
        w.server.addresses["fast.test"] = {9};
        EXPECT_EQ(w.ask("fast.test"), "10.0.0.9");  // and hold nobody up
        for (const auto& s : slow) {
            EXPECT_FALSE(s->done());
            s->cancel();
        }
        w.context.restart();
        w.context.poll();  // at once: no time passes
        for (const auto& s : slow) EXPECT_EQ(s->code(), asio::error::operation_aborted);
    }
    EXPECT_EQ(open_descriptors(), before);
}

TEST(Resolver, Case_E6_OneLookUpForAllWhoAskAndItEndsWithTheLast)
{
    const std::size_t before = open_descriptors();
    {
        names_world w;
        w.server.silent.insert("api.test");
        std::vector<std::unique_ptr<cancellable>> askers;
        for (int i = 0; i < 50; ++i) askers.push_back(std::make_unique<cancellable>(w.context, look_up(w.names, "api.test")));
        testing::run_until_idle(w.context);
        EXPECT_EQ(w.server.queries, 2);  // one for each family
        const std::size_t asking = open_descriptors();
        for (std::size_t i = 1; i < 50; ++i) askers[i]->cancel();
        testing::run_until_idle(w.context);
        EXPECT_TRUE(askers[49]->done());
        EXPECT_FALSE(askers[0]->done());
        EXPECT_EQ(open_descriptors(), asking);
        askers[0]->cancel();
        testing::run_until_idle(w.context);
        EXPECT_LT(open_descriptors(), asking);
        // The next one asks anew.
        w.server.silent.clear();
        w.server.addresses["api.test"] = {4};
        std::vector<std::unique_ptr<cancellable>> again;
        for (int i = 0; i < 50; ++i) again.push_back(std::make_unique<cancellable>(w.context, look_up(w.names, "api.test")));
        testing::run_until(w.context, [&] { return again[49]->done(); });
        for (const auto& a : again) EXPECT_EQ(a->value(), "10.0.0.4");
        EXPECT_EQ(w.server.queries, 4);
    }
    EXPECT_EQ(open_descriptors(), before);
}

TEST(Resolver, RemembersAsLongAsTheAnswerSaysWithinBounds)
{
    using std::chrono::milliseconds;
    struct row {
        std::uint32_t ttl;
        milliseconds kept;
    };
    for (const row& r : {row{5, milliseconds(5000)}, row{0, milliseconds(1000)}, row{3600, milliseconds(60'000)}}) {
        names_world w;
        w.server.ttl = r.ttl;
        w.server.addresses["api.test"] = {1};
        EXPECT_EQ(w.ask("api.test"), "10.0.0.1");
        w.server.addresses["api.test"] = {2};
        w.clock->advance(r.kept - milliseconds(1));
        EXPECT_EQ(w.ask("api.test"), "10.0.0.1") << r.ttl;
        w.clock->advance(milliseconds(1));
        EXPECT_EQ(w.ask("api.test"), "10.0.0.2") << r.ttl;
        w.server.addresses["api.test"] = {3};
        w.names->forget("api.test");
        EXPECT_EQ(w.ask("api.test"), "10.0.0.3");
    }
}

TEST(Resolver, RemembersAbsenceShortlyAndFailuresNotAtAll)
{
    names_world w;
    EXPECT_EQ(w.ask("new.test"), "failed");
    w.server.addresses["new.test"] = {7};
    w.clock->advance(std::chrono::milliseconds(1999));
    EXPECT_EQ(w.ask("new.test"), "failed");
    w.clock->advance(std::chrono::milliseconds(1));
    EXPECT_EQ(w.ask("new.test"), "10.0.0.7");
    // A server that is gone says nothing about the name.
    dns_options o;
    o.servers = {w.server.at()};
    o.hosts_file.clear();
    o.timeout = std::chrono::milliseconds(1);
    o.tries = 1;
    o.clock = w.clock;
    w.names = make_system_resolver(w.context.get_executor(), o);
    w.server.silent.insert("late.test");
    EXPECT_EQ(w.ask("late.test"), "failed");
    w.server.silent.clear();
    w.server.addresses["late.test"] = {8};
    for (int i = 0; i < 100 && w.ask("late.test") == "failed"; ++i) {}
    EXPECT_EQ(w.ask("late.test"), "10.0.0.8");
}

TEST(Resolver, ADeadFamilyCostsFiftyMilliseconds)
{
    names_world w;
    w.server.addresses["api.test"] = {1};
    w.server.silent_v6.insert("api.test");
    cancellable op(w.context, look_up(w.names, "api.test"));
    testing::run_until_idle(w.context);
    EXPECT_FALSE(op.done());
    w.clock->advance(std::chrono::milliseconds(50));
    ASSERT_TRUE(testing::run_until(w.context, [&] { return op.done(); }));
    EXPECT_EQ(op.value(), "10.0.0.1");
    w.server.addresses["both.test"] = {2};
    w.server.with_v6.insert("both.test");
    EXPECT_EQ(w.ask("both.test"), "2001:db8::2 10.0.0.2");
}

TEST(Resolver, AnIpv6AnswerWaitsForTheIpv4One)
{
    names_world w;
    dns_options o;
    o.servers = {w.server.at()};
    o.hosts_file.clear();
    o.timeout = std::chrono::milliseconds(100);
    o.clock = w.clock;
    w.names = make_system_resolver(w.context.get_executor(), o);
    w.server.addresses["api.test"] = {2};
    w.server.with_v6.insert("api.test");
    w.server.silent_v4.insert("api.test");
    cancellable op(w.context, look_up(w.names, "api.test"));
    testing::run_until(w.context, [&] { return w.server.queries >= 2; });
    w.server.silent_v4.clear();  // the repetition is answered
    testing::run_until_idle(w.context);
    w.clock->advance(std::chrono::seconds(1));
    testing::run_until_idle(w.context);
    ASSERT_TRUE(testing::run_until(w.context, [&] { return op.done(); }));
    EXPECT_EQ(op.value(), "2001:db8::2 10.0.0.2");
}

TEST(Resolver, TheHostsFileComesFirst)
{
    names_world w;
    const std::string path = (std::filesystem::temp_directory_path() / ("reagent-hosts-" + std::to_string(::getpid()))).string();
    std::ofstream(path) << "# comment\n127.0.0.1\tlocalhost\n192.0.2.1  Build.test build # 10.9.9.9 build.test\n2001:db8::5 build.test\nnonsense "
                           "build.test\n\n192.0.2.1 build.test";
    dns_options o;
    o.servers = {w.server.at()};
    o.hosts_file = path;
    o.clock = w.clock;
    w.names = make_system_resolver(w.context.get_executor(), o);
    w.server.addresses["build.test"] = {1};
    EXPECT_EQ(w.ask("build.test"), "192.0.2.1 2001:db8::5");
    EXPECT_EQ(w.ask("build"), "192.0.2.1");
    EXPECT_EQ(w.server.queries, 0);
    std::filesystem::remove(path);
    w.clock->advance(std::chrono::seconds(1));
    EXPECT_EQ(w.ask("build.test"), "10.0.0.1");
}

TEST(NameCache, DropsWhatWasUsedLongestAgo)
{
    net_detail::name_cache cache(2);
    const steady_time now{};
    const ip_address a = ip_address::v4(1);
    cache.keep("one", {a}, std::chrono::seconds(60), now);
    cache.keep("two", {a}, std::chrono::seconds(60), now);
    EXPECT_NE(cache.find("one", now), nullptr);
    cache.keep("three", {a}, std::chrono::seconds(60), now);
    EXPECT_EQ(cache.find("two", now), nullptr);
    EXPECT_NE(cache.find("one", now), nullptr);
    EXPECT_EQ(cache.size(), 2u);
    cache.keep_absent("four", "no", now);
    ASSERT_NE(cache.find("four", now), nullptr);
    EXPECT_EQ(cache.find("four", now)->trouble, "no");
    // The dead make room before the living.
    cache.keep("five", {a}, std::chrono::seconds(60), now + std::chrono::seconds(3));
    EXPECT_EQ(cache.size(), 2u);
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

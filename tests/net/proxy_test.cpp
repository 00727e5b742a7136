#include "net_world.hpp"

#include <gtest/gtest.h>

#include <map>

namespace reagent {
namespace {
namespace proxy_test {

using namespace net_tests;
using testing::byte_script;
using testing::http_response;

url to(std::string_view text)
{
    return url::parse_or_throw(text, "url");
}

TEST(Proxy, Case_E8_WhatNoProxyMeans)
{
    struct row {
        const char* list;
        const char* target;
        bool straight;
    };
    const row rows[] = {
        {"", "https://api.test/", false},
        {"*", "https://api.test/", true},
        {"api.test", "https://api.test/", true},
        {"API.Test", "https://api.test/", true},
        {"api.test", "https://eu.api.test/", true},
        {".api.test", "https://eu.api.test/", true},
        {".api.test", "https://api.test/", true},
        {"*.api.test", "https://eu.api.test/", true},
        {"api.test", "https://myapi.test/", false},  // a label boundary
        {"test", "https://api.test/", true},
        {"api.test.", "https://api.test/", true},
        {"api.test", "https://api.test.evil/", false},
        {"a.test, b.test", "https://b.test/", true},
        {"a.test b.test", "https://b.test/", true},
        {" ,,a.test,", "https://a.test/", true},
        {"api.test:8443", "https://api.test:8443/", true},
        {"api.test:8443", "https://api.test/", false},
        {"api.test:443", "https://api.test/", true},
        {"api.test:x", "https://api.test/", false},
        {"api.test:0", "https://api.test/", false},
        {"api.test:65979", "https://api.test/", false},
        {"[2001:db8::7]:0", "https://[2001:db8::7]/", false},
        {"api.test", "https://api.test./", true},
        {"2.3", "https://10.1.2.3/", false},  // no domain
        {"10.0.0.0/8:8080", "http://10.1.2.3:8080/", true},
        {"[fd00::/8]:443", "https://[fd00::7]/", true},
        {"::ffff:10.1.2.3", "https://10.1.2.3/", false},
        {"10.1.2.3", "https://10.1.2.3/", true},
        {"10.1.2.3", "https://10.1.2.30/", false},
        {"10.1.2.3:8080", "http://10.1.2.3:8080/", true},
        {"10.0.0.0/8", "https://10.255.0.1/", true},
        {"10.0.0.0/8", "https://11.0.0.1/", false},
        {"10.0.0.0/9", "https://10.128.0.1/", false},
        {"0.0.0.0/0", "https://11.0.0.1/", true},
        {"10.0.0.1/33", "https://10.0.0.1/", false},
        {"10.0.0.0/8", "https://ten.test/", false},  // never looked up
        {"2001:db8::/32", "https://[2001:db8::7]/", true},
        {"2001:db8::7", "https://[2001:db8::7]/", true},
        {"[2001:db8::7]:443", "https://[2001:db8::7]/", true},
        {"[2001:db8::7]:444", "https://[2001:db8::7]/", false},
        {"[2001:db8::7", "https://[2001:db8::7]/", false},
        {"10.0.0.0/8", "https://[2001:db8::7]/", false},
        {"", "https://127.0.0.1/", true},  // the loopback never passes a proxy
        {"", "http://localhost:8080/", true},
        {"", "https://[::1]/", true},
        {"", "http://localhost./", true},
        {"", "http://app.localhost/", true},
        {"", "http://notlocalhost/", false},
        {"", "http://localhost.test/", false},
    };
    for (const row& r : rows) {
        proxy_rules rules;
        rules.all("http://proxy.test:3128").bypass(r.list);
        EXPECT_EQ(rules.route_for(to(r.target)) == nullptr, r.straight) << r.list << " " << r.target;
    }
}

TEST(Proxy, Case_E8_TheEnvironment)
{
    struct row {
        std::map<std::string, const char*> set;
        std::string http, https;
    };
    const std::string none;
    const std::vector<row> rows = {
        {{}, none, none},
        {{{"HTTPS_PROXY", "http://s.test:1"}}, none, "http://s.test:1"},
        {{{"HTTP_PROXY", "http://h.test:2"}}, "http://h.test:2", none},
        {{{"ALL_PROXY", "a.test:3"}}, "http://a.test:3", "http://a.test:3"},
        {{{"ALL_PROXY", "a.test:3"}, {"https_proxy", "https://s.test"}}, "http://a.test:3", "https://s.test"},
        {{{"https_proxy", "lower.test:4"}, {"HTTPS_PROXY", "upper.test:4"}}, none, "http://lower.test:4"},
        {{{"https_proxy", ""}, {"HTTPS_PROXY", "upper.test:4"}}, none, "http://upper.test:4"},
        {{{"HTTP_PROXY", "h.test:5"}, {"REQUEST_METHOD", "GET"}}, none, none},
        {{{"http_proxy", "h.test:5"}, {"REQUEST_METHOD", "GET"}}, "http://h.test:5", none},
        {{{"ALL_PROXY", "a.test:6"}, {"NO_PROXY", "api.test"}}, none, none},
        {{{"ALL_PROXY", "a.test:6"}, {"no_proxy", "other.test"}, {"NO_PROXY", "api.test"}}, "http://a.test:6", "http://a.test:6"},
    };
    for (const row& r : rows) {
        const proxy_rules rules = proxy_rules::from_environment([&](const char* name) {
            const auto at = r.set.find(name);
            return at == r.set.end() ? nullptr : at->second;
        });
        const auto text = [&](const char* target) {
            const http_route* route = rules.route_for(to(target));
            return route ? route->at().origin() : std::string();
        };
        EXPECT_EQ(text("http://api.test/"), r.http) << r.set.size();
        EXPECT_EQ(text("https://api.test/"), r.https) << r.set.size();
    }
    for (const auto& [value, words] : {std::pair{"socks5://me:hunter22@s.test", "SOCKS"}, std::pair{"http://me:hunter22@", "http://proxy.example:3128"}}) {
        try {
            proxy_rules::from_environment([&](const char* name) { return std::string_view(name) == "https_proxy" ? value : nullptr; });
            FAIL() << value;
        } catch (const config_error& e) {
            EXPECT_TRUE(e.message().starts_with("https_proxy: ")) << e.message();
            EXPECT_NE(e.message().find(words), std::string::npos) << e.message();
            EXPECT_EQ(e.message().find("hunter22"), std::string::npos) << e.message();
        }
    }
}

TEST(Proxy, CredentialsAreDecodedAndMakeRoutesDiffer)
{
    const http_route r = http_route::proxy(to("http://me:p%40ss@proxy.test:3128/"));
    EXPECT_EQ(r.authorization().reveal(), "Basic bWU6cEBzcw==");
    EXPECT_FALSE(r == http_route::proxy(to("http://proxy.test:3128/")));
    EXPECT_TRUE(r == http_route::proxy(to("http://me:p%40ss@proxy.test:3128/")));
    EXPECT_TRUE(http_route().direct());
}

std::string proxy_at(const testing::byte_server& s, const std::string& credentials = {})
{
    return "http://" + credentials + "127.0.0.1:" + std::to_string(s.port());
}

TEST(Proxy, Case_E8_PlainRequestsInAbsoluteFormShareTheirConnections)
{
    world w;
    testing::byte_server proxy = w.server(byte_script::answering(http_response(200, "ok")));
    w.options.proxies.http(proxy_at(proxy, "me:secret-word@")).bypass("straight.test");
    http_client client = w.client();
    for (const std::string host : {"http://one.test", "http://two.test:8080"})
        EXPECT_EQ(testing::complete(w.context, fetch(client, http_request("GET", to(host + "/x?y=1")))), "200 ok");
    EXPECT_EQ(client.stats().dialed, 1u);
    const testing::byte_log log = proxy.log();
    EXPECT_TRUE(log.request(0).head.starts_with("GET http://one.test/x?y=1 HTTP/1.1\r\nHost: one.test\r\n")) << log.request(0).head;
    EXPECT_TRUE(log.request(1).head.starts_with("GET http://two.test:8080/x?y=1 HTTP/1.1\r\nHost: two.test:8080\r\n")) << log.request(1).head;
    EXPECT_EQ(log.request(0).header("proxy-authorization"), "Basic bWU6c2VjcmV0LXdvcmQ=");
    // A request says otherwise, and the same proxy without credentials is another one.
    const http_route straight, plain = http_route::proxy(to(proxy_at(proxy)));
    http_request r = world::get(proxy);
    r.route = &straight;
    EXPECT_EQ(testing::complete(w.context, fetch(client, r)), "200 ok");
    EXPECT_TRUE(proxy.log().request(2).head.starts_with("GET / HTTP/1.1\r\n"));
    EXPECT_EQ(proxy.log().request(2).header("proxy-authorization"), "");
    r.route = &plain;
    EXPECT_EQ(testing::complete(w.context, fetch(client, r)), "200 ok");
    EXPECT_EQ(client.stats().dialed, 3u);
    http_request forged = world::get(proxy);
    forged.header_lines = "Proxy-Authorization: Basic eA==\r\n";
    EXPECT_THROW(testing::complete(w.context, fetch(client, forged)), validation_error);
}

TEST(Proxy, Case_E8_EveryRefusalOfATunnelIsTold)
{
    struct row {
        std::string answer;
        const char* words;
        bool retryable;
    };
    const row rows[] = {
        {"HTTP/1.1 407 Proxy Authentication Required\r\nProxy-Authenticate: Basic realm=\"x\"\r\nContent-Length: 0\r\n\r\n",
         "does not take the credentials (407)", false},
        {"HTTP/1.1 403 Forbidden\r\nContent-Length: 4\r\n\r\nnope", "answered CONNECT with status 403", false},
        {"HTTP/1.1 503 Busy\r\n\r\n", "answered CONNECT with status 503", true},
        {"HTTP/1.1 200 OK\r\n\r\nhello", "sent bytes behind its answer to CONNECT", false},
        {"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello", "sent bytes behind its answer to CONNECT", false},
        {"SSH-2.0-OpenSSH\r\n\r\n", "is not HTTP", false},
        {"", "broke the connection off", true},
        {"HTTP/1.1 200 OK\r\nX: y", "broke the connection off", true},
        {"HTTP/1.1 200 OK\r\nX: " + std::string(20'000, 'y') + "\r\n\r\n", "is not HTTP", false},
    };
    for (const row& r : rows) {
        world w;
        testing::byte_server proxy = w.server(byte_script().request().send(r.answer).close());
        w.options.proxies.https(proxy_at(proxy, "me:secret-word@"));
        http_client client = w.client();
        bool left = true;
        try {
            testing::complete(w.context, client.open(http_request("GET", to("https://api.test/")), &left));
            FAIL() << r.words;
        } catch (const transport_error& e) {
            EXPECT_EQ(e.code(), errc::proxy_refused) << e.what();
            EXPECT_EQ(e.retryable(), r.retryable) << e.what();
            EXPECT_NE(e.message().find(r.words), std::string::npos) << e.what();
            EXPECT_NE(e.message().find(proxy_at(proxy)), std::string::npos) << e.what();
            EXPECT_EQ(e.message().find("secret-word"), std::string::npos) << e.what();
        }
        EXPECT_FALSE(left);
        EXPECT_EQ(client.stats().open, 0u);
        EXPECT_TRUE(proxy.log().request(0).head.starts_with("CONNECT api.test:443 HTTP/1.1\r\nHost: api.test:443\r\nProxy-Authorization: Basic "))
            << proxy.log().request(0).head;
    }
}

TEST(Proxy, Case_E8_TheTunnelNamesItsHostAndTheProxyMayBeAnywhere)
{
    world w;
    testing::byte_server proxy = w.server(byte_script().request().send("HTTP/1.1 403 Forbidden\r\n\r\n").close());
    w.options.proxies.https(proxy_at(proxy));
    w.options.allow_address = [](const ip_address&) { return false; };  // of hosts reached straight
    for (const char* target : {"https://[2001:db8::7]/", "https://api.test:8443/"})
        EXPECT_THROW(testing::complete(w.context, w.client().open(http_request("GET", to(target)))), transport_error);
    EXPECT_TRUE(proxy.log().request(0).head.starts_with("CONNECT [2001:db8::7]:443 HTTP/1.1\r\nHost: [2001:db8::7]:443\r\n")) << proxy.log().request(0).head;
    EXPECT_TRUE(proxy.log().request(1).head.starts_with("CONNECT api.test:8443 HTTP/1.1\r\nHost: api.test:8443\r\n")) << proxy.log().request(1).head;
}

TEST(Proxy, RoutesPastTheirLimitAreForgottenAndTheirConnectionsClosed)
{
    world w;
    w.options.max_routes = 2;
    const byte_script answers = byte_script::answering(http_response(200, "ok"));
    const testing::byte_server proxies[] = {w.server(answers), w.server(answers), w.server(answers)};
    std::vector<http_route> ways;
    for (const testing::byte_server& proxy : proxies) ways.push_back(http_route::proxy(to(proxy_at(proxy))));
    http_client client = w.client();
    const auto ask = [&](std::size_t by) {
        http_request r("GET", to("http://one.test/"));
        r.route = &ways[by];
        EXPECT_EQ(testing::complete(w.context, fetch(client, r)), "200 ok");
        return client.stats().dialed;
    };
    EXPECT_EQ(ask(0), 1u);
    EXPECT_EQ(ask(1), 2u);
    EXPECT_EQ(ask(0), 2u);
    EXPECT_EQ(ask(2), 3u) << "in the place of the second";
    EXPECT_EQ(client.stats().idle, 2u);
    EXPECT_EQ(ask(0), 3u);
    EXPECT_EQ(ask(1), 4u) << "in the place of the third";
    EXPECT_EQ(client.stats().idle, 2u);
    EXPECT_EQ(client.stats().open, 2u);
}

TEST(Proxy, TheTunnelIsPartOfTheConnectLimitAndEndsWhenCancelled)
{
    for (const bool cancel : {false, true}) {
        world w;
        testing::byte_server proxy = w.server(byte_script().request().stall());
        w.options.proxies.https(proxy_at(proxy));
        http_client client = w.client();
        cancellable op(w.context, fetch(client, http_request("GET", to("https://api.test/"))));
        w.idle();
        EXPECT_EQ(proxy.log().requests(), 1u);
        if (cancel) op.cancel();
        else w.clock->advance(std::chrono::seconds(10));
        w.idle();
        ASSERT_TRUE(op.done());
        if (cancel) EXPECT_EQ(op.code(), asio::error::operation_aborted);
        else EXPECT_EQ(op.code(), errc::connect_timeout);
        EXPECT_EQ(client.stats().open, 0u);
    }
}

}  // namespace proxy_test
}  // namespace
}  // namespace reagent

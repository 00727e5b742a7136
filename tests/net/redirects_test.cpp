#include "net_world.hpp"

#include <reagent/net/redirects.hpp>

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace reagent {
namespace {
namespace redirects_test {

using net_tests::world;
using testing::byte_script;

http_request request(std::string method, std::string_view to, std::string_view lines = {}, std::string_view body = {})
{
    http_request r(std::move(method), url::parse_or_throw(to, "url"));
    r.header_lines = lines;
    r.body = body;
    return r;
}

http_head answer(unsigned status, std::string_view location)
{
    http_head h;
    h.status = status;
    if (!location.empty()) h.fields.add("Location", location);
    return h;
}

std::string shown(const http_request& r)
{
    std::string text = r.method + " " + r.target.text() + " [" + std::string(r.header_lines) + "] " + std::string(r.body);
    for (std::size_t at = 0; (at = text.find("\r\n", at)) != std::string::npos;) text.replace(at, 2, ";");
    return text;
}

std::string after(http_request first, unsigned status, std::string_view location, redirect_policy policy = {})
{
    redirect_trail trail(std::move(first), std::move(policy));
    try {
        const bool on = trail.follow(answer(status, location));
        return on ? shown(trail.request()) : "answer";
    } catch (const error& e) {
        EXPECT_EQ(e.code(), errc::redirect_refused);
        return e.what();
    }
}

constexpr std::string_view lines = "Accept: a\r\nAuthorization: Bearer k\r\nx-api-key: k\r\nContent-Type: t\r\nContent-Encoding: gzip\r\nUser-Agent: u\r\n";

TEST(Redirects, MethodBodyAndLines)
{
    const auto post = [] { return request("POST", "http://a.test/p?q=1", lines, "body"); };
    const std::string without_body = "[Accept: a;Authorization: Bearer k;x-api-key: k;User-Agent: u;] ";
    const std::string all = "[Accept: a;Authorization: Bearer k;x-api-key: k;Content-Type: t;Content-Encoding: gzip;User-Agent: u;] ";
    for (const unsigned s : {301u, 302u, 303u}) EXPECT_EQ(after(post(), s, "/n"), "GET http://a.test/n " + without_body) << s;
    for (const unsigned s : {307u, 308u}) EXPECT_EQ(after(post(), s, "/n"), "POST http://a.test/n " + all + "body") << s;
    EXPECT_EQ(after(request("PUT", "http://a.test/", lines, "b"), 302, "/n"), "PUT http://a.test/n " + all + "b");
    EXPECT_EQ(after(request("PUT", "http://a.test/", lines, "b"), 303, "/n"), "GET http://a.test/n " + without_body);
    EXPECT_EQ(after(request("HEAD", "http://a.test/"), 303, "/n"), "HEAD http://a.test/n [] ");
    EXPECT_EQ(after(request("GET", "http://a.test/", lines, "b"), 303, "/n"), "GET http://a.test/n " + without_body);
    for (const unsigned s : {200u, 300u, 304u, 305u, 404u}) EXPECT_EQ(after(post(), s, "/n"), "answer") << s;
    EXPECT_EQ(after(post(), 302, ""), "answer");
}

TEST(Redirects, AnotherOriginGetsNoCredentials)
{
    for (const char* to : {"http://b.test/", "http://a.test:81/", "https://a.test/", "//b.test/", "/\\b.test/", "/\t/b.test/"}) {
        const std::string seen = after(request("POST", "http://a.test/", lines, "body"), 307, to);
        EXPECT_EQ(seen.substr(seen.find('[')), "[Accept: a;Content-Type: t;Content-Encoding: gzip;User-Agent: u;] body") << to;
    }
    EXPECT_EQ(after(request("PUT", "http://a.test/", "Content-Encoding: gzip\r\nContent-MD5: m\r\nCookie: c\r\n", "body"), 307, "http://me:pass@b.test/"),
              "PUT http://b.test/ [Content-Encoding: gzip;] body");
    EXPECT_EQ(after(request("GET", "http://a.test:443/", lines), 302, "https://a.test/"), "GET https://a.test/ [Accept: a;User-Agent: u;] ")
        << "the scheme alone";
    EXPECT_EQ(after(request("GET", "http://a.test:80/", lines), 302, "http://A.test/x"),
              "GET http://a.test/x [Accept: a;Authorization: Bearer k;x-api-key: k;User-Agent: u;] ");
}

TEST(Redirects, Refused)
{
    EXPECT_EQ(after(request("GET", "https://a.test/x?key=1"), 302, "http://a.test/"),
              "[http] GET https://a.test/x?…: redirect refused: it leads from https to http, to http://a.test/");
    redirect_policy same;
    same.same_origin = true;
    EXPECT_EQ(after(request("GET", "http://a.test/"), 302, "http://b.test/", same),
              "[http] GET http://a.test/: redirect refused: it leads to another origin, http://b.test");
    EXPECT_EQ(after(request("GET", "http://a.test/"), 302, "/b", same), "GET http://a.test/b [] ");
    EXPECT_EQ(after(request("GET", "http://a.test/"), 302, "ftp://b.test/"),
              "[http] GET http://a.test/: redirect refused: Location is no http or https URL: ftp://b.test/");
    redirect_policy none;
    none.max = 0;
    EXPECT_EQ(after(request("GET", "http://a.test/"), 302, "/b", none), "[http] GET http://a.test/: redirect refused: there were 0 already");
    redirect_policy guarded;
    guarded.check = [](const url& u) {
        if (u.host() == "169.254.169.254") throw transport_error(errc::redirect_refused, "guarded", false);
    };
    EXPECT_EQ(after(request("GET", "http://a.test/"), 302, "http://169.254.169.254/", guarded), "guarded");
}

TEST(Redirects, ALoopEnds)
{
    redirect_trail trail(request("GET", "http://a.test/"), redirect_policy());
    for (int i = 0; i < 5; ++i) EXPECT_TRUE(trail.follow(answer(302, "/"))) << i;
    EXPECT_THROW(trail.follow(answer(302, "/")), transport_error);
    EXPECT_FALSE(trail.follow(answer(200, "/")));
}

TEST(Redirects, CredentialsDoNotComeBackWithTheOrigin)
{
    redirect_trail trail(request("GET", "http://a.test/", lines), redirect_policy());
    EXPECT_TRUE(trail.follow(answer(302, "http://b.test/")));
    EXPECT_TRUE(trail.follow(answer(302, "http://a.test/")));
    EXPECT_EQ(shown(trail.request()), "GET http://a.test/ [Accept: a;User-Agent: u;] ");
}

TEST(Redirects, ResolvedAgainstTheRequest)
{
    struct row {
        const char* reference;
        const char* expected;
    };
    const url base = url::parse_or_throw("http://a.test:8080/d/e?x=1", "url");
    for (const row& r : {row{"f", "http://a.test:8080/d/f"}, row{"../f", "http://a.test:8080/f"}, row{"./f?y", "http://a.test:8080/d/f?y"},
                         row{"?y", "http://a.test:8080/d/e?y"}, row{"#z", "http://a.test:8080/d/e?x=1"}, row{"", "http://a.test:8080/d/e?x=1"},
                         row{"/f#z", "http://a.test:8080/f"}, row{"//b.test/f", "http://b.test/f"}, row{"HTTPS://B.test", "https://b.test/"},
                         row{" /f ", "http://a.test:8080/f"}, row{"\\f", "http://a.test:8080/f"}, row{"a:b", ""}, row{"http:f", ""}, row{"mailto:a@b", ""},
                         row{"f?u=http://c", "http://a.test:8080/d/f?u=http://c"}, row{"//", ""}, row{"http://[::1", ""}}) {
        const auto got = base.resolve(r.reference);
        EXPECT_EQ(got ? got->text() : "", r.expected) << r.reference;
    }
}

awaitable<std::string> fetch_following(http_client client, http_request r)
{
    http_exchange x = co_await open_following(client, std::move(r));
    const std::string body = co_await net_tests::rest_of(x);
    co_return std::to_string(x.head().status) + " " + body;
}

TEST(Redirects, FollowedOverSockets)
{
    world w;
    auto target = w.server(byte_script().request().send(testing::http_response(200, "there")));
    const std::string moved = "HTTP/1.1 307 Temporary Redirect\r\nLocation: " + target.origin() + "/b\r\nContent-Length: 4\r\n\r\ngone";
    auto first = w.server(byte_script().request().send(moved));
    http_client client = w.client();
    http_request r("POST", url::parse_or_throw(first.origin() + "/a", "url"));
    r.header_lines = "Authorization: Bearer k\r\nAccept: x\r\n";
    r.body = "hello";
    EXPECT_EQ(testing::complete(w.context, fetch_following(client, r)), "200 there");
    EXPECT_EQ(client.stats().exchanges, 2u);
    EXPECT_EQ(target.log().request().method(), "POST");
    EXPECT_EQ(target.log().request().body, "hello");
    EXPECT_EQ(target.log().request().header("accept"), "x");
    EXPECT_EQ(target.log().request().header("authorization"), "");
    auto same = w.server(byte_script()
                             .request()
                             .send("HTTP/1.1 302 Found\r\nLocation: /b\r\nContent-Length: 4\r\n\r\ngone")
                             .request()
                             .send(testing::http_response(200, "there")));
    const auto dialed = client.stats().dialed;
    EXPECT_EQ(testing::complete(w.context, fetch_following(client, world::get(same))), "200 there");
    EXPECT_EQ(client.stats().dialed, dialed + 1) << "the connection goes on";
    // One read takes 64 KiB, so the end of this body waits in the socket when the redirect is followed.
    const std::string long_body(64 * 1024, 'x');
    auto wordy = w.server(byte_script()
                              .request()
                              .send("HTTP/1.1 302 Found\r\nLocation: /b\r\nContent-Length: 65536\r\n\r\n" + long_body)
                              .request()
                              .send(testing::http_response(200, "there")));
    EXPECT_EQ(testing::complete(w.context, fetch_following(client, world::get(wordy))), "200 there");
    EXPECT_EQ(client.stats().dialed, dialed + 2) << "what is left of it is read";
}

}  // namespace redirects_test
}  // namespace
}  // namespace reagent

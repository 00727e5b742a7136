#include "request_writer.hpp"

#include <gtest/gtest.h>

#include <string>

namespace reagent {
namespace {
namespace request_writer_test {

std::string head_of(const http_request& r)
{
    std::string out;
    net_detail::write_request_head(out, r);
    return out;
}

http_request request(std::string method, std::string_view where)
{
    return http_request(std::move(method), url::parse_or_throw(where, "url"));
}

std::string refusal(const http_request& r)
{
    try {
        std::string checked;
        net_detail::check_request(r, checked);
    } catch (const validation_error& e) {
        return e.what();
    }
    return {};
}

TEST(RequestWriter, WritesAPost)
{
    http_request r = request("POST", "http://example.com/v1/chat?x=1");
    r.header_lines = "Authorization: Bearer k\r\nContent-Type: application/json\r\n";
    r.body = "{\"a\":1}";
    EXPECT_EQ(head_of(r),
              "POST /v1/chat?x=1 HTTP/1.1\r\nHost: example.com\r\nAuthorization: Bearer k\r\nContent-Type: application/json\r\n"
              "Accept-Encoding: identity\r\nContent-Length: 7\r\n\r\n");
}

TEST(RequestWriter, HostAndLength)
{
    EXPECT_EQ(head_of(request("GET", "http://example.com:8080")), "GET / HTTP/1.1\r\nHost: example.com:8080\r\nAccept-Encoding: identity\r\n\r\n");
    EXPECT_EQ(head_of(request("GET", "https://[::1]:8443/a")), "GET /a HTTP/1.1\r\nHost: [::1]:8443\r\nAccept-Encoding: identity\r\n\r\n");
    EXPECT_EQ(head_of(request("GET", "https://example.com:443/")), "GET / HTTP/1.1\r\nHost: example.com\r\nAccept-Encoding: identity\r\n\r\n");
    EXPECT_NE(head_of(request("POST", "http://a/")).find("Content-Length: 0\r\n"), std::string::npos);
    EXPECT_EQ(head_of(request("DELETE", "http://a/")).find("Content-Length"), std::string::npos);
}

TEST(RequestWriter, CallersCodingWins)
{
    http_request r = request("GET", "http://a/");
    r.header_lines = "accept-encoding: gzip\r\n";
    EXPECT_EQ(head_of(r), "GET / HTTP/1.1\r\nHost: a\r\naccept-encoding: gzip\r\n\r\n");
}

TEST(RequestWriter, RefusesWhatWouldStartALineOrContradictTheFraming)
{
    struct row {
        const char* what;
        std::string lines;
    };
    for (const row& r :
         {row{"no line end", "X: 1"}, row{"bare LF", "X: 1\nY: 2\r\n"}, row{"bare CR", "X: 1\rY: 2\r\n"}, row{"NUL", std::string("X: a\0b\r\n", 8)},
          row{"DEL", "X: \x7f\r\n"}, row{"empty line", "X: 1\r\n\r\n"}, row{"no colon", "X\r\n"}, row{"empty name", ": 1\r\n"},
          row{"space in the name", "X Y: 1\r\n"}, row{"folded", "X: 1\r\n Y: 2\r\n"}, row{"host", "hOst: x\r\n"}, row{"length", "Content-Length: 3\r\n"},
          row{"transfer coding", "Transfer-Encoding: chunked\r\n"}, row{"connection", "Connection: close\r\n"}, row{"upgrade", "Upgrade: h2c\r\n"}}) {
        http_request q = request("POST", "http://a/");
        q.header_lines = r.lines;
        EXPECT_NE(refusal(q), "") << r.what;
    }
    http_request tab = request("POST", "http://a/");
    tab.header_lines = "X: a\tb \xc3\xa9\r\n";
    EXPECT_EQ(refusal(tab), "");
}

TEST(RequestWriter, ARefusalDoesNotRepeatTheValue)
{
    http_request q = request("POST", "http://a/");
    q.header_lines = "Authorization: Bearer sk-secret\nX: 1\r\n";
    const std::string text = refusal(q);
    EXPECT_NE(text.find("Authorization"), std::string::npos);
    EXPECT_EQ(text.find("sk-secret"), std::string::npos);
}

TEST(RequestWriter, RefusesBadMethods)
{
    for (const char* method : {"", "GET /", "GET\r\n", "CONNECT", "G\xc3\xa9T"}) EXPECT_NE(refusal(request(method, "http://a/")), "") << method;
    EXPECT_NE(refusal(http_request("GET", url())), "");
}

}  // namespace request_writer_test
}  // namespace
}  // namespace reagent

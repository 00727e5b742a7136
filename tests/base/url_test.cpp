#include <reagent/base/address.hpp>
#include <reagent/base/error.hpp>
#include <reagent/base/url.hpp>

#include <gtest/gtest.h>

namespace {
namespace url_test {
using reagent::errc;
using reagent::ip_address;
using reagent::url;
using namespace std::string_literals;

TEST(Url, ReadsByTheWhatwgRules)
{
    struct row {
        std::string source;
        std::string text;  // empty: refused
    };
    const row rows[] = {
        {"http://example.com", "http://example.com/"},
        {"HTTPS://EXAMPLE.com:443/A?b#c", "https://example.com/A?b"},
        {"https://example.com:80/", "https://example.com:80/"},
        {"http://example.com:/", "http://example.com/"},
        {"http://example.com:00080/", "http://example.com/"},
        {"http://example.com:65535", "http://example.com:65535/"},
        {"http://example.com:65536", ""},
        {"http://example.com:99999999999999999999", ""},
        {"http://example.com:8a", ""},
        {"http://example.com:-1", ""},
        // IPv4 in every spelling
        {"http://127.0.0.1", "http://127.0.0.1/"},
        {"http://0x7f.1", "http://127.0.0.1/"},
        {"http://017700000001", "http://127.0.0.1/"},
        {"http://2130706433/", "http://127.0.0.1/"},
        {"http://0177.0.0.1/", "http://127.0.0.1/"},
        {"http://127.1/", "http://127.0.0.1/"},
        {"http://0x7F000001", "http://127.0.0.1/"},
        {"http://1.2.3.4./", "http://1.2.3.4/"},
        {"http://0x.0x.0", "http://0.0.0.0/"},
        {"http://192.168.257", "http://192.168.1.1/"},
        {"http://4294967295", "http://255.255.255.255/"},
        {"http://%30x7f.1", "http://127.0.0.1/"},
        {"http://4294967296", ""},
        {"http://256.1.1.1", ""},
        {"http://1.2.3.4.5", ""},
        {"http://1.2.3.08", ""},
        {"http://foo.0x4", ""},
        {"http://a.09", ""},
        {"http://1..2", ""},
        {"http://0xffffffffff", ""},
        {"http://1.2.3.x", "http://1.2.3.x/"},
        {"http://09.com", "http://09.com/"},
        {"http://0xg", "http://0xg/"},
        // IPv6
        {"http://[::1]:8080/x", "http://[::1]:8080/x"},
        {"http://[::ffff:127.0.0.1]", "http://[::ffff:7f00:1]/"},
        {"http://[2001:DB8:0:0:1:0:0:1]", "http://[2001:db8::1:0:0:1]/"},
        {"http://[::]", "http://[::]/"},
        {"http://[fe80::1%25eth0]", ""},
        {"http://[::1", ""},
        {"http://::1/", ""},
        {"http://[::1]x", ""},
        {"http://[127.0.0.1]", ""},
        {"http://[:::1]", ""},
        {"http://[]", ""},
        {"http://[::g]", ""},
        {"http://[1:2:3:4:5:6:7:8:9]", ""},
        // names
        {"http://B\xC3\xBC"
         "cher.DE/",
         "http://xn--bcher-kva.de/"},
        {"http://xn--bcher-kva.de", "http://xn--bcher-kva.de/"},
        {"http://XN--BCHER-KVA.de", "http://xn--bcher-kva.de/"},
        {"http://fa\xC3\x9F.de", "http://xn--fa-hia.de/"},
        {"http://\xEF\xBC\x91\xEF\xBC\x92\xEF\xBC\x97.0.0.1", "http://127.0.0.1/"},
        {"http://ex\xE3\x80\x82"
         "am",
         "http://ex.am/"},
        {"http://b%C3%BCcher.de", "http://xn--bcher-kva.de/"},
        {"http://ex%41mple.com", "http://example.com/"},
        {"http://a_b.c", "http://a_b.c/"},
        {"http://example.com.", "http://example.com./"},
        {"http://xn--a", ""},
        {"http://\xFF.com", ""},
        {"http://a%00b", ""},
        {"http://a%2fb", ""},
        {"http://a%b", ""},
        {"http://a b", ""},
        {"http://a<b", ""},
        {"http://a|b", ""},
        {"http://a^b", ""},
        {"http://a%7Fb", ""},
        {"http://a\x01"
         "b",
         ""},
        {"http://", ""},
        {"http:///", ""},
        {"http://?x", ""},
        {"http://:80", ""},
        {"http://user@/", ""},
        // user info is kept apart from the text
        {"http://user:pass@example.com/", "http://example.com/"},
        {"http://a@b@c", "http://c/"},
        {"http://google.com:80@evil.test/", "http://evil.test/"},
        // slashes and blanks
        {"http:\\\\example.com\\a\\..\\b", "http://example.com/b"},
        {"http:example.com", "http://example.com/"},
        {"http:////example.com", "http://example.com/"},
        {"http://good.test\\@evil.test/", "http://good.test/@evil.test/"},
        {" \x01http://example.com \n", "http://example.com/"},
        {"ht\ntp://exa\tmple.com/a\rb", "http://example.com/ab"},
        // paths and queries
        {"http://h/a/./b/../c", "http://h/a/c"},
        {"http://h/..", "http://h/"},
        {"http://h/a/..", "http://h/"},
        {"http://h/a/.", "http://h/a/"},
        {"http://h/a/%2E%2e/b", "http://h/b"},
        {"http://h/a//b/", "http://h/a//b/"},
        {"http://h/...", "http://h/..."},
        {"http://h/a b\"<>`{}^\xC3\xA9", "http://h/a%20b%22%3C%3E%60%7B%7D%5E%C3%A9"},
        {"http://h/%zz", "http://h/%zz"},
        {"http://h?q='a b'#f?", "http://h/?q=%27a%20b%27"},
        {"http://h/?", "http://h/?"},
        {"http://h/?a?b/..", "http://h/?a?b/.."},
        // no http
        {"", ""},
        {"example.com", ""},
        {"ftp://example.com", ""},
        {"file:///etc/passwd", ""},
        {"javascript:alert(1)", ""},
        {"httpx://a", ""},
        {"//example.com", ""},
        {"/path", ""},
    };
    for (const row& r : rows) {
        const boost::system::result<url> u = url::parse(r.source);
        EXPECT_EQ(u ? u->text() : ""s, r.text) << r.source;
        if (!u) {
            EXPECT_EQ(u.error(), errc::invalid_url);
            continue;
        }
        // What was read once reads the same again.
        const boost::system::result<url> twice = url::parse(u->text());
        ASSERT_TRUE(twice.has_value()) << r.source;
        EXPECT_EQ(twice->text(), u->text()) << r.source;
        EXPECT_EQ(twice->kind(), u->kind()) << r.source;
    }
}

TEST(Url, PartsAreWhatAClientNeeds)
{
    const url u = url::parse_or_throw("https://us%20er:p@ss@[2001:db8::1]:8443/v1/x?key=secret#frag", "base URL");
    EXPECT_EQ(u.scheme(), "https");
    EXPECT_TRUE(u.tls());
    EXPECT_EQ(u.host(), "2001:db8::1");
    EXPECT_EQ(u.kind(), url::host_kind::ipv6);
    EXPECT_EQ(u.port(), 8443);
    EXPECT_FALSE(u.default_port());
    EXPECT_EQ(u.userinfo(), "us%20er:p%40ss");
    EXPECT_EQ(u.target(), "/v1/x?key=secret");
    EXPECT_EQ(u.authority(), "[2001:db8::1]:8443");
    EXPECT_EQ(u.origin(), "https://[2001:db8::1]:8443");
    EXPECT_EQ(u.redacted(), "https://[2001:db8::1]:8443/v1/x?…");
    const url plain = url::parse_or_throw("http://h", "x");
    EXPECT_EQ(plain.target(), "/");
    EXPECT_EQ(plain.redacted(), "http://h/");
    EXPECT_FALSE(plain.tls());
    EXPECT_TRUE(plain.default_port());
    EXPECT_EQ(url::parse("http://0x7f.1")->kind(), url::host_kind::ipv4);
    EXPECT_EQ(url::parse("http://h")->kind(), url::host_kind::name);
}

TEST(Url, ABadOneIsShownWithoutItsSecrets)
{
    const auto shown = [](const char* text) -> std::string {
        try {
            url::parse_or_throw(text, "base URL");
        } catch (const reagent::validation_error& e) {
            return e.what();
        }
        return "none";
    };
    EXPECT_EQ(shown("htp://user:pw@host/v1?key=abc#x"), "base URL is not an http or https URL: \"htp://***@host/v1?…\"");
    EXPECT_EQ(shown("user:pw@host"), "base URL is not an http or https URL: \"***@host\"");
    EXPECT_EQ(shown("ftp://host/v1"), "base URL is not an http or https URL: \"ftp://host/v1\"");
}

TEST(Url, ThrowsNamingWhatAndABoundedText)
{
    try {
        url::parse_or_throw("nope://" + std::string(1000, 'x'), "base URL");
        FAIL();
    } catch (const reagent::validation_error& e) {
        EXPECT_TRUE(e.message().starts_with("base URL "));
        EXPECT_LT(e.message().size(), 260u);
    }
}

TEST(Url, LoopbackIsAValidAddressOrTheName)
{
    for (const char* text : {"http://localhost", "http://LOCALHOST:1", "http://127.0.0.1", "http://127.255.1.2", "http://0x7f.1", "http://[::1]"})
        EXPECT_TRUE(url::parse(text)->loopback()) << text;
    for (const char* text :
         {"http://127.example.com", "http://128.0.0.1", "http://[::2]", "http://localhost.evil.test", "http://[::ffff:127.0.0.1]", "http://127.0.0.1.nip.io"}) {
        EXPECT_FALSE(url::parse(text)->loopback()) << text;
    }
}

TEST(Url, JoinedPutsTheSuffixAfterThePath)
{
    struct row {
        const char* base;
        const char* suffix;
        const char* target;
    };
    const row rows[] = {
        {"http://h", "/chat", "/chat"},
        {"http://h/v1", "/chat/completions", "/v1/chat/completions"},
        {"http://h/v1/", "/chat", "/v1/chat"},
        {"http://h/v1//", "/chat", "/v1//chat"},
        {"http://h/v1", "chat", "/v1/chat"},
        {"http://h/v1?api-version=2", "/chat", "/v1/chat?api-version=2"},
        {"http://h/v1/?k=1", "/m:stream?alt=sse", "/v1/m:stream?alt=sse&k=1"},
        {"http://h/v1/", "", "/v1"},
        {"http://h", "", "/"},
        {"http://h/v1", "/a b#c", "/v1/a%20b%23c"},
        {"http://h/v1", "/../x", "/x"},
        {"http://h/v1", "?a=b", "/v1?a=b"},
    };
    for (const row& r : rows) {
        const url u = url::parse(r.base)->joined(r.suffix);
        EXPECT_EQ(u.target(), r.target) << r.base << " + " << r.suffix;
        EXPECT_EQ(url::parse(u.text())->target(), u.target());
        EXPECT_EQ(u.host(), "h");
    }
}

TEST(IpAddress, ParsesStrictFormsOnly)
{
    struct row {
        const char* source;
        const char* text;  // empty: refused
    };
    const row rows[] = {
        {"0.0.0.0", "0.0.0.0"},
        {"255.255.255.255", "255.255.255.255"},
        {"1.2.3.4", "1.2.3.4"},
        {"1.2.3", ""},
        {"1.2.3.4.", ""},
        {"1.2.3.04", ""},
        {"1.2.3.256", ""},
        {"1.2.3.1000", ""},
        {"0x1.2.3.4", ""},
        {" 1.2.3.4", ""},
        {"", ""},
        {"1.2.3.4:80", ""},
        {"::", "::"},
        {"::1", "::1"},
        {"1::", "1::"},
        {"1:2:3:4:5:6:7:8", "1:2:3:4:5:6:7:8"},
        {"1:0:0:4:5:0:0:8", "1::4:5:0:0:8"},
        {"1:0:0:4:0:0:0:8", "1:0:0:4::8"},
        {"0:0:0:0:0:0:0:0", "::"},
        {"1:2:3:4:5:6:7::", "1:2:3:4:5:6:7:0"},
        {"::2:3:4:5:6:7:8", "0:2:3:4:5:6:7:8"},
        {"::ffff:1.2.3.4", "::ffff:102:304"},
        {"64:ff9b::192.0.2.1", "64:ff9b::c000:201"},
        {"1:2:3:4:5:6:1.2.3.4", "1:2:3:4:5:6:102:304"},
        {"ABCD:Ef01::", "abcd:ef01::"},
        {"1:2:3:4:5:6:7", ""},
        {"1:2:3:4:5:6:7:8:9", ""},
        {"1::2::3", ""},
        {":1", ""},
        {"1:", ""},
        {":", ""},
        {":::", ""},
        {"1:::2", ""},
        {"12345::", ""},
        {"g::", ""},
        {"::1.2.3", ""},
        {"::1.2.3.4:5", ""},
        {"1:2:3:4:5:6:7:1.2.3.4", ""},
        {"1:2:3:4:5:6:7:8::", ""},
        {"fe80::1%eth0", ""},
    };
    for (const row& r : rows) {
        const std::optional<ip_address> a = ip_address::parse(r.source);
        EXPECT_EQ(a ? a->to_string() : ""s, r.text) << r.source;
        if (a) { EXPECT_EQ(*ip_address::parse(a->to_string()), *a) << r.source; }
    }
    EXPECT_EQ(ip_address::v4(0x7F000001).to_string(), "127.0.0.1");
    EXPECT_EQ(ip_address::parse("10.0.0.1")->v4_bits(), 0x0A000001u);
    EXPECT_TRUE(ip_address::parse("127.9.9.9")->loopback());
    EXPECT_TRUE(ip_address::parse("::1")->loopback());
    EXPECT_FALSE(ip_address::parse("::")->loopback());
    EXPECT_FALSE(ip_address::parse("126.0.0.1")->loopback());
    EXPECT_FALSE(*ip_address::parse("0.0.0.1") == *ip_address::parse("::1"));
}

}  // namespace url_test
}  // namespace

#include "reader_pieces.hpp"
#include "request_reader.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <string>
#include <vector>

namespace reagent {
namespace {
namespace request_reader_test {

using net_detail::request_limits;
using net_detail::request_reader;

// What came of one request: method, target, body, how it goes on, and what was left behind it.
std::string read_in_pieces(std::string_view input, std::size_t piece, const request_limits& limits = {})
{
    request_reader reader(limits);
    const net_tests::fed_in_pieces fed = net_tests::feed_in_pieces(reader, input, [piece] { return piece; });
    EXPECT_TRUE(fed.sound);
    if (reader.failed()) return std::to_string(reader.status()) + " " + std::string(reader.failure_text());
    if (!reader.head_done()) return "waiting for the head";
    std::string text = reader.head().method + " " + reader.head().target + " [" + fed.body + "]";
    if (!reader.done()) return text + (reader.wants_continue() ? " expects" : " open");
    text += reader.keep_alive() ? " keep" : " close";
    return fed.left_over == 0 ? text : text + " +" + std::to_string(fed.left_over);
}

struct row {
    const char* name;
    std::string input;
    std::string expected;
};

const std::string get = "GET / HTTP/1.1\r\nHost: a\r\n";
const std::string post = "POST /p HTTP/1.1\r\nHost: a\r\n";
const std::string chunked = post + "Transfer-Encoding: chunked\r\n\r\n";
const std::string both = "400 both Content-Length and Transfer-Encoding";
const std::string chunks_bad = "400 the chunked body is malformed";

std::string blank_lines(int count)
{
    std::string s;
    while (count-- > 0) s += "\r\n";
    return s;
}

std::vector<row> table()
{
    return {
        {"plain", get + "\r\n", "GET / [] keep"},
        {"length", post + "Content-Length: 5\r\n\r\nhello", "POST /p [hello] keep"},
        {"length zero", post + "Content-Length: 0\r\n\r\n", "POST /p [] keep"},
        {"no framing is no body", post + "\r\nhello", "POST /p [] keep +5"},
        {"length and more", post + "Content-Length: 2\r\n\r\nhiGET", "POST /p [hi] keep +3"},
        {"length incomplete", post + "Content-Length: 5\r\n\r\nhel", "POST /p [hel] open"},
        {"chunked", chunked + "3\r\nabc\r\n2\r\nde\r\n0\r\n\r\n", "POST /p [abcde] keep"},
        {"chunk of length 0 alone", chunked + "0\r\n\r\n", "POST /p [] keep"},
        {"chunk of length 000", chunked + "3\r\nabc\r\n000\r\n\r\n", "POST /p [abc] keep"},
        {"chunk of length 0 and a pipelined request", chunked + "0\r\n\r\nGET", "POST /p [] keep +3"},
        {"chunk extensions", chunked + "3;a=b;c=\"d;e\"\r\nabc\r\n0;x\r\n\r\n", "POST /p [abc] keep"},
        {"trailers", chunked + "1\r\na\r\n0\r\nX: 1\r\nHost: evil\r\n\r\n", "POST /p [a] keep"},
        {"trailer with a length", chunked + "1\r\na\r\n0\r\nContent-Length: 9\r\n\r\n", chunks_bad},
        {"blank lines before", "\r\n\r\n" + get + "\r\n", "GET / [] keep"},
        {"too many blank lines before", blank_lines(17) + get, "400 too many blank lines before the request"},
        {"http 1.0", "GET / HTTP/1.0\r\n\r\n", "GET / [] close"},
        {"http 1.0 keep", "GET / HTTP/1.0\r\nConnection: keep-alive\r\n\r\n", "GET / [] keep"},
        {"connection close", get + "Connection: close\r\n\r\n", "GET / [] close"},
        {"connection close in a list", get + "Connection: x, Close\r\n\r\n", "GET / [] close"},
        {"absolute target", "GET http://b:80/x?y HTTP/1.1\r\nHost: a\r\n\r\n", "GET /x?y [] keep"},
        {"absolute target without a path", "GET HTTPS://b?y HTTP/1.1\r\nHost: a\r\n\r\n", "GET /?y [] keep"},
        {"absolute target with user info", "GET http://u@b/ HTTP/1.1\r\nHost: a\r\n\r\n", "400 the Host field is no host"},
        {"absolute target without host field", "GET http://b/ HTTP/1.1\r\n\r\n", "400 no Host field"},
        {"close framing after keep-alive", get + "Connection: keep-alive\r\n\r\nhello", "GET / [] keep +5"},
        {"options star", "OPTIONS * HTTP/1.1\r\nHost: a\r\n\r\n", "OPTIONS * [] keep"},
        {"empty host", "GET / HTTP/1.1\r\nHost:\r\n\r\n", "GET / [] keep"},
        {"host with a port", "GET / HTTP/1.1\r\nHost: [::1]:80\r\n\r\n", "GET / [] keep"},
        {"expect", post + "Expect: 100-Continue\r\nContent-Length: 2\r\n\r\n", "POST /p [] expects"},
        {"expect without a body", post + "Expect: 100-continue\r\n\r\n", "POST /p [] keep"},
        // What two readers could take for two requests.
        {"length and chunked", post + "Content-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", both},
        {"chunked and length", post + "Transfer-Encoding: chunked\r\nContent-Length: 3\r\n\r\n0\r\n\r\n", both},
        {"length and an unknown coding", post + "Content-Length: 3\r\nTransfer-Encoding: x\r\n\r\nabc", both},
        {"unknown coding and length", post + "Transfer-Encoding: x\r\nContent-Length: 3\r\n\r\nabc", both},
        {"two lengths", post + "Content-Length: 2\r\nContent-Length: 3\r\n\r\nhi", "400 Content-Length fields contradict each other"},
        {"two equal lengths", post + "Content-Length: 2\r\nContent-Length: 2\r\n\r\nhi", "400 Content-Length is given twice"},
        {"list of equal lengths", post + "Content-Length: 2, 2\r\n\r\nhi", "400 Content-Length is given twice"},
        {"length with a sign", post + "Content-Length: +2\r\n\r\nhi", "400 Content-Length is no number"},
        {"length negative", post + "Content-Length: -2\r\n\r\nhi", "400 Content-Length is no number"},
        {"length empty", post + "Content-Length:\r\n\r\nhi", "400 Content-Length is no number"},
        {"length overflow", post + "Content-Length: 18446744073709551616\r\n\r\nhi", "400 Content-Length is no number"},
        {"chunked in http 1.0", "POST / HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", "400 Transfer-Encoding in an HTTP/1.0 request"},
        {"chunked twice", post + "Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", "400 Transfer-Encoding is given twice"},
        {"two codings in two fields", post + "Transfer-Encoding: gzip\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", "400 Transfer-Encoding is given twice"},
        {"chunked twice in a list", post + "Transfer-Encoding: chunked, chunked\r\n\r\n0\r\n\r\n", "400 Transfer-Encoding does not end in chunked"},
        {"chunked not last", post + "Transfer-Encoding: chunked, gzip\r\n\r\n0\r\n\r\n", "400 Transfer-Encoding does not end in chunked"},
        {"identity", post + "Transfer-Encoding: identity\r\n\r\n", "400 Transfer-Encoding does not end in chunked"},
        {"a coding before chunked", post + "Transfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n", "501 a transfer coding other than chunked"},
        {"chunked with a vertical tab",
         post +
             "Transfer-Encoding: \x0b"
             "chunked\r\n\r\n0\r\n\r\n",
         "400 the request head is not HTTP/1.1"},
        {"folded", get + "X: a\r\n b\r\n\r\n", "400 a folded header line"},
        {"folded first", "GET / HTTP/1.1\r\n Host: a\r\n\r\n", "400 a folded header line"},
        {"folded framing", post + "Transfer-Encoding:\r\n chunked\r\n\r\n0\r\n\r\n", "400 a folded header line"},
        {"bare cr in a value", get + "X: a\rb\r\n\r\n", "400 a CR without LF in the head"},
        {"bare cr before crlf", get + "X: a\r\r\n\r\n", "400 a CR without LF in the head"},
        {"bare cr in the request line", "GET /\r HTTP/1.1\r\nHost: a\r\n\r\n", "400 a CR without LF in the head"},
        {"bare lf", "GET / HTTP/1.1\nHost: a\n\n", "400 a LF without CR in the head"},
        {"bare lf in a value", get + "X: a\nY: b\r\n\r\n", "400 a LF without CR in the head"},
        {"nul in a value", get + std::string("X: a\0b\r\n\r\n", 10), "400 the request head is not HTTP/1.1"},
        {"space before the colon", get + "Content-Length : 2\r\n\r\nhi", "400 the request head is not HTTP/1.1"},
        {"no colon", get + "Nonsense\r\n\r\n", "400 the request head is not HTTP/1.1"},
        {"empty name", get + ": x\r\n\r\n", "400 the request head is not HTTP/1.1"},
        {"tab before the colon", get + "Transfer-Encoding\t: chunked\r\n\r\n", "400 the request head is not HTTP/1.1"},
        {"nul in the target", std::string("GET /\0 HTTP/1.1\r\nHost: a\r\n\r\n", 29), "400 the request head is not HTTP/1.1"},
        {"tab in the request line", "GET\t/ HTTP/1.1\r\nHost: a\r\n\r\n", "400 the request head is not HTTP/1.1"},
        {"space behind the version", "GET / HTTP/1.1 \r\nHost: a\r\n\r\n", "400 the request head is not HTTP/1.1"},
        {"head cap", get + "X: " + std::string(1000, 'x') + "\r\n\r\n", "431 the request head passes its limit"},
        {"no host", "GET / HTTP/1.1\r\n\r\n", "400 no Host field"},
        {"two hosts", get + "Host: a\r\n\r\n", "400 more than one Host field"},
        {"two hosts in 1.0", "GET / HTTP/1.0\r\nHost: a\r\nHost: b\r\n\r\n", "400 more than one Host field"},
        {"two hosts in one field", "GET / HTTP/1.1\r\nHost: a,b\r\n\r\n", "400 the Host field is no host"},
        {"host with user info", "GET / HTTP/1.1\r\nHost: u@a\r\n\r\n", "400 the Host field is no host"},
        {"host with a path", "GET / HTTP/1.1\r\nHost: a/b\r\n\r\n", "400 the Host field is no host"},
        {"chunk size overflow", chunked + "10000000000000000\r\nabc", chunks_bad},
        {"chunk size without digits", chunked + "g\r\nabc\r\n", chunks_bad},
        {"chunk size empty", chunked + "\r\nabc\r\n", chunks_bad},
        {"chunk size negative", chunked + "-3\r\nabc\r\n", chunks_bad},
        {"chunk size with a prefix", chunked + "0x3\r\nabc\r\n0\r\n\r\n", chunks_bad},
        {"chunk without its end", chunked + "3\r\nabcX\r\n0\r\n\r\n", chunks_bad},
        {"chunk line with a bare cr", chunked + "3\rx\nabc\r\n0\r\n\r\n", chunks_bad},
        {"http 2 preface", "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", "505 only HTTP/1.0 and HTTP/1.1 are spoken here"},
        {"http 1.2", "GET / HTTP/1.2\r\nHost: a\r\n\r\n", "505 only HTTP/1.0 and HTTP/1.1 are spoken here"},
        {"lower case http", "GET / http/1.1\r\nHost: a\r\n\r\n", "400 the request head is not HTTP/1.1"},
        {"no version", "GET /\r\nHost: a\r\n\r\n", "400 the request head is not HTTP/1.1"},
        {"two spaces", "GET  / HTTP/1.1\r\nHost: a\r\n\r\n", "400 the request head is not HTTP/1.1"},
        {"space in the target", "GET /a b HTTP/1.1\r\nHost: a\r\n\r\n", "400 the request head is not HTTP/1.1"},
        {"fragment", "GET /a#b HTTP/1.1\r\nHost: a\r\n\r\n", "400 a fragment in the request target"},
        {"star for get", "GET * HTTP/1.1\r\nHost: a\r\n\r\n", "400 the request target is neither a path nor a URL"},
        {"authority for get", "GET a:80 HTTP/1.1\r\nHost: a\r\n\r\n", "400 the request target is neither a path nor a URL"},
        {"absolute target without a host", "GET http:///x HTTP/1.1\r\nHost: a\r\n\r\n", "400 a request target without a host"},
        {"connect", "CONNECT a:80 HTTP/1.1\r\nHost: a\r\n\r\n", "501 CONNECT is not served here"},
        {"tls hello", std::string("\x16\x03\x01\x02\x00", 5), "400 this is not an HTTP/1.1 request"},
        {"expect something else", get + "Expect: 200-ok\r\n\r\n", "417 only 100-continue can be expected"},
    };
}

TEST(RequestReader, ReadsOrRefusesTheHazardsOfRfc9112AtEveryCut)
{
    request_limits limits;
    limits.head = 1000;  // of which all but one row stay below
    for (const row& r : table()) {
        EXPECT_EQ(read_in_pieces(r.input, r.input.size(), limits), r.expected) << r.name;
        for (std::size_t piece = 1; piece < std::min<std::size_t>(r.input.size(), 40); ++piece)
            EXPECT_EQ(read_in_pieces(r.input, piece, limits), r.expected) << r.name << ", " << piece << " bytes at a time";
    }
}

// By name, so that none can leave the table unnoticed.
TEST(RequestReader, TheTableHasEveryHazard)
{
    for (const std::string_view hazard :
         {"length and chunked", "chunked and length", "two lengths", "two equal lengths", "folded", "bare cr in a value", "bare lf in a value",
          "chunk size overflow", "head cap", "chunk of length 0 alone", "close framing after keep-alive"}) {
        const std::vector<row> rows = table();
        EXPECT_TRUE(std::any_of(rows.begin(), rows.end(), [&](const row& r) { return r.name == hazard; })) << hazard;
    }
}

TEST(RequestReader, WhatComesBehindTheHeadIsNoPartOfIt)
{
    request_reader reader;
    std::string bytes = chunked + "1\r\na\r\n0\r\nX: 1\r\nHost: evil\r\n\r\n";
    reader.feed(bytes.data(), bytes.size());
    ASSERT_TRUE(reader.done());
    EXPECT_EQ(reader.head().fields.size(), 2u);
    reader.reset();
    bytes = post + "Expect: 100-continue\r\nContent-Length: 0\r\n\r\n";
    reader.feed(bytes.data(), bytes.size());
    ASSERT_TRUE(reader.done());
    EXPECT_FALSE(reader.wants_continue()) << "there is nothing to hold back";
}

TEST(RequestReader, TheHostOfAnAbsoluteTargetCounts)
{
    request_reader reader;
    std::string bytes = "GET http://Real.test:8080/x HTTP/1.1\r\nA: 1\r\nHOST: other.test\r\nB: 2\r\n\r\n";
    reader.feed(bytes.data(), bytes.size());
    ASSERT_TRUE(reader.done());
    EXPECT_EQ(reader.head().target, "/x");
    EXPECT_EQ(reader.head().fields.get("host"), "Real.test:8080");
    EXPECT_EQ(reader.head().fields.get("b"), "2");
    EXPECT_EQ(reader.head().fields.size(), 3u);
}

TEST(RequestReader, EachLimitHoldsToTheByte)
{
    request_limits limits;
    limits.line = 20;
    limits.head = 60;
    limits.body = 4;
    const auto line = [](std::size_t size) { return "GET /" + std::string(size - 14, 'x') + " HTTP/1.1\r\nHost: a\r\n\r\n"; };
    const auto head = [](std::size_t size) { return "GET / HTTP/1.1\r\nHost: a\r\nX: " + std::string(size - 32, 'x') + "\r\n\r\n"; };
    const std::string start = "POST / HTTP/1.1\r\nHost: a\r\n";
    const std::vector<row> rows = {
        {"line at its limit", line(20), "GET /xxxxxx [] keep"},
        {"line past it", line(21), "414 the request line passes its limit"},
        {"line without end, one too long", "GET /" + std::string(16, 'x'), "414 the request line passes its limit"},
        {"line without end", "GET /" + std::string(30, 'x'), "414 the request line passes its limit"},
        {"head at its limit", head(60), "GET / [] keep"},
        {"head past it", head(61), "431 the request head passes its limit"},
        {"head without end", head(61).substr(0, 61), "431 the request head passes its limit"},
        {"body at its limit", start + "Content-Length: 4\r\n\r\nabcd", "POST / [abcd] keep"},
        {"body past it", start + "Content-Length: 5\r\n\r\nabcde", "413 the request body passes its limit"},
        {"chunks at the limit", start + "Transfer-Encoding: chunked\r\n\r\n2\r\nab\r\n2\r\ncd\r\n0\r\n\r\n", "POST / [abcd] keep"},
        {"chunks past it", start + "Transfer-Encoding: chunked\r\n\r\n2\r\nab\r\n3\r\ncde\r\n0\r\n\r\n", "413 the request body passes its limit"},
        {"trailers past the limit of a head", start + "Transfer-Encoding: chunked\r\n\r\n0\r\nX: " + std::string(80, 'x'),
         "431 a chunk header or trailer passes the limit of a head"},
    };
    for (const row& r : rows) {
        EXPECT_EQ(read_in_pieces(r.input, r.input.size(), limits), r.expected) << r.name;
        EXPECT_EQ(read_in_pieces(r.input, 1, limits), r.expected) << r.name;
    }
}

TEST(RequestReader, ChunksThatAreMostlyExtensionsAreRefused)
{
    request_limits limits;
    limits.head = 1024;
    std::string input = chunked;
    for (int i = 0; i < 10; ++i) input += "1;" + std::string(500, 'x') + "\r\na\r\n";
    EXPECT_EQ(read_in_pieces(input, 100, limits), "431 the framing of the chunks outweighs the body");
    input = chunked;
    for (int i = 0; i < 1000; ++i) input += "1\r\na\r\n";
    EXPECT_EQ(read_in_pieces(input + "0\r\n\r\n", 100, limits), "POST /p [" + std::string(1000, 'a') + "] keep") << "chunks of one byte are not";
}

TEST(RequestReader, IsReadyAgainAfterReset)
{
    request_reader reader;
    for (const std::string& first : {post + "Content-Length: 2\r\n\r\nhi", std::string("bad\r\n\r\n"), chunked}) {
        std::string bytes = first;
        reader.feed(bytes.data(), bytes.size());
        reader.reset();
        bytes = get + "A: 1\r\n\r\n";
        EXPECT_EQ(reader.feed(bytes.data(), bytes.size()).consumed, bytes.size()) << first;
        EXPECT_TRUE(reader.done() && reader.keep_alive()) << first;
        EXPECT_EQ(reader.head().fields.size(), 2u) << first;
    }
}

}  // namespace request_reader_test
}  // namespace
}  // namespace reagent

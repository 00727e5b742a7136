#include "reader_pieces.hpp"
#include "response_reader.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <string>
#include <utility>
#include <vector>

namespace reagent {
namespace {
namespace response_reader_test {

using net_detail::response_reader;

// What came of one response: status, body, how it ended, and what was left behind it.
struct reading {
    std::string text;
};

enum class ending { none, clean, cut };

reading read_all(response_reader& reader, std::string_view input, const std::vector<std::size_t>& cuts, ending end = ending::none)
{
    std::size_t at = 0;
    const auto next = [&] {
        const auto cut = std::find_if(cuts.begin(), cuts.end(), [&](std::size_t c) { return c > at && c < input.size(); });
        const std::size_t from = std::exchange(at, cut == cuts.end() ? input.size() : *cut);
        return at - from;
    };
    const net_tests::fed_in_pieces fed = net_tests::feed_in_pieces(reader, input, next);
    EXPECT_TRUE(fed.sound);
    const bool open = !reader.done() && !reader.failed();
    if (open && end != ending::none) reader.end_of_input(end == ending::clean);
    std::string text = std::to_string(reader.head().status) + " [" + fed.body + "]";
    if (reader.failed()) return {"failed: " + make_error_code(reader.failure()).message() + (reader.head_done() ? " after the head" : "")};
    if (!reader.head_done()) return {"waiting for the head"};
    text += reader.done() ? (reader.keep_alive() ? " keep" : " close") : " open";
    if (reader.done() && fed.left_over > 0) text += " +" + std::to_string(fed.left_over);
    return {text};
}

// All of the table but one row is smaller.
constexpr std::size_t small_head = 500;

reading read_whole(std::string_view input, ending end = ending::none)
{
    response_reader reader(small_head);
    return read_all(reader, input, {}, end);
}

const std::string ok = "HTTP/1.1 200 OK\r\n";
const std::string chunked = ok + "Transfer-Encoding: chunked\r\n\r\n";
std::string failure(errc e, bool after_head = false)
{
    return "failed: " + make_error_code(e).message() + (after_head ? " after the head" : "");
}

struct row {
    const char* name;
    std::string input;
    std::string expected;
    ending end = ending::none;
};

std::vector<row> table()
{
    const std::string malformed = failure(errc::malformed_response), malformed_body = failure(errc::malformed_response, true);
    const std::string truncated = failure(errc::stream_truncated, true);
    return {
        {"length", ok + "Content-Length: 5\r\n\r\nhello", "200 [hello] keep"},
        {"length zero", ok + "Content-Length: 0\r\n\r\n", "200 [] keep"},
        {"length and more", ok + "Content-Length: 2\r\n\r\nhiHTTP", "200 [hi] keep +4"},
        {"length short", ok + "Content-Length: 5\r\n\r\nhel", truncated, ending::clean},
        {"length list equal", ok + "Content-Length: 2, 2\r\n\r\nhi", "200 [hi] keep"},
        {"length twice equal", ok + "Content-Length: 2\r\nContent-Length: 2\r\n\r\nhi", "200 [hi] keep"},
        {"length twice", ok + "Content-Length: 2\r\nContent-Length: 3\r\n\r\nhi!", malformed},
        {"length list", ok + "Content-Length: 2, 3\r\n\r\nhi!", malformed},
        {"length sign", ok + "Content-Length: +2\r\n\r\nhi", malformed},
        {"length negative", ok + "Content-Length: -2\r\n\r\nhi", malformed},
        {"length hex", ok + "Content-Length: 0x2\r\n\r\nhi", malformed},
        {"length empty", ok + "Content-Length: \r\n\r\nhi", malformed},
        {"length overflow", ok + "Content-Length: 18446744073709551616\r\n\r\nhi", malformed},
        {"until close", ok + "\r\nhello", "200 [hello] close", ending::clean},
        {"until close, still open", ok + "\r\nhello", "200 [hello] open"},
        {"until close, cut", ok + "\r\nhello", truncated, ending::cut},
        {"connection close", ok + "Content-Length: 2\r\nConnection: close\r\n\r\nhi", "200 [hi] close"},
        {"http 1.0", "HTTP/1.0 200 OK\r\nContent-Length: 2\r\n\r\nhi", "200 [hi] close"},
        {"coding in http 1.0, kept alive", "HTTP/1.0 200 OK\r\nConnection: keep-alive\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n\r\n",
         "200 [abc] close"},
        {"close framing after keep-alive", ok + "Connection: keep-alive\r\n\r\nhello", "200 [hello] close", ending::clean},
        {"bare lf in the status line", "HTTP/1.1 200 OK\nX: a\r\n\r\n", malformed},
        {"bare lf in a value", ok + "X: a\nContent-Length: 2\r\n\r\nhi", malformed},
        {"bare lf throughout", "HTTP/1.1 200 OK\nContent-Length: 2\n\nhi", failure(errc::transport_failed), ending::clean},
        {"head cap", ok + "X: " + std::string(small_head, 'x') + "\r\n\r\n", failure(errc::headers_too_large)},
        {"http 1.0 keep", "HTTP/1.0 200 OK\r\nContent-Length: 2\r\nConnection: keep-alive\r\n\r\nhi", "200 [hi] keep"},
        {"no reason", "HTTP/1.1 200 \r\nContent-Length: 0\r\n\r\n", "200 [] keep"},
        {"chunked", chunked + "3\r\nabc\r\n2\r\nde\r\n0\r\n\r\n", "200 [abcde] keep"},
        {"chunked upper and lower", chunked + "A\r\n0123456789\r\na\r\n0123456789\r\n0\r\n\r\n", "200 [01234567890123456789] keep"},
        {"chunked leading zeros", chunked + "003\r\nabc\r\n000\r\n\r\n", "200 [abc] keep"},
        {"chunked empty", chunked + "0\r\n\r\n", "200 [] keep"},
        {"chunk extensions", chunked + "3;a=b;c=\"d;e\";f\r\nabc\r\n0;x\r\n\r\n", "200 [abc] keep"},
        {"trailers", chunked + "3\r\nabc\r\n0\r\nX-One: 1\r\nX-Two: 2\r\n\r\n", "200 [abc] keep"},
        {"length among trailers", chunked + "3\r\nabc\r\n0\r\nContent-Length: 9\r\n\r\n", malformed_body},
        {"coding among trailers", chunked + "3\r\nabc\r\n0\r\nTransfer-Encoding: gzip\r\n\r\n", malformed_body},
        {"chunked and more", chunked + "3\r\nabc\r\n0\r\n\r\nxyz", "200 [abc] keep +3"},
        {"chunk size overflow", chunked + "10000000000000000\r\nabc", malformed_body},
        {"chunk size no hex", chunked + "g\r\nabc\r\n", malformed_body},
        {"chunk size empty", chunked + "\r\nabc\r\n", malformed_body},
        {"chunk size negative", chunked + "-3\r\nabc\r\n", malformed_body},
        {"chunk without its end", chunked + "3\r\nabcX\r\n0\r\n\r\n", malformed_body},
        {"chunked cut", chunked + "3\r\nabc\r\n", truncated, ending::clean},
        {"chunked cut in the last chunk", chunked + "3\r\nabc\r\n0\r\n", truncated, ending::clean},
        {"chunked and length", ok + "Content-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n\r\n", "200 [abc] close"},
        {"length and chunked", ok + "Transfer-Encoding: chunked\r\nContent-Length: 99\r\n\r\n3\r\nabc\r\n0\r\n\r\n", "200 [abc] close"},
        {"chunked and two lengths", ok + "Content-Length: 1\r\nTransfer-Encoding: chunked\r\nContent-Length: 9\r\n\r\n0\r\n\r\n", "200 [] close"},
        {"chunked twice", ok + "Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", malformed},
        {"other transfer coding", ok + "Transfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n", failure(errc::bad_encoding, true)},
        {"transfer coding without chunked", ok + "Transfer-Encoding: gzip\r\n\r\nxx", failure(errc::bad_encoding, true)},
        {"100 first", "HTTP/1.1 100 Continue\r\n\r\n" + ok + "Content-Length: 2\r\n\r\nhi", "200 [hi] keep"},
        {"103 and 100", "HTTP/1.1 103 Early Hints\r\nLink: x\r\n\r\nHTTP/1.1 100 C\r\n\r\n" + ok + "Content-Length: 0\r\n\r\n", "200 [] keep"},
        {"101", "HTTP/1.1 101 Switching\r\nUpgrade: x\r\n\r\n", malformed},
        {"204", "HTTP/1.1 204 No Content\r\n\r\n", "204 [] keep"},
        {"204 with length", "HTTP/1.1 204 No Content\r\nContent-Length: 5\r\n\r\n", "204 [] keep"},
        {"304", "HTTP/1.1 304 Not Modified\r\nContent-Length: 5\r\n\r\n", "304 [] keep"},
        {"obs-fold", ok + "X-Long: a\r\n  b\r\nContent-Length: 2\r\n\r\nhi", "200 [hi] keep"},
        {"space before colon", ok + "Content-Length : 2\r\n\r\nhi", malformed},
        {"bare cr in a value", ok + "X: a\rb\r\nContent-Length: 2\r\n\r\nhi", malformed},
        {"nul in a value", ok + std::string("X: a\0b\r\n\r\n", 10), malformed},
        {"no colon", ok + "Nonsense\r\n\r\n", malformed},
        {"http 2", "HTTP/2 200\r\n\r\n", malformed},
        {"http 1.2", "HTTP/1.2 200 OK\r\n\r\n", malformed},
        {"not http", "SSH-2.0-OpenSSH_9\r\n", malformed},
        {"lower case", "http/1.1 200 OK\r\n\r\n", malformed},
        {"leading blank line", "\r\nHTTP/1.1 200 OK\r\n\r\n", malformed},
        {"status of four digits", "HTTP/1.1 2000 OK\r\n\r\n", malformed},
        {"status below 100", "HTTP/1.1 099 OK\r\n\r\n", malformed},
        {"status of letters", "HTTP/1.1 abc OK\r\n\r\n", malformed},
        {"nothing", "HTTP/1.1 ", failure(errc::transport_failed), ending::clean},
        {"half a head", ok + "Content-Le", failure(errc::transport_failed), ending::clean},
    };
}

TEST(ResponseReader, SaysWhetherA100HasCome)
{
    const std::string hints = "HTTP/1.1 103 Early Hints\r\n\r\n", go_on = "HTTP/1.1 100 Continue\r\n\r\n", end = ok + "Content-Length: 0\r\n\r\n";
    for (const auto& [input, seen] : {std::pair{hints, false},
                                      {go_on.substr(0, go_on.size() - 1), false},
                                      {go_on, true},
                                      {hints + go_on, true},
                                      {go_on + hints, true},
                                      {end, false},
                                      {go_on + end, true},
                                      {"HTTP/1.1 101 X\r\n\r\n", false}}) {
        for (std::size_t cut = 0; cut < input.size(); ++cut) {
            response_reader reader;
            read_all(reader, input, {cut});
            EXPECT_EQ(reader.continue_seen(), seen) << input << " cut at " << cut;
        }
        response_reader reader;
        read_all(reader, input, {});
        reader.reset();
        EXPECT_FALSE(reader.continue_seen());
    }
}

TEST(ResponseReader, Table)
{
    for (const row& r : table()) EXPECT_EQ(read_whole(r.input, r.end).text, r.expected) << r.name;
}

// The hazards of RFC 9112 by name, so that none can leave the table unnoticed.
TEST(ResponseReader, TheTableHasEveryHazard)
{
    for (const std::string_view hazard : {"chunked and length", "length and chunked", "length twice", "length twice equal", "obs-fold", "bare cr in a value",
                                          "bare lf in a value", "chunk size overflow", "head cap", "chunked empty", "close framing after keep-alive"}) {
        const std::vector<row> rows = table();
        EXPECT_TRUE(std::any_of(rows.begin(), rows.end(), [&](const row& r) { return r.name == hazard; })) << hazard;
    }
}

TEST(ResponseReader, AnyCutGivesTheSame)
{
    for (const row& r : table()) {
        std::vector<std::size_t> every;
        for (std::size_t cut = 1; cut < r.input.size(); ++cut) {
            response_reader reader(small_head);
            EXPECT_EQ(read_all(reader, r.input, {cut}, r.end).text, r.expected) << r.name << " cut at " << cut;
            every.push_back(cut);
        }
        response_reader reader(small_head);
        EXPECT_EQ(read_all(reader, r.input, every, r.end).text, r.expected) << r.name << " byte by byte";
    }
}

TEST(ResponseReader, HeadAsReceived)
{
    response_reader reader;
    std::string bytes = "HTTP/1.1 429 Slow\r\nRetry-After: 7\r\nX-Two:  spaced \t\r\nx-two: again\r\nContent-Length: 0\r\n\r\n";
    reader.feed(bytes.data(), bytes.size());
    ASSERT_TRUE(reader.done());
    EXPECT_EQ(reader.head().status, 429u);
    EXPECT_EQ(reader.head().fields.get("retry-after"), "7");
    EXPECT_EQ(reader.head().fields.get("X-TWO"), "spaced");
    EXPECT_EQ(reader.head().fields.size(), 4u);
    EXPECT_EQ(reader.head().fields[0].first, "Retry-After");
    EXPECT_FALSE(reader.head().fields.contains("x-three"));
}

TEST(ResponseReader, TrailersAreNoHeaders)
{
    const std::string input = chunked + "2\r\nhi\r\n0\r\nX-Late: 1\r\nset-cookie: a\r\nContent-Type: x\r\nX-Sum: \t2 \r\n\r\n";
    for (std::size_t cut = 1; cut < input.size(); ++cut) {
        response_reader reader;
        EXPECT_EQ(read_all(reader, input, {cut}).text, "200 [hi] keep");
        EXPECT_FALSE(reader.head().fields.contains("X-Late"));
        ASSERT_NE(reader.trailers(), nullptr);
        EXPECT_EQ(reader.trailers()->size(), 2u);
        EXPECT_EQ(reader.trailers()->get("x-late"), "1");
        EXPECT_EQ(reader.trailers()->get("x-sum"), "2");
        reader.reset();
        EXPECT_EQ(reader.trailers(), nullptr);
    }
}

TEST(ResponseReader, AnswerToHeadHasNoBody)
{
    response_reader reader(65536, true);
    EXPECT_EQ(read_all(reader, ok + "Content-Length: 5\r\n\r\n", {}).text, "200 [] keep");
}

TEST(ResponseReader, ChunksAreMovedTogether)
{
    response_reader reader;
    std::string bytes = chunked + "3\r\nabc\r\n4\r\ndefg\r\n0\r\n\r\n";
    const auto o = reader.feed(bytes.data(), bytes.size());
    EXPECT_EQ(std::string_view(bytes).substr(o.body_at, o.body_size), "abcdefg");
    EXPECT_EQ(o.body_at, chunked.size() + 3);
    EXPECT_EQ(o.consumed, bytes.size());
}

TEST(ResponseReader, HeadLimitIsExact)
{
    const std::string tail = "\r\nContent-Length: 0\r\n\r\n";
    for (const std::size_t size : {199u, 200u, 201u}) {
        std::string head = ok + "X: ";
        head += std::string(size - head.size() - tail.size(), 'x') + tail;
        ASSERT_EQ(head.size(), size);
        for (const std::size_t step : {std::size_t{1}, std::size_t{64}, head.size()}) {
            response_reader reader(200);
            std::vector<std::size_t> cuts;
            for (std::size_t c = step; c < size; c += step) cuts.push_back(c);
            EXPECT_EQ(read_all(reader, head, cuts).text, size > 200 ? failure(errc::headers_too_large) : "200 [] keep") << size << " by " << step;
        }
    }
}

TEST(ResponseReader, InterimHeadsCountTogether)
{
    std::string input;
    for (int i = 0; i < 100; ++i) input += "HTTP/1.1 100 Continue\r\n\r\n";
    response_reader reader(1000);
    EXPECT_EQ(read_all(reader, input, {}).text, failure(errc::headers_too_large));
}

TEST(ResponseReader, ChunkHeadersAndTrailersAreBounded)
{
    for (const std::string& endless : {chunked + "3;" + std::string(2000, 'x'), chunked + "0\r\nX: " + std::string(2000, 'x')}) {
        response_reader reader(1000);
        EXPECT_EQ(read_all(reader, endless, {500, 700}).text, failure(errc::headers_too_large, true));
    }
}

TEST(ResponseReader, ResetMakesItNew)
{
    response_reader reader;
    reader.end_of_input(true);
    ASSERT_TRUE(reader.failed());
    reader.reset();
    EXPECT_EQ(read_all(reader, ok + "Content-Length: 2\r\n\r\nhi", {20, 40}).text, "200 [hi] keep");
}

}  // namespace response_reader_test
}  // namespace
}  // namespace reagent

#include <reagent/net/sse_parser.hpp>
#include <reagent/testing/allocation_counter.hpp>

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace reagent {
namespace {
namespace sse_parser_test {

using events = std::vector<std::string>;  // "type|data"

void drain(sse_parser& parser, events& out)
{
    sse_event e;
    while (parser.next(e)) out.push_back(std::string(e.type) + "|" + std::string(e.data));
}

// Each piece in memory of its own size, so that reading past it or keeping a view of it is seen by the sanitizer.
void feed(sse_parser& parser, std::string_view piece, events& out)
{
    const std::vector<char> own(piece.begin(), piece.end());
    parser.feed({own.data(), own.size()});
    drain(parser, out);
}

events parse(std::string_view text, bool at_end = true)
{
    sse_parser parser;
    events out;
    feed(parser, text, out);
    sse_event e;
    if (at_end && parser.finish(e)) out.push_back(std::string(e.type) + "|" + std::string(e.data));
    return out;
}

events parse_in_pieces(std::string_view text, std::size_t size)
{
    sse_parser parser;
    events out;
    for (std::size_t at = 0; at < text.size(); at += size) feed(parser, text.substr(at, size), out);
    sse_event e;
    if (parser.finish(e)) out.push_back(std::string(e.type) + "|" + std::string(e.data));
    return out;
}

struct row {
    const char* name;
    std::string input;
    events expected;
};

const std::vector<row>& table()
{
    static const std::vector<row> rows = {
        {"one", "data: x\n\n", {"|x"}},
        {"no space", "data:{}\n\n", {"|{}"}},
        {"two spaces keep one", "data:  x\n\n", {"| x"}},
        {"crlf", "data: x\r\n\r\ndata: y\r\n\r\n", {"|x", "|y"}},
        {"cr", "data: x\r\rdata: y\r\r", {"|x", "|y"}},
        {"mixed", "data: x\r\n\ndata: y\n\r\ndata: z\r\n\r", {"|x", "|y", "|z"}},
        {"joined lines", "data: a\ndata: b\ndata:\ndata: c\n\n", {"|a\nb\n\nc"}},
        {"type", "event: ping\ndata: 1\n\ndata: 2\n\n", {"ping|1", "|2"}},
        {"type after data", "data: 1\nevent: late\n\n", {"late|1"}},
        {"type without data is dropped", "event: lost\n\ndata: 2\n\n", {"|2"}},
        {"last type wins", "event: a\nevent: b\ndata: 1\n\n", {"b|1"}},
        {"comment", ": hello\ndata: x\n:\n\n", {"|x"}},
        {"bom",
         "\xEF\xBB\xBF"
         "data: x\n\n",
         {"|x"}},
        {"bom only at the start",
         "data: x\n\n\xEF\xBB\xBF"
         "data: y\n\n",
         {"|x"}},
        {"unknown and ignored fields", "id: 7\nretry: 10\nfoo: bar\nDATA: no\n data: no\ndata: x\n\n", {"|x"}},
        {"field without colon", "data\n\ndata\ndata\n\n", {"|", "|\n"}},
        {"empty data", "data:\n\n", {"|"}},
        {"colon in value", "data: a: b\n\n", {"|a: b"}},
        {"blank lines alone", "\n\n\r\n\r\r", {}},
        {"unterminated event", "data: x\n\ndata: y\n", {"|x", "|y"}},
        {"unterminated line", "data: x\n\ndata: y", {"|x", "|y"}},
        {"nul and high bytes", std::string("data: a\0b\xff\n\n", 12), {std::string("|a\0b\xff", 5)}},
        {"done", "data: [DONE]\n\n", {"|[DONE]"}},
    };
    return rows;
}

TEST(SseParser, Table)
{
    for (const row& r : table()) EXPECT_EQ(parse(r.input), r.expected) << r.name;
}

TEST(SseParser, Case_A1_AnyCutGivesTheSameEvents)
{
    for (const row& r : table()) {
        for (std::size_t size = 1; size <= 5; ++size) EXPECT_EQ(parse_in_pieces(r.input, size), r.expected) << r.name << " in pieces of " << size;
        for (std::size_t cut = 0; cut <= r.input.size(); ++cut) {
            sse_parser parser;
            events out;
            feed(parser, std::string_view(r.input).substr(0, cut), out);
            feed(parser, std::string_view(r.input).substr(cut), out);
            sse_event e;
            if (parser.finish(e)) out.push_back(std::string(e.type) + "|" + std::string(e.data));
            EXPECT_EQ(out, r.expected) << r.name << " cut at " << cut;
        }
    }
}

TEST(SseParser, Case_A1_CutInsideCharacters)
{
    const std::string text = "data: \xE6\x97\xA5\xE6\x9C\xAC \xF0\x9F\x98\x80\n\ndata: \xC3\xA9\xF0\x9F\x8E\x89\n\n";
    const events whole = {"|\xE6\x97\xA5\xE6\x9C\xAC \xF0\x9F\x98\x80", "|\xC3\xA9\xF0\x9F\x8E\x89"};
    EXPECT_EQ(parse(text), whole);
    EXPECT_EQ(parse_in_pieces(text, 1), whole);
    for (std::size_t cut = 0; cut <= text.size(); ++cut) {
        sse_parser parser;
        events out;
        feed(parser, std::string_view(text).substr(0, cut), out);
        feed(parser, std::string_view(text).substr(cut), out);
        EXPECT_EQ(out, whole) << "cut at " << cut;
    }
}

TEST(SseParser, Case_A2_TailIsKeptAndBadBytesPass)
{
    // A three-byte character over a 4 KiB boundary, then an event with a byte that is never UTF-8.
    const std::string filler(4096 - 7, 'a');
    const std::string text = "data: " + filler + "\xE2\x82\xAC" + "end\n\ndata: x\xFFy\n\n";
    ASSERT_EQ(static_cast<unsigned char>(text[4095]), 0xE2);
    const events whole = {"|" + filler + "\xE2\x82\xAC" + "end", "|x\xFFy"};
    EXPECT_EQ(parse_in_pieces(text, 4096), whole);
    EXPECT_EQ(parse_in_pieces(text, 4097), whole);
}

TEST(SseParser, Case_A3_CrLfSplitOverTwoReads)
{
    sse_parser parser;
    events out;
    feed(parser, "data: x\r", out);
    feed(parser, "\n\r", out);
    EXPECT_EQ(out, events({"|x"}));
    feed(parser, "\ndata: y\r\n\r\n", out);
    EXPECT_EQ(out, events({"|x", "|y"}));
    // LF, CRLF and both in one stream.
    EXPECT_EQ(parse("data: x\n\ndata: y\n\n", false), events({"|x", "|y"}));
    EXPECT_EQ(parse("data: x\r\n\r\ndata: y\r\n\r\n", false), events({"|x", "|y"}));
    EXPECT_EQ(parse("data: a\r\ndata: b\n\r\ndata: c\ndata: d\r\n\n", false), events({"|a\nb", "|c\nd"}));
    // Not two line ends either, which would end the event after its first line.
    const std::string text = "data: a\r\ndata: b\r\n\r\n";
    for (std::size_t cut = 0; cut <= text.size(); ++cut) {
        sse_parser split;
        events seen;
        feed(split, std::string_view(text).substr(0, cut), seen);
        feed(split, std::string_view(text).substr(cut), seen);
        EXPECT_EQ(seen, events({"|a\nb"})) << "cut at " << cut;
    }
}

TEST(SseParser, Case_A4_BareCarriageReturn)
{
    // The event is there with the last CR; what comes later cannot change it.
    EXPECT_EQ(parse("data: x\r\r", false), events({"|x"}));
    sse_parser parser;
    events out;
    for (const char c : std::string_view("data: x\r\r")) feed(parser, {&c, 1}, out);
    EXPECT_EQ(out, events({"|x"}));
    const std::string more = "data: a\rdata: b\r\rdata: c\r";
    for (const std::size_t size : {std::size_t(1), std::size_t(2), std::size_t(3), more.size()})
        EXPECT_EQ(parse_in_pieces(more, size), events({"|a\nb", "|c"})) << size;
}

TEST(SseParser, Case_A5_OneOptionalSpaceAndTheUnterminatedEvent)
{
    EXPECT_EQ(parse("data:{}\n\n"), events({"|{}"}));
    EXPECT_EQ(parse("data:  x\n\n"), events({"| x"}));
    EXPECT_EQ(parse("data: last"), events({"|last"}));
    EXPECT_EQ(parse("data: last", false), events());
    // The partial event is bounded.
    sse_parser parser(100);
    events out;
    for (int i = 0; i < 20 && !parser.failed(); ++i) feed(parser, "data: 123456789\n", out);
    EXPECT_TRUE(parser.failed());
    EXPECT_LE(parser.buffered(), 100u + 16u);
    // Also when no line of it ever ends, a byte at a time.
    sse_parser line(100);
    feed(line, "data: ", out);
    for (int i = 0; i < 1000 && !line.failed(); ++i) feed(line, "x", out);
    EXPECT_TRUE(line.failed());
    EXPECT_LE(line.buffered(), 100u);
}

/// What one event in many writes costs. Bytes allocated stand for bytes copied: what is copied is copied into new memory.
class cost {
public:
    std::size_t scanned = 0, allocated = 0, events_seen = 0;
};

cost cost_of(std::size_t total, std::size_t piece)
{
    const testing::allocation_counter heap;
    sse_parser parser;
    const std::string chunk(piece, 'a');
    events out;
    parser.feed("data: ");
    drain(parser, out);
    for (std::size_t sent = 0; sent < total; sent += piece) {
        parser.feed(chunk);
        drain(parser, out);
    }
    parser.feed("\n\n");
    drain(parser, out);
    cost c;
    c.events_seen = out.size();
    c.scanned = parser.bytes_scanned();
    c.allocated = heap.bytes();
    return c;
}

TEST(SseParser, Case_A6_OneLargeEventInSmallWritesIsLinear)
{
    constexpr std::size_t mib = 1024 * 1024;
    // A byte at a time, and in many lines: the event is put together once all the same. Small sizes first, so that squares are soon told.
    const cost bytes = cost_of(32 * 1024, 1);
    EXPECT_EQ(bytes.events_seen, 1u);
    ASSERT_LE(bytes.scanned, 2 * (32 * 1024 + 8));
    ASSERT_LE(bytes.allocated, 8 * 32 * 1024);
    const cost four = cost_of(4 * mib, 1024);
    EXPECT_EQ(four.events_seen, 1u);
    EXPECT_LE(four.scanned, 2 * (4 * mib + 8));
    EXPECT_LE(four.allocated, 8 * 4 * mib) << "a buffer that doubles, and its copy into the event";
    const cost eight = cost_of(8 * mib, 1024);
    EXPECT_EQ(eight.events_seen, 1u);
    EXPECT_LE(static_cast<double>(eight.scanned), 2.2 * static_cast<double>(four.scanned));
    EXPECT_LE(static_cast<double>(eight.allocated), 2.2 * static_cast<double>(four.allocated));
    const testing::allocation_counter heap;
    sse_parser parser;
    events out;
    const std::string line = "data: " + std::string(1017, 'a') + "\n";
    for (std::size_t sent = 0; sent < mib; sent += 1024) {
        parser.feed(line);
        drain(parser, out);
    }
    EXPECT_LE(parser.bytes_scanned(), 3 * mib);
    EXPECT_LE(heap.bytes(), 12 * mib);
}

TEST(SseParser, Case_A8_ManyEventsInOneWriteAreLinear)
{
    constexpr std::size_t count = 40'000;
    std::string text;
    while (text.size() < 4 * 1024 * 1024) text += "data: " + std::string(97, 'x') + "\n\n";
    ASSERT_GE(text.size() / 105, count - 100);
    for (const char* end : {"\n\n", "\r\r", "\r\n\r\n"}) {
        std::string one = "data: " + std::string(97, 'x') + end;
        std::string all;
        for (std::size_t i = 0; i < count; ++i) all += one;
        const testing::allocation_counter heap;
        sse_parser parser;
        parser.feed(all);
        sse_event e;
        std::size_t seen = 0;
        // Looked at on the way, so that a parser that begins again for each event is told before it has done so 40,000 times.
        while (parser.bytes_scanned() <= 2 * all.size() && heap.bytes() <= 2 * all.size() && parser.next(e)) ++seen;
        EXPECT_EQ(seen, count);
        EXPECT_LE(parser.bytes_scanned(), 2 * all.size());
        EXPECT_LE(heap.bytes(), 2 * all.size()) << "the rest of the read is not copied for each event";
    }
}

TEST(SseParser, Case_A5_EventLimitIsExact)
{
    for (const std::size_t size : {99u, 100u, 101u}) {
        const std::string text = "data: " + std::string(size - 6, 'x') + "\n\n";
        sse_parser parser(100);
        events out;
        feed(parser, text, out);
        EXPECT_EQ(parser.failed(), size > 100) << size;
        EXPECT_EQ(out.size(), size > 100 ? 0u : 1u);
    }
    // One byte at a time, and as a comment that never ends.
    sse_parser parser(100);
    events out;
    for (int i = 0; i < 200; ++i) feed(parser, ":", out);
    EXPECT_TRUE(parser.failed());
    sse_event e;
    EXPECT_FALSE(parser.next(e));
    EXPECT_FALSE(parser.finish(e));
}

TEST(SseParser, ViewsLiveUntilTheNextCall)
{
    sse_parser parser;
    const std::string bytes = "data: one\n\ndata: two\ndata: three\n\n";
    parser.feed(bytes);
    sse_event e;
    ASSERT_TRUE(parser.next(e));
    EXPECT_EQ(e.data.data(), bytes.data() + 6);  // not copied
    ASSERT_TRUE(parser.next(e));
    EXPECT_EQ(e.data, "two\nthree");
    EXPECT_FALSE(parser.next(e));
    EXPECT_EQ(parser.buffered(), 0u);
}

}  // namespace sse_parser_test
}  // namespace
}  // namespace reagent

#include <reagent/net/line_framer.hpp>
#include <reagent/net/ndjson.hpp>

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace {
namespace line_framer_test {

using namespace reagent;

/// Lines in brackets, `!` for one that is too long; pieces of `size` bytes, each in memory of its own.
std::string lines_of(std::string_view text, std::size_t size, std::size_t limit)
{
    std::string out;
    line_framer framer(limit);
    framed_line line;
    const auto take = [&] { out += line.too_long ? "!" : "[" + std::string(line.text) + "]"; };
    for (std::size_t at = 0; at < text.size(); at += size) {
        const std::vector<char> piece(text.begin() + static_cast<std::ptrdiff_t>(at),
                                      text.begin() + static_cast<std::ptrdiff_t>(std::min(text.size(), at + size)));
        framer.feed({piece.data(), piece.size()});
        while (framer.next(line)) take();
        EXPECT_LE(framer.buffered(), limit + 1);
    }
    if (framer.finish(line)) take();
    EXPECT_FALSE(framer.next(line));
    EXPECT_EQ(framer.bytes_scanned(), text.size());
    return out;
}

TEST(LineFramer, AnyCutOfTheInputGivesTheSameLines)
{
    const std::vector<std::pair<std::string, std::string>> rows = {
        {"", ""},
        {"a\nb\n", "[a][b]"},
        {"a\r\nb\r\n", "[a][b]"},
        {"a\nb", "[a][b]"},
        {"\n\n \t\r\n\r\na\n\n", "[a]"},
        {"\xEF\xBB\xBF{}\n", "[{}]"},
        {"banner\n\xEF\xBB\xBF{}\r\n", "[banner][{}]"},
        {"\xEF\xBB\xBF\n\xEF\xBB\xBF", ""},
        {"a\rb\n", "[a\rb]"},
        {"a\r\r\n", "[a\r]"},
        {"\xE2\x82\xAC\n", "[\xE2\x82\xAC]"},
        {"12345678\n", "[12345678]"},    // the limit to the byte
        {"12345678\r\n", "[12345678]"},  // its end is not counted
        {"12345678", "[12345678]"},
        {"12345678\r", "[12345678]"},
        {"123456789\nb\n", "![b]"},
        {"12345678\rx\nb\n", "![b]"},
        {"123456789012345678901234567890\r\nb\n", "![b]"},
        {"123456789012345678901234567890", "!"},
        {"          \nb\n", "![b]"},
    };
    for (const auto& [text, lines] : rows) {
        for (std::size_t size = 1; size <= text.size() + 1; ++size) EXPECT_EQ(lines_of(text, size, 8), lines) << text << " in pieces of " << size;
    }
}

TEST(LineFramer, Case_D7_LinesUpToTheLimitAndOneAboveIt)
{
    constexpr std::size_t kib = 1024, mib = 1024 * kib;
    for (const std::size_t size : {129 * kib, 15 * mib, 16 * mib, 17 * mib}) {
        const std::string text = std::string(size, 'x') + "\nafter\n";
        line_framer framer;
        framed_line line;
        std::string seen;
        std::size_t most = 0;
        for (std::size_t at = 0; at < text.size(); at += 64 * kib) {
            framer.feed(std::string_view(text).substr(at, 64 * kib));
            while (framer.next(line)) seen += line.too_long ? "too long;" : std::to_string(line.text.size()) + ";";
            most = std::max(most, framer.buffered());
        }
        EXPECT_EQ(seen, (size > line_framer::default_max_line ? std::string("too long") : std::to_string(size)) + ";5;");
        EXPECT_LE(most, line_framer::default_max_line + 1);
        EXPECT_EQ(framer.bytes_scanned(), text.size());
        EXPECT_EQ(framer.buffered(), 0u);
    }
}

TEST(NdjsonReader, ValuesAndWhatIsNone)
{
    const std::string text = "\xEF\xBB\xBF{\"a\":1}\r\n\nServer v1.2\n[1,2]\n\"x\"\n{\"open\":\n" + std::string(100, ' ') + "1\n 7 ";
    for (std::size_t size = 1; size <= text.size(); ++size) {
        ndjson_reader reader(64);
        ndjson_item item;
        std::string seen;
        const auto take = [&] {
            seen += item.kind == ndjson_kind::value ? item.value.dump() : item.kind == ndjson_kind::not_json ? "?" + std::string(item.text) : "!";
            seen += std::to_string(item.line) + ';';
        };
        for (std::size_t at = 0; at < text.size(); at += size) {
            reader.feed(std::string_view(text).substr(at, size));
            while (reader.next(item)) take();
        }
        if (reader.finish(item)) take();
        EXPECT_EQ(seen, "{\"a\":1}1;?Server v1.23;[1,2]4;\"x\"5;?{\"open\":6;!7;78;") << size;
        EXPECT_EQ(reader.values(), 4u);
        EXPECT_EQ(reader.not_json(), 2u);
        EXPECT_EQ(reader.too_long(), 1u);
    }
}

}  // namespace line_framer_test
}  // namespace

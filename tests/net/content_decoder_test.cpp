#include <reagent/base/error.hpp>
#include <reagent/net/content_decoder.hpp>

#include <gtest/gtest.h>
#include <zlib.h>

#include <string>

namespace reagent {
namespace {
namespace content_decoder_test {

std::string coded(std::string_view text, int window)
{
    z_stream z{};
    deflateInit2(&z, Z_BEST_COMPRESSION, Z_DEFLATED, window, 8, Z_DEFAULT_STRATEGY);
    std::string out(deflateBound(&z, text.size()), '\0');
    z.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(text.data()));
    z.avail_in = static_cast<uInt>(text.size());
    z.next_out = reinterpret_cast<Bytef*>(out.data());
    z.avail_out = static_cast<uInt>(out.size());
    deflate(&z, Z_FINISH);
    out.resize(z.total_out);
    deflateEnd(&z);
    return out;
}
std::string gzip(std::string_view text)
{
    return coded(text, 15 + 16);
}
std::string zlib(std::string_view text)
{
    return coded(text, 15);
}
std::string raw(std::string_view text)
{
    return coded(text, -15);
}

std::string decode(std::string_view coding, std::string_view bytes, std::size_t piece)
{
    content_decoder d = content_decoder::make(coding).value();
    std::string out;
    for (std::size_t at = 0; at < bytes.size(); at += piece) {
        const auto fed = d.feed(bytes.substr(at, piece), out);
        if (!fed) return "error: " + fed.error().message();
    }
    return d.ended() ? out : "cut: " + out;
}

TEST(ContentDecoder, CodingsAndCuts)
{
    std::string text;
    for (int i = 0; i < 200; ++i) text += "line " + std::to_string(i * i) + "\n";
    struct row {
        const char* coding;
        std::string bytes;
    };
    for (const row& r : {row{"gzip", gzip(text)}, row{"X-GZip", gzip(text)}, row{"deflate", zlib(text)}, row{"deflate", raw(text)}, row{"identity", text},
                         row{"", text}, row{" gzip , identity", gzip(text)}, row{"deflate, gzip", gzip(zlib(text))}, row{"gzip,gzip", gzip(gzip(text))},
                         row{"gzip, deflate", raw(gzip(text))}})
        for (const std::size_t piece : {std::size_t{1}, std::size_t{2}, std::size_t{7}, r.bytes.size()})
            EXPECT_EQ(decode(r.coding, r.bytes, piece), text) << r.coding << " " << piece;
}

TEST(ContentDecoder, MembersOfGzipFollowEachOther)
{
    EXPECT_EQ(decode("gzip", gzip("one ") + gzip("two"), 1), "one two");
    EXPECT_EQ(decode("gzip", gzip("one ") + gzip("two"), 1000), "one two");
}

TEST(ContentDecoder, UnknownCodingsAreRefused)
{
    for (const char* coding : {"br", "zstd", "compress", "gzip, br", "gzip;q=1", "gzip gzip", "gzip,gzip,gzip,gzip,gzip"}) {
        const auto made = content_decoder::make(coding);
        ASSERT_FALSE(made) << coding;
        EXPECT_EQ(made.error(), errc::bad_encoding) << coding;
    }
    EXPECT_TRUE(content_decoder::make("identity, identity").value().identity());
    EXPECT_FALSE(content_decoder::make("gzip").value().identity());
}

TEST(ContentDecoder, CorruptStreamsFailAndStayFailed)
{
    std::string bytes = gzip("some text that is long enough to be coded");
    bytes[bytes.size() - 6] = static_cast<char>(bytes[bytes.size() - 6] ^ 0x55);  // the checksum
    content_decoder d = content_decoder::make("gzip").value();
    std::string out;
    EXPECT_EQ(d.feed(bytes, out).error(), errc::bad_encoding);
    EXPECT_EQ(d.feed(gzip("x"), out).error(), errc::bad_encoding);
    EXPECT_EQ(decode("gzip", "this is plain text", 100).substr(0, 5), "error");
    EXPECT_EQ(decode("gzip", gzip("x") + "rest", 100).substr(0, 5), "error");
    EXPECT_EQ(decode("deflate", zlib("x") + "rest", 100).substr(0, 5), "error");
}

TEST(ContentDecoder, KnowsWhetherTheStreamEnded)
{
    const std::string bytes = gzip("hello");
    for (std::size_t n = 0; n <= bytes.size(); ++n) {
        content_decoder d = content_decoder::make("gzip").value();
        std::string out;
        ASSERT_TRUE(d.feed(std::string_view(bytes).substr(0, n), out));
        EXPECT_EQ(d.ended(), n == 0 || n == bytes.size()) << n;
    }
    content_decoder held = content_decoder::make("deflate").value();
    std::string out;
    ASSERT_TRUE(held.feed("x", out));
    EXPECT_FALSE(held.ended());
}

TEST(ContentDecoder, LimitStopsABomb)
{
    const std::string bomb = gzip(gzip(std::string(64 * 1024 * 1024, '\0')));
    ASSERT_LT(bomb.size(), 2000u);
    content_decoder d = content_decoder::make("gzip, gzip").value();
    std::string out;
    EXPECT_EQ(d.feed(bomb, out, 1024 * 1024).error(), errc::body_too_large);
    EXPECT_LE(out.size(), 1024u * 1024u + 16u * 1024u);
    // Exactly the limit passes.
    content_decoder exact = content_decoder::make("gzip").value();
    out.clear();
    EXPECT_TRUE(exact.feed(gzip(std::string(1000, 'x')), out, 1000));
    content_decoder over = content_decoder::make("gzip").value();
    EXPECT_FALSE(over.feed(gzip(std::string(1001, 'x')), out, 1000));
}

}  // namespace content_decoder_test
}  // namespace
}  // namespace reagent

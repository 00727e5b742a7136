#include "json_duplicates.hpp"

#include <reagent/base/error.hpp>
#include <reagent/base/json.hpp>
#include <reagent/base/utf8.hpp>
#include <reagent/testing/allocation_counter.hpp>

#include <gtest/gtest.h>

#include <cmath>
#include <fstream>
#include <limits>
#include <sstream>

namespace {
namespace json_test {
using reagent::errc;
using reagent::json;
namespace base_detail = reagent::base_detail;
namespace testing = reagent::testing;
using namespace std::string_literals;

const std::string R = "\xEF\xBF\xBD";

std::string again(std::string_view text)
{
    const boost::system::result<json> v = json::parse(text);
    return v ? v->dump() : "error: " + v.error().message();
}

TEST(JsonParse, AcceptsAndPrintsCompactly)
{
    for (const char* text : {"null", "true", "false", "0", "-1", "\"\"", "[]", "{}", "[1,\"a\",null]", "{\"b\":1,\"a\":{\"x\":[]}}", "[[[]]]", "{\"\":{}}"})
        EXPECT_EQ(again(text), text);
    EXPECT_EQ(again(" \t\r\n[ 1 , { \"a\" : 2 } ]\n"), "[1,{\"a\":2}]");
    EXPECT_EQ(again("\"\\\"\\\\\\/\\b\\f\\n\\r\\t\\u0000\\u001f\\u007f\""), "\"\\\"\\\\/\\b\\f\\n\\r\\t\\u0000\\u001f\x7f\"");
}

TEST(JsonParse, RefusesNamingTheByte)
{
    struct row {
        std::string text;
        std::size_t offset;
    };
    const row rows[] = {
        {"", 0},
        {"  ", 2},
        {"nul", 3},
        {"nulL", 3},
        {"True", 0},
        {"[", 1},
        {"[1", 2},
        {"[1,", 3},
        {"[1,]", 3},
        {"[,1]", 1},
        {"[1 2]", 3},
        {"]", 0},
        {"{", 1},
        {"{a:1}", 1},
        {"{\"a\"}", 4},
        {"{\"a\" 1}", 5},
        {"{\"a\":}", 5},
        {"{\"a\":1", 6},
        {"{\"a\":1,}", 7},
        {"{,}", 1},
        {"{\"a\":1 \"b\":2}", 7},
        {"1 2", 2},
        {"01", 1},
        {"-", 1},
        {"-a", 1},
        {"+1", 0},
        {".5", 0},
        {"1.", 2},
        {"1.e1", 2},
        {"1e", 2},
        {"1e+", 3},
        {"0x1", 1},
        {"NaN", 0},
        {"Infinity", 0},
        {"-Infinity", 1},
        {"\"", 1},
        {"\"a", 2},
        {"\"\\", 2},
        {"\"\\x\"", 2},
        {"\"\\u12", 5},
        {"\"\\u12g4\"", 5},
        {"\"a\nb\"", 2},
        {"\"\x01\"", 1},
        {"'a'", 0},
        {"[1]x", 3},
        {"[1]]", 3},
        {"\xEF\xBB\xBF{}", 0},
        {"[\xC3\xA9]", 1},
        {"[1,\"a\0b\"]"s, 5},
        {"[1]\0"s, 3},
        {"/**/1", 0},
    };
    for (const row& r : rows) {
        std::size_t offset = 999;
        const boost::system::result<json> v = json::parse(r.text, {}, offset);
        ASSERT_FALSE(v.has_value()) << r.text;
        EXPECT_EQ(v.error(), errc::invalid_json) << r.text;
        EXPECT_EQ(offset, r.offset) << r.text;
    }
}

TEST(JsonParse, EveryCutOfATextIsRefusedAtItsEnd)
{
    const std::string text = "{\"a\":[1.5e+3,-0,\"\\u00e9\\ud83d\\ude00\xC3\xA9\"],\"b\":{\"c\":true,\"d\":null,\"e\":false}}";
    ASSERT_TRUE(json::parse(text).has_value());
    for (std::size_t cut = 0; cut < text.size(); ++cut) {
        std::size_t offset = 999;
        const boost::system::result<json> v = json::parse(std::string_view(text).substr(0, cut), {}, offset);
        ASSERT_FALSE(v.has_value()) << cut;
        EXPECT_EQ(offset, cut);
    }
}

TEST(JsonParse, EverySingleByteIsJudgedAsTheGrammarSays)
{
    for (int b = 0; b < 256; ++b) {
        const std::string byte(1, static_cast<char>(b));
        EXPECT_EQ(json::parse(byte).has_value(), b >= '0' && b <= '9') << b;
        const bool blank = b == ' ' || b == '\t' || b == '\n' || b == '\r';
        EXPECT_EQ(json::parse("[" + byte + "]").has_value(), blank || (b >= '0' && b <= '9')) << b;
        EXPECT_EQ(json::parse("\"" + byte + "\"").has_value(), b >= 0x20 && b != '"' && b != '\\') << b;
        EXPECT_EQ(json::parse("\"\\" + byte + "\"").has_value(), std::string_view("\"\\/bfnrt").find(byte) != std::string_view::npos) << b;
    }
}

TEST(JsonParse, IllFormedTextIsRepairedOnTheWayIn)
{
    EXPECT_EQ(json::parse("\"a\xFFz\"")->as_string(), "a" + R + "z");
    EXPECT_EQ(json::parse("\"\xED\xA0\xBD\"")->as_string(), R + R + R);
    EXPECT_EQ(json::parse("\"\xE2\x82\"")->as_string(), R);
    EXPECT_EQ(json::parse("\"\\ud83d\"")->as_string(), R);
    EXPECT_EQ(json::parse("\"\\ude00\"")->as_string(), R);
    EXPECT_EQ(json::parse("\"\\ud83d\\ud83d\\ude00\"")->as_string(), R + "\xF0\x9F\x98\x80");
    EXPECT_EQ(json::parse("\"\\ud83dx\"")->as_string(), R + "x");
    EXPECT_EQ(json::parse("\"\\ud83d\\n\"")->as_string(), R + "\n");
    EXPECT_EQ(json::parse("\"\\ud83d\\u0041\"")->as_string(), R + "A");
    EXPECT_EQ(json::parse("\"\\uFFFE\\uD83D\\uDE00\"")->as_string(), "\xEF\xBF\xBE\xF0\x9F\x98\x80");
    EXPECT_EQ(json::parse("{\"k\xFF\":1}")->find("k" + R)->get_int64(), 1);
    EXPECT_FALSE(json::parse("\"\\ud83d\\u12\"").has_value());
    // Repaired keys may meet: then they are one.
    EXPECT_EQ(again("{\"\xFF\":1,\"\xFE\":2}"), "{\"" + R + "\":2}");
}

TEST(JsonParse, OfDuplicateKeysTheLastValueWinsAtTheFirstPosition)
{
    EXPECT_EQ(again("{\"a\":1,\"b\":2,\"a\":3}"), "{\"a\":3,\"b\":2}");
    EXPECT_EQ(again("{\"a\":1,\"a\":2,\"a\":3}"), "{\"a\":3}");
    EXPECT_EQ(again("{\"b\":0,\"a\":1,\"b\":2,\"a\":3,\"c\":4}"), "{\"b\":2,\"a\":3,\"c\":4}");
    // The same above the size where comparing all pairs would hurt.
    for (int distinct : {1, 2, 15, 16, 17, 40}) {
        std::string text = "{", wanted = "{";
        for (int i = 0; i < 120; ++i) text += (i ? "," : "") + ("\"k" + std::to_string(i % distinct) + "\":" + std::to_string(i));
        for (int k = 0; k < distinct; ++k) wanted += (k ? "," : "") + ("\"k" + std::to_string(k) + "\":" + std::to_string((119 - k) / distinct * distinct + k));
        EXPECT_EQ(again(text + "}"), wanted + "}") << distinct;
    }
}

TEST(JsonParse, DepthIsLimitedTo512)
{
    const auto nested = [](std::size_t n, const char* open, const char* close) {
        std::string text;
        for (std::size_t i = 0; i < n; ++i) text += open;
        text += "1";
        for (std::size_t i = 0; i < n; ++i) text += close;
        return text;
    };
    for (const auto& [open, close] : {std::pair("[", "]"), std::pair("{\"a\":", "}")}) {
        EXPECT_TRUE(json::parse(nested(512, open, close)).has_value());
        const boost::system::result<json> deep = json::parse(nested(513, open, close));
        ASSERT_FALSE(deep.has_value());
        EXPECT_EQ(deep.error(), errc::limit_exceeded);
    }
    json::parse_options shallow;
    shallow.max_depth = 2;
    EXPECT_TRUE(json::parse("[[1]]", shallow).has_value());
    EXPECT_FALSE(json::parse("[[[1]]]", shallow).has_value());
    json::parse_options greedy;
    greedy.max_depth = 100000;
    EXPECT_FALSE(json::parse(nested(513, "[", "]"), greedy).has_value());
    // A million openings are refused at the limit, not at the end.
    std::size_t offset = 0;
    EXPECT_FALSE(json::parse(std::string(1'000'000, '['), {}, offset).has_value());
    EXPECT_EQ(offset, 512u);
}

TEST(JsonParse, ThrowsASentenceThatNamesTheByte)
{
    EXPECT_EQ(json::parse_or_throw("[1]", "the file").size(), 1u);
    try {
        json::parse_or_throw("[1,", "the file");
        FAIL();
    } catch (const reagent::error& e) {
        EXPECT_EQ(e.message(), "the file is not JSON at byte 3");
        EXPECT_EQ(e.code(), errc::invalid_json);
    }
    try {
        json::parse_or_throw(std::string(600, '['), "x");
        FAIL();
    } catch (const reagent::error& e) {
        EXPECT_EQ(e.code(), errc::limit_exceeded);
    }
}

// Counted, not timed: looking for duplicate keys costs n log n comparisons, and the members are moved without a copy of any.
TEST(JsonParse, LargeObjectsAreNotQuadratic)
{
    const auto comparisons = [](int members, int keys) {
        json::object_type object;
        for (int i = 0; i < members; ++i) object.emplace_back("key" + std::to_string(i % keys), json(i));
        std::size_t asked = 0;
        base_detail::drop_duplicates(object, [&asked](const std::string& a, const std::string& b) { return ++asked, a.compare(b); });
        EXPECT_EQ(object.size(), static_cast<std::size_t>(keys));
        return static_cast<double>(asked);
    };
    for (const int keys : {1, 2}) {
        const double small = comparisons(2'000, 2'000 / keys), large = comparisons(32'000, 32'000 / keys);
        EXPECT_LT(small, 2'000 * 11 * 3);
        EXPECT_LT(large, small * 16 * 2) << "sixteen times the members, not 256 times the work";
    }
    std::string text = "{";
    for (int i = 0; i < 32'000; ++i) text += (i ? ",\"a key of some length " : "\"a key of some length ") + std::to_string(i) + "\":0";
    text += "}";
    const testing::allocation_counter heap;
    const json value = *json::parse(text);
    EXPECT_EQ(value.size(), 32'000u);
    EXPECT_LT(heap.allocations(), 3 * 32'000u) << "a key and what grows its text";
}

TEST(JsonNumbers, Case_B5_NumbersKeepTheirSourceText)
{
    for (const char* text : {"9007199254740993", "9223372036854775807", "-9223372036854775808", "18446744073709551615", "18446744073709551616",
                             "2512292042121000001", "1e400", "-1e400", "1e-400", "-0.0", "-0", "0.0", "1.10", "21.5", "1E5", "1e05",
                             "100000000000000000000000000000001", "3.0", "0.1000000000000000055511151231257827"}) {
        EXPECT_EQ(again(text), text);
        EXPECT_EQ(again(std::string("[") + text + ",{\"id\":" + text + "}]"), std::string("[") + text + ",{\"id\":" + text + "}]");
        // A second trip, as history is replayed.
        EXPECT_EQ(again(again(text)), text);
    }
}

TEST(JsonNumbers, ReadAsIntegersOnlyWhenExact)
{
    struct row {
        const char* text;
        std::optional<std::int64_t> i;
        std::optional<std::uint64_t> u;
        double d;
    };
    const double inf = std::numeric_limits<double>::infinity();
    const row rows[] = {
        {"0", 0, 0, 0},
        {"-0", 0, 0, -0.0},
        {"-0.0", 0, 0, -0.0},
        {"7", 7, 7, 7},
        {"-7", -7, {}, -7},
        {"3.0", 3, 3, 3},
        {"3e0", 3, 3, 3},
        {"3.5", {}, {}, 3.5},
        {"35e-1", {}, {}, 3.5},
        {"30e-1", 3, 3, 3},
        {"1.5e1", 15, 15, 15},
        {"0.012e3", 12, 12, 12},
        {"1200e-2", 12, 12, 12},
        {"9007199254740993", 9007199254740993, 9007199254740993u, 9007199254740992.0},
        {"9223372036854775807", INT64_MAX, INT64_MAX, 0x1p63},
        {"9223372036854775808", {}, std::uint64_t(1) << 63, 0x1p63},
        {"-9223372036854775808", INT64_MIN, {}, -0x1p63},
        {"-9223372036854775809", {}, {}, -0x1p63},
        {"18446744073709551615", {}, UINT64_MAX, 0x1p64},
        {"18446744073709551616", {}, {}, 0x1p64},
        {"1e19", {}, 10000000000000000000u, 1e19},
        {"1e20", {}, {}, 1e20},
        {"1e400", {}, {}, inf},
        {"-1e400", {}, {}, -inf},
        {"1e-400", {}, {}, 0},
        {"1e99999999999999999999", {}, {}, inf},
        {"1e-99999999999999999999", {}, {}, 0},
        {"0e99999999999999999999", 0, 0, 0},
        {"0.0001e4", 1, 1, 1},
    };
    for (const row& r : rows) {
        const json v = *json::parse(r.text);
        EXPECT_EQ(v.get_int64(), r.i) << r.text;
        EXPECT_EQ(v.get_uint64(), r.u) << r.text;
        EXPECT_EQ(v.get_double(), r.d) << r.text;
        EXPECT_EQ(std::signbit(*v.get_double()), std::signbit(r.d)) << r.text;
    }
    EXPECT_EQ(json(0x1p63).get_int64(), std::nullopt);
    EXPECT_EQ(json(0x1p63).get_uint64(), std::uint64_t(1) << 63);
    EXPECT_EQ(json(-0x1p63).get_int64(), INT64_MIN);
    EXPECT_EQ(json(2.5).get_int64(), std::nullopt);
    EXPECT_EQ(json(UINT64_MAX).get_int64(), std::nullopt);
    EXPECT_EQ(json(-1).get_uint64(), std::nullopt);
    EXPECT_EQ(json("1").get_int64(), std::nullopt);
}

TEST(JsonNumbers, ComputedDoublesPrintShortest)
{
    const std::pair<double, const char*> rows[] = {{0.1, "0.1"},
                                                   {21.5, "21.5"},
                                                   {100000, "100000"},
                                                   {1e20, "100000000000000000000"},
                                                   {1e21, "1e+21"},
                                                   {1.5e300, "1.5e+300"},
                                                   {1e-6, "0.000001"},
                                                   {1e-7, "1e-7"},
                                                   {1.25e-9, "1.25e-9"},
                                                   {5e-324, "5e-324"},
                                                   {0.3, "0.3"},
                                                   {0.1 + 0.2, "0.30000000000000004"},
                                                   {-0.0, "-0"},
                                                   {0, "0"},
                                                   {-2.5, "-2.5"},
                                                   {123456789.125, "123456789.125"},
                                                   {1.7976931348623157e308, "1.7976931348623157e+308"}};
    for (const auto& [value, text] : rows) {
        EXPECT_EQ(json(value).dump(), text);
        EXPECT_EQ(json::parse(text)->get_double(), value);
    }
    EXPECT_EQ(json(std::numeric_limits<double>::infinity()).dump(), "null");
    EXPECT_EQ(json(std::nan("")).dump(), "null");
    EXPECT_EQ(json(std::uint64_t(UINT64_MAX)).dump(), "18446744073709551615");
    EXPECT_EQ(json(INT64_MIN).dump(), "-9223372036854775808");
}

TEST(JsonNumbers, EqualityIsExactDecimalValue)
{
    const auto same = [](const char* a, const char* b) { return *json::parse(a) == *json::parse(b); };
    for (const auto& [a, b] : {std::pair("1", "1.0"), std::pair("10", "1e1"), std::pair("0.1", "1e-1"), std::pair("0", "-0.0"), std::pair("100", "100.00e0"),
                               std::pair("1200", "12e2"), std::pair("1e400", "10e399"), std::pair("0.050", "5e-2"), std::pair("-1.5", "-15e-1")}) {
        EXPECT_TRUE(same(a, b)) << a << " " << b;
        EXPECT_TRUE(same(b, a)) << a << " " << b;
    }
    for (const auto& [a, b] :
         {std::pair("9007199254740993", "9007199254740992"), std::pair("1", "-1"), std::pair("1", "10"), std::pair("0.1", "0.10000000000000001"),
          std::pair("12", "1.3e1"), std::pair("1e99999999999999999999", "1e99999999999999999998"), std::pair("18446744073709551615", "18446744073709551616")}) {
        EXPECT_FALSE(same(a, b)) << a << " " << b;
    }
    EXPECT_EQ(json(0.1), *json::parse("0.10"));
    EXPECT_EQ(json(3), json(3.0));
    EXPECT_EQ(json(3u), json(3));
    EXPECT_NE(json(3), json("3"));
    EXPECT_NE(json(std::nan("")), json(0));
}

TEST(JsonCanonical, EqualValuesGiveEqualText)
{
    const std::pair<const char*, const char*> rows[] = {
        {"{\"b\":1,\"a\":2}", "{\"a\":2,\"b\":1}"},
        {"1.0", "1"},
        {"1e2", "100"},
        {"-0", "0"},
        {"-0.0", "0"},
        {"0.10", "0.1"},
        {"1e-1", "0.1"},
        {"1.50e1", "15"},
        {"12.5", "12.5"},
        {"9007199254740993.0", "9007199254740993"},
        {"18446744073709551616", "18446744073709551616"},
        {"1e39", "1000000000000000000000000000000000000000"},
        {"1e40", "1e+40"},
        {"0.0000001", "1e-7"},
        {"0.000001", "0.000001"},
        {"123e-9", "1.23e-7"},
        {"1e400", "1e+400"},
        {"-1.5e-300", "-1.5e-300"},
        {"[{\"z\":1,\"y\":[ ]}]", "[{\"y\":[],\"z\":1}]"},
        {"1e99999999999999999999", "1e99999999999999999999"},
        // U+1F600 is written with surrogates in UTF-16 and so comes before U+FFFD and U+E000.
        {"{\"\\uFFFD\":1,\"\\uE000\":2,\"\\uD83D\\uDE00\":3,\"\\u20AC\":4,\"a\":5,\"\":6,\"aa\":7}",
         "{\"\":6,\"a\":5,\"aa\":7,\"\xE2\x82\xAC\":4,\"\xF0\x9F\x98\x80\":3,\"\xEE\x80\x80\":2,\"\xEF\xBF\xBD\":1}"},
    };
    for (const auto& [text, canonical] : rows) {
        EXPECT_EQ(json::parse(text)->canonical(), canonical) << text;
        EXPECT_EQ(json::parse(canonical)->canonical(), canonical) << text;
        EXPECT_EQ(*json::parse(canonical), *json::parse(text));
    }
    EXPECT_EQ(json(std::nan("")).canonical(), "null");
    EXPECT_EQ(json(1e5).canonical(), "100000");
}

TEST(JsonValue, MembersAreSetReplacedAndErased)
{
    json v;
    v.set("a", 1).set("b", "x").set("a", json());
    EXPECT_EQ(v.dump(), "{\"a\":null,\"b\":\"x\"}");
    EXPECT_TRUE(v.erase("a"));
    EXPECT_FALSE(v.erase("a"));
    EXPECT_FALSE(json(1).erase("a"));
    EXPECT_EQ(v.size(), 1u);
    json list;
    list.push_back(1).push_back(true);
    EXPECT_EQ(list.dump(), "[1,true]");
    EXPECT_EQ(json::object().set("k", json::array()).dump(), "{\"k\":[]}");
    EXPECT_TRUE(json::object().empty());
    EXPECT_EQ(json("text").size(), 0u);
}

TEST(JsonValue, LookUpNeverInsertsNorThrows)
{
    const json v = *json::parse("{\"a\":[1,{\"b\":\"c\"}]}");
    EXPECT_EQ(v["a"][1]["b"].as_string(), "c");
    EXPECT_TRUE(v["x"]["y"][3].is_null());
    EXPECT_TRUE(v["a"][2].is_null());
    EXPECT_TRUE(v["a"]["k"].is_null());
    EXPECT_EQ(v.find("x"), nullptr);
    EXPECT_EQ(json(1).find("x"), nullptr);
    EXPECT_EQ(v["a"][0].get_string(), nullptr);
    EXPECT_EQ(v["a"].get_bool(), std::nullopt);
    EXPECT_EQ(json(true).get_bool(), true);
    EXPECT_EQ(json(true).get_double(), std::nullopt);
    const char* names[] = {"null", "boolean", "number", "string", "array", "object"};
    const json kinds[] = {json(), json(false), json(1), json(""), json::array(), json::object()};
    for (std::size_t i = 0; i < 6; ++i) EXPECT_EQ(kinds[i].type_name(), names[i]);
}

TEST(JsonValue, EqualityIgnoresMemberOrderOnly)
{
    EXPECT_EQ(*json::parse("{\"a\":1,\"b\":[2]}"), *json::parse("{\"b\":[2],\"a\":1}"));
    EXPECT_NE(*json::parse("{\"a\":1}"), *json::parse("{\"a\":1,\"b\":2}"));
    EXPECT_NE(*json::parse("{\"a\":1}"), *json::parse("{\"b\":1}"));
    EXPECT_NE(*json::parse("{\"a\":1}"), *json::parse("{\"a\":2}"));
    EXPECT_NE(*json::parse("[1,2]"), *json::parse("[2,1]"));
    EXPECT_NE(json(), json(false));
    EXPECT_EQ(json(), json(nullptr));
    EXPECT_NE(json("a"), json("b"));
}

TEST(JsonWrite, StringsAreEscapedAndRepaired)
{
    EXPECT_EQ(json("\x01\x1f\x7f\"\\/\xC3\xA9"s).dump(), "\"\\u0001\\u001f\x7f\\\"\\\\/\xC3\xA9\"");
    EXPECT_EQ(json("x\xFF\xED\xA0\x80"s).dump(), "\"x" + R + R + R + R + "\"");
    EXPECT_EQ(json("a\0b"s).dump(), "\"a\\u0000b\"");
    EXPECT_EQ(json::object().set("k\xFF\n", 1).dump(), "{\"k" + R + "\\n\":1}");
    // Every byte at every place of a word, since scanning goes by eight.
    for (int b = 0; b < 256; ++b) {
        for (std::size_t at = 0; at < 17; ++at) {
            std::string text(17, 'x');
            text[at] = static_cast<char>(b);
            const boost::system::result<json> back = json::parse(json(text).dump());
            ASSERT_TRUE(back.has_value());
            EXPECT_EQ(back->as_string(), reagent::repair_utf8(text));
        }
    }
}

TEST(JsonWrite, PrettyTextIsForPeople)
{
    EXPECT_EQ(json::parse("{\"a\":[1,{}],\"b\":[]}")->dump_pretty(), "{\n  \"a\": [\n    1,\n    {}\n  ],\n  \"b\": []\n}");
    std::string out = "x";
    json(1).dump_to(out);
    EXPECT_EQ(out, "x1");
}

}  // namespace json_test
}  // namespace

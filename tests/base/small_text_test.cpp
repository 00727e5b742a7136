#include <reagent/base/base64.hpp>
#include <reagent/base/error.hpp>
#include <reagent/base/log_sink.hpp>
#include <reagent/base/random.hpp>
#include <reagent/base/secret.hpp>
#include <reagent/base/time_text.hpp>

#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <set>
#include <sstream>

namespace {
namespace small_text_test {
using namespace reagent;
using namespace std::chrono_literals;
using namespace std::string_literals;

TEST(Base64, EncodesAndDecodesEveryLength)
{
    const std::pair<std::string, std::string> rows[] = {{"", ""},
                                                        {"f", "Zg=="},
                                                        {"fo", "Zm8="},
                                                        {"foo", "Zm9v"},
                                                        {"foob", "Zm9vYg=="},
                                                        {"fooba", "Zm9vYmE="},
                                                        {"foobar", "Zm9vYmFy"},
                                                        {"\xFB\xFF\xFE", "+//+"},
                                                        {"\0\0"s, "AAA="}};
    for (const auto& [bytes, text] : rows) {
        EXPECT_EQ(base64_encode(bytes), text);
        EXPECT_EQ(*base64_decode(text), bytes);
    }
    std::string all;
    for (int b = 0; b < 256; ++b) {
        all.push_back(static_cast<char>(b));
        EXPECT_EQ(*base64_decode(base64_encode(all)), all);
    }
}

TEST(Base64, IsStrict)
{
    for (const char* text : {"Z", "Zg", "Zg=", "Zg===", "Zh==", "Zm9=", "====", "=AAA", "A=AA", "Zg==Zg==", "Zm9v\n", "Zm 9", "-_-_", "Zm9vYg==="}) {
        const boost::system::result<std::string> r = base64_decode(text);
        ASSERT_FALSE(r.has_value()) << text;
        EXPECT_EQ(r.error(), errc::invalid_argument);
    }
}

TEST(Secret, PrintsAsStarsAndTrims)
{
    const secret s(" \tsk-canary-1\n");
    EXPECT_EQ(s.reveal(), "sk-canary-1");
    std::ostringstream out;
    out << s;
    EXPECT_EQ(out.str(), "***");
    EXPECT_EQ(::testing::PrintToString(s).find("canary"), std::string::npos);
    EXPECT_TRUE(secret().empty());
    EXPECT_TRUE(secret("  ").empty());
}

TEST(Secret, CopiesAndMovesKeepTheValueInOnePlaceEach)
{
    for (const std::string& value : {"short"s, "a much longer secret that does not fit into the string itself"s}) {
        secret a{std::string_view(value)};
        secret b(a);
        secret c(std::move(a));
        EXPECT_EQ(b.reveal(), value);
        EXPECT_EQ(c.reveal(), value);
        EXPECT_TRUE(a.empty());  // NOLINT: the moved-from value must be gone
        b = secret("other");
        EXPECT_EQ(b.reveal(), "other");
        b = c;
        const secret& self = b;
        b = self;
        EXPECT_EQ(b.reveal(), value);
    }
}

TEST(Secret, MovedFromMemoryIsWiped)
{
    secret a("canary7");  // short enough to live inside the object
    const secret b(std::move(a));
    const std::string_view raw(reinterpret_cast<const char*>(&a), sizeof a);
    EXPECT_EQ(raw.find("canary"), std::string_view::npos);
    EXPECT_EQ(b.reveal(), "canary7");
}

TEST(Secret, ComesFromEnvironmentOrFile)
{
    ::setenv("REAGENT_TEST_SECRET", " value ", 1);
    EXPECT_EQ(secret::from_env("REAGENT_TEST_SECRET").reveal(), "value");
    ::unsetenv("REAGENT_TEST_SECRET");
    EXPECT_TRUE(secret::from_env("REAGENT_TEST_SECRET").empty());

    const std::string path = (std::filesystem::temp_directory_path() / ("reagent_secret_" + random_hex({}, 12))).string();
    std::ofstream(path) << "key-1\r\nsecond line\n";
    EXPECT_EQ(secret::from_file(path).reveal(), "key-1");
    std::ofstream(path) << "\nsecond line\n";
    EXPECT_THROW(secret::from_file(path), config_error);
    std::filesystem::remove(path);
    try {
        secret::from_file(path);
        FAIL();
    } catch (const config_error& e) {
        EXPECT_NE(e.message().find(path), std::string::npos);
    }
}

TEST(Random, HexAndUuidComeFromTheSource)
{
    std::uint64_t next = 0;
    const random_source counter = [&next] { return 0x0123456789ABCDEFu + next++; };
    EXPECT_EQ(random_hex(counter, 0), "");
    EXPECT_EQ(next, 0u);
    EXPECT_EQ(random_hex(counter, 5), "01234");
    EXPECT_EQ(random_hex(counter, 20), "0123456789abcdf00123");
    EXPECT_EQ(random_hex(counter, 1000).size(), 64u);
    const random_source ones = [] { return ~std::uint64_t(0); };
    EXPECT_EQ(random_uuid(ones), "ffffffff-ffff-4fff-bfff-ffffffffffff");
    const random_source zeros = [] { return std::uint64_t(0); };
    EXPECT_EQ(random_uuid(zeros), "00000000-0000-4000-8000-000000000000");
    std::set<std::string> seen;
    for (int i = 0; i < 1000; ++i) seen.insert(random_uuid({}));
    EXPECT_EQ(seen.size(), 1000u);
}

TEST(LogSink, DropsByDefaultAndCallsWhatItWasGiven)
{
    log_sink()(log_level::error, "nobody");
    EXPECT_FALSE(log_sink());
    std::string got;
    const log_sink sink([&got](log_level, std::string_view line) { got = line; });
    const log_sink copy = sink;
    copy(log_level::info, "line");
    EXPECT_TRUE(copy);
    EXPECT_EQ(got, "line");
}

system_time at(std::int64_t ms)
{
    return system_time(std::chrono::milliseconds(ms));
}

TEST(TimeText, Iso8601RoundTrips)
{
    EXPECT_EQ(format_iso8601(at(0)), "1970-01-01T00:00:00.000Z");
    EXPECT_EQ(format_iso8601(at(-1)), "1969-12-31T23:59:59.999Z");
    EXPECT_EQ(format_iso8601(at(951782400123)), "2000-02-29T00:00:00.123Z");
    EXPECT_EQ(format_iso8601(at(1) + 999us), "1970-01-01T00:00:00.001Z");
    for (std::int64_t ms : {0LL, -1LL, 951782400123LL, 1796037964001LL, 4102444799999LL}) EXPECT_EQ(parse_rfc3339(format_iso8601(at(ms))), at(ms));
}

TEST(TimeText, Rfc3339)
{
    struct row {
        const char* text;
        std::optional<std::int64_t> ms;
    };
    const row rows[] = {
        {"1970-01-01T00:00:00Z", 0},
        {"1970-01-01t00:00:00z", 0},
        {"1970-01-01 00:00:00Z", 0},
        {"1970-01-01T00:00:00.5Z", 500},
        {"1970-01-01T00:00:00.0019Z", 1},
        {"1970-01-01T02:30:00+02:30", 0},
        {"1969-12-31T23:00:00-01:00", 0},
        {"2024-02-29T00:00:00Z", 1709164800000},
        {"2016-12-31T23:59:60Z", 1483228800000},
        {"2023-02-29T00:00:00Z", {}},
        {"1970-13-01T00:00:00Z", {}},
        {"1970-01-32T00:00:00Z", {}},
        {"1970-01-01T24:00:00Z", {}},
        {"1970-01-01T00:60:00Z", {}},
        {"1970-01-01T00:00:61Z", {}},
        {"1970-01-01T00:00:00", {}},
        {"1970-01-01", {}},
        {"1970-01-01T00:00:00.Z", {}},
        {"1970-01-01T00:00:00+24:00", {}},
        {"1970-01-01T00:00:00+0100", {}},
        {"1970-1-1T00:00:00Z", {}},
        {"1970-01-01T00:00:00Zx", {}},
        {"0001-01-01T00:00:00Z", {}},
        {"9999-01-01T00:00:00Z", {}},
        {"", {}},
    };
    for (const row& r : rows) {
        const std::optional<system_time> t = parse_rfc3339(r.text);
        ASSERT_EQ(t.has_value(), r.ms.has_value()) << r.text;
        if (t) { EXPECT_EQ(std::chrono::floor<std::chrono::milliseconds>(*t), at(*r.ms)) << r.text; }
    }
}

TEST(TimeText, HttpDatesInAllThreeForms)
{
    const system_time now = *parse_rfc3339("2026-06-01T00:00:00Z");
    const system_time wanted = *parse_rfc3339("1994-11-06T08:49:37Z");
    EXPECT_EQ(parse_http_date("Sun, 06 Nov 1994 08:49:37 GMT", now), wanted);
    EXPECT_EQ(parse_http_date("Sunday, 06-Nov-94 08:49:37 GMT", now), wanted);
    EXPECT_EQ(parse_http_date("Sun Nov  6 08:49:37 1994", now), wanted);
    EXPECT_EQ(parse_http_date("Wed Nov 16 08:49:37 1994", now), wanted + 240h);
    EXPECT_EQ(parse_http_date("Thursday, 06-Nov-76 08:49:37 GMT", now), parse_rfc3339("2076-11-06T08:49:37Z"));
    EXPECT_EQ(parse_http_date("Sunday, 06-Nov-77 08:49:37 GMT", now), parse_rfc3339("1977-11-06T08:49:37Z"));
    for (const char* text : {"", "soon", "Sun, 06 Nov 1994 08:49:37", "Sun, 06 Nov 1994 08:49:37 UTC", "Sun, 6 Nov 1994 08:49:37 GMT",
                             "Sun, 31 Feb 1994 08:49:37 GMT", "Xun, 06 Nov 1994 08:49:37 GMT", "Sun, 06 Nvo 1994 08:49:37 GMT", "Sun, 06 Nov 1994 25:49:37 GMT",
                             "Sunday, 06 Nov 94 08:49:37 GMT", "Sun Nov 6 08:49:37 1994", "Sun, 06 Nov 1994 08:49:37 GMT "}) {
        EXPECT_EQ(parse_http_date(text, now), std::nullopt) << text;
    }
}

TEST(TimeText, GoDurations)
{
    const std::pair<const char*, std::chrono::nanoseconds> good[] = {{"1h2m3s", 3723s},
                                                                     {"6m0s", 360s},
                                                                     {"100ms", 100ms},
                                                                     {"1.5s", 1500ms},
                                                                     {"0", 0s},
                                                                     {"0s", 0s},
                                                                     {"-2us", -2us},
                                                                     {"+5ns", 5ns},
                                                                     {"3\xC2\xB5s", 3us},
                                                                     {"3\xCE\xBCs", 3us},
                                                                     {".5s", 500ms},
                                                                     {"1.s", 1s},
                                                                     {"1m30.25s", 90250ms},
                                                                     {"999999999h", std::chrono::nanoseconds::max()},
                                                                     {"-999999999h", std::chrono::nanoseconds::min()}};
    for (const auto& [text, wanted] : good) { EXPECT_EQ(parse_go_duration(text), wanted) << text; }
    for (const char* text : {"", "-", "1", "s", "\xC2\xB5s", "1x", "1h 2m", "1e3s", ".s", "1..5s", "ms", "1d"})
        EXPECT_EQ(parse_go_duration(text), std::nullopt) << text;
}

}  // namespace small_text_test
}  // namespace

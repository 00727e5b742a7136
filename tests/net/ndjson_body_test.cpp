#include "net_world.hpp"

#include <reagent/net/ndjson_body.hpp>

#include <gtest/gtest.h>

namespace reagent {
namespace {
namespace ndjson_body_test {

using namespace net_tests;
using testing::byte_script;

/// Values, `|` behind each batch when asked, and how it ended: `.` or the error.
awaitable<std::string> values_of(http_client client, http_request request, bool batches)
{
    http_exchange x = co_await client.open(std::move(request));
    ndjson_body body(std::move(x), 40);
    std::string seen;
    for (int ends = 0; ends < 2;) {
        try {
            std::vector<json> values;
            const bool more = co_await body.read(values);
            for (const json& v : values) seen += v.dump() + " ";
            if (!more) ++ends;
            seen += !more ? "." : batches ? "| " : "";
        } catch (const error& e) {
            seen += e.message() + ";";
            ++ends;
        }
    }
    co_return seen;
}

std::string read_all(const std::vector<std::string>& pieces, bool batches = false)
{
    world w;
    std::vector<testing::byte_script> script(1);
    script[0].request().send(testing::http_head(200, {{"Content-Type", "application/x-ndjson"}, {"Transfer-Encoding", "chunked"}}));
    for (std::size_t i = 0; i < pieces.size(); ++i) script[0].send(testing::http_chunk(pieces[i])).gate(std::to_string(i));
    script[0].send(testing::http_chunk(""));
    testing::byte_server server = w.server(std::move(script));
    cancellable op(w.context, values_of(w.client(), world::get(server), batches));
    for (std::size_t i = 0; i < pieces.size(); ++i) {
        w.idle();
        server.open(std::to_string(i));
    }
    EXPECT_TRUE(w.until([&] { return op.done(); }));
    return op.message();
}

TEST(NdjsonBody, AnyCutOfTheBodyGivesTheSameValues)
{
    struct row {
        std::string text, expected;
    };
    const std::string not_json = "[ndjson] line 3 is not JSON: {\"a\":;", too_long = "[ndjson] line 2 is too long;";
    const row rows[] = {
        {"{\"a\":1}\n\r\n[2]\r\n\"x\"", "{\"a\":1} [2] \"x\" .."},
        {"1\n\n{\"a\":\n2\n", "1 " + not_json + not_json},
        {"1\n" + std::string(41, '2') + "\n3\n", "1 " + too_long + too_long},
        {"\n", ".."},
    };
    for (const row& r : rows) {
        EXPECT_EQ(read_all({r.text}), r.expected);
        for (std::size_t cut = 1; cut < r.text.size(); ++cut)
            EXPECT_EQ(read_all({r.text.substr(0, cut), r.text.substr(cut)}), r.expected) << r.text << " cut at " << cut;
    }
}

TEST(NdjsonBody, WhatHasComeIsHandedOutTogether)
{
    EXPECT_EQ(read_all({"1\n2\n3", "\n", "4\n", "5"}, true), "1 2 | 3 | 4 | 5 | ..");
    // Foreign words are marked and bounded.
    const std::string told = read_all({"\x1b[31m\xff" + std::string(30, 'x') + "\n"});
    EXPECT_EQ(told.find('\x1b'), std::string::npos);
    EXPECT_NE(told.find("line 1 is not JSON"), std::string::npos) << told;
}

TEST(NdjsonBody, ABodyThatIsCutIsAnErrorAfterItsValues)
{
    world w;
    testing::byte_server server = w.server(byte_script().request().send(testing::http_head(200, {{"Content-Length", "100"}}) + "1\n2\n3").close());
    cancellable op(w.context, values_of(w.client(), world::get(server), false));
    ASSERT_TRUE(w.until([&] { return op.done(); }));
    EXPECT_TRUE(op.message().starts_with("1 2 [http] GET ")) << op.message();
}

}  // namespace ndjson_body_test
}  // namespace
}  // namespace reagent

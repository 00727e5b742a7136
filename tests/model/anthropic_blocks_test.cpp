#include "anthropic_events.hpp"

#include <gtest/gtest.h>

namespace {
namespace anthropic_blocks_test {

using namespace reagent;
using namespace reagent::anthropic_events_detail;

const std::string thinking_block = R"({"type":"thinking","thinking":"","signature":""})";

TEST(AnthropicBlocks, BlocksAreKeptToTheLetter)
{
    class row {
    public:
        std::vector<std::string> events;
        const char* blocks;
    };
    for (const row& r : {
             row{{start(0, R"({"type":"thinking","thinking":"x","signature":"A"})"), thinking_delta(0, "y\n"),
                  delta(0, R"({"type":"signature_delta","signature":"+/="})")},
                 R"([{"type":"thinking","thinking":"xy\n","signature":"A+/="}])"},
             row{{start(0, R"({"type":"thinking"})"), delta(0, R"({"type":"signature_delta","signature":"S"})")}, R"([{"type":"thinking","signature":"S"}])"},
             row{{start(0, R"({"signature":"","type":"thinking","thinking":"","x":1.0})"), thinking_delta(0, "t")},
                 R"([{"signature":"","type":"thinking","thinking":"t","x":1.0}])"},
             row{{start(0, R"({"type":"server_tool_use","id":"s","name":"web_search","input":{}})"), json_delta(0, "{\"query\""), json_delta(0, ":2.50}")},
                 R"([{"type":"server_tool_use","id":"s","name":"web_search","input":{"query":2.50}}])"},
             row{{start(0, R"({"type":"server_tool_use","input":{"a":1}})"), json_delta(0, "{\"cut")}, R"([{"type":"server_tool_use","input":{"a":1}}])"},
             row{{start(0, R"({"type":"odd"})"), delta(0, R"({"type":"text_delta","text":"a"})"), delta(0, R"({"type":"text_delta","text":"b"})")},
                 R"([{"type":"odd","text":"ab"}])"},
             row{{start(0, R"({"type":"odd"})"), delta(0, R"({"type":"odd_delta","n":1.50})"), delta(0, R"({"type":"odd_delta","n":2})")},
                 R"([{"type":"odd","deltas":[{"type":"odd_delta","n":1.50},{"type":"odd_delta","n":2}]}])"},
             row{{start(0, R"({"type":"odd","citations":[1]})"), delta(0, R"({"type":"citations_delta","citation":{"n":1.0}})")},
                 R"([{"type":"odd","citations":[1,{"n":1.0}]}])"},
             row{{start(0, R"({"type":"odd"})"), delta(0, R"({"type":"citations_delta"})")}, R"([{"type":"odd","deltas":[{"type":"citations_delta"}]}])"},
             row{{start(0, R"({"type":"odd"})"), delta(0, "7"), delta(1, R"({"type":"signature_delta","signature":"S"})"), thinking_delta(2, "lost")},
                 R"([{"type":"odd"}])"},
         }) {
        decoding d;
        d.event(began);
        d.feed(r.events);
        ASSERT_EQ(d.feed({stop(0), ended("end_turn"), over}), decode_state::done);
        const generate_result got = d.result();
        EXPECT_EQ(got.blocks.value().blocks.dump(), r.blocks);
        EXPECT_EQ(got.blocks->provider, "anthropic");
        EXPECT_EQ(got.blocks->model, "m") << "the configured model decides about the replay";
        EXPECT_EQ(got.model, "m-1");
        EXPECT_EQ(got.text, "");
    }
}

TEST(AnthropicBlocks, TheOrderIsRecordedWhereItIsNotTheUsualOne)
{
    const std::string thought = R"({"type":"thinking","thinking":"t","signature":"S"})", search = R"({"type":"server_tool_use","id":"s","input":{}})";
    const std::string hi = R"({"type":"text","text":"hé"})", blank = R"({"type":"text","text":"\n\n"})",
                      call = R"({"type":"tool_use","id":"c","name":"f","input":{}})";
    const auto layout = [](const std::string& content) {
        decoding d;
        EXPECT_EQ(d.body(whole(content)), decode_state::done);
        return d.result().blocks.value().layout["order"].dump();
    };
    EXPECT_EQ(layout(thought), "null");
    EXPECT_EQ(layout(thought + "," + hi + "," + hi + "," + call + "," + call), "null");
    EXPECT_EQ(layout(blank + "," + thought + "," + call), "null") << "blank text is not written";
    EXPECT_EQ(layout(thought + "," + hi + "," + search + "," + hi + "," + hi), R"([{"block":0},{"text":3},{"block":1},{"text":6}])");
    EXPECT_EQ(layout(call + "," + thought + "," + call), R"([{"call":"c"},{"block":0},{"call":"c__2"}])") << "ids as they are in the result";
    EXPECT_EQ(layout(hi + "," + call + "," + hi + "," + thought), R"([{"text":3},{"call":"c"},{"text":3},{"block":0}])");
}

TEST(AnthropicBlocks, DeltasOfABlockThatNeverBeganAreNotLost)
{
    decoding text, arguments;
    ASSERT_EQ(text.feed({text_delta(3, "a"), text_delta(3, "b"), ended("end_turn"), over}), decode_state::done);
    EXPECT_EQ(text.kinds().front(), event_kind::start);
    EXPECT_EQ(text.result().text, "ab");
    ASSERT_EQ(arguments.feed({began, json_delta(0, "{}"), stop(0), ended("tool_use"), over}), decode_state::done);
    const generate_result r = arguments.result();
    EXPECT_TRUE(r.tool_calls.empty());
    EXPECT_EQ(r.malformed.value().error, "a tool call without a name");
}

TEST(AnthropicBlocks, ASampleServesItsOwnBlockOnly)
{
    // The same bytes mean thinking, then text, then nothing: what they belong to changes between them.
    const std::string same = delta(0, R"({"type":"thinking_delta","thinking":"aa"})"), text = text_delta(0, "bb");
    decoding d;
    ASSERT_EQ(d.feed({began,   start(0, thinking_block), same, same, same, stop(0), start(0, text_block), same, text, text, text, same,
                      stop(0), start(0, thinking_block), same, same, text, stop(0), ended("end_turn"),    over}),
              decode_state::done);
    const generate_result r = d.result();
    EXPECT_EQ(r.text, "bbbbbb");
    EXPECT_EQ(r.blocks.value().blocks.dump(),
              R"([{"type":"thinking","thinking":"aaaaaa","signature":""},{"type":"thinking","thinking":"aaaa","signature":"","text":"bb"}])");
    EXPECT_EQ(d.text_of(event_kind::thinking), "aaaaaaaaaa");
    decoding three;
    three.feed({began, start(0, thinking_block), start(1, thinking_block), same, same, same, ended("end_turn"), over});
    EXPECT_EQ(three.result().blocks.value().blocks[0]["thinking"].as_string(), "aaaaaa") << "of the index it names";
    // Interleaved blocks: what is repeated belongs to the index it names.
    decoding two;
    two.feed({began, start(0, text_block), text_delta(0, "aa"), start(1, R"({"type":"odd"})"), text_delta(0, "aa"), text_delta(1, "aa"), text_delta(0, "bb"),
              text_delta(0, "bb")});
    ASSERT_EQ(two.feed({ended("end_turn"), over}), decode_state::done);
    const generate_result both = two.result();
    EXPECT_EQ(both.text, "aaaabbbb");
    EXPECT_EQ(both.blocks.value().blocks.dump(), R"([{"type":"odd","text":"aa"}])");
}

TEST(AnthropicBlocks, ThinkingIsSeenInItsBlocks)
{
    const auto seen = [](const std::string& content) {
        decoding d;
        EXPECT_EQ(d.body(whole(content)), decode_state::done);
        return d.decoder->thinking_seen();
    };
    EXPECT_EQ(seen(R"({"type":"text","text":"x"})"), thinking_signal::none);
    EXPECT_EQ(seen(R"({"type":"odd","thinking":"x"})"), thinking_signal::none);
    EXPECT_EQ(seen(R"({"type":"thinking","thinking":"","signature":"S"})"), thinking_signal::seen);
    EXPECT_EQ(seen(R"({"type":"redacted_thinking","data":"S"})"), thinking_signal::seen);
}

}  // namespace anthropic_blocks_test
}  // namespace

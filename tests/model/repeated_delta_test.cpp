#include "repeated_delta.hpp"

#include <reagent/model/openai_codec.hpp>
#include <reagent/model/openai_decoder.hpp>

#include <gtest/gtest.h>

#include <string>

namespace reagent {
namespace {
namespace repeated_delta_test {

using model_detail::repeated_delta;

constexpr std::string_view chunk =
    R"({"id":"c1","created":1700000000,"choices":[{"index":0,"delta":{"content":" one"},"finish_reason":null}],"obfuscation":"abc"})";

std::string with(std::string_view text, std::string_view created = "1700000000", std::string_view padding = "abc")
{
    return R"({"id":"c1","created":)" + std::string(created) + R"(,"choices":[{"index":0,"delta":{"content":")" + std::string(text) +
        R"("},"finish_reason":null}],"obfuscation":")" + std::string(padding) + "\"}";
}

repeated_delta taught()
{
    repeated_delta r;
    r.learn(chunk, " one");
    return r;
}

/// What the chunk after `first` leads to.
std::string answer(const openai_codec& codec, std::string_view first, std::string_view second)
{
    openai_decoder d(codec, {}, "");
    d.on_event(first, "message", nullptr);
    event_batch out;
    const decode_state state = d.on_event(second, "message", &out);
    std::string seen = std::to_string(static_cast<int>(state)) + d.text() + (d.complete() ? " complete" : " open");
    if (d.reported_usage()) seen += d.reported_usage()->to_json().dump();
    if (state == decode_state::failed) seen += d.take_failure().message();
    for (const event& e : out) seen += e.to_json().dump();
    return seen;
}

}  // namespace repeated_delta_test

using namespace repeated_delta_test;

TEST(RepeatedDelta, TakesAnotherTextNumberAndPadding)
{
    repeated_delta r = taught();
    EXPECT_EQ(r.match(with(" two")), " two");
    EXPECT_EQ(r.match(with("π \xE2\x82\xAC", "0", "")), "π \xE2\x82\xAC");
    EXPECT_EQ(r.match(with("a longer text than the one before", "999999999999999999", "a longer padding")), "a longer text than the one before");
    EXPECT_EQ(r.match(chunk), " one");
}

TEST(RepeatedDelta, FollowsTheShapeOfAnotherWireAndTellsItsNumbers)
{
    model_detail::delta_shape shape;
    shape.text = "\"text\"";
    shape.digits = {"\"in\"", "\"out\"", "\"all\""};
    shape.strings = {"\"at\""};
    repeated_delta r(shape);
    r.learn(R"({"text":"a","at":"t0","out":1,"all":3})", "a");
    EXPECT_EQ(r.match(R"({"text":"bc","at":"t10","out":22,"all":9})"), "bc");
    EXPECT_FALSE(r.number(0).has_value());
    EXPECT_EQ(r.number(1), 22U);
    EXPECT_EQ(r.number(2), 9U);
    EXPECT_FALSE(r.match(R"({"text":"bc","at":"t10","out":22,"all":9,"created":1})").has_value());
    EXPECT_EQ(r.match(R"({"text":"bc","at":"t10","out":0,"all":9})"), "bc");
    EXPECT_EQ(r.number(1), 0U);
}

TEST(RepeatedDelta, LeavesTheRestToTheParser)
{
    repeated_delta r = taught();
    for (const std::string& other : {
             with(""),
             with("a\\n"),
             with("a\tb"),
             with("a\"b"),
             with("\xC3"),
             with("\xED\xA0\x80"),
             with("x", "1e3"),
             with("x", "01"),
             with("x", "-1"),
             with("x", "1.5"),
             with("x", "1234567890123456789"),
             with("x", ""),
             with("x", "1", "\\u0041"),
             with("x") + " ",
             " " + with("x"),
             with("x").substr(0, 90),
             std::string(),
             std::string("[DONE]"),
             std::string(R"({"id":"c1","created":1700000000,"choices":[{"index":0,"delta":{"content":" one"},"finish_reason":"stop"}],"obfuscation":"abc"})"),
             std::string(R"({"id":"c2","created":1700000000,"choices":[{"index":0,"delta":{"content":" one"},"finish_reason":null}],"obfuscation":"abc"})"),
         })
        EXPECT_FALSE(r.match(other).has_value()) << other;
}

TEST(RepeatedDelta, WhatIsAmbiguousIsNotLearned)
{
    for (const std::string_view other : {
             std::string_view(R"({"content":"a","choices":[{"delta":{"content":"a"}}]})"),                  // two of the name
             std::string_view(R"({"content":"a","choices":[{"delta":{"c\u006fntent":"a"}}]})"),             // one behind escapes
             std::string_view(R"({"choices":[{"delta":{"content":"a"}}],"created":1,"x":{"created":2}})"),  // two numbers
             std::string_view(R"({"content":"b","choices":[{"delta":{"x":"a"}}]})"),                        // not the text that was read
         }) {
        repeated_delta r;
        r.learn(other, "a");
        EXPECT_FALSE(r.match(other).has_value()) << other;
    }
    repeated_delta r;
    const std::string long_chunk = R"({"choices":[{"delta":{"content":"a"}}],"x":")" + std::string(repeated_delta::longest, 'x') + "\"}";
    r.learn(long_chunk, "a");
    EXPECT_FALSE(r.match(long_chunk).has_value());
}

TEST(RepeatedDelta, AWordThatIsAValueOrAnotherKindStaysLiteral)
{
    repeated_delta r;
    r.learn(R"({"object":"created","obfuscation":7,"choices":[{"delta":{"content":"a"}}],"created":1.5})", "");
    EXPECT_FALSE(r.match(R"({"object":"created","obfuscation":7,"choices":[{"delta":{"content":"a"}}],"created":1.5})").has_value());
    r.learn(R"({"object":"obfuscation","created":1.5,"choices":[{"delta":{"content":"a"}}]})", "a");
    EXPECT_EQ(r.match(R"({"object":"obfuscation","created":1.5,"choices":[{"delta":{"content":"b"}}]})"), "b");
    EXPECT_FALSE(r.match(R"({"object":"obfuscation","created":2.5,"choices":[{"delta":{"content":"b"}}]})").has_value());
}

TEST(RepeatedDelta, AStreamThatNeverRepeatsIsGivenUp)
{
    repeated_delta r;
    const auto counted = [](unsigned n) { return R"({"n":)" + std::to_string(n) + R"(,"choices":[{"delta":{"content":"a"}}]})"; };
    for (unsigned i = 0; i < repeated_delta::patience; ++i) r.learn(counted(i), "a");
    r.learn(counted(100), "a");
    EXPECT_FALSE(r.match(counted(100)).has_value());
    EXPECT_TRUE(r.match(counted(repeated_delta::patience - 1)).has_value());
}

/// A decoder that has a sample answers as one that has none, whichever byte of the next chunk is another.
TEST(RepeatedDelta, WhateverByteChangesTheDecoderAnswersAsTheParser)
{
    const openai_codec codec{openai_codec_options()};
    const std::string sampled = with(" one"), escaped = with("\\u0020one"), next = with(" two", "1700000001", "xyz");
    ASSERT_EQ(answer(codec, sampled, next), answer(codec, escaped, next));
    constexpr std::string_view bytes = "\"\\{}[]:,.0159eE-+ntfu \t\n\r\x01\x7F\xC3\xA9\xFF";
    for (std::size_t at = 0; at < next.size(); ++at) {
        for (const char c : bytes) {
            std::string changed = next;
            changed[at] = c;
            ASSERT_EQ(answer(codec, sampled, changed), answer(codec, escaped, changed)) << changed;
        }
        const std::string cut = next.substr(0, at);
        ASSERT_EQ(answer(codec, sampled, cut), answer(codec, escaped, cut)) << cut;
    }
}

}  // namespace
}  // namespace reagent

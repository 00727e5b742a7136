#include <reagent/base/error.hpp>
#include <reagent/model/message.hpp>

#include <gtest/gtest.h>

namespace {
namespace message_test {

using namespace reagent;

message_ptr parsed(std::string_view text)
{
    return message::from_json(json::parse_or_throw(text, "test"));
}

TEST(Message, ProjectsTextRolesBothWays)
{
    for (const char* text : {R"({"role":"system","content":"be terse"})", R"({"role":"user","content":"hi"})", R"({"role":"assistant","content":"ok"})",
                             R"({"role":"tool","content":"one","tool_call_id":"a"})", R"({"role":"developer","content":"x"})",
                             R"({"role":"assistant","content":null})", R"({"role":"user","content":""})"})
        EXPECT_EQ(parsed(text)->to_json().dump(), text);
}

TEST(Message, KeepsKeysItDoesNotKnow)
{
    const message_ptr m = parsed(R"({"role":"user","content":"hi","foo":1,"name":"ann"})");
    EXPECT_EQ(m->extra.dump(), R"({"foo":1,"name":"ann"})");
    EXPECT_EQ(m->to_json().dump(), R"({"role":"user","content":"hi","foo":1,"name":"ann"})");
}

TEST(Message, ReadsToolCallsAndBlocks)
{
    const char* text = R"({"role":"assistant","content":null,"tool_calls":[{"id":"a","type":"function","function":{"name":"find","arguments":"{\"q\":1}"}}],)"
                       R"("providerBlocks":{"provider":"openai","model":"m","blocks":[{"type":"reasoning_content","text":"t"}]}})";
    const message_ptr m = parsed(text);
    ASSERT_EQ(m->calls().size(), 1U);
    EXPECT_EQ(m->calls()[0]->arguments["q"].get_int64(), 1);
    ASSERT_NE(m->blocks(), nullptr);
    EXPECT_EQ(m->blocks()->provider, "openai");
    EXPECT_EQ(m->to_json().dump(), text);
}

TEST(Message, Case_B5_NumbersOfReplayedHistoryKeepTheirText)
{
    for (const char* number : {"9007199254740993", "9223372036854775807", "18446744073709551615", "1e400", "-0.0", "2512292042121000001"}) {
        const std::string arguments = std::string(R"({\"id\":)") + number + "}";
        const std::string text =
            R"({"role":"assistant","content":null,"tool_calls":[{"id":"a","type":"function","function":{"name":"get","arguments":")" + arguments + R"("}}]})";
        EXPECT_EQ(parsed(text)->to_json().dump(), text);
    }
}

TEST(Message, KeepsArgumentsThatAreNoJson)
{
    const char* text = R"({"role":"assistant","content":null,"tool_calls":[{"id":"a","type":"function","function":{"name":"f","arguments":"{\"q\":"}}]})";
    EXPECT_EQ(parsed(text)->to_json().dump(), text);
}

TEST(Message, RecognisesImagesOfBothShapes)
{
    const message_ptr neutral = parsed(
        R"({"role":"user","content":[{"type":"text","text":"what?"},{"type":"image","source":{"kind":"base64","mediaType":"image/png","data":"aaaa"},"detail":"low"}]})");
    const message_ptr openai = parsed(
        R"({"role":"user","content":[{"type":"text","text":"what?"},{"type":"image_url","image_url":{"url":"data:image/png;base64,aaaa","detail":"low"}}]})");
    EXPECT_EQ(*neutral, *openai);
    ASSERT_TRUE(std::holds_alternative<image_part>(neutral->parts[1]));
    EXPECT_EQ(std::get<image_part>(neutral->parts[1]).data_base64, "aaaa");
    const message_ptr linked = parsed(R"({"role":"user","content":[{"type":"image","source":{"kind":"url","url":"https://x/y.png"}}]})");
    EXPECT_EQ(std::get<image_part>(linked->parts[0]).url, "https://x/y.png");
}

TEST(Message, LeavesForeignPartsAsTheyAre)
{
    const char* text =
        R"({"role":"user","content":[{"type":"input_audio","input_audio":{"data":"x"}},{"type":"text","text":"t","cache_control":{"type":"ephemeral"}}]})";
    const message_ptr m = parsed(text);
    EXPECT_EQ(m->to_json().dump(), text);
    EXPECT_EQ(m->text(), "t");
}

TEST(Message, TextOfPartsIsJoinedByLineFeed)
{
    EXPECT_EQ(parsed(R"({"role":"tool","tool_call_id":"a","content":[{"type":"text","text":"one"},{"type":"text","text":"more"}]})")->text(), "one\nmore");
}

TEST(Message, FaultsNameWhere)
{
    const auto fault = [](const char* text) -> std::string {
        try {
            static_cast<void>(transcript_from_json(json::parse_or_throw(text, "test")));
        } catch (const validation_error& e) {
            return e.what();
        }
        return "none";
    };
    EXPECT_EQ(fault(R"([{"role":"user","content":"a"},{"content":"b"}])"), "messages[1]: `role` must be a non-empty string");
    EXPECT_EQ(fault(R"([{"role":"user","content":7}])"), "messages[0]: `content` must be a string, null or an array, not number");
    EXPECT_EQ(fault(R"([{"role":"assistant","content":null,"tool_calls":[{"id":"a"}]}])"), "messages[0].tool_calls[0]: a tool call needs `function.name`");
    EXPECT_EQ(fault(R"({})"), "messages: must be an array, not object");
}

TEST(Message, AssistantOfCallsOnlyHasNullContent)
{
    std::vector<tool_call> calls;
    calls.emplace_back("a", "find", json::object());
    EXPECT_TRUE(message::assistant(" \n", std::move(calls))->content_null);
    EXPECT_FALSE(message::assistant("")->content_null);
}

TEST(CheckTranscript, AcceptsWholeRounds)
{
    std::vector<tool_call> calls;
    calls.emplace_back("a", "f", json::object());
    calls.emplace_back("b", "f", json::object());
    const transcript t = {message::user("hi"), message::assistant("", calls), message::tool_result("b", "2"), message::tool_result("a", "1"),
                          message::assistant("done")};
    EXPECT_TRUE(check_transcript(t).empty());
}

TEST(CheckTranscript, NamesEveryFault)
{
    std::vector<tool_call> calls;
    calls.emplace_back("a", "f", json::object());
    calls.emplace_back("a", "f", json::object());
    calls.emplace_back("", "g", json::object());
    const transcript t = {
        message::user("hi"),   message::assistant("", calls),    message::tool_result("a", "1"), message::tool_result("a", "2"), message::tool_result("x", "3"),
        message::user("next"), message::tool_result("a", "late")};
    const std::vector<std::string> faults = check_transcript(t);
    const auto has = [&](std::string_view text) {
        return std::any_of(faults.begin(), faults.end(), [&](const std::string& f) { return f.find(text) != std::string::npos; });
    };
    EXPECT_TRUE(has("call id a is used twice"));
    EXPECT_TRUE(has("call of g has no id"));
    EXPECT_TRUE(has("call a has more than one result"));
    EXPECT_TRUE(has("result for x answers no call of this round"));
    EXPECT_TRUE(has("messages[6]: result for a answers no call of this round"));
}

TEST(CheckTranscript, Case_B7_ACallWithoutResultIsAFault)
{
    std::vector<tool_call> calls;
    calls.emplace_back("a", "f", json::object());
    const transcript t = {message::user("hi"), message::assistant("", calls)};
    ASSERT_EQ(check_transcript(t).size(), 1U);
    EXPECT_EQ(check_transcript(t)[0], "messages[1]: call a has no result");
}

}  // namespace message_test
}  // namespace

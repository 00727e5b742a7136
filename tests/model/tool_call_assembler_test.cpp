#include "tool_call_assembler.hpp"

#include <gtest/gtest.h>

namespace {
namespace tool_call_assembler_test {

using namespace reagent;
using model_detail::tool_call_assembler;
using model_detail::tool_fragment;

constexpr int none = -1;

tool_fragment piece(int index, std::string_view id, std::string_view name, std::string_view arguments)
{
    tool_fragment f;
    if (index != none) f.index = index;
    f.id = id;
    f.name = name;
    f.arguments = arguments;
    return f;
}

class assembled {
public:
    explicit assembled(const std::vector<tool_fragment>& pieces, tool_list tools = {}, bool expose = false)
    {
        std::uint64_t n = 0;
        tool_call_assembler a(model_detail::default_max_arguments, [n]() mutable { return ++n; });
        for (const tool_fragment& f : pieces) EXPECT_TRUE(a.add(f, &events));
        a.finish(tools, expose, result, &events);
    }
    /// `id name arguments` of each call.
    std::vector<std::string> calls() const
    {
        std::vector<std::string> out;
        for (const tool_call& c : result.tool_calls) out.push_back(c.id + " " + c.name + " " + c.arguments.dump());
        return out;
    }
    /// Events as `kind index id text`.
    std::vector<std::string> story() const
    {
        std::vector<std::string> out;
        for (const event& e : events)
            out.push_back((e.kind == event_kind::tool_start      ? "start "
                               : e.kind == event_kind::tool_args ? "args "
                                                                 : "end ") +
                          std::to_string(e.index) + " " + std::string(e.id) + (e.payload.empty() ? "" : " " + std::string(e.payload)));
        return out;
    }
    generate_result result;
    event_batch events;
};

using texts = std::vector<std::string>;

tool_list requiring_tool()
{
    auto tools = std::make_shared<std::vector<tool_schema>>();
    json required = json::array();
    required.push_back("content");
    tools->emplace_back("write", "", json::object().set("type", "object").set("required", std::move(required)));
    return tools;
}

TEST(ToolCallAssembler, Case_B1_ANewIdAtAUsedIndexStartsANewCall)
{
    EXPECT_EQ(assembled({piece(0, "a", "find", R"({"q":1})"), piece(0, "b", "find", R"({"q":2})")}).calls(), (texts{R"(a find {"q":1})", R"(b find {"q":2})"}));
    // Even when the arguments of the first are still open, and interleaved.
    EXPECT_EQ(assembled({piece(0, "a", "find", R"({"q":)"), piece(0, "b", "find", R"({"q":)"), piece(0, "a", "", "1}"), piece(0, "b", "", "2}")}).calls(),
              (texts{R"(a find {"q":1})", R"(b find {"q":2})"}));
}

TEST(ToolCallAssembler, Case_B1_ANewNameAtAUsedIndexStartsANewCall)
{
    EXPECT_EQ(assembled({piece(0, "", "find", R"({"q":1})"), piece(0, "", "find", R"({"q":2})")}).calls(),
              (texts{R"(call_0000000000000001 find {"q":1})", R"(call_0000000000000002 find {"q":2})"}));
    EXPECT_EQ(assembled({piece(0, "", "find", ""), piece(0, "", "write", "{}")}).result.tool_calls.size(), 2U);
    // With ids on the first fragments only, and while the first call is still open.
    const assembled open({piece(0, "a", "find", R"({"q":1)"), piece(0, "", "write", R"({"q":2})")});
    ASSERT_EQ(open.result.attempted.size(), 2U);
    EXPECT_EQ(open.result.attempted[1].call.name, "write");
    EXPECT_EQ(open.result.attempted[1].call.arguments.dump(), R"({"q":2})");
}

TEST(ToolCallAssembler, ALateIdJoinsAnOpenCallButANamedOneFollowsAWholeCall)
{
    EXPECT_EQ(assembled({piece(0, "", "find", R"({"q":1})"), piece(0, "b", "find", R"({"q":2})")}).calls(),
              (texts{R"(call_0000000000000001 find {"q":1})", R"(b find {"q":2})"}));
    EXPECT_EQ(assembled({piece(0, "", "find", R"({"q":)"), piece(0, "b", "find", "2}")}).result.tool_calls.size(), 1U);
    EXPECT_EQ(assembled({piece(0, "", "find", "{}"), piece(0, "b", "", "")}).result.tool_calls.size(), 1U);
}

TEST(ToolCallAssembler, Case_B1_ServersThatRepeatIdAndNameMeanOneCall)
{
    EXPECT_EQ(assembled({piece(0, "a", "find", R"({"q")"), piece(0, "a", "find", ":1"), piece(0, "a", "find", "}")}).calls(), (texts{R"(a find {"q":1})"}));
    EXPECT_EQ(assembled({piece(0, "a", "find", R"({"q")"), piece(0, "", "find", ":1}")}).calls(), (texts{R"(a find {"q":1})"}));
}

TEST(ToolCallAssembler, Case_B2_FragmentsWithoutIdFindTheirCall)
{
    // One call, later fragments under another index.
    EXPECT_EQ(assembled({piece(0, "a", "find", R"({"q":)"), piece(1, "", "", "1}")}).calls(), (texts{R"(a find {"q":1})"}));
    // Ids only on the first fragments.
    EXPECT_EQ(assembled({piece(0, "a", "find", R"({"q":)"), piece(0, "", "", "1}"), piece(1, "b", "find", "{"), piece(1, "", "", "}")}).calls(),
              (texts{R"(a find {"q":1})", "b find {}"}));
    // Interleaved by index.
    EXPECT_EQ(assembled({piece(0, "a", "find", "{"), piece(1, "b", "find", "{"), piece(0, "", "", "}"), piece(1, "", "", "}")}).calls(),
              (texts{"a find {}", "b find {}"}));
    // No index at all.
    EXPECT_EQ(assembled({piece(none, "a", "find", "{"), piece(none, "", "", "}"), piece(none, "b", "find", "{}")}).calls(), (texts{"a find {}", "b find {}"}));
    // No index, interleaved by id.
    EXPECT_EQ(assembled({piece(none, "a", "find", "{"), piece(none, "b", "find", "{"), piece(none, "a", "", "}"), piece(none, "b", "", "}")}).calls(),
              (texts{"a find {}", "b find {}"}));
    // Four calls on one index, told apart by their names alone.
    EXPECT_EQ(assembled({piece(0, "", "f", R"({"n":1})"), piece(0, "", "f", R"({"n":2})"), piece(0, "", "f", R"({"n":3})"), piece(0, "", "f", R"({"n":4})")})
                  .result.tool_calls.size(),
              4U);
    // Four without even names behind the first: they cannot be told apart, so the round is void by name, and no byte is lost.
    const assembled glued({piece(0, "a", "f", R"({"n":1})"), piece(0, "", "", R"({"n":2})"), piece(0, "", "", R"({"n":3})"), piece(0, "", "", R"({"n":4})")},
                          {}, true);
    EXPECT_TRUE(glued.result.tool_calls.empty());
    ASSERT_TRUE(glued.result.malformed.has_value());
    EXPECT_EQ(glued.result.malformed->raw_arguments, R"({"n":1}{"n":2}{"n":3}{"n":4})");
    // Arguments first, the id and the name behind them.
    EXPECT_EQ(assembled({piece(none, "", "", "{"), piece(none, "a", "find", "}")}).calls(), (texts{"a find {}"}));
    // A name at an index of its own is a call of its own, although it has no id and another is open.
    const assembled named({piece(0, "a", "find", "{"), piece(1, "", "write", "{}"), piece(0, "", "", "}")});
    ASSERT_EQ(named.result.tool_calls.size(), 2U);
    EXPECT_EQ(named.result.tool_calls[1].name, "write");
    // Two calls open at once, both going on under other indexes.
    EXPECT_EQ(assembled({piece(0, "a", "find", R"({"q":)"), piece(1, "b", "find", R"({"q":)"), piece(7, "a", "", "1}"), piece(8, "b", "", "2}")}).calls(),
              (texts{R"(a find {"q":1})", R"(b find {"q":2})"}));
    // The id again under another index, while the call is open.
    EXPECT_EQ(assembled({piece(0, "a", "find", R"({"q":)"), piece(7, "a", "", "1}")}).calls(), (texts{R"(a find {"q":1})"}));
}

TEST(ToolCallAssembler, Case_B2_AnOrphanThatFitsNowhereIsAFaultNotLost)
{
    const assembled a({piece(0, "a", "find", "{}"), piece(3, "", "", R"({"lost":1})")}, {}, true);
    EXPECT_TRUE(a.result.tool_calls.empty());
    ASSERT_TRUE(a.result.malformed.has_value());
    EXPECT_EQ(a.result.malformed->error, "a tool call without a name");
    EXPECT_EQ(a.result.malformed->raw_arguments, R"({"lost":1})");
    EXPECT_EQ(a.result.attempted.size(), 2U);
}

TEST(ToolCallAssembler, Case_B3_EmptyArgumentsAreAnObjectUnlessSomethingIsRequired)
{
    for (const char* blank : {"", " \n", "null"}) {
        EXPECT_EQ(assembled({piece(0, "a", "find", blank)}, requiring_tool()).calls(), (texts{"a find {}"})) << blank;
        const assembled a({piece(0, "a", "write", blank)}, requiring_tool());
        EXPECT_TRUE(a.result.tool_calls.empty()) << blank;
        ASSERT_TRUE(a.result.malformed.has_value()) << blank;
        EXPECT_EQ(a.result.malformed->name, "write");
    }
}

TEST(ToolCallAssembler, Case_B5_ArgumentsKeepTheTextOfNumbers)
{
    for (const char* number : {"9007199254740993", "9223372036854775807", "18446744073709551615", "-0.0", "2512292042121000001", "1.50"})
        EXPECT_EQ(assembled({piece(0, "a", "get", std::string(R"({"id":)") + number + "}")}).result.tool_calls.at(0).arguments.dump(),
                  std::string(R"({"id":)") + number + "}");
    const assembled big({piece(0, "a", "get", R"({"id":1e400})")});
    ASSERT_TRUE(big.result.malformed.has_value());  // a number no double holds voids the round (loop spec §4.2)
    EXPECT_EQ(big.result.malformed->offset, 6U);
}

TEST(ToolCallAssembler, EventsComeInOrderOnceIdAndNameAreKnown)
{
    EXPECT_EQ(assembled({piece(0, "a", "", ""), piece(0, "", "find", ""), piece(0, "", "", R"({"q":1})")}).story(),
              (texts{"start 0 a", R"(args 0 a {"q":1})", "end 0 a"}));
    // Without id: at the first argument byte, and the id stays.
    EXPECT_EQ(assembled({piece(0, "", "find", ""), piece(0, "", "", "{"), piece(0, "late", "", "}")}).story(),
              (texts{"start 0 call_0000000000000001", "args 0 call_0000000000000001 {", "args 0 call_0000000000000001 }", "end 0 call_0000000000000001"}));
    // Arguments before the name are held back.
    EXPECT_EQ(assembled({piece(0, "a", "", "{"), piece(0, "", "find", "}")}).story(), (texts{"start 0 a", "args 0 a {}", "end 0 a"}));
    // Nothing but a name: at the end.
    EXPECT_EQ(assembled({piece(0, "", "find", "")}).story(), (texts{"start 0 call_0000000000000001", "end 0 call_0000000000000001"}));
    // No end for a call that cannot be read.
    EXPECT_EQ(assembled({piece(0, "a", "find", "{")}).story(), (texts{"start 0 a", "args 0 a {"}));
}

TEST(ToolCallAssembler, DuplicateIdsAreRenamed)
{
    assembled a({piece(0, "a", "f", "{}"), piece(1, "a", "f", "{}"), piece(2, "a", "f", "{}"), piece(3, "a__2", "f", "{}")});
    EXPECT_EQ(a.calls(), (texts{"a f {}", "a__2 f {}", "a__3 f {}", "a__2__2 f {}"}));
}

TEST(ToolCallAssembler, ManyEqualIdsAreRenamedInLinearWork)
{
    tool_call_assembler a(100, {});
    constexpr std::size_t n = model_detail::max_calls_of_round;
    // The names that the renaming would give come first, so that each has to be stepped over once.
    for (std::size_t i = 0; i < n / 2; ++i) ASSERT_TRUE(a.add_whole(piece(none, "a__" + std::to_string(i + 2), "f", "{}"), nullptr));
    for (std::size_t i = n / 2; i < n; ++i) ASSERT_TRUE(a.add_whole(piece(none, "a", "f", "{}"), nullptr));
    EXPECT_LE(a.ids_tried(), 3 * n);
    generate_result r;
    a.finish({}, false, r, nullptr);
    ASSERT_EQ(r.tool_calls.size(), n);
    EXPECT_EQ(r.tool_calls[n / 2].id, "a");
    EXPECT_EQ(r.tool_calls[n - 1].id, "a__" + std::to_string(n));
}

TEST(ToolCallAssembler, RawArgumentsAreShownOnlyWhenTheyCameAsAString)
{
    const auto raw = [](const tool_fragment& f) { return assembled({f}, requiring_tool(), true).result.malformed.value().raw_arguments; };
    EXPECT_EQ(raw(piece(0, "a", "write", "{")), "{");
    EXPECT_EQ(raw(piece(0, "a", "write", "")), "");
    tool_fragment value = piece(0, "a", "write", "[1]");
    value.text = false;
    value.whole = true;
    EXPECT_FALSE(raw(value).has_value());
    tool_fragment absent = piece(0, "a", "write", "");
    absent.text = false;
    EXPECT_FALSE(raw(absent).has_value());
    tool_call_assembler a(100, {});
    generate_result r;
    EXPECT_TRUE(a.add_unreadable());
    a.finish({}, true, r, nullptr);
    EXPECT_FALSE(r.malformed.value().raw_arguments.has_value());
}

TEST(ToolCallAssembler, Case_B4_TheFirstUnreadableCallVoidsTheRound)
{
    const assembled a({piece(0, "a", "f", R"({"x":1})"), piece(1, "b", "g", R"({"y" 1})"), piece(2, "c", "h", "[1]")});
    EXPECT_TRUE(a.result.tool_calls.empty());
    ASSERT_TRUE(a.result.malformed.has_value());
    EXPECT_EQ(a.result.malformed->name, "g");
    EXPECT_EQ(a.result.malformed->error, "arguments are not JSON at byte 5");
    EXPECT_EQ(a.result.malformed->offset, 5U);
    EXPECT_FALSE(a.result.malformed->raw_arguments.has_value());
    ASSERT_EQ(a.result.attempted.size(), 3U);
    EXPECT_FALSE(a.result.attempted[0].malformed);
    EXPECT_EQ(a.result.attempted[0].call.arguments.dump(), R"({"x":1})");
    EXPECT_TRUE(a.result.attempted[1].malformed);
    EXPECT_EQ(a.result.attempted[1].call.arguments.dump(), "{}");
    EXPECT_TRUE(a.result.attempted[2].malformed);
}

TEST(ToolCallAssembler, LimitsHaveAnEnd)
{
    tool_call_assembler small(10, {});
    EXPECT_TRUE(small.add(piece(0, "a", "f", "1234567890"), nullptr));
    EXPECT_FALSE(small.add(piece(0, "", "", "1"), nullptr));
    EXPECT_EQ(small.limit_text(), "the arguments of a tool call pass the limit of 10 bytes");
    tool_call_assembler many(10, {});
    for (std::size_t i = 0; i < model_detail::max_calls_of_round; ++i)
        ASSERT_TRUE(many.add(piece(static_cast<int>(i), "x" + std::to_string(i), "f", ""), nullptr));
    EXPECT_FALSE(many.add(piece(-7, "y", "f", ""), nullptr));
    EXPECT_EQ(many.limit_text(), "an answer with more than 4096 tool calls passes the limit");
    EXPECT_GT(many.held_bytes(), 4096U * 3);  // names and ids count
    std::string deep;
    for (int i = 0; i < 600; ++i) deep += R"({"a":)";
    const assembled a({piece(0, "a", "f", deep)});
    ASSERT_TRUE(a.result.malformed.has_value());
    EXPECT_NE(a.result.malformed->error.find("deeper than 512"), std::string::npos);
}

TEST(ToolCallAssembler, FindsTheEndOfJsonInPieces)
{
    const auto complete = [](std::string_view text) {
        model_detail::json_end_finder f;
        for (const char c : text) f.feed(std::string_view(&c, 1));
        return f.complete();
    };
    EXPECT_TRUE(complete(R"({"a":"}"})"));
    EXPECT_TRUE(complete(R"({"a":"\"}"})"));
    EXPECT_FALSE(complete(R"({"a":"}")"));
    EXPECT_FALSE(complete(R"({"a":{})"));
    EXPECT_FALSE(complete(""));
}

}  // namespace tool_call_assembler_test
}  // namespace

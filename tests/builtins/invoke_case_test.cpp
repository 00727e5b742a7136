#include <reagent/builtins/invoke_case.hpp>
#include <reagent/testing/vector_match.hpp>

#include <gtest/gtest.h>

namespace reagent {
namespace {
namespace invoke_case_test {

TEST(InvokeCase, EveryVectorPasses)
{
    const auto cases = testing::read_vectors(REAGENT_SOURCE_DIR "/tests/vectors/tools.jsonl");
    ASSERT_EQ(cases.size(), 215U);
    for (const testing::vector_case& c : cases) {
        const json answer = invoke_case(c.in);
        EXPECT_EQ(testing::vector_mismatch(c.out, &answer), "") << c.id;
    }
}

TEST(InvokeCase, LinesThatAreNoCaseAreUsageErrors)
{
    for (const char* text :
         {"[]", "{}", R"({"tool":5})", R"({"tool":"think","now":"yesterday"})", R"({"tool":"think","now":17})", R"({"tool":"think","tz":1})"}) {
        const json answer = invoke_case(json::parse_or_throw(text, "case"));
        EXPECT_EQ(answer["error"]["kind"], json("usage")) << text;
        EXPECT_TRUE(answer["error"]["message"].is_string()) << text;
    }
}

TEST(InvokeCase, RefusalsOfTheFactoryCarryTheCode)
{
    const json unknown = invoke_case(json::object().set("tool", "calculat"));
    EXPECT_EQ(unknown["status"], json("failed")) << "an unknown name is a result";
    EXPECT_EQ(unknown["code"], json("unknown_tool"));
    EXPECT_NE(unknown["error"].as_string().find("did you mean \"calculate\"?"), std::string::npos);
    const json options = invoke_case(json::object().set("tool", "think").set("options", json::object().set("pined", true)));
    EXPECT_EQ(options["error"]["code"], json("bad_options"));
    EXPECT_NE(options["error"]["message"].as_string().find("\"pinned\""), std::string::npos);
    const json name = invoke_case(json::object().set("tool", "think").set("options", json::object().set("name", "no spaces")));
    EXPECT_EQ(name["error"]["code"], json("tool_bad_name"));
}

TEST(InvokeCase, MissingArgumentsAreAnEmptyObject)
{
    const json answer = invoke_case(json::object().set("tool", "current_time").set("now", "2026-08-08T13:05:09Z"));
    EXPECT_EQ(answer["output"], json("2026-08-08T13:05:09+00:00 (Saturday, UTC)"));
}

}  // namespace invoke_case_test
}  // namespace
}  // namespace reagent

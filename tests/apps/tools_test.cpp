#include "program.hpp"

#include <reagent/base/json.hpp>

#include <gmock/gmock.h>

namespace reagent::apps_test {
namespace {
namespace tools_test {

using ::testing::HasSubstr;

TEST(Tools, ListNamesTheFour)
{
    const program_result r = reagent_run({"tools", "list"});
    EXPECT_EQ(r.status, 0);
    for (const char* name : {"calculate", "current_time", "finish", "think"}) EXPECT_THAT(r.out, HasSubstr(name));
    const json all = json::parse_or_throw(reagent_run({"tools", "list", "--json"}).out, "the output");
    ASSERT_EQ(all.size(), 4U);
    EXPECT_EQ(all[0]["name"], json("calculate"));
    EXPECT_EQ(all[0]["effect"], json("readonly"));
    EXPECT_EQ(all[0]["parameters"]["required"], json::parse_or_throw("[\"expression\"]", "expected"));
    EXPECT_EQ(all[2]["pinned"], json(true));
}

TEST(Tools, ShowTellsWhatAModelIsTold)
{
    const program_result r = reagent_run({"tools", "show", "current_time"});
    EXPECT_EQ(r.status, 0);
    EXPECT_THAT(r.out, HasSubstr("timezone (string, optional): "));
    const json one = json::parse_or_throw(reagent_run({"tools", "show", "current_time", "--json"}).out, "the output");
    EXPECT_EQ(one["parameters"]["properties"]["timezone"]["type"], json("string"));
}

TEST(Tools, InvokePrintsTheOutput)
{
    const program_result r = reagent_run({"tools", "invoke", "calculate", R"({"expression":"2^10/3"})"});
    EXPECT_EQ(r.status, 0) << r.err;
    EXPECT_EQ(r.out, "341.333333333333\n");
    const program_result piped = reagent_run({"tools", "invoke", "calculate", "-"}, R"({"expression":"1+1"})");
    EXPECT_EQ(piped.out, "2\n");
    const json whole = json::parse_or_throw(reagent_run({"tools", "invoke", "calculate", R"({"expression":"1+1"})", "--json"}).out, "the output");
    EXPECT_EQ(whole["status"], json("completed"));
    EXPECT_EQ(whole["output"], json("2"));
}

TEST(Tools, AFailedInvocationIsFailedWork)
{
    const program_result r = reagent_run({"tools", "invoke", "calculate", R"({"expression":"1/0"})"});
    EXPECT_EQ(r.status, 1);
    EXPECT_EQ(r.out, "");
    EXPECT_EQ(r.messages().size(), 1U);
    EXPECT_THAT(r.err, HasSubstr("calculate failed (div_zero): "));
}

}  // namespace tools_test
}  // namespace
}  // namespace reagent::apps_test

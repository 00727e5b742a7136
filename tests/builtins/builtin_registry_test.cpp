#include <reagent/builtins/builtin_registry.hpp>
#include <reagent/builtins/calculate.hpp>
#include <reagent/builtins/current_time.hpp>
#include <reagent/builtins/finish.hpp>
#include <reagent/builtins/think.hpp>

#include <gmock/gmock.h>

namespace reagent {
namespace {
namespace builtin_registry_test {

TEST(BuiltinRegistry, KnowsTheFourBuiltins)
{
    const builtin_registry r = builtin_registry::standard();
    EXPECT_THAT(r.names(), ::testing::ElementsAre("calculate", "current_time", "finish", "think"));
    for (const std::string& name : r.names()) {
        const tool t = r.make(name);
        EXPECT_EQ(t.name(), name);
        EXPECT_EQ(t.effect(), effect::readonly) << name;
        EXPECT_EQ(t.trust(), trust::own) << name;
        EXPECT_EQ(t.pinned(), name == "finish") << name;
    }
}

TEST(BuiltinRegistry, OverridesNameDescriptionAndPin)
{
    const tool t = builtin_registry::standard().make("finish", json::object().set("name", "done").set("description", "Say so.").set("pinned", false));
    EXPECT_EQ(t.name(), "done");
    EXPECT_EQ(t.description(), "Say so.");
    EXPECT_FALSE(t.pinned());
    const tool direct = think(builtin_options().name("ponder").pinned(true));
    EXPECT_EQ(direct.name(), "ponder");
    EXPECT_TRUE(direct.pinned());
}

TEST(BuiltinRegistry, UnknownNamesAreRefusedWithTheNearest)
{
    try {
        builtin_registry::standard().make("curent_time");
        FAIL() << "made a tool of an unknown name";
    } catch (const tool_error& e) {
        EXPECT_EQ(e.tool_code(), "unknown_tool");
        EXPECT_THAT(e.message(), ::testing::HasSubstr("\"current_time\""));
    }
    try {
        builtin_registry::standard().make("web_search");
        FAIL() << "made a tool of an unknown name";
    } catch (const tool_error& e) {
        EXPECT_THAT(e.message(), ::testing::HasSubstr("calculate, current_time, finish, think"));
    }
}

TEST(BuiltinRegistry, WrongOptionsAreRefused)
{
    const builtin_registry r = builtin_registry::standard();
    for (const char* options :
         {"[]", R"({"name":1})", R"({"description":null})", R"({"pinned":"yes"})", R"({"defaultTimeZone":"UTC"})", R"({"description":" "})"})
        EXPECT_THROW(r.make("calculate", json::parse_or_throw(options, "options")), tool_error) << options;
    EXPECT_THROW(r.make("current_time", json::parse_or_throw(R"({"defaultTimeZone":"Mars/Base"})", "options")), tool_error);
    EXPECT_THROW(current_time({}, ""), tool_error);
}

TEST(BuiltinRegistry, UsersAddAndReplace)
{
    builtin_registry r;
    r.add("sum", [](const json&) { return calculate(builtin_options().name("sum")); });
    EXPECT_TRUE(r.contains("sum"));
    EXPECT_FALSE(r.contains("calculate"));
    r.add("sum", [](const json&) { return calculate(builtin_options().name("total")); });
    EXPECT_EQ(r.names().size(), 1U);
    EXPECT_EQ(r.make("sum").name(), "total");
}

TEST(Finish, IsFinishedReadsTheLastSegmentOfTheName)
{
    tool_result r;
    r.name = "finish";
    r.args = json::object().set("answer", "42");
    EXPECT_FALSE(is_finished(r)) << "a failed call finishes nothing";
    EXPECT_FALSE(answer_of(r).has_value());
    r.completed = true;
    EXPECT_TRUE(is_finished(r));
    EXPECT_EQ(answer_of(r), "42");
    r.name = "desk__finish";
    EXPECT_TRUE(is_finished(r));
    r.name = "unfinish";
    EXPECT_FALSE(is_finished(r));
    r.name = "done";
    EXPECT_TRUE(is_finished(r, "done"));
    r.args = json::object();
    EXPECT_FALSE(answer_of(r, "done").has_value());
}

}  // namespace builtin_registry_test
}  // namespace
}  // namespace reagent

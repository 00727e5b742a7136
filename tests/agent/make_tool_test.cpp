#include <reagent/agent/make_tool.hpp>
#include <reagent/testing/run.hpp>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>

// At namespace scope because BOOST_DESCRIBE needs named types.
namespace make_tool_types {
enum class unit { days, weeks };
BOOST_DESCRIBE_ENUM(unit, days, weeks)
struct item {
    std::string sku;
    std::uint8_t count = 0;
};
BOOST_DESCRIBE_STRUCT(item, (), (sku, count))
struct order {
    std::string id;
    double amount = 0;
    bool rush = false;
    std::int64_t account = 0;
    unit every = unit::days;
    std::vector<item> items;
    std::optional<std::string> note;
    std::optional<reagent::json> extra;
};
BOOST_DESCRIBE_STRUCT(order, (), (id, amount, rush, account, every, items, note, extra))
struct pair_of {
    int a = 0;
    std::optional<int> b;
};
BOOST_DESCRIBE_STRUCT(pair_of, (), (a, b))
}  // namespace make_tool_types

namespace {
namespace make_tool_test {

namespace rt = reagent::testing;
using namespace reagent;
using namespace make_tool_types;
using ::testing::AllOf;
using ::testing::HasSubstr;

awaitable<json> echo(order o, tool_context& context)
{
    co_return described_to_json(o).set("call", context.call_id);
}
awaitable<std::string> text(pair_of p)
{
    co_return "a=" + std::to_string(p.a);
}
awaitable<pair_of> same(pair_of p)
{
    co_return p;
}
awaitable<void> nothing(pair_of)
{
    co_return;
}
int plain(pair_of p)
{
    return p.a + 1;
}
awaitable<json> failing(pair_of)
{
    throw tool_error("broken_thing", "it broke");
    co_return json();
}
awaitable<json> halting(pair_of)
{
    throw halt_error("fs.writeScope", "no");
    co_return json();
}

tool_result invoke(const tool& t, std::string_view args)
{
    asio::io_context context;
    tool_context c;
    c.call_id = "c1";
    json parsed = json::parse_or_throw(args, "args");
    return rt::complete(context, t.invoke(std::move(parsed), c));
}

TEST(MakeTool, SchemaComesFromTheStruct)
{
    const tool t = make_tool("echo", "Echoes.", &echo).doc("id", "The order.").doc("items.sku", "Stock number.");
    EXPECT_EQ(t.parameters().dump(),
              R"({"type":"object","properties":{"id":{"type":"string","description":"The order."},"amount":{"type":"number"},"rush":{"type":"boolean"},)"
              R"("account":{"type":"integer"},"every":{"type":"string","enum":["days","weeks"]},"items":{"type":"array","items":{"type":"object",)"
              R"("properties":{"sku":{"type":"string","description":"Stock number."},"count":{"type":"integer","minimum":0}},"required":["sku","count"],)"
              R"("additionalProperties":false}},"note":{"type":"string"},"extra":{}},"required":["id","amount","rush","account","every","items"],)"
              R"("additionalProperties":false})");
}

TEST(MakeTool, ValuesArriveAndComeBack)
{
    const tool t = make_tool("echo", "Echoes.", &echo);
    const tool_result r =
        invoke(t, R"({"id":"o1","amount":2.5,"rush":true,"account":2512292042121000001,"every":"weeks","items":[{"sku":"s","count":3}],"note":null})");
    ASSERT_TRUE(r.completed) << r.error;
    EXPECT_EQ(r.output, R"({"id":"o1","amount":2.5,"rush":true,"account":2512292042121000001,"every":"weeks","items":[{"sku":"s","count":3}],"call":"c1"})");
}

TEST(MakeTool, EveryBadFieldIsNamedInOneMessage)
{
    const tool t = make_tool("echo", "Echoes.", &echo);
    const tool_result r = invoke(t, R"({"amount":"5","rush":1,"account":1.5,"every":"Weeks","items":[{"sku":1,"count":300}],"colour":"red"})");
    EXPECT_FALSE(r.completed);
    EXPECT_EQ(r.code, "bad_args");
    EXPECT_EQ(
        r.error,
        R"("id" is required; "amount" must be a finite number, got string; "rush" must be a boolean, got number; "account" must be an integer, got number; )"
        R"("every" must be one of days, weeks, got "Weeks" (case matters: "weeks"); "items[0].sku" must be a string, got number; )"
        R"("items[0].count" must be between 0 and 255, got 300; "colour" is not an argument; declared: id, amount, rush, account, every, items, note, extra)");
    EXPECT_EQ(r.output, "");
}

TEST(MakeTool, ArgumentsThatAreNoObjectAreRefusedAndAbsentOnesAreEmpty)
{
    const tool t = make_tool("t", "T.", &text);
    EXPECT_THAT(invoke(t, "[1]").error, HasSubstr("arguments must be an object, got array"));
    EXPECT_THAT(invoke(t, "null").error, HasSubstr("\"a\" is required"));
}

TEST(MakeTool, ReturnTypes)
{
    EXPECT_EQ(invoke(make_tool("t", "T.", &text), R"({"a":1})").output, "a=1");
    EXPECT_EQ(invoke(make_tool("t", "T.", &same), R"({"a":1})").output, R"({"a":1})");
    EXPECT_EQ(invoke(make_tool("t", "T.", &same), R"({"a":1,"b":2})").output, R"({"a":1,"b":2})");
    EXPECT_EQ(invoke(make_tool("t", "T.", &nothing), R"({"a":1})").output, "");
    EXPECT_EQ(invoke(make_tool("t", "T.", &plain), R"({"a":1})").output, "2");
    int hits = 0;
    const tool lambda = make_tool("t", "T.", [&hits](pair_of p, tool_context&) {
        ++hits;
        return same(p);
    });
    EXPECT_EQ(invoke(lambda, R"({"a":7})").output, R"({"a":7})");
    EXPECT_EQ(hits, 1);
}

TEST(MakeTool, AThrownToolErrorIsAFailedResultWithItsCode)
{
    const tool_result r = invoke(make_tool("t", "T.", &failing), R"({"a":1})");
    EXPECT_FALSE(r.completed);
    EXPECT_EQ(r.code, "broken_thing");
    EXPECT_EQ(r.error, "it broke");
}

TEST(MakeTool, AHaltGoesThrough)
{
    EXPECT_THROW(invoke(make_tool("t", "T.", &halting), R"({"a":1})"), halt_error);
}

TEST(MakeTool, SettersChangeOneHandleOnly)
{
    const tool a = make_tool("t", "T.", &text);
    const tool b = tool(a).effect(effect::destructive).serial().output_limit(3);
    EXPECT_EQ(a.effect(), effect::unset);
    EXPECT_FALSE(a.serial());
    EXPECT_EQ(b.effect(), effect::destructive);
    EXPECT_TRUE(b.serial());
    EXPECT_EQ(invoke(b, R"({"a":1})").output, "a=1");
    EXPECT_EQ(invoke(b, R"({"a":12})").output, "a=1\n[output cut: first 3 of 4 characters]");
    EXPECT_THROW(tool(a).doc("zzz", "x"), tool_error);
}

TEST(Tool, OutputIsRenderedAndCutByCharacters)
{
    EXPECT_EQ(render_tool_value(json()), "");
    EXPECT_EQ(render_tool_value(json(true)), "true");
    EXPECT_EQ(render_tool_value(json("h\xc3\xa9")), "h\xc3\xa9");
    EXPECT_EQ(render_tool_value(json(std::string("a\0b", 3))), "ab");
    EXPECT_EQ(render_tool_value(json::parse_or_throw(R"({"answer":"x","secret":1})", "v")), "x");
    EXPECT_EQ(render_tool_value(json::parse_or_throw(R"({"answer":1})", "v")), R"({"answer":1})");
}

TEST(Tool, DeclarationErrorsCarryTheirCodes)
{
    const tool_function run = [](json, tool_context&) -> awaitable<json> { co_return json(); };
    const auto code = [&](std::string name, std::string description, std::vector<arg_spec> args) -> std::string {
        try {
            tool::from_args(std::move(name), std::move(description), std::move(args), run);
        } catch (const tool_error& e) {
            return e.tool_code();
        }
        return "none";
    };
    arg_spec no_options("e", arg_type::enumeration, ""), blank("e", arg_type::enumeration, ""), twice("e", arg_type::enumeration, ""),
        extra("s", arg_type::string, "");
    blank.options = {" "};
    twice.options = {"a", "a"};
    extra.options = {"a"};
    EXPECT_EQ(code("1x", "d", {}), "tool_bad_name");
    EXPECT_EQ(code(std::string(65, 'a'), "d", {}), "tool_name_too_long");
    EXPECT_EQ(code("x", " ", {}), "tool_no_description");
    EXPECT_EQ(code("x", "d", {arg_spec("a b", arg_type::string, "")}), "arg_bad_name");
    EXPECT_EQ(code("x", "d", {arg_spec("a", arg_type::string, ""), arg_spec("a", arg_type::string, "")}), "arg_duplicate");
    EXPECT_EQ(code("x", "d", {no_options}), "enum_no_options");
    EXPECT_EQ(code("x", "d", {blank}), "enum_blank_option");
    EXPECT_EQ(code("x", "d", {twice}), "enum_duplicate_option");
    EXPECT_EQ(code("x", "d", {extra}), "options_not_enum");
    EXPECT_EQ(code("_x", "d", {arg_spec("a", arg_type::string, "")}), "none");
    try {
        tool::from_args("x", "d", {}, {});
        FAIL();
    } catch (const tool_error& e) {
        EXPECT_EQ(e.tool_code(), "run_missing");
    }
}

}  // namespace make_tool_test
}  // namespace

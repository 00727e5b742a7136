// Edges of tools: null for an optional argument of a schema, functions without arguments, a check that throws, the budget of the run, prices.
#include "agent_fixture.hpp"

namespace {
namespace tool_edges_test {

using namespace reagent;
using namespace agent_test;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

class ToolEdges : public fixture {
protected:
    tool_result call(const tool& t, std::string_view args)
    {
        tool_context c;
        c.call_id = "c1";
        return rt::complete(context, t.invoke(json::parse_or_throw(args, "args"), c));
    }
};

awaitable<json> echo(const json& args, tool_context&)
{
    co_return args;
}

tool with_schema(std::string_view schema)
{
    return tool::from_schema("echo", "Echoes.", json::parse_or_throw(schema, "schema"), &echo);
}

TEST_F(ToolEdges, NullForAnOptionalArgumentOfASchemaIsAbsent)
{
    const tool t = with_schema(R"({"type":"object","properties":{"id":{"type":"string"},"note":{"type":"string"},"unit":{"enum":["m","km"]},
        "maybe":{"type":["string","null"]},"any":{},"either":{"anyOf":[{"type":"integer"},{"type":"null"}]},"none":{"const":null},
        "both":{"allOf":[{"type":["integer","null"]},{"type":"integer"}]},"ref":{"$ref":"#/$defs/name"},"open":{"$ref":"#/$defs/free"},
        "tree":{"$ref":"#"}},
        "required":["id"],"additionalProperties":false,"$defs":{"name":{"type":"string"},"free":{"type":["string","null"]}}})");
    const tool_result r =
        call(t, R"({"id":"o1","note":null,"unit":null,"maybe":null,"any":null,"either":null,"none":null,"both":null,"ref":null,"open":null,"tree":null})");
    ASSERT_TRUE(r.completed) << r.error;
    EXPECT_EQ(r.value.dump(), R"({"id":"o1","maybe":null,"any":null,"either":null,"none":null,"open":null})");
    EXPECT_EQ(call(t, R"({"id":null})").code, "bad_args") << "a required one is not absent";
    EXPECT_EQ(call(t, R"({"id":"o1","other":null})").code, "bad_args") << "nor one that is not declared";
    EXPECT_TRUE(call(t, R"({"id":"o1","note":"n"})").completed);
}

int count_calls = 0;
awaitable<std::string> now_awaited()
{
    co_return "noon";
}
int now_plain()
{
    return 12;
}
void touch()
{
    ++count_calls;
}
awaitable<json> who(tool_context& c)
{
    co_return json(c.call_id);
}
std::string who_plain(tool_context& c)
{
    return c.call_id;
}

TEST_F(ToolEdges, FunctionsWithoutArguments)
{
    const tool t = make_tool("now", "The time.", &now_awaited);
    EXPECT_EQ(t.parameters().dump(), R"({"type":"object","properties":{},"required":[],"additionalProperties":false})");
    EXPECT_EQ(call(t, "{}").output, "noon");
    EXPECT_EQ(call(t, "null").output, "noon");
    EXPECT_EQ(call(t, R"({"x":1})").code, "bad_args");
    EXPECT_EQ(call(make_tool("now", "The time.", &now_plain), "{}").output, "12");
    EXPECT_EQ(call(make_tool("who", "The call.", &who), "{}").output, "c1");
    EXPECT_EQ(call(make_tool("who", "The call.", &who_plain), "{}").output, "c1");
    count_calls = 0;
    EXPECT_TRUE(call(make_tool("touch", "Counts.", &touch), "{}").completed);
    EXPECT_EQ(count_calls, 1);
    EXPECT_EQ(call(make_tool("say", "Says.", [] { return std::string("hello"); }), "{}").output, "hello");
}

TEST_F(ToolEdges, ACheckThatThrowsIsAFailureOfTheTool)
{
    const args_check broken = [](const json&) -> std::vector<std::string> { throw std::runtime_error("the rules are gone"); };
    const tool_result r = call(tool::from_check("t", "T.", json::object().set("type", "object"), broken, &echo), "{}");
    EXPECT_FALSE(r.completed);
    EXPECT_EQ(r.code, "tool_error");
    EXPECT_EQ(r.error, "the rules are gone");
}

awaitable<json> spend(const json&, tool_context& c)
{
    // A tool that runs a model of its own pays from what the run may use.
    const budget own = c.budget.child("sub-run");
    admission a = co_await own.reserve(budget_amount(usd("0.10"), 100));
    a.held.settle(budget_amount(usd("0.10"), 100));
    co_return json("spent");
}

TEST_F(ToolEdges, AToolDrawsFromTheBudgetOfItsRun)
{
    script({scripted_round().call("a", "spend").usage(1, 1), scripted_round("end").usage(1, 1)});
    const budget team("team", usd("5"));
    const agent a = make(agent_options().rates(rates(1, 1)).tool(tool::from_check("spend", "Spends.", json::object().set("type", "object"), {}, &spend)));
    const run_result r = go(a, run_request("hi").budget(team).max_tokens(10));
    EXPECT_EQ(r.messages()[2]->text(), "spent");
    EXPECT_EQ(team.state().spent.cost, usd("0.10") + usd::from_nanos(4));
    EXPECT_EQ(team.state().spent.tokens, 104u);
}

awaitable<json> fail_at_a_price(const json&, tool_context&)
{
    tool_error e("no_hit", "nothing was found");
    e.cost_micros = 2500;
    throw e;
    co_return json();
}

TEST_F(ToolEdges, ThePriceOfACallIsInItsRecordAndIsCharged)
{
    script({scripted_round().call("a", "find"), scripted_round("end")});
    const audit_log log = audit_log::in_memory();
    const budget team("team", usd("5"));
    const agent a = make(agent_options()
                             .rates(rates(1, 1))
                             .gate(gate_policy(), log)
                             .tool(tool::from_check("find", "Finds.", json::object().set("type", "object"), {}, &fail_at_a_price)));
    go(a, run_request("hi").budget(team).max_tokens(10));
    std::vector<double> costs;
    for (const json& line : log.read())
        if (line["phase"].as_string() == "record" && line["action"]["type"].as_string() != "llm")
            costs.push_back(line["result"]["costUsd"].get_double().value_or(-1));
    EXPECT_THAT(costs, ElementsAre(0.0025));
    EXPECT_GE(team.state().spent.cost, usd("0.0025"));
}

}  // namespace tool_edges_test
}  // namespace

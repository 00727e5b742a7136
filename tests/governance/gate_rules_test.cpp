#include "gate_bench.hpp"
#include "glob.hpp"

namespace {
namespace gate_rules_test {

using namespace gate_bench;

TEST(Glob, StarIsAnyRunOfCharacters)
{
    struct row {
        const char *pattern, *text;
        bool expect;
    };
    const row rows[] = {
        {"", "", true},         {"", "a", false},           {"*", "", true},
        {"*", "a/b\nc", true},  {"a", "a", true},           {"a", "A", false},
        {"a*", "a", true},      {"a*", "ba", false},        {"*a", "ba", true},
        {"*a", "ab", false},    {"a*b*c", "a--b--c", true}, {"a*b*c", "acb", false},
        {"a.b", "axb", false},  {"a?b", "axb", false},      {"mcp:*/admin_*", "mcp:x/y/admin_z", true},
        {"**", "x", true},      {"*ab*ab", "abab", true},   {"*ab*ab", "abxab", true},
        {"*aab", "aaab", true}, {"[a]", "a", false},
    };
    for (const row& r : rows) EXPECT_EQ(governance_detail::glob_matches(r.pattern, r.text), r.expect) << r.pattern << " on " << r.text;
    const std::string many_as(20'000, 'a');
    EXPECT_FALSE(governance_detail::glob_matches("*a*a*a*a*b", many_as)) << "no exponential search";
}

struct rule_row {
    const char* what;
    gate_policy policy;
    const char* action;
    bool allowed;
    const char* rule;
};

TEST(GateRules, ToolListsTable)
{
    const gate_policy none;
    const gate_policy allow = gate_policy().allow_tools({"shell_read", "mcp:linear.app/*", "bash"});
    const gate_policy deny = gate_policy().deny_tools({"danger*", "shell_write", "mcp:*/admin_*", "a.b"});
    const gate_policy nothing = gate_policy().allow_tools({});
    const gate_policy both = allow.deny_tools({"bash"});
    const rule_row rows[] = {
        {"V014 identity is the tool", allow, R"({"type":"search","tool":"shell_read"})", true, "tools.allowlist"},
        {"V015 not the type when there is a tool", allow, R"({"type":"bash","tool":"other","cmd":"ls"})", false, "tools.allowlist.exclusive"},
        {"V016 an empty tool", allow, R"({"type":"search","tool":""})", false, "tools.invalidTool"},
        {"a tool that is no string", deny, R"({"type":"search","tool":7})", false, "tools.invalidTool"},
        {"null is absent", allow, R"({"type":"bash","tool":null})", true, "tools.allowlist"},
        {"an unusable tool without a tools rule", none, R"({"type":"search","tool":""})", true, "default"},
        {"V017 an empty list allows nothing", nothing, R"({"type":"anything"})", false, "tools.allowlist.exclusive"},
        {"V018 a star crosses line breaks", deny, R"({"type":"danger\nous"})", false, "tools.denylist"},
        {"V019 a denied tool", deny, R"({"type":"custom","tool":"shell_write"})", false, "tools.denylist"},
        {"V020 a denied type under a harmless tool", deny, R"({"type":"danger_zone","tool":"harmless"})", false, "tools.denylist"},
        {"a dot is literal", deny, R"({"type":"axb"})", true, "default"},
        {"no opinion", deny, R"({"type":"safe"})", true, "default"},
        {"deny before allow", both, R"({"type":"bash"})", false, "tools.denylist"},
        {"V023 no type", none, R"({"cmd":"ls"})", false, "gate.invalidAction"},
        {"an empty type", none, R"({"type":""})", false, "gate.invalidAction"},
        {"a type that is no string", none, R"({"type":1})", false, "gate.invalidAction"},
        {"no object", none, R"(["type"])", false, "gate.invalidAction"},
    };
    for (const rule_row& row : rows) {
        SCOPED_TRACE(row.what);
        bench t;
        run_gate gate(row.policy, {}, t.options(false));
        const action subject(json::parse_or_throw(row.action, "row"));
        const decision d = t.check(gate, subject);
        EXPECT_EQ(d.allowed(), row.allowed);
        EXPECT_EQ(d.rule, row.rule);
        EXPECT_EQ(d.level, severity::action);
        EXPECT_EQ(d.aid.size(), 8u);
        EXPECT_EQ(d.reason.empty(), row.allowed);
        EXPECT_EQ(t.phases(), names{"gate"}) << "one line per decision";
        EXPECT_EQ(gate.allows(subject), row.allowed);
        EXPECT_EQ(t.phases(), names{}) << "the predicate writes nothing";
    }
}

TEST(GateRules, TheNameProbeLooksAtIdentityOnly)
{
    bench t;
    run_gate gate(with_asking(gate_policy().deny_tools({"shell_exec"})), {}, t.options(false));
    EXPECT_TRUE(gate.allows_tool("shell_read"));
    EXPECT_TRUE(gate.allows_tool("ask"));
    EXPECT_FALSE(gate.allows_tool("shell_exec"));
    EXPECT_FALSE(gate.allows_tool(""));
    run_gate listed(gate_policy().allow_tools({"a*"}), {}, t.options(false));
    EXPECT_TRUE(listed.allows_tool("abc"));
    EXPECT_FALSE(listed.allows_tool("b"));
    listed.terminate("enough");
    EXPECT_FALSE(listed.allows_tool("abc"));
}

TEST(GateRules, HaltConditionsComeInTheOrderOfTheTable)
{
    bench t;
    budget money("run", budget_caps(usd("0.10"), 100));
    run_gate gate(gate_policy().max_turns(2).max_tool_rounds(1).deny_tools({"*"}), money, t.options(false));
    const auto rule = [&] { return t.check(gate, kind("x")).rule; };
    EXPECT_EQ(rule(), "tools.denylist");
    gate.record(kind("x"), json::object(), "");
    EXPECT_EQ(rule(), "limits.maxToolRounds");
    gate.record(kind("llm"), json::object(), "");
    EXPECT_EQ(rule(), "limits.maxTurns");
    money.charge(budget_amount(usd(), 100));
    EXPECT_EQ(rule(), "budget.maxTokens");
    money.charge(budget_amount(usd("0.10")));
    EXPECT_EQ(rule(), "budget.maxCostUsd");
    gate.terminate("enough");
    const decision last = t.check(gate, kind("x"));
    EXPECT_EQ(last.rule, "gate.terminated");
    EXPECT_TRUE(last.halts());
}

TEST(GateRules, RecordTicksTurnsAlwaysAndRoundsForTools)
{
    bench t;
    run_gate gate(gate_policy().max_tool_rounds(2), {}, t.options(false));  // S25
    for (const char* type : {"llm", "bash", "llm"}) gate.record(kind(type), json::object(), "");
    EXPECT_TRUE(t.check(gate, kind("x")).allowed());
    gate.record(kind("bash"), json::object(), "");
    const decision d = t.check(gate, kind("x"));
    EXPECT_EQ(d.rule, "limits.maxToolRounds");
    EXPECT_TRUE(d.halts());
    EXPECT_EQ(gate.halt_context()["turns"].get_int64(), 4);
}

TEST(GateRules, RecordedSpendIsSanitisedAndModelRoundsAreNotChargedTwice)
{
    bench t;
    budget money("run", usd("10"));
    run_gate gate(gate_policy(), money, t.options(false));
    gate.record(kind("search"), costs(0.7), "aaaaaaaa");
    gate.record(kind("search"), costs(-1), "aaaaaaaa");
    gate.record(kind("search"), json::object().set("costUsd", nullptr).set("tokens", 7), "aaaaaaaa");
    gate.record(kind("search"), json::object().set("costUsd", 5).set("pricing", "unpriced"), "aaaaaaaa");
    gate.record(kind("search"), json::object().set("costUsd", 0.1).set("tokens", -3), "aaaaaaaa");
    gate.record(kind("search"), json::object().set("tokens", "many"), "aaaaaaaa");
    gate.record(kind("llm"), costs(4), "aaaaaaaa");  // settled by its reservation
    EXPECT_EQ(money.state().spent.cost, usd("0.8"));
    EXPECT_EQ(money.state().spent.tokens, 7u);
    EXPECT_EQ(t.phases(), (names{"record", "record", "record", "unpriced", "record", "unpriced", "record", "record", "record"}));
}

TEST(GateRules, ReachingTheCapExactlyHalts)
{
    bench t;
    run_gate gate(gate_policy().max_cost(usd("0.8")), {}, t.options(false));  // S16
    gate.record(kind("x"), costs(0.7), "");
    EXPECT_TRUE(t.check(gate, kind("x")).allowed());
    gate.record(kind("x"), costs(0.1), "");
    EXPECT_EQ(t.check(gate, kind("x")).rule, "budget.maxCostUsd");
}

TEST(GateRules, ThePolicysCapsAreABudgetOfTheRun)
{
    bench t;
    budget team("team", usd("5"));
    run_gate gate(gate_policy().max_cost(usd("1")).max_tokens(10), team, t.options(false));
    EXPECT_EQ(gate.money().state().caps.cost, usd("1"));
    EXPECT_EQ(gate.money().parent().name(), "team");
    gate.record(kind("x"), costs(0.25), "");
    EXPECT_EQ(team.state().spent.cost, usd("0.25"));
    run_gate plain(gate_policy(), team, t.options(false));
    EXPECT_EQ(plain.money().name(), "team");
}

TEST(GateRules, SoftRatioWarnsOnceWhenItIsPassed)
{
    bench t;
    run_gate gate(gate_policy().max_cost(usd("1")).soft_ratio(0.8), {}, t.options(false));  // S21
    gate.record(kind("x"), costs(0.5), "");
    EXPECT_EQ(t.phases(), names{"record"});
    gate.record(kind("x"), costs(0.3), "");
    EXPECT_EQ(t.phases(), (names{"record", "budget_warn"}));
    gate.record(kind("x"), costs(0.05), "");
    EXPECT_EQ(t.phases(), names{"record"});
    EXPECT_EQ(t.log.read()[2]["dimension"].as_string(), "costUsd");
}

TEST(GateRules, OpenWhenNothingIsAskedRefusedCountedOrWritten)
{
    EXPECT_TRUE(run_gate({}, {}, {}).open());
    EXPECT_FALSE(run_gate(gate_policy().max_turns(9), {}, {}).open());
    EXPECT_FALSE(run_gate(gate_policy().allow_tools({"*"}), {}, {}).open());
    EXPECT_FALSE(run_gate({}, budget("b", budget_caps()), {}).open());
    bench t;
    EXPECT_FALSE(run_gate({}, {}, t.options(false)).open());
    run_gate gate({}, {}, {});
    EXPECT_TRUE(gate.terminate("enough"));
    EXPECT_FALSE(gate.terminate("again"));
    EXPECT_FALSE(gate.open());
    EXPECT_FALSE(gate.allows(kind("x")));
    EXPECT_EQ(gate.run_id().size(), 36u);
    run_gate moved(std::move(gate));
    EXPECT_TRUE(moved.terminated());
}

TEST(GateRules, LinesCarryRunIdentityAndAnIncreasingNumber)
{
    bench t;
    gate_options o = t.options(false);
    o.run_id.clear();
    const gate_policy policy = gate_policy::from_json(json::parse_or_throw(R"({"runId":"r","parentRunId":"p","spawnDepth":2})", "policy"));
    run_gate gate(policy, {}, std::move(o));
    const decision d = t.check(gate, action::tool("add", json::object().set("a", 1)));
    gate.record(action::llm("m"), costs(0), d.aid);
    t.time->advance(std::chrono::milliseconds(250));
    gate.terminate("done");
    gate.terminate("done");
    const std::vector<json> lines = t.log.read();
    ASSERT_EQ(lines.size(), 3u);
    for (std::size_t i = 0; i < lines.size(); ++i) {
        EXPECT_EQ(lines[i]["seq"].get_uint64(), i + 1);
        EXPECT_EQ(lines[i]["run_id"].as_string(), "r");
        EXPECT_EQ(lines[i]["parent_run_id"].as_string(), "p");
        EXPECT_EQ(lines[i]["spawn_depth"].get_int64(), 2);
        EXPECT_EQ(lines[i]["ts"].as_string().size(), 24u);
    }
    EXPECT_EQ(lines[0]["action"].dump(), R"({"type":"add","tool":"add","args":{"a":1}})");
    EXPECT_EQ(lines[0]["decision"].as_string(), "allow");
    EXPECT_TRUE(lines[0]["reason"].is_null());
    EXPECT_EQ(lines[1]["aid"].as_string(), d.aid);
    EXPECT_EQ(lines[1]["action"].dump(), R"({"type":"llm","args":{"model":"m"}})");
    EXPECT_TRUE(lines[1].find("decision") && lines[1]["decision"].is_null());
    EXPECT_EQ(lines[2]["phase"].as_string(), "terminate");
    EXPECT_FALSE(lines[2].find("aid"));
    EXPECT_EQ(gate.halt_context()["timeElapsedMs"].get_int64(), 250);
}

TEST(GateRules, HaltContextAddsUpTheRecords)
{
    bench t;
    run_gate gate(gate_policy().max_turns(50).max_tokens(1000), budget("team", usd("9")), t.options(false));
    for (int i = 1; i <= 7; ++i) gate.record(kind("x"), json::object().set("costUsd", 0.25 * i).set("tokens", i), "");
    const json c = gate.halt_context();
    EXPECT_EQ(c["spent"].dump(), R"({"costUsd":7,"tokens":28})");
    EXPECT_EQ(c["cap"].dump(), R"({"costUsd":9,"tokens":1000})");
    EXPECT_EQ(c["turns"].get_int64(), 7);
    EXPECT_EQ(c["maxTurns"].get_int64(), 50);
    EXPECT_EQ(c["spendRate"].dump(), R"({"avgPerTurn":1,"last5Avg":1.25,"last5":[0.75,1,1.25,1.5,1.75]})");
    EXPECT_EQ(run_gate({}, {}, t.options(false)).halt_context()["spendRate"].dump(), R"({"avgPerTurn":0,"last5Avg":0,"last5":[]})");
}

TEST(GateRules, RaiseCapWritesALine)
{
    bench t;
    budget team("team", usd("1"));
    run_gate gate({}, team.child("run"), t.options(false));
    gate.raise_cap("costUsd", 3);
    EXPECT_EQ(team.state().caps.cost, usd("3"));
    gate.raise_cap("tokens", 5);
    EXPECT_EQ(gate.money().state().caps.tokens, 5u);
    EXPECT_THROW(gate.raise_cap("euros", 5), validation_error);
    EXPECT_THROW(gate.raise_cap("tokens", -5), validation_error);
    EXPECT_EQ(t.phases(), (names{"topup", "topup"}));
    EXPECT_EQ(t.log.read()[0]["oldCap"].get_double(), 1.0);
    EXPECT_EQ(t.log.read()[0]["newCap"].get_double(), 3.0);
    EXPECT_TRUE(t.log.read()[1]["oldCap"].is_null());
}

}  // namespace gate_rules_test
}  // namespace

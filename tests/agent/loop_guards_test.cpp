#include "agent_fixture.hpp"

namespace {
namespace loop_guards_test {

using namespace reagent;
using agent_test::any_tool;
using ::testing::ElementsAre;
using ::testing::SizeIs;

using LoopGuards = agent_test::fixture;

json fine(const json&)
{
    return json("ok");
}

run_hooks with_policy(std::function<policy_verdict(const tool_call&)> f)
{
    run_hooks hooks;
    hooks.policy = [f](tool_call c) { return f(c); };
    return hooks;
}

TEST_F(LoopGuards, K09_WhatAPolicyAnswers)
{
    const auto content = [this](std::function<policy_verdict(const tool_call&)> f) {
        script({scripted_round().call("a", "x"), scripted_round("end")});
        return go(make(agent_options().hooks(with_policy(std::move(f))).tool(any_tool("x", fine)))).messages()[2]->text();
    };
    EXPECT_EQ(content([](const tool_call&) { return policy_verdict::deny(); }), "[Loop] Tool \"x\" denied by policy");
    EXPECT_EQ(content([](const tool_call&) { return policy_verdict::deny("no"); }), "no");
    EXPECT_EQ(content([](const tool_call&) -> policy_verdict { throw std::runtime_error("e"); }), "[Loop] policy error: e");
    EXPECT_EQ(content([](const tool_call&) { return policy_verdict::allow(); }), "ok");
    EXPECT_EQ(seen.count("loop:tool_result"), 4u);
}

TEST_F(LoopGuards, K10_ThreeDenialsInARowEndTheRun)
{
    script({});
    for (int i = 1; i <= 5; ++i) model_->add(scripted_round("t" + std::to_string(i)).call("c" + std::to_string(i), "w"));
    const run_result r = go(make(agent_options().hooks(with_policy([](const tool_call&) { return policy_verdict::deny("no"); })).tool(any_tool("w", fine))));
    EXPECT_THAT(model_->requests(), SizeIs(3));
    EXPECT_EQ(r.error(), "denied:w");
    EXPECT_EQ(r.outcome(), run_outcome::halted);
    EXPECT_EQ(r.text(), "t3");
    EXPECT_TRUE(seen.last("loop:done")["denied"].as_bool());
    EXPECT_EQ(seen.last("loop:error")["source"].as_string(), "denied");
}

TEST_F(LoopGuards, K11_FourDenialsInOneRound)
{
    script({scripted_round().call("1", "w").call("2", "w").call("3", "w").call("4", "w")});
    const run_result r = go(make(agent_options().hooks(with_policy([](const tool_call&) { return policy_verdict::deny("no"); })).tool(any_tool("w", fine))));
    EXPECT_EQ(r.error(), "denied:w");
    EXPECT_EQ(r.messages()[4]->text(), "no");
    EXPECT_EQ(r.messages()[5]->text(), "[halted:denied:w]");
}

TEST_F(LoopGuards, K12_AnAllowedCallResetsTheRow)
{
    script({});
    for (const char* n : {"d", "a", "d", "d"}) model_->add(scripted_round().call("1", n));
    model_->add(scripted_round("end"));
    const run_result r = go(make(agent_options()
                                     .hooks(with_policy([](const tool_call& c) { return policy_verdict(c.name == "a"); }))
                                     .tool(any_tool("a", fine))
                                     .tool(any_tool("d", fine))));
    EXPECT_FALSE(r.error());
}

TEST_F(LoopGuards, K13_MaxConsecutiveDenialsZeroIsOff)
{
    script({scripted_round().call("1", "w").times(5), scripted_round("end")});
    const run_result r = go(make(
        agent_options().max_consecutive_denials(0).hooks(with_policy([](const tool_call&) { return policy_verdict::deny("no"); })).tool(any_tool("w", fine))));
    EXPECT_FALSE(r.error());
    EXPECT_EQ(std::ranges::count(shape(r.messages()), "tool:no"), 5);
}

TEST_F(LoopGuards, K14_APolicyThatHalts)
{
    script({scripted_round("t").call("1", "w").call("2", "w")});
    int ran = 0;
    const run_result r = go(make(agent_options()
                                     .hooks(with_policy([](const tool_call&) -> policy_verdict { throw halt_error("limits.maxTurns"); }))
                                     .tool(any_tool("w", [&](const json&) {
                                         ++ran;
                                         return json();
                                     }))));
    EXPECT_EQ(r.error(), "halt:limits.maxTurns");
    EXPECT_EQ(r.text(), "t");
    EXPECT_EQ(ran, 0);
    EXPECT_THAT(shape(r.messages()), ElementsAre("user:hi", "assistant:t[1][2]", "tool:[halted:limits.maxTurns]", "tool:[halted:limits.maxTurns]"));
    EXPECT_EQ(seen.last("loop:error")["source"].as_string(), "halt");
    EXPECT_EQ(seen.last("loop:done")["rule"].as_string(), "limits.maxTurns");
}

TEST_F(LoopGuards, AHaltKeepsTheReasonsOfEarlierDenials)
{
    script({scripted_round().call("1", "w").call("2", "w").call("3", "w")});
    const run_result r = go(make(agent_options()
                                     .hooks(with_policy([](const tool_call& c) -> policy_verdict {
                                         if (c.id == "1") return policy_verdict::deny("no");
                                         throw halt_error("x.y");
                                     }))
                                     .tool(any_tool("w", fine))));
    EXPECT_THAT(shape(r.messages()), ElementsAre("user:hi", "assistant:[1][2][3]", "tool:no", "tool:[halted:x.y]", "tool:[halted:x.y]"));
}

TEST_F(LoopGuards, K15_AHaltWithoutARule)
{
    script({scripted_round().call("1", "w")});
    const run_result r = go(make(agent_options().tool(any_tool("w", [](const json&) -> json { throw halt_error(""); }))));
    EXPECT_EQ(r.error(), "halt:unknown");
    EXPECT_EQ(seen.last("loop:done")["rule"].as_string(), "unknown");
}

TEST_F(LoopGuards, K16_OnLlmResultHalts)
{
    script({scripted_round("p")});
    run_hooks hooks;
    hooks.on_llm_result = [](llm_report) { throw halt_error("budget.maxCostUsd"); };
    const run_result r = go(make(agent_options().hooks(hooks)));
    EXPECT_EQ(r.error(), "halt:budget.maxCostUsd");
    EXPECT_EQ(r.text(), "p");
    EXPECT_THAT(r.messages(), SizeIs(1));
}

TEST_F(LoopGuards, K17_TheSameFailureThreeTimes)
{
    script({scripted_round().call("1", "boom").times(0)});
    int ran = 0, told = 0;
    run_hooks hooks;
    hooks.on_tool_result = [&](tool_report) { ++told; };
    const run_result r = go(make(agent_options().hooks(hooks).tool(any_tool("boom", [&](const json&) -> json {
        ++ran;
        throw std::runtime_error("same");
    }))));
    EXPECT_EQ(ran, 3);
    EXPECT_EQ(told, 2);
    EXPECT_EQ(r.error(), "stuck:boom");
    EXPECT_EQ(r.outcome(), run_outcome::halted);
    EXPECT_TRUE(seen.last("loop:done")["stuck"].as_bool());
    EXPECT_EQ(r.messages().back()->text(), "[Loop] Tool error: same");
}

TEST_F(LoopGuards, K23_AnUnknownToolEveryRound)
{
    script({scripted_round().call("1", "ghost").times(0)});
    const run_result r = go(make());
    EXPECT_EQ(r.error(), "stuck:ghost");
    EXPECT_THAT(model_->requests(), SizeIs(3));
}

TEST_F(LoopGuards, Case_B13_AModelThatRepeatsItselfIsReportedOnceAndStoppedByChoice)
{
    script({scripted_round().call("1", "x").times(12), scripted_round("end")});
    std::vector<std::string> sources;
    run_hooks hooks;
    hooks.on_error = [&](const error_report& e) { sources.push_back(e.source); };
    const run_result warned = go(make(agent_options().hooks(hooks).tool(any_tool("x", fine))));
    EXPECT_EQ(warned.outcome(), run_outcome::completed);
    EXPECT_EQ(warned.metrics().repeated_calls, 1u);
    EXPECT_THAT(sources, ElementsAre("identical_calls"));

    script({scripted_round().call("1", "x").times(0)});
    int ran = 0;
    const run_result stopped = go(make(agent_options().max_identical_calls(4, repeat_policy::stop).tool(any_tool("x", [&](const json&) {
        ++ran;
        return json();
    }))));
    EXPECT_EQ(stopped.error(), "stuck:x");
    EXPECT_EQ(ran, 4);
}

TEST_F(LoopGuards, Case_B13_OtherArgumentsOrNamesAreNoRepetitionAndEqualErrorsAre)
{
    scripted_round end("end");
    script({});
    for (int i = 0; i < 12; ++i) model_->add(scripted_round().call("1", "x", json::object().set("i", i)));
    for (int i = 0; i < 12; ++i) model_->add(scripted_round().call("1", i % 2 == 0 ? "x" : "y"));
    model_->add(end);
    const run_result r = go(make(agent_options().max_identical_calls(4, repeat_policy::stop).tool(any_tool("x", fine)).tool(any_tool("y", fine))));
    EXPECT_EQ(r.outcome(), run_outcome::completed) << r.error().value_or("");

    script({scripted_round().call("1", "x").times(0)});
    int ran = 0;
    const run_result failing = go(make(agent_options().max_identical_calls(0).tool(any_tool("x", [&](const json&) -> json {
        ++ran;
        throw std::runtime_error("again");
    }))));
    EXPECT_EQ(failing.error(), "stuck:x");
    EXPECT_EQ(failing.outcome(), run_outcome::halted);
    EXPECT_EQ(ran, 3);
}

TEST_F(LoopGuards, GateDeniesWithItsRuleAndTheRunGoesOn)
{
    script({scripted_round().call("1", "w").call("2", "x"), scripted_round("end")});
    const gate_policy rules = gate_policy::from_json(json::parse_or_throw(R"({"tools":{"denylist":["w"]}})", "gate"));
    int ran = 0;
    const audit_log audit = audit_log::in_memory();
    const run_result r = go(make(agent_options()
                                     .gate(rules, audit)
                                     .tool(any_tool("w",
                                                    [&](const json&) {
                                                        ++ran;
                                                        return json();
                                                    }))
                                     .tool(any_tool("x", fine))));
    EXPECT_EQ(ran, 0);
    EXPECT_EQ(r.outcome(), run_outcome::completed);
    EXPECT_TRUE(r.messages()[2]->text().starts_with("[deny: tools.denylist] ")) << r.messages()[2]->text();
    EXPECT_EQ(r.messages()[3]->text(), "ok");
    EXPECT_FALSE(audit.read().empty());
}

TEST_F(LoopGuards, Case_B11_ALimitOfToolRoundsIsReservedForTheWholeBatch)
{
    scripted_round eight;
    for (int i = 0; i < 8; ++i) eight.call("c" + std::to_string(i), "x", json::object().set("i", i));
    script({eight});
    const gate_policy rules = gate_policy::from_json(json::parse_or_throw(R"({"limits":{"maxToolRounds":6}})", "gate"));
    int ran = 0;
    const run_result r = go(make(agent_options().gate(rules).tool(any_tool("x", [&](const json&) {
        ++ran;
        return json();
    }))));
    EXPECT_EQ(ran, 0) << "a batch that does not fit starts no call";
    EXPECT_EQ(r.error(), "halt:limits.maxToolRounds");
    EXPECT_EQ(r.messages().size(), 10u);
}

TEST_F(LoopGuards, Case_B11_ABatchThatJustFitsRunsWholeAndTheNextNotAtAll)
{
    const auto round_of = [](int n) {
        scripted_round r;
        for (int i = 0; i < n; ++i) r.call("c" + std::to_string(i), "x", json::object().set("i", i));
        return r;
    };
    const gate_policy rules = gate_policy::from_json(json::parse_or_throw(R"({"limits":{"maxToolRounds":6}})", "gate"));
    const auto ran_of = [&](std::vector<scripted_round> rounds) {
        rounds.push_back(scripted_round("end"));
        script(std::move(rounds));
        int ran = 0;
        go(make(agent_options().gate(rules).tool(any_tool("x", [&](const json&) {
            ++ran;
            return json();
        }))));
        return ran;
    };
    EXPECT_EQ(ran_of({round_of(6)}), 6);
    EXPECT_EQ(ran_of({round_of(7)}), 0);
    EXPECT_EQ(ran_of({round_of(4), round_of(2)}), 6);
    EXPECT_EQ(ran_of({round_of(4), round_of(3)}), 4) << "what ran before counts";
}

TEST_F(LoopGuards, Case_B11_AHaltBehindADeniedCallHaltsAll)
{
    script({scripted_round().call("a", "no").call("b", "x").call("c", "x"), scripted_round("end")});
    const gate_policy rules = gate_policy::from_json(json::parse_or_throw(R"({"tools":{"denylist":["no"]},"limits":{"maxToolRounds":1}})", "gate"));
    int ran = 0;
    const tool count = any_tool("x", [&](const json&) {
        ++ran;
        return json();
    });
    const run_result r = go(make(agent_options().gate(rules).tool(any_tool("no", fine)).tool(count)));
    EXPECT_EQ(ran, 0);
    EXPECT_EQ(r.error(), "halt:limits.maxToolRounds");
    ASSERT_EQ(r.messages().size(), 5u);
    EXPECT_TRUE(r.messages()[2]->text().starts_with("[deny: tools.denylist] ")) << r.messages()[2]->text();
    EXPECT_EQ(r.messages()[3]->text(), "[halted:limits.maxToolRounds]");
    EXPECT_EQ(r.messages()[4]->text(), "[halted:limits.maxToolRounds]");
}

TEST_F(LoopGuards, MaxTurnsHaltsBeforeTheNextModelCall)
{
    script({scripted_round("t").call("1", "x").times(0)});
    const gate_policy rules = gate_policy::from_json(json::parse_or_throw(R"({"limits":{"maxTurns":4}})", "gate"));
    const run_result r = go(make(agent_options().gate(rules).tool(any_tool("x", fine))));
    // Model and tool records count alike: two rounds of one call each.
    EXPECT_EQ(r.error(), "halt:limits.maxTurns");
    EXPECT_THAT(model_->requests(), SizeIs(2));
}

}  // namespace loop_guards_test
}  // namespace

// How a round ends that a halt or a guard closed: reasons, markers, notes and events in call order.
#include "agent_fixture.hpp"

namespace {
namespace judging_test {

using namespace reagent;
using namespace agent_test;
using ::testing::ElementsAre;

using Judging = fixture;

std::vector<std::string> denied(const seen_events& seen)
{
    std::vector<std::string> out;
    for (const json& e : seen.all)
        if (e["type"].as_string() == "loop:tool_result" && e["data"]["denied"].get_bool().value_or(false)) out.push_back(e["data"]["reason"].as_string());
    return out;
}

std::vector<std::string> answers(const run_result& r)
{
    std::vector<std::string> out;
    for (const message_ptr& m : r.messages())
        if (m->who == role::tool) out.push_back(m->text());
    return out;
}

tool named(std::string name)
{
    return any_tool(std::move(name), [](const json&) { return json("ok"); });
}

/// Only what was denied before the gate's halt keeps its reason, though the hook had judged the whole batch.
TEST_F(Judging, AHaltOfTheGateTakesBackWhatTheHookSaidAfterIt)
{
    script({scripted_round().call("a", "no").call("b", "yes").call("c", "yes").call("d", "no").call("e", "gone")});
    run_hooks h;
    h.policy = [](const tool_call& c) { return c.name == "no" ? policy_verdict::deny("not " + c.id) : policy_verdict::allow(); };
    const agent a = make(agent_options().hooks(h).gate(gate_policy().max_tool_rounds(1)).tool(named("no")).tool(named("yes")));
    const run_result r = go(a);
    EXPECT_EQ(r.error(), "halt:limits.maxToolRounds");
    const std::string marker = "[halted:limits.maxToolRounds]";
    EXPECT_THAT(answers(r), ElementsAre("not a", marker, marker, marker, marker));
    EXPECT_THAT(denied(seen), ElementsAre("not a"));
}

TEST_F(Judging, AHaltOfTheHookTellsWhatWasDeniedBefore)
{
    script({scripted_round().call("a", "no").call("b", "stop").call("c", "no")});
    run_hooks h;
    h.policy = [](const tool_call& c) -> policy_verdict {
        if (c.name == "stop") throw halt_error("house.rule", "enough");
        return policy_verdict::deny("not " + c.id);
    };
    const run_result r = go(make(agent_options().hooks(h).tool(named("no")).tool(named("stop"))));
    EXPECT_EQ(r.error(), "halt:house.rule");
    EXPECT_THAT(answers(r), ElementsAre("not a", "[halted:house.rule]", "[halted:house.rule]"));
    EXPECT_THAT(denied(seen), ElementsAre("not a"));
}

/// Calls that were dropped are owned up to, also when none of the kept ones ran.
TEST_F(Judging, ASealedRoundSaysHowManyCallsWereDropped)
{
    script({scripted_round().call("a", "t").call("b", "t").call("c", "t").call("d", "t")});
    const run_result r = go(make(agent_options().max_calls_per_round(2).gate(gate_policy().max_tool_rounds(1)).tool(named("t"))));
    EXPECT_EQ(r.error(), "halt:limits.maxToolRounds");
    EXPECT_THAT(answers(r), ElementsAre("[halted:limits.maxToolRounds]", "[halted:limits.maxToolRounds]\n[Loop] 2 further calls dropped (limit 2)"));
}

TEST_F(Judging, TheWarningOfRepeatedCallsNamesTheirNumber)
{
    std::vector<scripted_round> rounds;
    for (int i = 0; i < 6; ++i) rounds.push_back(scripted_round().call("a", "t"));
    rounds.push_back(scripted_round("end"));
    script(rounds);
    std::vector<std::string> said;
    run_hooks h;
    h.on_error = [&said](const error_report& e) { said.push_back(e.message); };
    go(make(agent_options().hooks(h).max_identical_calls(3).tool(named("t"))));
    EXPECT_THAT(
        said, ElementsAre("tool \"t\" was called with the same arguments 3 times in a row", "tool \"t\" was called with the same arguments 6 times in a row"));
}

}  // namespace judging_test
}  // namespace

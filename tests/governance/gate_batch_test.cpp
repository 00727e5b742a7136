#include "gate_bench.hpp"

namespace {
namespace gate_batch_test {

using namespace gate_bench;

std::vector<action> batch_of(std::initializer_list<const char*> types)
{
    std::vector<action> all;
    for (const char* t : types) all.push_back(kind(t));
    return all;
}

names verdicts(const std::vector<decision>& all)
{
    names out;
    for (const decision& d : all) out.push_back((d.allowed() ? "allow " : d.halts() ? "halt " : "deny ") + d.rule);
    return out;
}

TEST(GateBatch, JudgesInCallOrderBeforeAnythingStarts)
{
    bench t;
    run_gate gate(gate_policy().deny_tools({"bad"}), {}, t.options(false));
    const std::vector<decision> d = t.get(gate.check_batch(batch_of({"a", "bad", "b"})));
    EXPECT_EQ(verdicts(d), (names{"allow default", "deny tools.denylist", "allow default"}));
    EXPECT_EQ(t.phases(), (names{"gate", "gate", "gate"}));
    EXPECT_NE(d[0].aid, d[2].aid);
    EXPECT_TRUE(t.get(gate.check_batch({})).empty());
}

TEST(GateBatch, Case_B11_LimitsCountTheCallsAdmittedInTheBatch)
{
    bench t;
    run_gate gate(gate_policy().max_tool_rounds(3).deny_tools({"bad"}), {}, t.options(false));
    gate.record(kind("a"), json::object(), "");
    t.phases();
    EXPECT_EQ(verdicts(t.get(gate.check_batch(batch_of({"a", "bad", "b"})))), (names{"allow default", "deny tools.denylist", "allow default"}))
        << "one recorded and two admitted make three";
    EXPECT_EQ(
        verdicts(t.get(gate.check_batch(batch_of({"a", "bad", "b", "c", "d"})))),
        (names{"halt limits.maxToolRounds", "deny tools.denylist", "halt limits.maxToolRounds", "halt limits.maxToolRounds", "halt limits.maxToolRounds"}))
        << "the third call would be the fourth round: nothing starts, the earlier denial keeps its reason";
    EXPECT_EQ(t.phases(), (names{"gate", "gate", "gate", "gate", "gate", "gate", "gate", "halt", "gate"})) << "what comes after the halt is not evaluated";
}

TEST(GateBatch, TurnsAreCountedToo)
{
    bench t;
    run_gate gate(gate_policy().max_turns(2), {}, t.options(false));
    EXPECT_EQ(verdicts(t.get(gate.check_batch(batch_of({"a", "b"})))), (names{"allow default", "allow default"}));
    EXPECT_EQ(verdicts(t.get(gate.check_batch(batch_of({"a", "b", "c"})))), (names{"halt limits.maxTurns", "halt limits.maxTurns", "halt limits.maxTurns"}));
}

TEST(GateBatch, AHaltedCallKeepsItsOwnIdInTheLog)
{
    bench t;
    run_gate gate(gate_policy().max_turns(1), {}, t.options(false));
    const std::vector<decision> d = t.get(gate.check_batch(batch_of({"a", "b"})));
    EXPECT_TRUE(d[0].halts());
    EXPECT_EQ(d[0].aid, t.log.read()[0]["aid"].as_string());
    EXPECT_EQ(d[1].aid, t.log.read()[1]["aid"].as_string());
}

TEST(GateBatch, AsksInTheMiddleAndGoesOn)
{
    bench t;
    t.human.answers = {human_answer(human_verdict::deny), human_answer(human_verdict::allow)};
    run_gate gate(with_asking({}), {}, t.options(true));
    EXPECT_EQ(verdicts(t.get(gate.check_batch(batch_of({"a", "ask", "ask", "b"})))),
              (names{"allow default", "deny content.askPatterns", "allow humanChannel.allow", "allow default"}));
    EXPECT_EQ(t.phases(), (names{"gate", "gate", "approval", "gate", "gate", "approval", "gate", "gate"}));
}

TEST(GateBatch, CanBeCancelledWhileAPersonThinks)
{
    bench t;
    t.human.answers = {human_answer(human_verdict::allow)};
    t.human.delay = std::chrono::hours(1);
    run_gate gate(with_asking({}), {}, t.options(true));
    pending<std::vector<decision>> p;
    t.start(p, gate.check_batch(batch_of({"a", "ask", "b"})));
    EXPECT_EQ(t.phases(), (names{"gate", "gate"}));
    p.stop.emit(asio::cancellation_type::terminal);
    t.run();
    EXPECT_TRUE(p.cancelled);
    EXPECT_EQ(t.phases(), names{});
}

// ---- admit

TEST(GateAdmit, ReservesAndWritesOneLine)
{
    bench t;
    budget money("run", budget_caps(usd("1"), 1000));
    run_gate gate(gate_policy().allow_tools({"calculate"}).deny_tools({"*"}), money, t.options(false));
    reservation held = t.get(gate.admit(action::llm("m"), budget_amount(usd("0.4"), 300)));
    EXPECT_EQ(held.held().cost, usd("0.4"));
    EXPECT_EQ(money.state().reserved.tokens, 300u) << "a model round is no tool: the lists have no opinion";
    EXPECT_EQ(t.phases(), names{"gate"});
    held.settle(budget_amount(usd("0.1"), 10));
    EXPECT_EQ(money.state().spent.cost, usd("0.1"));
}

TEST(GateAdmit, WithoutABudgetItIsACheck)
{
    bench t;
    run_gate gate(gate_policy().max_turns(1), {}, t.options(false));
    const reservation held = t.get(gate.admit(action::llm("m"), budget_amount(usd("0.4"), 300)));
    EXPECT_FALSE(held);
    gate.record(action::llm("m"), json::object(), "");
    try {
        t.get(gate.admit(action::llm("m"), budget_amount()));
        FAIL() << "the turn limit halts before the attempt";
    } catch (const halt_error& e) {
        EXPECT_EQ(e.rule(), "limits.maxTurns");
    }
}

TEST(GateAdmit, WaitsWhileOthersHoldWhatIsMissing)
{
    bench t;
    budget money("team", usd("1"));
    run_gate one({}, money.child("one"), t.options(false)), two({}, money.child("two"), t.options(false));
    reservation first = t.get(one.admit(action::llm("m"), budget_amount(usd("0.7"))));
    pending<reservation> second;
    t.start(second, two.admit(action::llm("m"), budget_amount(usd("0.7"))));
    EXPECT_FALSE(second.done);
    EXPECT_EQ(t.phases(), names{"gate"}) << "an allow is written when it is one";
    EXPECT_TRUE(t.check(one, kind("x")).allowed()) << "the waiting run holds nothing of another up";
    first.settle(budget_amount(usd("0.2")));
    t.run();
    ASSERT_TRUE(second.done);
    EXPECT_EQ(second.value.held().cost, usd("0.7"));
    EXPECT_EQ(t.phases(), (names{"gate", "gate"}));
}

TEST(GateAdmit, ACancelledWaitHoldsNothing)
{
    bench t;
    budget money("team", usd("1"));
    const reservation others = money.force(budget_amount(usd("1")));
    run_gate gate({}, money.child("run"), t.options(false));
    pending<reservation> p;
    t.start(p, gate.admit(action::llm("m"), budget_amount(usd("0.7"))));
    EXPECT_EQ(money.state().waiting, 1u);
    p.stop.emit(asio::cancellation_type::terminal);
    t.run();
    EXPECT_TRUE(p.cancelled);
    EXPECT_EQ(money.state().waiting, 0u);
    EXPECT_EQ(money.state().reserved.cost, usd("1"));
    EXPECT_EQ(t.phases(), names{});
}

TEST(GateAdmit, WhatCannotFitHaltsUnderTheBudgetRule)
{
    struct row {
        budget_amount worst;
        const char* rule;
    };
    for (const row& r : {row{budget_amount(usd("0.11"), 1), "budget.maxCostUsd"}, row{budget_amount(usd("0.01"), 101), "budget.maxTokens"}}) {
        bench t;
        budget money("team", budget_caps(usd("0.1"), 100));
        run_gate gate({}, money, t.options(false));
        try {
            t.get(gate.admit(action::llm("m"), r.worst));
            FAIL();
        } catch (const halt_error& e) {
            EXPECT_EQ(e.rule(), r.rule);
            EXPECT_NE(std::string(e.what()).find("budget \"team\""), std::string::npos) << e.what();
        }
        EXPECT_EQ(t.phases(), (names{"gate", "halt", "gate"}));
        EXPECT_EQ(money.state().reserved.cost, usd());
    }
}

TEST(GateAdmit, ATopUpIsRetriedFromTheStart)
{
    bench t;
    t.human.answers = {top_up(0.3), top_up(0.5)};
    budget money("team", usd("0.1"));
    run_gate gate({}, money, t.options(true));
    const reservation held = t.get(gate.admit(action::llm("m"), budget_amount(usd("0.4"))));
    EXPECT_EQ(held.held().cost, usd("0.4"));
    EXPECT_EQ(money.state().caps.cost, usd("0.5"));
    EXPECT_EQ(t.phases(), (names{"gate", "halt", "approval", "topup", "gate", "halt", "approval", "topup", "gate"}));
}

TEST(GateAdmit, FiveTopUpsEndIt)
{
    bench t;
    t.human.answers = {top_up(0.2)};
    budget money("team", usd("0.1"));
    run_gate gate({}, money, t.options(true));
    EXPECT_THROW(t.get(gate.admit(action::llm("m"), budget_amount(usd("0.4")))), halt_error);
    EXPECT_EQ(t.human.asked.size(), 5u);
    EXPECT_EQ(money.state().reserved.cost, usd());
}

TEST(GateAdmit, APersonMayLetOneAttemptPassTheCap)
{
    bench t;
    t.human.answers = {human_answer(human_verdict::allow)};
    budget money("team", usd("0.1"));
    run_gate gate({}, money, t.options(true));
    reservation held = t.get(gate.admit(action::llm("m"), budget_amount(usd("0.4"))));
    EXPECT_EQ(held.held().cost, usd("0.4"));
    EXPECT_EQ(money.state().caps.cost, usd("0.1"));
    EXPECT_EQ(t.phases(), (names{"gate", "halt", "approval", "gate"}));
    held.settle(budget_amount(usd("0.4")));
    EXPECT_TRUE(money.state().overrun);
}

TEST(GateAdmit, PermissionToPassATurnLimitIsNoMoney)
{
    bench t;
    t.human.answers = {human_answer(human_verdict::allow), top_up(1), human_answer(human_verdict::allow)};
    budget money("team", usd("0.1"));
    run_gate gate(gate_policy().max_turns(0), money, t.options(true));
    const reservation held = t.get(gate.admit(action::llm("m"), budget_amount(usd("0.4"))));
    EXPECT_EQ(held.held().cost, usd("0.4"));
    ASSERT_EQ(t.human.asked.size(), 2u);
    EXPECT_EQ(t.human.asked[0].rule, "limits.maxTurns");
    EXPECT_EQ(t.human.asked[1].rule, "budget.maxCostUsd");
    EXPECT_EQ(t.log.read().back()["rule"].as_string(), "humanChannel.allow");
}

TEST(GateAdmit, ADeniedAttemptHaltsTheRun)
{
    bench t;
    t.human.answers = {human_answer(human_verdict::deny)};
    run_gate gate(with_asking({}), {}, t.options(true));
    EXPECT_THROW(t.get(gate.admit(kind("ask"), budget_amount())), halt_error);
}

TEST(GateAdmit, CancelledWhileAPersonThinksHoldsNothing)
{
    bench t;
    t.human.answers = {top_up(9)};
    t.human.delay = std::chrono::hours(1);
    budget money("team", usd("0.1"));
    run_gate gate({}, money, t.options(true));
    pending<reservation> p;
    t.start(p, gate.admit(action::llm("m"), budget_amount(usd("0.4"))));
    EXPECT_FALSE(p.done);
    p.stop.emit(asio::cancellation_type::terminal);
    t.run();
    EXPECT_TRUE(p.cancelled);
    EXPECT_EQ(money.state().reserved.cost, usd());
    EXPECT_EQ(money.state().caps.cost, usd("0.1"));
}

}  // namespace gate_batch_test
}  // namespace

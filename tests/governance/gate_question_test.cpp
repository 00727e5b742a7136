#include "gate_bench.hpp"

#include <cmath>

namespace {
namespace gate_question_test {

using namespace gate_bench;

/// One row of spec/governance.md §3.2 and §3.3.
struct question_row {
    const char* what;
    bool halt;  // a spent budget, else a rule that asks
    std::vector<human_answer> answers;
    const char* throws;
    int delay_ms;
    bool allowed;
    severity level;
    const char *rule, *reason;
    names lines;
    std::size_t asked;
};

human_answer answer(human_verdict v, const char* reason = "")
{
    human_answer a(v);
    a.reason = reason;
    return a;
}

const human_verdict allow = human_verdict::allow, deny = human_verdict::deny, terminate_run = human_verdict::terminate, none = human_verdict::none;

TEST(GateQuestion, EveryAnswerHasItsVerdictAndItsLines)
{
    const names three{"gate", "approval", "gate"}, four{"gate", "halt", "approval", "gate"};
    human_answer capless(human_verdict::topup);
    const question_row rows[] = {
        {"ask: allow", false, {answer(allow, "go")}, "", 0, true, severity::action, "humanChannel.allow", "go", three, 1},
        {"ask: deny", false, {answer(deny)}, "", 0, false, severity::action, "content.askPatterns", "human denied", three, 1},
        {"ask: deny with a reason", false, {answer(deny, "no way")}, "", 0, false, severity::action, "content.askPatterns", "no way", three, 1},
        {"ask: top-up", false, {top_up(5)}, "", 0, true, severity::action, "humanChannel.allow", "topup-on-ask treated as allow", three, 1},
        {"ask: terminate",
         false,
         {answer(terminate_run, "stop it")},
         "",
         0,
         false,
         severity::halt,
         "gate.terminated",
         "stop it",
         {"gate", "approval", "terminate", "gate"},
         1},
        {"ask: nothing", false, {answer(none)}, "", 0, false, severity::action, "content.askPatterns", "humanChannel returned nothing", three, 1},
        {"ask: unknown word",
         false,
         {human_answer::from_json(json::object().set("decision", "maybe"))},
         "",
         0,
         false,
         severity::halt,
         "content.askPatterns",
         "humanChannel returned unknown decision: maybe",
         three,
         1},
        {"ask: throws", false, {answer(allow)}, "boom", 0, false, severity::halt, "content.askPatterns", "humanChannel threw: boom", {"gate", "approval"}, 1},
        {"ask: too late",
         false,
         {answer(allow)},
         "",
         500,
         false,
         severity::halt,
         "content.askPatterns",
         "humanChannel timeout after 50ms",
         {"gate", "approval"},
         1},
        {"halt: allow", true, {answer(allow)}, "", 0, true, severity::action, "humanChannel.allow", "", four, 1},
        {"halt: deny", true, {answer(deny)}, "", 0, false, severity::halt, "budget.maxCostUsd", "human denied", four, 1},
        {"halt: top-up", true, {top_up(1)}, "", 0, true, severity::action, "default", "", {"gate", "halt", "approval", "topup", "gate"}, 1},
        {"halt: terminate",
         true,
         {answer(terminate_run)},
         "",
         0,
         false,
         severity::halt,
         "gate.terminated",
         "the gate was terminated",
         {"gate", "halt", "approval", "terminate", "gate"},
         1},
        {"halt: nothing", true, {answer(none)}, "", 0, false, severity::halt, "budget.maxCostUsd", "humanChannel returned nothing", four, 1},
        {"halt: negative top-up", true, {top_up(-1)}, "", 0, false, severity::halt, "budget.maxCostUsd", "topup with invalid newCap", four, 1},
        {"halt: top-up of NaN", true, {top_up(std::nan(""))}, "", 0, false, severity::halt, "budget.maxCostUsd", "topup with invalid newCap", four, 1},
        {"halt: top-up without a cap", true, {capless}, "", 0, false, severity::halt, "budget.maxCostUsd", "topup with invalid newCap", four, 1},
        {"halt: five top-ups that do not help",
         true,
         {top_up(0.11)},
         "",
         0,
         false,
         severity::halt,
         "budget.maxCostUsd",
         "topup loop exceeded 5 iterations",
         {"gate",  "halt", "approval", "topup",    "gate",  "halt", "approval", "topup",    "gate",  "halt", "approval",
          "topup", "gate", "halt",     "approval", "topup", "gate", "halt",     "approval", "topup", "gate"},
         5},
        {"halt: throws",
         true,
         {answer(allow)},
         "boom",
         0,
         false,
         severity::halt,
         "budget.maxCostUsd",
         "humanChannel threw: boom",
         {"gate", "halt", "approval"},
         1},
        {"halt: too late",
         true,
         {answer(allow)},
         "",
         500,
         false,
         severity::halt,
         "budget.maxCostUsd",
         "humanChannel timeout after 50ms",
         {"gate", "halt", "approval"},
         1},
        {"halt: in time", true, {answer(allow)}, "", 49, true, severity::action, "humanChannel.allow", "", four, 1},
    };
    for (const question_row& row : rows) {
        SCOPED_TRACE(row.what);
        bench t;
        t.human.answers = row.answers;
        t.human.throws = row.throws;
        t.human.delay = std::chrono::milliseconds(row.delay_ms);
        run_gate gate(with_asking(gate_policy().max_cost(usd("0.10")).channel_timeout(std::chrono::milliseconds(50))), {}, t.options(true));
        if (row.halt) {
            gate.record(kind("x"), costs(0.15), "");
            t.phases();
        }
        pending<decision> p;
        t.start(p, gate.check(kind(row.halt ? "x" : "ask")));
        for (int ms = 0; !p.done && ms < 100; ++ms) {
            t.time->advance(std::chrono::milliseconds(1));
            t.run();
        }
        ASSERT_TRUE(p.done);
        ASSERT_FALSE(p.failure);
        EXPECT_EQ(p.value.allowed(), row.allowed);
        EXPECT_EQ(p.value.level, row.level);
        EXPECT_EQ(p.value.rule, row.rule);
        EXPECT_EQ(p.value.reason, row.reason);
        EXPECT_EQ(t.phases(), row.lines);
        EXPECT_EQ(t.human.asked.size(), row.asked);
        const std::vector<json> lines = t.log.read();
        for (std::size_t i = row.halt ? 1 : 0; i < lines.size(); ++i) {
            const std::string* aid = lines[i]["aid"].get_string();
            EXPECT_EQ(aid ? *aid : "none", lines[i]["phase"].as_string() == "terminate" ? "none" : p.value.aid) << "all other lines of a check share its id";
            EXPECT_EQ(lines[i]["seq"].get_uint64(), i + 1);
        }
        t.io.restart();
        t.io.run();  // nothing is left waiting
        EXPECT_EQ(t.time->armed(), 0u);
    }
}

TEST(GateQuestion, WithoutAPersonItHaltsAndWarnsOnce)
{
    bench t;
    run_gate gate(with_asking(gate_policy().max_cost(usd("0.10"))), {}, t.options(false));
    const decision asked = t.check(gate, kind("ask"));
    EXPECT_TRUE(asked.halts());
    EXPECT_EQ(asked.rule, "content.askPatterns");
    EXPECT_EQ(asked.reason, "looks dangerous (no humanChannel registered)");
    EXPECT_EQ(t.phases(), (names{"gate", "gate"}));
    gate.record(kind("x"), costs(0.15), "");
    t.phases();
    const decision halted = t.check(gate, kind("x"));  // S01
    EXPECT_TRUE(halted.halts());
    EXPECT_EQ(halted.rule, "budget.maxCostUsd");
    EXPECT_TRUE(halted.reason.ends_with("(no humanChannel registered)")) << halted.reason;
    EXPECT_EQ(t.phases(), (names{"gate", "halt", "gate"}));
    EXPECT_EQ(t.warnings.size(), 1u);
    const std::vector<json> lines = t.log.read();
    EXPECT_EQ(lines[3]["decision"].as_string(), "askHuman");
    EXPECT_EQ(
        lines[4].dump().substr(lines[4].dump().find("\"action\"")),
        R"("action":null,"dimension":"costUsd","spent":0.15,"cap":0.1,"rule":"budget.maxCostUsd","reason":"$0.15 of $0.1 spent in budget \"run\"","awaiting":"no-channel"})");
    EXPECT_FALSE(gate.allows(kind("x")));  // S32
    EXPECT_EQ(t.phases(), names{});
}

TEST(GateQuestion, ATopUpRaisesTheBudgetThatIsShort)
{
    bench t;
    t.human.answers = {top_up(1.0)};
    budget team("team", usd("0.10"));
    run_gate gate({}, team.child("run", usd("5")), t.options(true));
    gate.record(kind("x"), costs(0.15), "");
    const decision d = t.check(gate, kind("x"));  // S02
    EXPECT_TRUE(d.allowed());
    EXPECT_EQ(d.rule, "default");
    EXPECT_EQ(team.state().caps.cost, usd("1"));
    EXPECT_EQ(t.human.asked.size(), 1u);
}

TEST(GateQuestion, AnAllowedHaltIsForThisActionOnly)
{
    bench t;
    t.human.answers = {answer(allow)};
    run_gate gate(gate_policy().max_cost(usd("0.10")), {}, t.options(true));
    gate.record(kind("x"), costs(0.15), "");
    EXPECT_EQ(t.check(gate, kind("x")).rule, "humanChannel.allow");  // S14
    EXPECT_EQ(t.check(gate, kind("x")).rule, "humanChannel.allow");
    EXPECT_EQ(t.human.asked.size(), 2u);
    EXPECT_EQ(gate.money().state().caps.cost, usd("0.10"));
}

TEST(GateQuestion, ATopUpDoesNotApplyToATurnLimit)
{
    bench t;
    t.human.answers = {top_up(100)};
    run_gate gate(gate_policy().max_turns(1), {}, t.options(true));
    gate.record(kind("llm"), json::object(), "");
    const decision d = t.check(gate, kind("x"));  // S07
    EXPECT_TRUE(d.halts());
    EXPECT_EQ(d.rule, "limits.maxTurns");
    EXPECT_EQ(d.reason, "topup not applicable to this rule");
}

TEST(GateQuestion, ATerminatedGateAsksNobody)
{
    bench t;
    t.human.answers = {answer(terminate_run), answer(allow)};
    run_gate gate(gate_policy().max_cost(usd("0.10")), {}, t.options(true));
    gate.record(kind("x"), costs(0.15), "");
    EXPECT_EQ(t.check(gate, kind("x")).rule, "gate.terminated");  // S03
    t.phases();
    const decision d = t.check(gate, kind("x"));  // S04
    EXPECT_EQ(d.rule, "gate.terminated");
    EXPECT_TRUE(d.halts());
    EXPECT_EQ(t.human.asked.size(), 1u);
    EXPECT_EQ(t.phases(), names{"gate"});
}

TEST(GateQuestion, ThePersonSeesTheActionWithoutItsSecrets)
{
    bench t;
    t.human.answers = {answer(allow)};
    run_gate gate(with_asking({}), {}, t.options(true));
    t.check(gate, action(json::object().set("type", "ask").set("args", json::object().set("apiKey", "abc").set("note", "Bearer abc.def"))));
    ASSERT_EQ(t.human.asked.size(), 1u);
    const human_event& e = t.human.asked[0];
    EXPECT_EQ(e.subject.value.dump(), R"({"type":"ask","args":{"apiKey":"[REDACTED:key=apiKey]","note":"[REDACTED:pattern=Bear...]"}})");
    EXPECT_FALSE(e.halt);
    EXPECT_EQ(e.level, severity::action);
    EXPECT_EQ(e.rule, "content.askPatterns");
    EXPECT_EQ(e.reason, "looks dangerous");
    EXPECT_TRUE(e.context.find("spendRate"));
}

TEST(GateQuestion, AWaitingCheckCanBeCancelledAndHoldsNothing)
{
    for (const bool with_limit : {false, true}) {
        bench t;
        t.human.answers = {answer(allow)};
        t.human.delay = std::chrono::hours(1);
        gate_options o = t.options(true);
        if (with_limit) o.channel_timeout = std::chrono::hours(2);
        run_gate gate(with_asking({}), budget("b", usd("1")), std::move(o));
        pending<decision> p;
        t.start(p, gate.check(kind("ask")));
        EXPECT_FALSE(p.done);
        EXPECT_EQ(t.phases(), names{"gate"}) << "the question is on record before it is asked";
        EXPECT_TRUE(t.check(gate, kind("x")).allowed()) << "another check of the gate passes meanwhile";
        EXPECT_EQ(t.phases(), names{"gate"});
        p.stop.emit(asio::cancellation_type::terminal);
        t.run();
        EXPECT_TRUE(p.cancelled);
        EXPECT_EQ(t.phases(), names{}) << "no verdict";
        EXPECT_EQ(t.time->armed(), 0u);
        t.io.restart();
        t.io.run();
    }
}

awaitable<human_answer> stubborn(bench* t)
{
    try {
        co_await sleep_until(t->time, t->time->now() + std::chrono::hours(1));
    } catch (const std::exception&) {}
    co_return human_answer(human_verdict::allow);
}

TEST(GateQuestion, AnAnswerMadeWhileBeingCancelledIsDropped)
{
    bench t;
    gate_options o = t.options(false);
    o.channel = [&](human_event) { return stubborn(&t); };
    o.channel_timeout = std::chrono::milliseconds(1500);
    run_gate gate(with_asking({}), {}, std::move(o));
    pending<decision> timed;
    t.start(timed, gate.check(kind("ask")));
    t.time->advance(std::chrono::milliseconds(1500));
    t.run();
    ASSERT_TRUE(timed.done);
    EXPECT_EQ(timed.value.reason, "humanChannel timeout after 1500ms");
    pending<decision> cancelled;
    t.start(cancelled, gate.check(kind("ask")));
    cancelled.stop.emit(asio::cancellation_type::terminal);
    t.run();
    EXPECT_TRUE(cancelled.cancelled);
}

TEST(GateQuestion, ReadsAnswersFromJson)
{
    const human_answer a = human_answer::from_json(json::parse_or_throw(R"({"decision":"topup","newCap":2.5,"reason":"ok"})", "answer"));
    EXPECT_EQ(a.verdict, human_verdict::topup);
    EXPECT_EQ(a.new_cap, 2.5);
    EXPECT_EQ(a.reason, "ok");
    EXPECT_EQ(human_answer::from_json(json()).verdict, human_verdict::none);
    EXPECT_EQ(human_answer::from_json(json::object()).verdict, human_verdict::other);
    EXPECT_EQ(human_answer::from_json(json::object().set("decision", "deny")).verdict, human_verdict::deny);
    EXPECT_EQ(human_answer::from_json(json::object().set("decision", "allow")).verdict, human_verdict::allow);
    EXPECT_EQ(human_answer::from_json(json::object().set("decision", "terminate")).verdict, human_verdict::terminate);
    EXPECT_EQ(human_answer::from_json(json::object().set("decision", 3)).word, "3");
}

}  // namespace gate_question_test
}  // namespace

#include "fingerprint.hpp"

#include <reagent/agent/turn_machine.hpp>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace {
namespace turn_machine_test {

using namespace reagent;
using ::testing::ElementsAre;
using ::testing::IsEmpty;

generate_result answer(std::string text, std::string stop = "end_turn")
{
    generate_result r;
    r.text = std::move(text);
    r.stop_reason = std::move(stop);
    return r;
}

generate_result calls(std::vector<std::pair<std::string, std::string>> list, json args = json::object())
{
    generate_result r = answer("", "tool_use");
    for (auto& [id, name] : list) r.tool_calls.emplace_back(id, name, args);
    return r;
}

tool_result good(std::string output = "ok")
{
    tool_result r;
    r.completed = true;
    r.output = std::move(output);
    return r;
}

tool_result bad(std::string error = "broke")
{
    tool_result r;
    r.error = std::move(error);
    return r;
}

transcript hi()
{
    return {message::user("hi")};
}

/// Runs one round of the machine with every call answered by `result`; true when it goes on.
bool round(turn_machine& m, generate_result model, const tool_result& result)
{
    if (!m.begin_round()) return false;
    m.note(model);
    if (m.accept(std::move(model)) != round_step::run_batch) return !m.ended();
    if (!m.close_judging()) return false;
    for (std::size_t i = 0; i < m.batch().size(); ++i) m.settle(i, result);
    return m.end_batch();
}

TEST(TurnMachine, K20_NumbersOfOneValueAreOneFingerprint)
{
    turn_machine m(turn_limits(), hi());
    EXPECT_TRUE(round(m, calls({{"a", "x"}}, json::parse_or_throw(R"({"n":1.0})", "args")), bad()));
    EXPECT_TRUE(round(m, calls({{"b", "x"}}, json::parse_or_throw(R"({"n":1})", "args")), bad()));
    EXPECT_FALSE(round(m, calls({{"c", "x"}}, json::parse_or_throw(R"({"n":1e0})", "args")), bad()));
    EXPECT_EQ(m.end().error, "stuck:x");
}

TEST(TurnMachine, K19_OrderOfMembersMatters)
{
    turn_machine m(turn_limits(), hi());
    const json ab = json::parse_or_throw(R"({"a":1,"b":2})", "args"), ba = json::parse_or_throw(R"({"b":2,"a":1})", "args");
    for (int i = 0; i < 20; ++i) ASSERT_TRUE(round(m, calls({{"a", "x"}}, i % 2 == 0 ? ab : ba), bad()));
}

TEST(TurnMachine, Case_B5_BigIntegersStayDistinct)
{
    const tool_call a("1", "x", json::parse_or_throw(R"({"id":2512292042121000001})", "a")),
        b("1", "x", json::parse_or_throw(R"({"id":2512292042121000000})", "b"));
    EXPECT_NE(agent_detail::failure_fingerprint(a), agent_detail::failure_fingerprint(b));
    EXPECT_NE(agent_detail::call_fingerprint(a), agent_detail::call_fingerprint(b));
}

TEST(TurnMachine, K18_AlternatingFailuresReachTheSafetyLimit)
{
    turn_machine m(turn_limits(), hi());
    int rounds = 0;
    while (round(m, calls({{"a", rounds % 2 == 0 ? "x" : "y"}}), bad())) ++rounds;
    EXPECT_EQ(rounds, 100);
    EXPECT_EQ(m.end().outcome, run_outcome::failed);
    EXPECT_TRUE(m.end().error->starts_with("[Loop] hit internal safety limit of 100 rounds. "));
}

TEST(TurnMachine, K22_ASuccessClearsTheRow)
{
    turn_machine m(turn_limits(), hi());
    for (int i = 0; i < 2; ++i) ASSERT_TRUE(round(m, calls({{"a", "x"}}), bad()));
    ASSERT_TRUE(round(m, calls({{"a", "x"}}), good()));
    for (int i = 0; i < 2; ++i) ASSERT_TRUE(round(m, calls({{"a", "x"}}), bad()));
    EXPECT_FALSE(round(m, answer("done"), good()));
    EXPECT_FALSE(m.end().error);
}

TEST(TurnMachine, K21_ADenialDoesNotResetTheFailureRow)
{
    turn_machine m(turn_limits(), hi());
    ASSERT_TRUE(round(m, calls({{"1", "a"}}), bad()));
    ASSERT_TRUE(m.begin_round());
    ASSERT_EQ(m.accept(calls({{"2", "b"}})), round_step::run_batch);
    m.judge_denied(0, "no");
    ASSERT_TRUE(m.close_judging());
    m.settle_denied(0);
    ASSERT_TRUE(m.end_batch());
    ASSERT_TRUE(round(m, calls({{"3", "a"}}), bad()));
    EXPECT_FALSE(round(m, calls({{"4", "a"}}), bad()));
    EXPECT_EQ(m.end().error, "stuck:a");
}

TEST(TurnMachine, Case_B13_IdenticalCallsWarnAfterTenAndGoOn)
{
    turn_machine m(turn_limits(), hi());
    std::size_t warned = 0;
    for (int i = 0; i < 15; ++i) {
        ASSERT_TRUE(round(m, calls({{"a", "x"}}), good()));
        warned += m.repeated().size();
        EXPECT_EQ(warned, i < 9 ? 0u : 1u) << i;
    }
}

TEST(TurnMachine, Case_B13_StopEndsTheRunAfterTheTenthIdenticalCall)
{
    turn_limits limits;
    limits.on_repeat = repeat_policy::stop;
    turn_machine m(limits, hi());
    int ran = 0;
    // Members in another order are the same call: arguments are compared canonically.
    const json ab = json::parse_or_throw(R"({"a":1,"b":2})", "args"), ba = json::parse_or_throw(R"({"b":2.0,"a":1})", "args");
    for (;;) {
        ++ran;
        if (!round(m, calls({{"a", "x"}}, ran % 2 == 0 ? ab : ba), good())) break;
    }
    EXPECT_EQ(ran, 10);
    EXPECT_EQ(m.end().error, "stuck:x");
    EXPECT_EQ(m.end().outcome, run_outcome::halted);
}

TEST(TurnMachine, Case_B13_IdenticalCallsOfOneBatchAreRefusedBeforeAnyStarts)
{
    turn_limits limits;
    limits.on_repeat = repeat_policy::stop;
    limits.max_identical_calls = 2;
    turn_machine m(limits, hi());
    ASSERT_TRUE(m.begin_round());
    ASSERT_EQ(m.accept(calls({{"1", "x"}, {"2", "x"}, {"3", "x"}})), round_step::run_batch);
    EXPECT_FALSE(m.close_judging());
    m.seal();
    EXPECT_THAT(check_transcript(m.messages()), IsEmpty());
    EXPECT_EQ(m.messages()[2]->text(), "[halted:stuck:x]");
}

TEST(TurnMachine, Case_B13_ARoundWithoutTheCallBreaksTheRow)
{
    turn_limits limits;
    limits.on_repeat = repeat_policy::stop;
    limits.max_identical_calls = 3;
    turn_machine m(limits, hi());
    for (int i = 0; i < 12; ++i) ASSERT_TRUE(round(m, calls({{"1", i % 3 == 2 ? "other" : "x"}}), good())) << i;
}

TEST(TurnMachine, Case_B13_MaxIdenticalCallsZeroIsOff)
{
    turn_limits limits;
    limits.on_repeat = repeat_policy::stop;
    limits.max_identical_calls = 0;
    turn_machine m(limits, hi());
    for (int i = 0; i < 99; ++i) ASSERT_TRUE(round(m, calls({{"1", "x"}}), good()));
}

TEST(TurnMachine, Case_B12_CallsOverTheLimitAreDroppedAndTheLastKeptResultSaysSo)
{
    turn_machine m(turn_limits(), hi());
    generate_result many = answer("", "tool_use");
    for (int i = 0; i < 200; ++i) many.tool_calls.emplace_back("c" + std::to_string(i), "x", json::object().set("i", i));
    ASSERT_TRUE(round(m, std::move(many), good("fine")));
    ASSERT_GE(m.messages().size(), 2u);
    ASSERT_EQ(m.messages()[1]->calls().size(), 128u);
    EXPECT_EQ(m.messages()[1]->calls().front()->id, "c0") << "the later ones are left out";
    EXPECT_EQ(m.messages()[1]->calls().back()->id, "c127");
    EXPECT_EQ(m.messages().size(), 2u + 128u);
    EXPECT_EQ(m.messages().back()->text(), "fine\n[Loop] 72 further calls dropped (limit 128)");
    EXPECT_EQ(m.messages()[m.messages().size() - 2]->text(), "fine");
    EXPECT_THAT(check_transcript(m.messages()), IsEmpty());
}

TEST(TurnMachine, Case_B7_ACallIsSealedOnceAndKeepsWhatItHas)
{
    turn_machine m(turn_limits(), hi());
    ASSERT_TRUE(m.begin_round());
    ASSERT_EQ(m.accept(calls({{"1", "x"}, {"2", "x"}, {"3", "x"}})), round_step::run_batch);
    m.judge_denied(2, "no");
    ASSERT_TRUE(m.close_judging());
    m.settle(0, good("mine"));
    m.end_cancelled();
    m.seal();
    m.seal();
    EXPECT_THAT(check_transcript(m.messages()), IsEmpty());
    ASSERT_EQ(m.messages().size(), 5u);
    EXPECT_EQ(m.messages()[2]->text(), "mine");
    EXPECT_EQ(m.messages()[3]->text(), "[cancelled]");
    EXPECT_EQ(m.messages()[4]->text(), "no");
}

TEST(TurnMachine, Case_B12_TheLimitItselfFits)
{
    turn_machine m(turn_limits(), hi());
    generate_result many = answer("", "tool_use");
    for (int i = 0; i < 128; ++i) many.tool_calls.emplace_back("c" + std::to_string(i), "x", json::object().set("i", i));
    ASSERT_TRUE(round(m, std::move(many), good("fine")));
    EXPECT_EQ(m.messages()[1]->calls().size(), 128u);
    EXPECT_EQ(m.messages().back()->text(), "fine");
    EXPECT_EQ(m.dropped(), 0u);
}

TEST(TurnMachine, MaxCallsPerRoundZeroIsNoLimit)
{
    turn_limits limits;
    limits.max_calls_per_round = 0;
    turn_machine m(limits, hi());
    generate_result many = answer("", "tool_use");
    for (int i = 0; i < 200; ++i) many.tool_calls.emplace_back("c" + std::to_string(i), "x", json::object().set("i", i));
    ASSERT_TRUE(round(m, std::move(many), good()));
    EXPECT_EQ(m.messages()[1]->calls().size(), 200u);
}

TEST(TurnMachine, IdsAreMadeUniqueAndNeverEmpty)
{
    turn_machine m(turn_limits(), hi());
    ASSERT_TRUE(round(m, calls({{"a", "x"}, {"a", "y"}, {"", "z"}}), good()));
    EXPECT_THAT(check_transcript(m.messages()), IsEmpty());
    EXPECT_EQ(m.batch()[1].call.id, "a__2");
    EXPECT_FALSE(m.batch()[2].call.id.empty());
}

TEST(TurnMachine, K28_BlankPausesForEverReachTheSafetyLimit)
{
    turn_machine m(turn_limits(), hi());
    int rounds = 0;
    while (round(m, answer("", "pause_turn"), good())) ++rounds;
    EXPECT_EQ(rounds, 100);
    EXPECT_EQ(m.messages().size(), 1u);
}

TEST(TurnMachine, K29_APauseDropsItsCalls)
{
    turn_machine m(turn_limits(), hi());
    generate_result paused = calls({{"a", "x"}});
    paused.stop_reason = "pause_turn";
    paused.text = "s";
    ASSERT_TRUE(m.begin_round());
    EXPECT_EQ(m.accept(std::move(paused)), round_step::resume);
    EXPECT_THAT(m.batch(), IsEmpty());
    EXPECT_THAT(m.messages().back()->calls(), IsEmpty());
}

TEST(TurnMachine, TruncatedMalformedRoundIsTerminal)
{
    turn_machine m(turn_limits(), hi());
    generate_result cut = answer("par", "max_tokens");
    cut.malformed.emplace();
    cut.malformed->name = "x";
    cut.attempted.emplace_back();
    ASSERT_TRUE(m.begin_round());
    m.note(cut);
    EXPECT_EQ(m.accept(std::move(cut)), round_step::finish);
    EXPECT_EQ(m.end().error, "truncated:max_tokens");
    EXPECT_EQ(m.end().done["droppedToolCalls"].get_int64(), 1);
    EXPECT_EQ(m.messages().back()->text(), "par");
}

TEST(TurnMachine, Case_B4_MalformedRoundIsAnsweredAndGoesOnUntilStuck)
{
    turn_machine m(turn_limits(), hi());
    for (int i = 0; i < 3; ++i) {
        generate_result r = answer("", "tool_use");
        r.malformed.emplace();
        r.malformed->name = "find";
        attempted_call fine, broken;
        fine.call = tool_call("a", "other", json::object().set("q", 1));
        broken.call = tool_call("b", "find", json("{\"q\":"));
        broken.malformed = true;
        broken.offset = 7;
        r.attempted = {fine, broken};
        ASSERT_TRUE(m.begin_round());
        ASSERT_EQ(m.accept(std::move(r)), i < 2 ? round_step::answered : round_step::finish);
        const transcript& t = m.messages();
        ASSERT_GE(t.size(), 4u);
        ASSERT_EQ(t[t.size() - 3]->calls().size(), 2u);
        EXPECT_EQ(t[t.size() - 2]->text(), "[Loop] Not run: another call of this round was malformed");
        EXPECT_EQ(t.back()->text(), "[Loop] Tool error: find: arguments are not JSON at byte 7");
        EXPECT_EQ(t[t.size() - 3]->calls().back()->arguments.dump(), "{}") << "what is no JSON is not sent again";
        EXPECT_THAT(check_transcript(t), IsEmpty());
    }
    EXPECT_EQ(m.end().error, "stuck:find");
}

TEST(TurnMachine, AFinishToolEndsTheRunAfterItsBatch)
{
    turn_machine m(turn_limits(), hi());
    ASSERT_TRUE(m.begin_round());
    generate_result r = calls({{"1", "x"}});
    r.tool_calls.emplace_back("2", "finish", json::object().set("answer", "42"));
    ASSERT_EQ(m.accept(std::move(r)), round_step::run_batch);
    ASSERT_TRUE(m.close_judging());
    EXPECT_TRUE(m.settle(0, good()));
    EXPECT_TRUE(m.settle(1, good("rendered")));
    EXPECT_FALSE(m.end_batch());
    EXPECT_EQ(m.end().outcome, run_outcome::completed);
    EXPECT_EQ(m.text(), "42");
}

TEST(TurnMachine, AFailedFinishDoesNotEndTheRun)
{
    turn_machine m(turn_limits(), hi());
    EXPECT_TRUE(round(m, calls({{"1", "finish"}}), bad("blank answer")));
}

TEST(TurnMachine, StopOnNothingTurnsFinishOff)
{
    turn_limits limits;
    limits.stop_on.clear();
    turn_machine m(limits, hi());
    EXPECT_TRUE(round(m, calls({{"1", "finish"}}, json::object().set("answer", "42")), good()));
}

TEST(TurnMachine, DenialsInOneBatchTripAtTheThird)
{
    turn_machine m(turn_limits(), hi());
    ASSERT_TRUE(m.begin_round());
    ASSERT_EQ(m.accept(calls({{"1", "w"}, {"2", "w"}, {"3", "w"}, {"4", "w"}})), round_step::run_batch);
    for (std::size_t i = 0; i < 4; ++i) m.judge_denied(i, "no " + std::to_string(i));
    EXPECT_FALSE(m.close_judging());
    m.seal();
    std::vector<std::string> texts;
    for (std::size_t i = 2; i < m.messages().size(); ++i) texts.push_back(m.messages()[i]->text());
    EXPECT_THAT(texts, ElementsAre("no 0", "no 1", "no 2", "[halted:denied:w]"));
}

}  // namespace turn_machine_test
}  // namespace

#include "agent_fixture.hpp"

#include <boost/asio/post.hpp>

namespace {
namespace loop_tools_test {

using namespace reagent;
using agent_test::any_tool;
using ::testing::ElementsAre;
using ::testing::IsEmpty;

class LoopTools : public agent_test::fixture {
protected:
    LoopTools() : bench(context) {}
    /// Runs until `n` calls wait at once.
    bool until_running(int n)
    {
        return rt::run_until(
            context, [&] { return bench.running == n; }, std::chrono::seconds(5));
    }
    scripted_round calls(std::initializer_list<std::pair<const char*, const char*>> list)
    {
        scripted_round r;
        int i = 0;
        for (const auto& [id, name] : list) r.call(id, name, json::object().set("i", i++));
        return r;
    }
    agent_test::bench_of_tools bench;
};

TEST_F(LoopTools, K47_ConcurrencyTwoOverThreeCalls)
{
    script({calls({{"a", "w"}, {"b", "w"}, {"c", "w"}}), scripted_round("end")});
    reagent::run& r = keep(make(agent_options().tool_concurrency(2).tool(bench.tool("w"))).start("hi"));
    rt::started<run_result> op(context, agent_test::read_all(&r, &seen));
    ASSERT_TRUE(until_running(2));
    EXPECT_THAT(bench.log, ElementsAre("start a", "start b"));
    bench.release_all();
    ASSERT_TRUE(rt::run_until(context, [&] { return bench.log.back() == "start c" && bench.running == 1; }));
    bench.release_all();
    ASSERT_TRUE(rt::run_until(context, [&] { return op.done(); }));
    EXPECT_EQ(bench.most, 2);
    EXPECT_THAT(shape(op.get().messages()), ElementsAre("user:hi", "assistant:[a][b][c]", "tool:w done", "tool:w done", "tool:w done", "assistant:end"));
}

TEST_F(LoopTools, Case_B10_CallsOfARoundRunSideBySideInBothDrivers)
{
    for (const bool streaming : {true, false}) {
        script({calls({{"a", "w"}, {"b", "w"}, {"c", "w"}}), scripted_round("end")});
        const agent a = make(agent_options().tool(bench.tool("w")));
        reagent::run& r = keep(a.start("hi"));
        rt::started<run_result> op(context, streaming ? agent_test::read_all(&r, &seen) : a.async_run(run_request("hi")));
        ASSERT_TRUE(until_running(3)) << "all three at once, streaming " << streaming;
        // They end in another order than they were called in.
        for (auto w = bench.waiting.rbegin(); w != bench.waiting.rend(); ++w) {
            (*w)->cancel();
            rt::run_until_idle(context);
        }
        bench.waiting.clear();
        ASSERT_TRUE(rt::run_until(context, [&] { return op.done(); }));
        const run_result result = op.get();
        EXPECT_EQ(result.messages()[2]->tool_call_id, "a");
        EXPECT_EQ(result.messages()[3]->tool_call_id, "b");
        EXPECT_EQ(result.messages()[4]->tool_call_id, "c");
    }
}

TEST_F(LoopTools, SerialCallsAreBarriersInCallOrder)
{
    script({calls({{"a", "w"}, {"b", "w"}, {"s", "serial"}, {"c", "w"}}), scripted_round("end")});
    reagent::run& r = keep(make(agent_options().tool(bench.tool("w")).tool(bench.tool("serial").serial())).start("hi"));
    rt::started<run_result> op(context, agent_test::read_all(&r, &seen));
    ASSERT_TRUE(until_running(2));
    EXPECT_THAT(bench.log, ElementsAre("start a", "start b"));
    bench.release_all();
    ASSERT_TRUE(rt::run_until(context, [&] { return bench.log.back() == "start s"; }));
    EXPECT_EQ(bench.running, 1) << "nothing runs beside a serial call";
    bench.release_all();
    ASSERT_TRUE(rt::run_until(context, [&] { return bench.log.back() == "start c"; }));
    bench.release_all();
    ASSERT_TRUE(rt::run_until(context, [&] { return op.done(); }));
    EXPECT_EQ(op.get().outcome(), run_outcome::completed);
}

TEST_F(LoopTools, Case_B8_OneOfFiveThrowsAndOneGivesUpAndTheOthersKeepTheirResults)
{
    scripted_round five;
    for (int i = 0; i < 5; ++i) five.call("c" + std::to_string(i), "x", json::object().set("i", i));
    script({five, scripted_round("end")});
    const run_result r = go(make(agent_options().tool(any_tool("x", [](const json& a) -> json {
        if (a["i"].get_int64() == 1) throw std::runtime_error("broke");
        if (a["i"].get_int64() == 3) throw boost::system::system_error(boost::asio::error::operation_aborted);
        return json("ok " + a["i"].dump());
    }))));
    EXPECT_EQ(r.outcome(), run_outcome::completed);
    EXPECT_THAT(shape(r.messages()),
                ElementsAre("user:hi", "assistant:[c0][c1][c2][c3][c4]", "tool:ok 0", "tool:[Loop] Tool error: broke", "tool:ok 2",
                            "tool:[Loop] Tool error: the call was cancelled", "tool:ok 4", "assistant:end"));
}

TEST_F(LoopTools, Case_B8_SiblingsThatStillRunWhenOneFailsGoOn)
{
    script({calls({{"a", "w"}, {"bad", "throws"}, {"gone", "gives_up"}, {"b", "w"}, {"c", "w"}}), scripted_round("end")});
    reagent::run& r =
        keep(make(agent_options()
                      .tool(bench.tool("w"))
                      .tool(any_tool("throws", [](const json&) -> json { throw std::runtime_error("broke"); }))
                      .tool(any_tool("gives_up", [](const json&) -> json { throw boost::system::system_error(boost::asio::error::operation_aborted); })))
                 .start("hi"));
    rt::started<run_result> op(context, agent_test::read_all(&r, &seen));
    ASSERT_TRUE(until_running(3));
    rt::run_until_idle(context);
    EXPECT_EQ(bench.running, 3) << "both failures are there, and nobody was cancelled for them";
    EXPECT_FALSE(op.done());
    bench.release_all();
    ASSERT_TRUE(rt::run_until(context, [&] { return op.done(); }));
    EXPECT_THAT(shape(op.get().messages()),
                ElementsAre("user:hi", "assistant:[a][bad][gone][b][c]", "tool:w done", "tool:[Loop] Tool error: broke",
                            "tool:[Loop] Tool error: the call was cancelled", "tool:w done", "tool:w done", "assistant:end"));
}

awaitable<json> halt_when_told(std::shared_ptr<boost::asio::steady_timer> when)
{
    boost::system::error_code ignored;
    co_await when->async_wait(boost::asio::redirect_error(boost::asio::use_awaitable, ignored));
    throw halt_error("gate.stop");
}

TEST_F(LoopTools, Case_B9_AHaltCancelsTheSiblingsAndJoinsThem)
{
    script({calls({{"a", "w"}, {"b", "w"}, {"h", "halt"}, {"c", "w"}, {"d", "w"}})});
    auto when = std::make_shared<boost::asio::steady_timer>(context, boost::asio::steady_timer::time_point::max());
    const tool halting = tool::from_check("halt", "Halts.", json(), {}, [when](json, tool_context&) { return halt_when_told(when); });
    reagent::run& r = keep(make(agent_options().tool(bench.tool("w")).tool(halting)).start("hi"));
    int live_at_return = -1;
    rt::started<run_result> op(context, agent_test::read_all(&r, &seen));
    ASSERT_TRUE(until_running(4));
    when->cancel();
    const auto ended = [&] {
        if (op.done() && live_at_return < 0) live_at_return = bench.running;
        return op.done();
    };
    EXPECT_TRUE(rt::run_until(context, ended, std::chrono::seconds(2))) << "nobody told the siblings";
    bench.release_all();
    ASSERT_TRUE(rt::run_until(context, ended));
    EXPECT_EQ(live_at_return, 0);
    EXPECT_EQ(bench.cancelled, 4);
    const run_result result = op.get();
    ASSERT_GE(result.messages().size(), 3u);
    EXPECT_EQ(result.error(), "halt:gate.stop");
    EXPECT_THAT(check_transcript(result.messages()), IsEmpty());
    EXPECT_EQ(result.messages()[2]->text(), "[halted:gate.stop]");
}

/// Takes its time to end when it is cancelled, as a tool does that has to clean up.
awaitable<json> slow_to_end(boost::asio::io_context* context, int* alive, std::vector<std::shared_ptr<boost::asio::steady_timer>>* waiting)
{
    ++*alive;
    auto never = std::make_shared<boost::asio::steady_timer>(*context, boost::asio::steady_timer::time_point::max());
    waiting->push_back(never);
    boost::system::error_code ignored;
    co_await never->async_wait(boost::asio::redirect_error(boost::asio::use_awaitable, ignored));
    co_await boost::asio::this_coro::reset_cancellation_state(boost::asio::disable_cancellation());
    for (int i = 0; i < 50; ++i) co_await boost::asio::post(*context, boost::asio::use_awaitable);
    --*alive;
    co_return json("late");
}

TEST_F(LoopTools, Case_B9_TheErrorLeavesWhenTheLastSiblingHasEnded)
{
    script({calls({{"a", "slow"}, {"h", "halt"}, {"b", "slow"}})});
    auto when = std::make_shared<boost::asio::steady_timer>(context, boost::asio::steady_timer::time_point::max());
    std::vector<std::shared_ptr<boost::asio::steady_timer>> waiting;
    int alive = 0, alive_at_end = -1;
    run_hooks hooks;
    hooks.on_error = [&](const error_report& e) { alive_at_end = e.source == "halt" ? alive : alive_at_end; };
    reagent::run& r =
        keep(make(agent_options()
                      .hooks(hooks)
                      .tool(tool::from_check("slow", "Slow.", json(), {}, [&](json, tool_context&) { return slow_to_end(&context, &alive, &waiting); }))
                      .tool(tool::from_check("halt", "Halts.", json(), {}, [when](json, tool_context&) { return halt_when_told(when); })))
                 .start("hi"));
    rt::started<run_result> op(context, agent_test::read_all(&r, &seen));
    ASSERT_TRUE(rt::run_until(context, [&] { return alive == 2; }));
    when->cancel();
    EXPECT_TRUE(rt::run_until(
        context, [&] { return op.done(); }, std::chrono::seconds(2)));
    for (const auto& t : waiting) t->cancel();
    ASSERT_TRUE(rt::run_until(context, [&] { return op.done(); }));
    EXPECT_EQ(alive_at_end, 0);
    EXPECT_EQ(alive, 0);
    EXPECT_EQ(op.get().error(), "halt:gate.stop");
}

TEST_F(LoopTools, Case_B9_NothingStartsAfterAHalt)
{
    for (const bool serial : {false, true}) {
        script({calls({{"h", "halt"}, {"a", "w"}, {"b", "w"}, {"s", "serial"}, {"c", "w"}})});
        int ran = 0;
        const auto count = [&](const json&) {
            ++ran;
            return json();
        };
        const run_result r = go(make(agent_options()
                                         .tool_concurrency(serial ? 16 : 1)
                                         .tool(any_tool("halt", [](const json&) -> json { throw halt_error("gate.stop"); }).serial(serial))
                                         .tool(any_tool("w", count))
                                         .tool(any_tool("serial", count).serial())));
        EXPECT_EQ(r.error(), "halt:gate.stop");
        EXPECT_EQ(ran, 0) << "waiting for a place, or behind a barrier " << serial;
    }
}

TEST_F(LoopTools, Case_B9_TheHaltThatCameFirstIsTheOneTheRunEndsWith)
{
    script({calls({{"a", "fast"}, {"h", "halt"}})});
    run_hooks hooks;
    int told = 0;
    hooks.on_tool_result = [&](const tool_report&) {
        ++told;
        throw halt_error("second");
    };
    const run_result r = go(make(agent_options()
                                     .hooks(hooks)
                                     .tool_concurrency(1)
                                     .tool(any_tool("fast", [](const json&) { return json("kept"); }))
                                     .tool(any_tool("halt", [](const json&) -> json { throw halt_error("first"); }))));
    EXPECT_EQ(told, 1);
    EXPECT_EQ(r.error(), "halt:first");
}

TEST_F(LoopTools, AHaltKeepsTheResultsOfCallsThatHadFinished)
{
    script({calls({{"a", "fast"}, {"h", "halt"}})});
    const run_result r = go(make(
        agent_options().tool_concurrency(1).tool(any_tool("fast", [](const json&) { return json("kept"); })).tool(any_tool("halt", [](const json&) -> json {
            throw halt_error("x.y");
        }))));
    EXPECT_THAT(shape(r.messages()), ElementsAre("user:hi", "assistant:[a][h]", "tool:kept", "tool:[halted:x.y]"));
}

TEST_F(LoopTools, Case_B12_TwoHundredCallsInOneTurn)
{
    scripted_round many;
    for (int i = 0; i < 200; ++i) many.call("c" + std::to_string(i), "x", json::object().set("i", i));
    script({many, scripted_round("end")});
    int ran = 0;
    const run_result r = go(make(agent_options().tool(any_tool("x", [&](const json&) {
        ++ran;
        return json("ok");
    }))));
    EXPECT_EQ(ran, 128);
    ASSERT_EQ(model_->requests().size(), 2u);
    ASSERT_EQ(model_->requests()[1].messages.size(), 2u + 128u);
    EXPECT_EQ(model_->requests()[1].messages[1]->calls().size(), 128u) << "what the service will not take is not in the history";
    EXPECT_EQ(model_->requests()[1].messages.back()->text(), "ok\n[Loop] 72 further calls dropped (limit 128)");
    EXPECT_EQ(r.metrics().dropped_calls, 72u);
    EXPECT_EQ(r.metrics().tool_calls, 128u);
}

TEST_F(LoopTools, BadArgumentsAreAnsweredWithEveryBadField)
{
    script({scripted_round().call("a", "t", json::object().set("zzz", 1)), scripted_round("end")});
    const tool t = tool::from_args("t", "T.", {arg_spec("id", arg_type::string, "")}, [](json, tool_context&) -> awaitable<json> { co_return json(); });
    const run_result r = go(make(agent_options().tool(t)));
    EXPECT_EQ(r.messages()[2]->text(), R"([Loop] Tool error: "id" is required; "zzz" is not an argument; declared: id)");
}

}  // namespace loop_tools_test
}  // namespace

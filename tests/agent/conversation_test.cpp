#include "agent_fixture.hpp"

#include <boost/asio/use_future.hpp>

namespace {
namespace conversation_test {

using namespace reagent;
using agent_test::any_tool;
using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::SizeIs;

using Conversation = agent_test::fixture;

TEST_F(Conversation, K40_HistoryGrowsAndAFailedTurnStaysInIt)
{
    script({scripted_round("a1"), scripted_round("a2"), scripted_round().error(provider_error(errc::provider_failed, "down", false)), scripted_round("a4")});
    conversation c = make(agent_options().system("S")).chat();
    EXPECT_EQ(rt::complete(context, c.async_send("q1")).text(), "a1");
    EXPECT_THAT(shape(c.history()), ElementsAre("user:q1", "assistant:a1"));
    rt::complete(context, c.async_send("q2"));
    EXPECT_THAT(shape(model_->requests()[1].messages), ElementsAre("system:S", "user:q1", "assistant:a1", "user:q2"));
    EXPECT_EQ(rt::complete(context, c.async_send("q3")).outcome(), run_outcome::failed);
    EXPECT_EQ(rt::complete(context, c.async_send("q4")).text(), "a4");
    EXPECT_THAT(shape(c.history()), ElementsAre("user:q1", "assistant:a1", "user:q2", "assistant:a2", "user:q3", "user:q4", "assistant:a4"));
}

TEST_F(Conversation, TurnsRunOneAtATimeInOrder)
{
    script({});
    for (int i = 0; i < 5; ++i) model_->add(scripted_round("a" + std::to_string(i)).deltas(3));
    conversation c = make().chat();
    std::vector<std::string> ended;
    for (int i = 0; i < 5; ++i) c.async_send("q" + std::to_string(i), [&](error_code, run_result r) { ended.push_back(r.text()); });
    rt::run_until(context, [&] { return c.pending() == 5; });
    EXPECT_LE(model_->open_calls(), 1u);
    context.run();
    EXPECT_THAT(ended, ElementsAre("a0", "a1", "a2", "a3", "a4"));
    EXPECT_THAT(c.history(), SizeIs(10));
    EXPECT_EQ(c.pending(), 0u);
    for (std::size_t i = 0; i < 5; ++i) EXPECT_EQ(model_->requests()[i].messages.back()->text(), "q" + std::to_string(i));
}

TEST_F(Conversation, Case_B7_ACancelledTurnLeavesASealedHistory)
{
    script({scripted_round("t").call("1", "w"), scripted_round("end")});
    agent_test::bench_of_tools bench(context);
    conversation c = make(agent_options().tool(bench.tool("w"))).chat();
    reagent::run& r = keep(c.start("q"));
    rt::started<run_result> op(context, agent_test::read_all(&r, &seen));
    ASSERT_TRUE(rt::run_until(
        context, [&] { return bench.running == 1; }, std::chrono::seconds(5)));
    r.cancel();
    ASSERT_TRUE(rt::run_until(context, [&] { return op.done(); }));
    EXPECT_THAT(shape(c.history()), ElementsAre("user:q", "assistant:t[1]", "tool:[cancelled]"));
    EXPECT_EQ(rt::complete(context, c.async_send("again")).outcome(), run_outcome::completed);
}

TEST_F(Conversation, ATurnCancelledWhileItWaitsChangesNothing)
{
    script({scripted_round("t").call("1", "w"), scripted_round("end"), scripted_round("next")});
    agent_test::bench_of_tools bench(context);
    conversation c = make(agent_options().tool(bench.tool("w"))).chat();
    std::vector<std::string> ended;
    c.async_send("first", [&](error_code, run_result r) { ended.push_back(r.text()); });
    ASSERT_TRUE(rt::run_until(context, [&] { return bench.running == 1; }));
    reagent::run waiting = c.start("second");
    rt::started<run_result> op(context, agent_test::read_all(&waiting, &seen));
    ASSERT_TRUE(rt::run_until(context, [&] { return c.pending() == 2; }));
    waiting.cancel();
    ASSERT_TRUE(rt::run_until(context, [&] { return op.done(); }));
    EXPECT_TRUE(op.failure());
    EXPECT_TRUE(is_cancellation(op.failure()));
    EXPECT_EQ(c.pending(), 1u);
    bench.release_all();
    ASSERT_TRUE(rt::run_until(context, [&] { return !ended.empty(); }));
    EXPECT_THAT(ended, ElementsAre("end"));
    EXPECT_THAT(shape(c.history()), ElementsAre("user:first", "assistant:t[1]", "tool:w done", "assistant:end"));
}

TEST_F(Conversation, AConfigurationErrorLeavesTheHistoryAlone)
{
    script({scripted_round("t")}, "nobody-knows");
    conversation c = make().chat();
    budget money("b", usd("1"));
    EXPECT_THROW(c.start(run_request("q").budget(money)), config_error);
    error_code failure;
    c.async_send(run_request("q").budget(money), [&](error_code ec, const run_result&) { failure = ec; });
    context.run();
    EXPECT_EQ(failure, errc::invalid_config);
    EXPECT_THAT(c.history(), IsEmpty());
    EXPECT_EQ(c.pending(), 0u);
}

}  // namespace conversation_test
}  // namespace

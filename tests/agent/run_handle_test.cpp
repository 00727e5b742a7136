#include "agent_fixture.hpp"

#include <reagent/testing/allocation_counter.hpp>

namespace {
namespace run_handle_test {

using namespace reagent;
using agent_test::any_tool;
using ::testing::SizeIs;

using RunHandle = agent_test::fixture;

/// A model that streams for ever and counts what it was asked for.
class endless final : public provider {
public:
    class call final : public model_call {
    public:
        explicit call(endless* p) : p_(p) {}
        awaitable<bool> read(event_batch& batch) override
        {
            batch.clear();
            ++p_->batches;
            for (int i = 0; i < 100; ++i) batch.push(event_kind::text, "0123456789");
            p_->most_bytes = std::max(p_->most_bytes, batch.bytes());
            const bool more = p_->batches < p_->last;
            co_return more;
        }
        generate_result take_result() override
        {
            generate_result r;
            r.stop_reason = "end_turn";
            r.text = "done";
            return r;
        }

    private:
        endless* p_;
    };
    model_call_ptr start(generate_request) override { return std::make_unique<call>(this); }
    std::size_t batches = 0, last = 1000, most_bytes = 0;
};

TEST_F(RunHandle, Case_E10_ASlowConsumerHoldsTheModelBack)
{
    auto model = std::make_shared<endless>();
    const agent a(context.get_executor(), model);
    reagent::run r = a.start("hi");
    event_batch batch;
    EXPECT_TRUE(rt::complete(context, r.read(batch)));  // the run's start
    for (std::size_t n = 1; n <= 20; ++n) {
        EXPECT_TRUE(rt::complete(context, r.read(batch)));
        std::size_t bytes = 0;
        for (const event& e : batch) bytes += e.text().size();
        EXPECT_EQ(bytes, 1000u) << "nothing is dropped silently";
        // The consumer does nothing for a while: the model is not read a batch further.
        for (int i = 0; i < 50; ++i) rt::run_until_idle(context, std::chrono::microseconds(0));
        EXPECT_EQ(model->batches, n);
    }
    EXPECT_LE(model->most_bytes, 1000u) << "one batch, whatever was waited";
    model->last = model->batches + 2;
    EXPECT_EQ(go(r).outcome(), run_outcome::completed);
}

TEST_F(RunHandle, NothingHappensBeforeTheFirstRead)
{
    script({scripted_round("ok")});
    const agent a = make();
    reagent::run r = a.start("hi");
    rt::run_until_idle(context, std::chrono::microseconds(0));
    EXPECT_THAT(model_->requests(), SizeIs(0));
    EXPECT_EQ(a.live_runs(), 0u);
    EXPECT_THROW(r.result(), validation_error);
}

TEST_F(RunHandle, ReadAfterTheEndKeepsAnsweringFalse)
{
    script({scripted_round("ok")});
    reagent::run r = make().start("hi");
    EXPECT_EQ(go(r).text(), "ok");
    event_batch batch;
    EXPECT_FALSE(rt::complete(context, r.read(batch)));
    EXPECT_TRUE(batch.empty());
    rt::complete(context, r.close());
    EXPECT_EQ(r.result().text(), "ok");
}

TEST_F(RunHandle, AStreamTakesAWakeUpPerBatchAndNoMore)
{
    script({scripted_round(std::string(1000, 'x')).deltas(100)});
    go(make());
    // Start, a hundred deltas of which the last comes with the round's end, the farewell.
    EXPECT_LE(seen.batches, 104u);
    EXPECT_EQ(seen.text.size(), 1000u);
}

TEST_F(RunHandle, RunsOfOneAgentDoNotShareState)
{
    script({scripted_round("ok").times(0)});
    const agent a = make();
    reagent::run one = a.start("1"), two = a.start("2");
    event_batch batch;
    EXPECT_TRUE(rt::complete(context, one.read(batch)));
    EXPECT_TRUE(rt::complete(context, two.read(batch)));
    EXPECT_EQ(a.live_runs(), 2u);
    one.cancel();
    EXPECT_EQ(go(two).outcome(), run_outcome::completed);
    EXPECT_EQ(go(one).outcome(), run_outcome::cancelled);
}

TEST_F(RunHandle, Case_E11_TwentyThousandRunsLeaveNothingBehind)
{
    script({});
    class quick final : public provider {
    public:
        awaitable<generate_result> generate(generate_request request) override
        {
            generate_result r;
            const bool first = request.messages.size() == 1;
            r.stop_reason = first ? "tool_use" : "end_turn";
            r.text = first ? "" : "ok";
            if (first) r.tool_calls.emplace_back("a", "x", json::object());
            co_return r;
        }
    };
    std::size_t completed = 0, tools = 0, most = 0;
    const agent a(context.get_executor(), std::make_shared<quick>(), agent_options().tool(any_tool("x", [&](const json&) {
        ++tools;
        return json("t");
    })));
    constexpr std::size_t runs = 20'000, at_once = 200, warm = 2'000;
    // Objects on the heap, not bytes: what finished runs leave in some list is seen even when it is small.
    const rt::allocation_counter heap;
    const auto objects = [&] { return static_cast<std::int64_t>(heap.allocations()) - static_cast<std::int64_t>(heap.frees()); };
    std::int64_t after_warm_up = 0;
    budget team("team", budget_caps({}, UINT64_MAX));
    for (std::size_t done = 0; done < runs; done += at_once) {
        if (done == warm) after_warm_up = objects();
        for (std::size_t i = 0; i < at_once; ++i)
            a.async_run(run_request("hi").budget(team.child("run")).max_tokens(1),
                        [&](error_code, const run_result& r) { completed += r.completed() ? 1 : 0; });
        context.restart();
        while (context.run_one() != 0) most = std::max(most, a.live_runs());
    }
    EXPECT_EQ(completed, runs);
    EXPECT_EQ(tools, runs);
    EXPECT_GT(most, 1u);
    EXPECT_EQ(a.live_runs(), 0u);
    EXPECT_EQ(team.state().waiting, 0u);
    EXPECT_LT(objects() - after_warm_up, 200) << "18,000 finished runs later";
}

TEST_F(RunHandle, OnMakesTheSameAgentForAnotherExecutor)
{
    script({scripted_round("ok").times(0)});
    asio::io_context other;
    const agent b = make().on(other.get_executor());
    EXPECT_EQ(b.get_executor(), any_io_executor(other.get_executor()));
    EXPECT_EQ(rt::complete(other, b.async_run(run_request("hi"))).text(), "ok");
}

}  // namespace run_handle_test
}  // namespace

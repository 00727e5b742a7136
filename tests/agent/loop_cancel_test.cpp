#include "agent_fixture.hpp"

#include <boost/asio/bind_cancellation_slot.hpp>
#include <boost/asio/cancellation_signal.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/deferred.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/use_future.hpp>

namespace {
namespace loop_cancel_test {

using namespace reagent;
using agent_test::any_tool;
using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::SizeIs;

class LoopCancel : public agent_test::fixture {
protected:
    LoopCancel() : bench(context), clock(std::make_shared<rt::manual_clock>()) {}
    scripted_round three()
    {
        scripted_round r("working");
        for (int i = 0; i < 3; ++i) r.call("c" + std::to_string(i), "w", json::object().set("i", i));
        return r;
    }
    /// A model call that waits until the test ends it.
    std::function<awaitable<void>()> hang()
    {
        return [this] { return wait_for_ever(&hanging, context.get_executor()); };
    }
    static awaitable<void> wait_for_ever(int* count, any_io_executor ex)
    {
        ++*count;
        asio::steady_timer never(ex, asio::steady_timer::time_point::max());
        co_await never.async_wait(asio::use_awaitable);
    }
    agent_test::bench_of_tools bench;
    std::shared_ptr<rt::manual_clock> clock;
    int hanging = 0;
};

TEST_F(LoopCancel, K48_CancelDuringTheModelCall)
{
    script({scripted_round("one").call("a", "x"), scripted_round().delay(hang())});
    reagent::run r = make(agent_options().tool(any_tool("x", [](const json&) { return json("ok"); }))).start("hi");
    rt::started<run_result> op(context, agent_test::read_all(&r, &seen));
    ASSERT_TRUE(rt::run_until(context, [&] { return hanging == 1; }));
    r.cancel();
    ASSERT_TRUE(rt::run_until(context, [&] { return op.done(); }));
    const run_result result = op.get();
    EXPECT_EQ(result.error(), "cancelled");
    EXPECT_EQ(result.outcome(), run_outcome::cancelled);
    EXPECT_EQ(result.text(), "one");
    EXPECT_THAT(check_transcript(result.messages()), IsEmpty());
    EXPECT_EQ(model_->open_calls(), 0u);
    EXPECT_TRUE(seen.last("loop:done")["cancelled"].as_bool());
}

TEST_F(LoopCancel, Case_B7_CancelledCallsGetASyntheticResultAndTheHistoryCanBeSentAgain)
{
    script({three(), scripted_round("end")});
    reagent::run& r = keep(make(agent_options().tool(bench.tool("w"))).start("hi"));
    rt::started<run_result> op(context, agent_test::read_all(&r, &seen));
    ASSERT_TRUE(rt::run_until(context, [&] { return bench.running == 3; }));
    bench.waiting[1]->cancel();  // the second call ends well
    ASSERT_TRUE(rt::run_until(context, [&] { return bench.running == 2; }));
    r.cancel();
    ASSERT_TRUE(rt::run_until(context, [&] { return op.done(); }));
    const run_result result = op.get();
    EXPECT_EQ(bench.running, 0);
    EXPECT_EQ(bench.cancelled, 2);
    EXPECT_THAT(check_transcript(result.messages()), IsEmpty());
    std::map<std::string, std::string> answers;
    for (const message_ptr& m : result.messages())
        if (m->who == role::tool) answers[m->tool_call_id] = m->text();
    EXPECT_EQ(answers["c0"], "[cancelled]");
    EXPECT_EQ(answers["c1"], "w done");
    EXPECT_EQ(answers["c2"], "[cancelled]");

    transcript again = result.messages();
    again.push_back(message::user("go on"));
    EXPECT_EQ(go(make(), run_request(again)).outcome(), run_outcome::completed);
}

/// A tool of several awaits, each of which a cancellation can end.
awaitable<json> some_steps(any_io_executor ex)
{
    for (int i = 0; i < 4; ++i) co_await asio::post(ex, asio::use_awaitable);
    co_return json("ok");
}

/// Cancels after n steps of the context, for every n, and checks what is left each time.
TEST_F(LoopCancel, Case_B7_CancelledAtEachStepOfATurnWithThreeTools)
{
    int last = -1, sealed = 0, mixed = 0;
    for (int n = 0; n < 400; ++n) {
        asio::io_context own;
        auto model = scripted_provider::make({three(), scripted_round("the end").deltas(3)});
        const agent a(own.get_executor(), model,
                      agent_options().tool(tool::from_check("w", "W.", json(), {}, [&own](json, tool_context&) { return some_steps(own.get_executor()); })));
        reagent::run r = a.start("hi");
        agent_test::seen_events events;
        rt::started<run_result> op(own, agent_test::read_all(&r, &events));
        int steps = 0;
        while (steps < n && own.run_one_for(std::chrono::seconds(5)) != 0) ++steps;
        const bool early = !op.done();
        r.cancel();
        own.run();
        ASSERT_TRUE(op.done()) << n;
        const run_result result = op.get();
        ASSERT_THAT(check_transcript(result.messages()), IsEmpty()) << n;
        // Counted by hand as well: a result for each call, and all before anything else is said.
        std::size_t open_calls = 0;
        int cut = 0, whole = 0;
        for (const message_ptr& m : result.messages()) {
            if (m->who == role::tool) ++(m->text() == "[cancelled]" ? cut : whole);
            if (m->who == role::tool) --open_calls;
            else ASSERT_EQ(open_calls, 0u) << n;
            open_calls += m->calls().size();
        }
        ASSERT_EQ(open_calls, 0u) << n;
        sealed += cut > 0 ? 1 : 0;
        mixed += cut > 0 && whole > 0 ? 1 : 0;
        // The next request takes this history as it is.
        auto next = scripted_provider::make({scripted_round("on")});
        transcript again = result.messages();
        again.push_back(message::user("go on"));
        own.restart();
        const run_result resumed = rt::complete(own, agent(own.get_executor(), next).async_run(run_request(again)));
        ASSERT_EQ(resumed.outcome(), run_outcome::completed);
        ASSERT_THAT(check_transcript(next->requests().at(0).messages), IsEmpty()) << n;
        ASSERT_EQ(a.live_runs(), 0u);
        ASSERT_EQ(model->open_calls(), 0u);
        if (!early) {
            EXPECT_EQ(result.outcome(), run_outcome::completed);
            last = n;
            break;
        }
        ASSERT_TRUE(result.outcome() == run_outcome::cancelled || result.outcome() == run_outcome::completed) << n;
    }
    EXPECT_GT(last, 10) << "the run has more steps than that";
    EXPECT_GT(sealed, 2) << "the steps of the tools are among them";
    EXPECT_GT(mixed, 0) << "and the one where some have ended";
}

TEST_F(LoopCancel, DeadlineEndsTheRunAsDeadline)
{
    script({three()});
    reagent::run r = make(agent_options().clock(clock).tool(bench.tool("w"))).start(run_request("hi").deadline(std::chrono::seconds(60)));
    rt::started<run_result> op(context, agent_test::read_all(&r, &seen));
    ASSERT_TRUE(rt::run_until(context, [&] { return bench.running == 3; }));
    clock->advance(std::chrono::seconds(59));
    rt::run_until_idle(context);
    EXPECT_FALSE(op.done());
    clock->advance(std::chrono::seconds(1));
    ASSERT_TRUE(rt::run_until(context, [&] { return op.done(); }));
    const run_result result = op.get();
    EXPECT_EQ(result.error(), "deadline");
    EXPECT_EQ(result.outcome(), run_outcome::halted);
    EXPECT_EQ(bench.running, 0);
    EXPECT_EQ(result.messages().back()->text(), "[deadline]");
    EXPECT_EQ(clock->armed(), 0u);
}

TEST_F(LoopCancel, DeadlineReachesTheProviderAsItsOwnLimit)
{
    script({scripted_round("ok")});
    const steady_time now = clock->now();
    go(make(agent_options().clock(clock)), run_request("hi").deadline(std::chrono::seconds(60)));
    EXPECT_EQ(model_->requests()[0].options.deadline, now + std::chrono::seconds(60));
}

// ---- tokens of async_run ----

TEST_F(LoopCancel, AsyncRunWithACallbackAndASlot)
{
    script({scripted_round("one").call("a", "x"), scripted_round().delay(hang())});
    asio::cancellation_signal stop;
    std::optional<run_result> got;
    error_code failure;
    make(agent_options().tool(any_tool("x", [](const json&) {
        return json("ok");
    }))).async_run(run_request("hi"), asio::bind_cancellation_slot(stop.slot(), [&](error_code ec, run_result r) {
                       failure = ec;
                       got = std::move(r);
                   }));
    EXPECT_FALSE(got) << "never inside the initiating function";
    ASSERT_TRUE(rt::run_until(context, [&] { return hanging == 1; }));
    stop.emit(asio::cancellation_type::terminal);
    context.run();
    ASSERT_TRUE(got);
    EXPECT_FALSE(failure) << "a run that started completes with a result";
    EXPECT_EQ(got->outcome(), run_outcome::cancelled);
    EXPECT_EQ(got->text(), "one");
    EXPECT_THAT(got->messages(), SizeIs(3));
}

TEST_F(LoopCancel, AsyncRunWithAFutureAndDeferredAndACoroutine)
{
    script({scripted_round("ok").times(0)});
    const agent a = make();
    auto future = a.async_run(run_request("hi"), asio::use_future);
    std::string deferred_text;
    auto later = a.async_run(run_request("hi"), asio::deferred);
    std::move(later)([&](error_code, run_result r) { deferred_text = r.text(); });
    context.run();
    EXPECT_EQ(future.get().text(), "ok");
    EXPECT_EQ(deferred_text, "ok");
    context.restart();
    EXPECT_EQ(rt::complete(context, a.async_run(run_request("hi"))).text(), "ok");
    EXPECT_EQ(a.live_runs(), 0u);
}

TEST_F(LoopCancel, ConfigurationErrorsCompleteWithACode)
{
    script({scripted_round("ok")}, "nobody-knows");
    budget money("b", usd("1"));
    error_code failure;
    make().async_run(run_request("hi").budget(money), [&](error_code ec, const run_result&) { failure = ec; });
    context.run();
    EXPECT_EQ(failure, errc::invalid_config);
    EXPECT_THAT(model_->requests(), IsEmpty());
}

awaitable<void> host(const agent* a, std::vector<std::string>* log)
{
    run_result r = co_await a->async_run(run_request("hi"));
    log->push_back(r.text());
    asio::steady_timer never(co_await asio::this_coro::executor, asio::steady_timer::time_point::max());
    log->push_back("waiting");
    co_await never.async_wait(asio::use_awaitable);
    log->push_back("never");
}

TEST_F(LoopCancel, AHostCoroutineCanBeCancelledAfterACallOfOursReturned)
{
    script({scripted_round("ok")});
    const agent a = make();
    std::vector<std::string> log;
    asio::cancellation_signal stop;
    bool aborted = false;
    asio::co_spawn(context, host(&a, &log), asio::bind_cancellation_slot(stop.slot(), [&](std::exception_ptr e) { aborted = e && is_cancellation(e); }));
    ASSERT_TRUE(rt::run_until(context, [&] { return log.size() == 2; }));
    stop.emit(asio::cancellation_type::terminal);
    context.run();
    EXPECT_TRUE(aborted);
    EXPECT_THAT(log, ElementsAre("ok", "waiting"));
}

awaitable<void> reading_host(const agent* a, std::optional<run_result>* out)
{
    reagent::run r = a->start("hi");
    event_batch batch;
    for (;;) {
        const bool more = co_await r.read(batch);
        if (!more) break;
    }
    *out = r.result();
}

TEST_F(LoopCancel, ACancelledReaderStillGetsTheResult)
{
    script({scripted_round("one").call("a", "x"), scripted_round().delay(hang())});
    const agent a = make(agent_options().tool(any_tool("x", [](const json&) { return json("ok"); })));
    std::optional<run_result> got;
    asio::cancellation_signal stop;
    asio::co_spawn(context, reading_host(&a, &got), asio::bind_cancellation_slot(stop.slot(), [](std::exception_ptr failure) { EXPECT_FALSE(failure); }));
    ASSERT_TRUE(rt::run_until(context, [&] { return hanging == 1; }));
    stop.emit(asio::cancellation_type::terminal);
    context.run();
    ASSERT_TRUE(got);
    EXPECT_EQ(got->outcome(), run_outcome::cancelled);
    EXPECT_THAT(got->messages(), SizeIs(3));
    EXPECT_EQ(a.live_runs(), 0u);
}

TEST_F(LoopCancel, Case_E11_ADestroyedHandleCancelsAndCloseJoins)
{
    script({scripted_round().delay(hang()).times(0)});
    const agent a = make();
    {
        reagent::run r = a.start("hi");
        rt::started<run_result> op(context, agent_test::read_all(&r, &seen));
        ASSERT_TRUE(rt::run_until(context, [&] { return hanging == 1; }));
        r.cancel();
        context.run();
        EXPECT_EQ(op.get().outcome(), run_outcome::cancelled);
    }
    context.restart();
    auto r = std::make_unique<reagent::run>(a.start("hi"));
    event_batch batch;
    EXPECT_TRUE(rt::complete(context, r->read(batch)));
    EXPECT_EQ(a.live_runs(), 1u);
    rt::complete(context, r->close());
    EXPECT_EQ(a.live_runs(), 0u);
    EXPECT_TRUE(r->finished());
    EXPECT_EQ(r->result().outcome(), run_outcome::cancelled);

    r = std::make_unique<reagent::run>(a.start("hi"));
    EXPECT_TRUE(rt::complete(context, r->read(batch)));
    r.reset();
    context.restart();
    context.run();
    EXPECT_EQ(a.live_runs(), 0u);
}

TEST_F(LoopCancel, Case_E11_AContextDestroyedInTheMiddleLeavesNothing)
{
    auto own = std::make_unique<asio::io_context>();
    agent_test::bench_of_tools waiting(*own);
    auto model = scripted_provider::make({three()});
    const agent a(own->get_executor(), model, agent_options().tool(waiting.tool("w")));
    std::optional<run_result> got;
    asio::co_spawn(*own, reading_host(&a, &got), [](std::exception_ptr) { ADD_FAILURE() << "the context was to end first"; });
    ASSERT_TRUE(rt::run_until(*own, [&] { return waiting.running == 3; }));
    waiting.waiting.clear();
    own.reset();
    EXPECT_FALSE(got);
    EXPECT_EQ(a.live_runs(), 0u);
}

}  // namespace loop_cancel_test
}  // namespace

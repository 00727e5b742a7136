// An abort that nobody of the run asked for is a failure of whoever threw it; one that the run's cancellation or deadline caused is no failure at all.
#include "agent_fixture.hpp"

namespace {
namespace loop_aborts_test {

using namespace reagent;
using namespace agent_test;
using ::testing::ElementsAre;
using ::testing::IsEmpty;

class LoopAborts : public fixture {
protected:
    LoopAborts() : clock(std::make_shared<rt::manual_clock>()) {}
    run_hooks watched()
    {
        run_hooks h;
        h.on_error = [this](const error_report& e) { reports.push_back(e.source); };
        return h;
    }
    tool echo()
    {
        return any_tool("t", [](const json&) { return json("ok"); });
    }
    /// Reads `r` until `waiting` hooks hang, lets the deadline pass, and answers what came of it.
    run_result until_deadline(reagent::run& r)
    {
        rt::started<run_result> op(context, read_all(&r, &seen));
        EXPECT_TRUE(rt::run_until(context, [this] { return waiting > 0; }));
        clock->advance(2s);
        EXPECT_TRUE(rt::run_until(context, [&] { return op.done(); }));
        return op.get();
    }
    std::shared_ptr<rt::manual_clock> clock;
    std::vector<std::string> reports;
    int waiting = 0;
};

boost::system::system_error aborted()
{
    return boost::system::system_error(asio::error::operation_aborted);
}

awaitable<void> hang(int* waiting)
{
    ++*waiting;
    const any_io_executor ex = co_await asio::this_coro::executor;
    asio::steady_timer never(ex, asio::steady_timer::time_point::max());
    co_await never.async_wait(asio::use_awaitable);
}
awaitable<transcript> hang_with(int* waiting, transcript messages)
{
    co_await hang(waiting);
    co_return messages;
}

awaitable<void> hang_unless(int* waiting, bool last)
{
    if (!last) co_await hang(waiting);
}

TEST_F(LoopAborts, OfAPolicyIsADenial)
{
    script({scripted_round().call("a", "t"), scripted_round("end")});
    run_hooks h = watched();
    h.policy = [](const tool_call&) -> policy_verdict { throw aborted(); };
    const run_result r = go(make(agent_options().hooks(h).tool(echo())));
    EXPECT_EQ(r.outcome(), run_outcome::completed);
    EXPECT_TRUE(r.messages()[2]->text().starts_with("[Loop] policy error: ")) << r.messages()[2]->text();
}

TEST_F(LoopAborts, OfAProviderIsItsFailure)
{
    script({scripted_round("half").error(aborted())});
    const run_result r = go(make(agent_options().hooks(watched())));
    EXPECT_EQ(r.outcome(), run_outcome::failed);
    EXPECT_NE(r.error(), "cancelled");
    EXPECT_THAT(reports, ElementsAre("provider"));
    EXPECT_EQ(r.partial_text(), "half");
}

TEST_F(LoopAborts, OfAnotherHookIsReported)
{
    script({scripted_round("end")});
    run_hooks h = watched();
    h.assemble = [](const transcript&) -> transcript { throw aborted(); };
    const run_result r = go(make(agent_options().hooks(h)));
    EXPECT_EQ(r.outcome(), run_outcome::completed);
    EXPECT_THAT(reports, ElementsAre("assemble"));
}

TEST_F(LoopAborts, OfADeadlineIsReportedByNoHook)
{
    using set_hook = void (*)(run_hooks&, int*);
    const std::vector<std::pair<const char*, set_hook>> hooks{
        {"trim", [](run_hooks& h, int* n) { h.trim = [n](const transcript& m) { return hang_with(n, m); }; }},
        {"assemble", [](run_hooks& h, int* n) { h.assemble = [n](const transcript& m) { return hang_with(n, m); }; }},
        {"before_model", [](run_hooks& h, int* n) { h.before_model = [n](const transcript&) { return hang(n); }; }},
        {"on_llm_result", [](run_hooks& h, int* n) { h.on_llm_result = [n](const llm_report&) { return hang(n); }; }},
        {"before_tool", [](run_hooks& h, int* n) { h.before_tool = [n](const tool_call&) { return hang(n); }; }},
        {"after_tool", [](run_hooks& h, int* n) { h.after_tool = [n](const tool_report&) { return hang(n); }; }},
        {"on_tool_result", [](run_hooks& h, int* n) { h.on_tool_result = [n](const tool_report&) { return hang(n); }; }},
        {"on_commit", [](run_hooks& h, int* n) { h.on_commit = [n](const commit_point& p) { return hang_unless(n, p.last); }; }},
    };
    for (const auto& [name, set] : hooks) {
        SCOPED_TRACE(name);
        waiting = 0;
        script({scripted_round("working").call("a", "t"), scripted_round("end")});
        run_hooks h = watched();
        set(h, &waiting);
        reagent::run r = make(agent_options().hooks(h).clock(clock).tool(echo())).start(run_request("hi").deadline(1s));
        const run_result result = until_deadline(r);
        EXPECT_EQ(result.error(), "deadline");
        EXPECT_THAT(reports, IsEmpty());
        EXPECT_EQ(seen.count("loop:error"), 0u);
        EXPECT_THAT(check_transcript(result.messages()), IsEmpty());
    }
}

/// The call before the one that meets the deadline has its result, and no hook is blamed.
TEST_F(LoopAborts, ADeadlineInsideAToolKeepsWhatHadCompleted)
{
    script({scripted_round("working").call("a", "t").call("b", "slow"), scripted_round("end")});
    bench_of_tools bench(context);
    std::vector<std::string> told;
    run_hooks h = watched();
    h.on_tool_result = [&told](const tool_report& r) { told.push_back(r.call.id); };
    reagent::run r = make(agent_options().hooks(h).clock(clock).tool(echo()).tool(bench.tool("slow"))).start(run_request("hi").deadline(1s));
    rt::started<run_result> op(context, read_all(&r, &seen));
    ASSERT_TRUE(rt::run_until(context, [&] { return bench.running == 1; }));
    clock->advance(2s);
    ASSERT_TRUE(rt::run_until(context, [&] { return op.done(); }));
    const run_result result = op.get();
    EXPECT_EQ(result.error(), "deadline");
    EXPECT_THAT(shape(result.messages()), ElementsAre("user:hi", "assistant:working[a][b]", "tool:ok", "tool:[deadline]"));
    EXPECT_THAT(reports, IsEmpty());
}

}  // namespace loop_aborts_test
}  // namespace

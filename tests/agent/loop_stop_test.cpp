// A run that was stopped begins no further model call, wherever it stood, and holds no money.
#include "agent_fixture.hpp"

#include <reagent/model/attempt_gate.hpp>

namespace {
namespace loop_stop_test {

using namespace reagent;
using namespace agent_test;
using ::testing::ElementsAre;
using ::testing::IsEmpty;

class LoopStop : public fixture {
public:  // the hooks below are set outside
    void expect_stopped(const run_result& r)
    {
        EXPECT_EQ(r.outcome(), run_outcome::stopped);
        EXPECT_EQ(r.error(), std::nullopt);
        EXPECT_THAT(shape(r.messages()), ElementsAre("user:hi"));
        EXPECT_TRUE(seen.last("loop:done")["stopped"].as_bool());
        EXPECT_THAT(model_->requests(), IsEmpty());
    }
    reagent::run* stopping = nullptr;  ///< what a hook stops
};

TEST_F(LoopStop, InAHookBeforeTheCall)
{
    using set_hook = void (*)(run_hooks&, LoopStop*);
    const std::vector<std::pair<const char*, set_hook>> hooks{
        {"trim", [](run_hooks& h, LoopStop* t) { h.trim = [t](transcript m) { return t->stopping->stop(), m; }; }},
        {"assemble", [](run_hooks& h, LoopStop* t) { h.assemble = [t](transcript m) { return t->stopping->stop(), m; }; }},
        {"before_model", [](run_hooks& h, LoopStop* t) { h.before_model = [t](const transcript&) { t->stopping->stop(); }; }},
    };
    for (const auto& [name, set] : hooks) {
        SCOPED_TRACE(name);
        script({scripted_round("end")});
        run_hooks h;
        set(h, this);
        reagent::run r = make(agent_options().hooks(h)).start("hi");
        stopping = &r;
        expect_stopped(go(r));
    }
}

awaitable<human_answer> allow_and_stop(reagent::run** r)
{
    (*r)->stop();
    co_return human_answer(human_verdict::allow);
}

TEST_F(LoopStop, WhileAPersonIsAsked)
{
    script({scripted_round("end")});
    reagent::run** const which = &stopping;
    const budget money("team", usd("1"));
    reagent::run r = make(agent_options().gate(gate_policy().max_turns(0)).rates(rates(1, 1)).human([which](const human_event&) {
                         return allow_and_stop(which);
                     })).start(run_request("hi").budget(money).max_tokens(10));
    stopping = &r;
    expect_stopped(go(r));
    EXPECT_EQ(money.state().reserved.cost, usd());
    EXPECT_EQ(money.state().spent.cost, usd());
}

TEST_F(LoopStop, WhileItWaitsForMoney)
{
    script({scripted_round("end")});
    const budget money("team", budget_caps(std::nullopt, 10'000));
    admission taken = rt::complete(context, money.reserve(budget_amount(usd(), 9'999)));
    ASSERT_TRUE(taken.granted());
    reagent::run r = make().start(run_request("hi").budget(money).max_tokens(10));
    rt::started<run_result> op(context, read_all(&r, &seen));
    ASSERT_TRUE(rt::run_until(context, [&] { return money.state().waiting == 1; }));
    r.stop();
    taken.held.release();
    ASSERT_TRUE(rt::run_until(context, [&] { return op.done(); }));
    expect_stopped(op.get());
    EXPECT_EQ(money.state().reserved.tokens, 0u);
}

/// The same for a provider that passes the gate itself: the refusal goes through it, the second attempt of a call that began does not meet it.
class gated final : public provider {
public:
    bool admits_attempts() const noexcept override { return true; }
    awaitable<generate_result> generate(generate_request request) override
    {
        for (unsigned n = 1; n <= 2; ++n) {
            attempt_info info;
            info.number = n;
            info.output_bound = 1;
            permit right = co_await request.gate->admit(std::move(info));
            ++sent;
            if (n == 1 && on_first) on_first();
            right.settle(attempt_outcome());
        }
        generate_result r;
        r.text = "ok";
        r.stop_reason = "end_turn";
        co_return r;
    }
    std::function<void()> on_first;
    int sent = 0;
};

TEST_F(LoopStop, AtTheGateOfAProviderThatAsksItself)
{
    auto model = std::make_shared<gated>();
    reagent::run** const which = &stopping;
    reagent::run r = agent(context.get_executor(), model, agent_options().gate(gate_policy().max_turns(0)).human([which](const human_event&) {
                         return allow_and_stop(which);
                     })).start("hi");
    stopping = &r;
    const run_result result = go(r);
    EXPECT_EQ(result.outcome(), run_outcome::stopped);
    EXPECT_EQ(model->sent, 0);
    EXPECT_EQ(seen.count("loop:error"), 0u);
}

TEST_F(LoopStop, ACallThatBeganFinishes)
{
    auto model = std::make_shared<gated>();
    reagent::run r = agent(context.get_executor(), model, agent_options().gate(gate_policy().max_turns(9))).start("hi");
    model->on_first = [&r] { r.stop(); };
    const run_result result = go(r);
    EXPECT_EQ(result.outcome(), run_outcome::completed);
    EXPECT_EQ(result.text(), "ok");
    EXPECT_EQ(model->sent, 2);
}

/// A reader that takes its time holds up its own run, not the money of others.
TEST_F(LoopStop, ASlowReaderHoldsNoReservation)
{
    script({scripted_round().call("a", "t"), scripted_round("end")});
    const budget money("team", budget_caps(std::nullopt, 100'000));
    reagent::run r = make(agent_options().tool(any_tool("t", [](const json&) { return json("ok"); }))).start(run_request("hi").budget(money).max_tokens(10));
    event_batch batch;
    EXPECT_TRUE(rt::complete(context, r.read(batch)));  // the run's start; nobody reads on
    rt::run_until_idle(context, std::chrono::microseconds(0));
    EXPECT_EQ(money.state().reserved.tokens, 0u);
    EXPECT_EQ(go(r).outcome(), run_outcome::completed);
}

}  // namespace loop_stop_test
}  // namespace

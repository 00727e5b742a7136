#include "agent_fixture.hpp"

#include "attempt_admission.hpp"

#include <reagent/model/attempt_bound.hpp>

namespace {
namespace admission_test {

using namespace reagent;
using namespace std::chrono_literals;
using agent_test::any_tool;
using ::testing::HasSubstr;
using ::testing::SizeIs;

class Admission : public agent_test::fixture {
protected:
    /// One nano-dollar a token, in and out.
    static rates one() { return rates(1, 1); }
    /// How the runs ended, counted; lives as long as the context, which ends them after a test that failed half-way.
    std::map<std::string, int> ends;
    void TearDown() override
    {
        // Calls that a failed test left waiting for money wait for ever; they end with the context.
        if (!HasFailure()) fixture::TearDown();
    }
    void count(const run_result& r) { ++ends[r.error().value_or("ok")]; }
};

/// A model that admits its attempts and records what goes on. A call waits until the test lets it go.
class wire final : public provider {
public:
    explicit wire(asio::io_context& c) : context(c) {}
    bool admits_attempts() const noexcept override { return true; }
    std::string_view model() const noexcept override { return name; }
    awaitable<generate_result> generate(generate_request request) override
    {
        permit right;
        if (request.gate != nullptr) {
            attempt_info info;
            info.model = attempted;
            info.input_bound = 60;
            info.output_bound = request.options.max_tokens;
            right = co_await request.gate->admit(std::move(info));
        }
        ++on_wire;
        ++sent;
        most = std::max(most, on_wire);
        right.mark_sent();
        if (hold) {
            auto t = std::make_shared<asio::steady_timer>(context, asio::steady_timer::time_point::max());
            held.push_back(t);
            boost::system::error_code ignored;
            co_await t->async_wait(asio::redirect_error(asio::use_awaitable, ignored));
        }
        --on_wire;
        attempt_outcome out;
        out.request_left = true;
        out.complete = true;
        out.status = 200;
        out.usage.emplace();
        out.usage->input = used_input;
        out.usage->output = used_output;
        right.settle(out);
        generate_result r;
        r.usage = out.usage;
        r.text = "ok";
        r.stop_reason = "end_turn";
        co_return r;
    }
    void release()
    {
        for (auto& t : held) t->cancel();
        held.clear();
    }
    asio::io_context& context;
    std::vector<std::shared_ptr<asio::steady_timer>> held;
    std::string name = "wire-model", attempted = "wire-model";
    bool hold = true;
    int on_wire = 0, most = 0, sent = 0;
    std::uint64_t used_input = 60, used_output = 40;
};

awaitable<void> hold_until_told(asio::io_context* context, std::vector<std::shared_ptr<asio::steady_timer>>* held)
{
    auto t = std::make_shared<asio::steady_timer>(*context, asio::steady_timer::time_point::max());
    held->push_back(t);
    boost::system::error_code ignored;
    co_await t->async_wait(asio::redirect_error(asio::use_awaitable, ignored));
}

TEST_F(Admission, Case_C9_AThousandCallersOnACapThatFitsTen)
{
    auto model = std::make_shared<wire>(context);
    // Worst case of a call: 60 tokens in, 40 out, a nano-dollar each. The cap fits ten.
    budget money("team", usd::from_nanos(1000));
    const agent a(context.get_executor(), model, agent_options().rates(one()));
    for (int i = 0; i < 1000; ++i)
        a.async_run(run_request("hi").budget(money.child("run")).max_tokens(40), [this](error_code, const run_result& r) { count(r); });
    const auto ended = [&] { return ends["ok"] + ends["halt:budget.maxCostUsd"]; };
    while (ended() < 1000) {
        ASSERT_TRUE(rt::run_until(context, [&] { return ended() == 1000 || model->held.size() >= 10; }));
        ASSERT_LE(model->on_wire, 10);
        model->release();
    }
    context.run();
    EXPECT_EQ(model->sent, 10);
    EXPECT_LE(model->most, 10);
    EXPECT_EQ(ends["ok"], 10);
    EXPECT_EQ(ends["halt:budget.maxCostUsd"], 990);
    EXPECT_EQ(money.state().spent.cost, usd::from_nanos(1000));
    EXPECT_EQ(money.state().reserved.cost, usd());
    EXPECT_FALSE(money.state().overrun);
}

TEST_F(Admission, Case_C9_AProviderWithoutAdmissionIsHeldToItAsWell)
{
    std::vector<std::shared_ptr<asio::steady_timer>> held;
    const auto wait = [this, &held]() -> awaitable<void> { return hold_until_told(&context, &held); };
    script({scripted_round("ok").usage(1, 1).delay(wait).times(0)}, "plain");
    const transcript asked{message::user("hi")};
    budget money("team", budget_caps({}, 10 * (input_bound(asked, {}, "plain") + 40)));
    const agent a = make();
    for (int i = 0; i < 100; ++i)
        a.async_run(run_request("hi").budget(money.child("run")).max_tokens(40), [this](error_code, const run_result& r) { count(r); });
    const auto ended = [this] {
        int n = 0;
        for (const auto& [how, often] : ends) n += often;
        return n;
    };
    rt::run_until_idle(context);
    ASSERT_EQ(model_->open_calls(), 10u);
    EXPECT_EQ(money.state().reserved.tokens, *money.state().caps.tokens);
    while (ended() < 100) {
        ASSERT_TRUE(rt::run_until(context, [&] { return ended() == 100 || !held.empty(); }));
        ASSERT_LE(model_->open_calls(), 10u);
        for (auto& t : std::exchange(held, {})) t->cancel();
    }
    context.run();
    EXPECT_LE(money.state().spent.tokens, *money.state().caps.tokens);
    EXPECT_GT(model_->requests().size(), 10u) << "what was not used is there for the others";
}

TEST_F(Admission, Case_C9_SmallerUsageLetsMoreThrough)
{
    auto model = std::make_shared<wire>(context);
    model->hold = false;
    model->used_output = 0;
    model->used_input = 10;
    budget money("team", usd::from_nanos(1000));
    const agent a(context.get_executor(), model, agent_options().rates(one()));
    int completed = 0;
    for (int i = 0; i < 200; ++i)
        a.async_run(run_request("hi").budget(money.child("run")).max_tokens(40), [&](error_code, const run_result& r) { completed += r.completed() ? 1 : 0; });
    context.run();
    EXPECT_GT(completed, 10);
    EXPECT_LE(money.state().spent.cost, usd::from_nanos(1000));
}

TEST_F(Admission, Case_C10_SpendAboveTheReservationIsBoundedByOneCallAndReported)
{
    auto model = std::make_shared<wire>(context);
    model->hold = false;
    model->used_output = 90;  // more than max_tokens: the vendor breaks its word
    budget money("team", usd::from_nanos(220));
    const agent a(context.get_executor(), model, agent_options().rates(one()));
    std::vector<std::string> outcomes;
    for (int i = 0; i < 5; ++i) outcomes.push_back(go(a, run_request("hi").budget(money.child("run")).max_tokens(40)).error().value_or("ok"));
    EXPECT_EQ(model->sent, 1) << "150 are spent of 220: another worst case of 100 does not fit";
    EXPECT_EQ(outcomes.back(), "halt:budget.maxCostUsd");
    EXPECT_EQ(money.state().excess_cost, usd::from_nanos(50));
    EXPECT_EQ(money.state().spent.cost, usd::from_nanos(150));
}

TEST_F(Admission, Case_C11_ChildrenDrawFromTheParent)
{
    auto model = std::make_shared<wire>(context);
    model->used_output = 0;
    budget parent("parent", usd::from_nanos(1000));
    parent.charge(budget_amount(usd::from_nanos(890)));
    const agent a(context.get_executor(), model, agent_options().rates(one()));
    for (int i = 0; i < 5; ++i)
        a.async_run(run_request("hi").budget(parent.child("child", usd::from_nanos(1000))).max_tokens(40),
                    [this](error_code, const run_result& r) { count(r); });
    const std::string halted = "halt:budget.maxCostUsd";
    // What is left fits one worst case at a time, and the second call no more once the first has spent.
    rt::run_until(
        context, [&] { return model->on_wire == 1; }, 1s);
    rt::run_until_idle(context);
    ASSERT_EQ(model->on_wire, 1);
    for (int i = 0; i < 10; ++i) {
        model->release();
        rt::run_until_idle(context);
    }
    ASSERT_TRUE(rt::run_until(
        context, [&] { return ends["ok"] + ends[halted] == 5; }, 1s));
    EXPECT_EQ(model->most, 1);
    EXPECT_EQ(ends["ok"], 1);
    EXPECT_EQ(ends[halted], 4);
    EXPECT_LE(parent.state().spent.cost, usd::from_nanos(1000));
}

// A provider may turn to another model than the one it was made for: what is not known of that one counts, before anything is sent.
TEST_F(Admission, Case_C9_AnAttemptIsJudgedByTheModelItGoesTo)
{
    for (const bool priced : {false, true}) {
        auto model = std::make_shared<wire>(context);
        model->hold = false;
        model->name = "gpt-4o-mini";
        model->attempted = "nobody-knows";
        const budget money = priced ? budget("team", budget_caps({}, 1'000'000)) : budget("team", usd("1"));
        run_request asked = run_request("hi").budget(money);
        if (!priced) asked.max_tokens(40);
        const run_result r = go(agent(context.get_executor(), model), asked);
        EXPECT_EQ(r.outcome(), run_outcome::failed);
        EXPECT_THAT(r.error().value_or(""), HasSubstr(priced ? "budget.unbounded" : "no price is known for model nobody-knows"));
        EXPECT_EQ(model->sent, 0);
        EXPECT_EQ(money.state().reserved.tokens, 0u);
    }
}

TEST_F(Admission, ProvidersThatDoNotAdmitAreAdmittedOncePerCall)
{
    script({scripted_round("ok").usage(3, 4)}, "plain");
    budget money("team", budget_caps({}, 100'000));
    const run_result r = go(make(), run_request("hi").budget(money).max_tokens(50));
    EXPECT_TRUE(r.completed());
    EXPECT_EQ(money.state().spent.tokens, 7u);
    EXPECT_EQ(money.state().reserved.tokens, 0u);
    EXPECT_EQ(r.metrics().attempts, 1u);
}

TEST_F(Admission, AWorstCaseThatCannotFitHaltsBeforeAnythingIsSent)
{
    script({scripted_round("ok")}, "plain");
    budget money("team", budget_caps({}, 60));
    const run_result r = go(make(), run_request("hi").budget(money).max_tokens(50));
    EXPECT_EQ(r.error(), "halt:budget.maxTokens");
    EXPECT_THAT(model_->requests(), SizeIs(0));
}

TEST_F(Admission, UnknownPriceAndUnboundedOutputAreConfigurationErrors)
{
    script({scripted_round("ok")}, "nobody-knows");
    const auto message = [&](const agent& a, run_request request) -> std::string {
        try {
            a.start(std::move(request));
        } catch (const config_error& e) {
            return e.what();
        }
        return "none";
    };
    budget dollars("b", usd("1")), tokens("t", budget_caps({}, 1000)), none;
    EXPECT_THAT(message(make(), run_request("q").budget(dollars).max_tokens(10)), HasSubstr("budget.maxCostUsd: no price is known for model nobody-knows"));
    EXPECT_THAT(message(make(agent_options().rates(one())), run_request("q").budget(dollars)), HasSubstr("budget.unbounded"));
    EXPECT_THAT(message(make(), run_request("q").budget(tokens)), HasSubstr("budget.unbounded"));
    EXPECT_EQ(message(make(), run_request("q").budget(tokens).max_tokens(5)), "none");
    EXPECT_EQ(message(make(), run_request("q").budget(none)), "none");
    const gate_policy rules = gate_policy::from_json(json::parse_or_throw(R"({"budget":{"maxCostUsd":1}})", "gate"));
    EXPECT_THAT(message(make(agent_options().gate(rules)), run_request("q").max_tokens(5)), HasSubstr("budget.maxCostUsd"));
}

TEST_F(Admission, AGuessedPriceNeverEnforcesACap)
{
    script({scripted_round("ok")}, "claude-haiku-4-5");
    budget dollars("b", usd("1"));
    EXPECT_THROW(make().start(run_request("q").budget(dollars).max_tokens(10)), config_error);
}

TEST_F(Admission, ACapOfThePolicyHoldsPerRun)
{
    script({scripted_round("ok").usage(3, 4).times(0)}, "plain");
    const gate_policy rules = gate_policy::from_json(json::parse_or_throw(R"({"budget":{"maxTokens":400}})", "gate"));
    const agent a = make(agent_options().gate(rules));
    EXPECT_TRUE(go(a, run_request("q").max_tokens(5)).completed());
    EXPECT_TRUE(go(a, run_request("q").max_tokens(5)).completed());
    EXPECT_EQ(go(a, run_request("q").max_tokens(500)).error(), "halt:budget.maxTokens");
}

/// Streams two deltas, reports rising usage in between.
class chatty final : public provider {
public:
    class call final : public model_call {
    public:
        awaitable<bool> read(event_batch& batch) override
        {
            batch.clear();
            batch.push(event_kind::text, "part ");
            text += "part ";
            batch.push(event_kind::usage).data = batch.keep(json::object().set("inputTokens", 1).set("outputTokens", 1000 * ++n));
            co_return n < 100;
        }
        generate_result take_result() override { return {}; }
        std::string partial_text() const override { return text; }
        std::string text;
        int n = 0;
    };
    std::string_view model() const noexcept override { return "chatty"; }
    model_call_ptr start(generate_request) override { return std::make_unique<call>(); }
};

TEST_F(Admission, ReportedUsageOfARunningStreamCutsItAndKeepsTheText)
{
    budget money("team", budget_caps({}, 4'500));
    const agent a(context.get_executor(), std::make_shared<chatty>());
    const run_result r = go(a, run_request("hi").budget(money).max_tokens(10));
    EXPECT_EQ(r.error(), "halt:budget.maxTokens");
    EXPECT_EQ(r.outcome(), run_outcome::halted);
    EXPECT_EQ(r.partial_text(), "part part part part part ");
    EXPECT_EQ(money.state().spent.tokens, 5'001u) << "what was reported is spent";
    EXPECT_EQ(money.state().reserved.tokens, 0u);
}

TEST_F(Admission, AFailedCallSettlesWhatItCanHaveCost)
{
    // An error answer settles nothing.
    provider_error refused(errc::provider_failed, "bad key", false);
    refused.status = 401;
    script({scripted_round().error(refused)}, "plain");
    budget money("team", budget_caps({}, 10'000));
    go(make(), run_request("hi").budget(money).max_tokens(50));
    EXPECT_EQ(money.state().spent.tokens, 0u);
    // A stream cut after text settles the input bound and the text.
    script({scripted_round("0123456789").deltas(2).error(provider_error(errc::stream_truncated, "cut", true))}, "plain");
    const run_result r = go(make(), run_request("hi").budget(money).max_tokens(50));
    EXPECT_GT(money.state().spent.tokens, 10u);
    EXPECT_EQ(money.state().reserved.tokens, 0u);
    EXPECT_EQ(r.metrics().estimated_rounds, 1u);
}

}  // namespace admission_test
}  // namespace

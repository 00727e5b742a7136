// The most an answer can have, from whoever knows it, and prices that make sense.
#include "agent_fixture.hpp"

#include "attempt_admission.hpp"

#include <reagent/model/attempt_bound.hpp>

#include <cmath>
#include <limits>

namespace {
namespace output_bound_test {

using namespace reagent;
using namespace agent_test;
using ::testing::SizeIs;

using OutputBound = fixture;

TEST_F(OutputBound, ZeroCountsAsUnset)
{
    EXPECT_EQ(output_bound(0, "no-such-model"), std::nullopt);
    EXPECT_EQ(output_bound(0, "gpt-4o-mini"), output_bound(std::nullopt, "gpt-4o-mini"));
    EXPECT_EQ(output_bound(7, "gpt-4o-mini"), 7u);
    const budget money("team", budget_caps(std::nullopt, 1'000'000));
    script({scripted_round("end")});
    EXPECT_THROW(make().start(run_request("hi").budget(money).max_tokens(0)), config_error) << "nothing bounds the answer";
    generate_options own;
    own.max_tokens = 50;
    EXPECT_TRUE(go(make(agent_options().generate(own)), run_request("hi").budget(money).max_tokens(0)).completed());
    EXPECT_EQ(model_->requests().front().options.max_tokens, 50u) << "the agent's own holds";
}

/// A provider whose configuration bounds its answers.
class bounded final : public provider {
public:
    std::string_view model() const noexcept override { return "house-model"; }
    std::optional<std::uint64_t> max_output() const noexcept override { return 500; }
    awaitable<generate_result> generate(generate_request) override
    {
        most = std::max(most, money.state().reserved.tokens);
        generate_result r;
        r.text = "end";
        r.stop_reason = "end_turn";
        co_return r;
    }
    budget money{"team", budget_caps(std::nullopt, 1'000'000)};
    std::uint64_t most = 0;
};

TEST_F(OutputBound, OfTheProviderIsKnownBeforeTheRunAndReserved)
{
    auto model = std::make_shared<bounded>();
    const agent a(context.get_executor(), model);
    EXPECT_TRUE(go(a, run_request("hi").budget(model->money)).completed());
    EXPECT_GE(model->most, 500u);
    EXPECT_LT(model->most, 1000u);
}

TEST_F(OutputBound, AHugeOneDoesNotWrapAround)
{
    const budget money("team", budget_caps(std::nullopt, 1'000'000));
    script({scripted_round("end")});
    const run_result r = go(make(), run_request("hi").budget(money).max_tokens(std::numeric_limits<std::uint64_t>::max()));
    EXPECT_EQ(r.error(), "halt:budget.maxTokens");
    EXPECT_THAT(model_->requests(), SizeIs(0));
}

TEST_F(OutputBound, PricesAreFiniteAndNotNegative)
{
    EXPECT_THROW(agent_options().rates(rates(-1, 1)), validation_error);
    EXPECT_THROW(agent_options().rates(rates(1, std::nan(""))), validation_error);
    EXPECT_THROW(agent_options().rates(rates(std::numeric_limits<double>::infinity(), 1)), validation_error);
    rates odd(1, 1);
    odd.cache_read_mult = -0.1;
    EXPECT_THROW(agent_options().rates(odd), validation_error);
    EXPECT_NO_THROW(agent_options().rates(rates(0, 0)));
}

}  // namespace output_bound_test
}  // namespace

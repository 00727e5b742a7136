#include <reagent/base/error.hpp>
#include <reagent/governance/budget.hpp>

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

namespace {
namespace budget_test {

using namespace reagent;

budget_amount dollars(const char* text, std::uint64_t tokens = 0)
{
    return budget_amount(usd(text), tokens);
}

TEST(Budget, AnEmptyHandleAdmitsEverything)
{
    budget none;
    EXPECT_FALSE(none);
    const std::optional<admission> a = none.try_reserve(budget_amount(usd::max(), UINT64_MAX));
    ASSERT_TRUE(a);
    EXPECT_TRUE(a->granted());
    EXPECT_FALSE(a->held);
    EXPECT_FALSE(none.exhausted());
    EXPECT_EQ(none.name(), "");
    EXPECT_EQ(none.describe(), "");
    none.charge(dollars("1"));
}

TEST(Budget, HoldsSettlesAndReleases)
{
    budget b("run", budget_caps(usd("1"), 100));
    std::optional<admission> a = b.try_reserve(dollars("0.6", 60));
    ASSERT_TRUE(a && a->granted());
    EXPECT_EQ(b.state().reserved.cost, usd("0.6"));
    EXPECT_EQ(b.state().reserved.tokens, 60u);
    a->held.settle(dollars("0.25", 10));
    EXPECT_FALSE(a->held);
    EXPECT_EQ(b.state().reserved.cost, usd());
    EXPECT_EQ(b.state().spent.cost, usd("0.25"));
    EXPECT_EQ(b.state().spent.tokens, 10u);

    std::optional<admission> second = b.try_reserve(dollars("0.75", 90));
    ASSERT_TRUE(second && second->granted());
    second->held.release();
    EXPECT_EQ(b.state().reserved.tokens, 0u);
    EXPECT_EQ(b.state().spent.cost, usd("0.25"));
    second->held.settle(dollars("5"));
    EXPECT_EQ(b.state().spent.cost, usd("0.25")) << "a released reservation is empty";
}

TEST(Budget, AReservationSettlesAllThatItHeld)
{
    budget b("run", budget_caps(usd("1"), 100));
    std::optional<admission> a = b.try_reserve(dollars("0.6", 60));
    ASSERT_TRUE(a && a->granted());
    a->held.settle(a->held.held());
    EXPECT_EQ(b.state().spent.cost, usd("0.6"));
    EXPECT_EQ(b.state().spent.tokens, 60u);
}

TEST(Budget, AReservationThatDiesReleases)
{
    budget b("run", usd("1"));
    {
        const std::optional<admission> a = b.try_reserve(dollars("1"));
        ASSERT_TRUE(a && a->granted());
        EXPECT_EQ(b.state().reserved.cost, usd("1"));
    }
    EXPECT_EQ(b.state().reserved.cost, usd());
    std::optional<admission> one = b.try_reserve(dollars("0.4"));
    std::optional<admission> two = b.try_reserve(dollars("0.6"));
    one->held = std::move(two->held);  // assignment frees what was held before
    EXPECT_EQ(b.state().reserved.cost, usd("0.6"));
}

struct verdict_row {
    const char* what;
    budget_caps caps;
    budget_amount spent, reserved, wanted;
    int expect;  // 0 granted, 1 waits, 2 refused for cost, 3 refused for tokens
};

TEST(Budget, GrantWaitRefuseTable)
{
    const budget_caps ten(usd("10"));
    const budget_caps both(usd("10"), 100);
    const budget_caps tokens(std::nullopt, 100);
    const verdict_row rows[] = {
        {"fits exactly", ten, {}, {}, dollars("10"), 0},
        {"a nano too much", ten, {}, {}, dollars("10.000000001"), 2},
        {"no cap in that dimension", ten, {}, {}, dollars("1", 1'000'000), 0},
        {"another holder could release", ten, dollars("4"), dollars("3"), dollars("4"), 1},
        {"exactly what a release leaves", ten, dollars("4"), dollars("3"), dollars("6"), 1},
        {"more than any release leaves", ten, dollars("4"), dollars("3"), dollars("6.000000001"), 2},
        {"nothing is held, so waiting is in vain", ten, dollars("7"), {}, dollars("4"), 2},
        {"spent out refuses even zero", ten, dollars("10"), {}, {}, 2},
        {"a cap of zero admits nothing", budget_caps(usd()), {}, {}, {}, 2},
        {"zero fits while all is held", ten, {}, dollars("10"), {}, 0},
        {"tokens short, cost fine", both, dollars("1", 90), {}, dollars("1", 11), 3},
        {"cost is named first", both, dollars("9", 90), {}, dollars("2", 20), 2},
        {"tokens wait", tokens, dollars("0", 40), dollars("0", 40), dollars("0", 60), 1},
        {"tokens do not wrap", tokens, dollars("0", 40), {}, dollars("0", UINT64_MAX), 3},
        {"money does not wrap", ten, dollars("4"), {}, budget_amount(usd::max()), 2},
        {"no caps", budget_caps(), dollars("4"), dollars("4"), budget_amount(usd::max(), UINT64_MAX), 0},
        {"the largest cap", budget_caps(usd::max(), UINT64_MAX), dollars("1", 1), dollars("1", 1), budget_amount(usd::max(), 1), 2},
        {"a negative amount counts as zero", ten, {}, dollars("10"), budget_amount(usd("-3")), 0},
    };
    for (const verdict_row& row : rows) {
        SCOPED_TRACE(row.what);
        budget b("b", row.caps);
        b.charge(row.spent);
        const reservation others = b.force(row.reserved);
        const std::optional<admission> a = b.try_reserve(row.wanted);
        const int got = !a ? 1 : a->granted() ? 0 : *a->refused == budget_dimension::cost ? 2 : 3;
        EXPECT_EQ(got, row.expect);
        if (row.expect != 0) { EXPECT_EQ(b.state().reserved.cost, row.reserved.cost) << "nothing is held"; }
    }
}

TEST(Budget, ARefusalNamesTheBudgetItsSpendAndItsCaps)
{
    budget team("team", usd("1"));
    budget ticket = team.child("ticket", usd("5"));
    team.charge(dollars("0.9"));
    const std::optional<admission> a = ticket.try_reserve(dollars("0.2"));
    ASSERT_TRUE(a);
    ASSERT_TRUE(a->refused);
    EXPECT_EQ(*a->refused, budget_dimension::cost);
    EXPECT_EQ(a->budget_name, "team");
    EXPECT_EQ(a->spent.cost, usd("0.9"));
    EXPECT_EQ(a->caps.cost, usd("1"));
    EXPECT_EQ(a->refused_by().name(), "team");
    EXPECT_EQ(budget_rule(*a->refused), "budget.maxCostUsd");
    EXPECT_EQ(budget_rule(budget_dimension::tokens), "budget.maxTokens");
}

TEST(Budget, Case_C11_EveryAncestorHolds)
{
    budget org("org", budget_caps());
    budget team = org.child("team", usd("2"));
    budget run = team.child("run");
    std::optional<admission> a = run.try_reserve(dollars("1.5", 7));
    ASSERT_TRUE(a && a->granted());
    for (const budget& b : {org, team, run}) {
        EXPECT_EQ(b.state().reserved.cost, usd("1.5")) << b.name();
        EXPECT_EQ(b.state().reserved.tokens, 7u) << b.name();
    }
    EXPECT_FALSE(run.try_reserve(dollars("1"))) << "the team is short: wait";
    EXPECT_TRUE(org.try_reserve(dollars("1"))) << "the organisation is not";
    a->held.settle(dollars("1.25", 6));
    for (const budget& b : {org, team, run}) EXPECT_EQ(b.state().spent.cost, usd("1.25")) << b.name();
    EXPECT_TRUE(run.caps_cost());
    EXPECT_FALSE(run.caps_tokens());
    EXPECT_FALSE(org.caps_cost());
    EXPECT_EQ(run.parent().name(), "team");
    EXPECT_FALSE(org.parent());
}

TEST(Budget, AChildOfNothingIsARoot)
{
    budget b = budget().child("alone", usd("1"));
    EXPECT_EQ(b.name(), "alone");
    EXPECT_TRUE(b.caps_cost());
    EXPECT_FALSE(b.parent());
}

TEST(Budget, Case_C10_SettlingAboveTheReservationIsRecordedAndStopsAdmission)
{
    budget b("run", usd("5"));
    b.charge(dollars("4.752720"));
    std::optional<admission> first = b.try_reserve(dollars("0.0884"));
    std::optional<admission> second = b.try_reserve(dollars("0.0884"));
    ASSERT_TRUE(first && first->granted());
    ASSERT_TRUE(second && second->granted());
    EXPECT_FALSE(b.try_reserve(dollars("0.0884"))) << "a third waits: $0.0705 is free";
    first->held.settle(dollars("0.0884"));
    EXPECT_FALSE(b.state().overrun);
    second->held.settle(dollars("0.25"));  // the vendor did not keep max_tokens
    EXPECT_EQ(b.state().spent.cost, usd("5.09112"));
    EXPECT_EQ(b.state().excess_cost, usd("0.1616")) << "the overshoot is what one call passed its reservation by";
    EXPECT_TRUE(b.state().overrun);
    const std::optional<admission> next = b.try_reserve(dollars("0.0001"));
    ASSERT_TRUE(next);
    EXPECT_TRUE(next->refused) << "admission has stopped";
    EXPECT_TRUE(b.exhausted());
    b.raise_cap(budget_dimension::cost, 6);
    EXPECT_FALSE(b.state().overrun);
    EXPECT_FALSE(b.exhausted());
    EXPECT_EQ(b.state().excess_cost, usd("0.1616")) << "what happened stays on record";
}

TEST(Budget, Case_C11_ChildrenDrawFromTheTreeNotFromACopy)
{
    budget root("session", usd("10.00"));
    root.charge(dollars("9.90"));
    std::vector<budget> children;
    for (int i = 0; i < 5; ++i) children.push_back(root.child("child " + std::to_string(i), usd("10.00")));
    std::vector<reservation> held;
    int refused_or_waiting = 0;
    for (budget& child : children) {
        std::optional<admission> a = child.try_reserve(dollars("0.04"));
        if (a && a->granted()) held.push_back(std::move(a->held));
        else ++refused_or_waiting;
    }
    EXPECT_EQ(held.size(), 2u);
    EXPECT_EQ(refused_or_waiting, 3);
    for (reservation& r : held) r.settle(dollars("0.04"));
    EXPECT_EQ(root.state().spent.cost, usd("9.98"));
    for (budget& child : children) {
        const std::optional<admission> a = child.try_reserve(dollars("0.04"));
        ASSERT_TRUE(a);
        EXPECT_TRUE(a->refused) << "nothing is held any more, so waiting would be in vain";
        EXPECT_EQ(a->budget_name, "session");
    }
}

TEST(Budget, PassesLooksAtWhatIsSpentWithoutTheAttempt)
{
    budget team("team", usd("1"));
    budget run = team.child("run", budget_caps(std::nullopt, 100));
    team.charge(dollars("0.5"));
    std::optional<admission> a = run.try_reserve(dollars("0.5", 50));
    ASSERT_TRUE(a && a->granted());
    EXPECT_FALSE(a->held.passes(dollars("0.5", 100)));
    EXPECT_EQ(a->held.passes(dollars("0.500000001", 1)), budget_dimension::cost);
    EXPECT_EQ(a->held.passes(dollars("0", 101)), budget_dimension::tokens);
    EXPECT_EQ(a->held.passes(dollars("0", UINT64_MAX)), budget_dimension::tokens);
    EXPECT_FALSE(reservation().passes(dollars("100")));
}

TEST(Budget, RaiseCapFindsTheNamedAncestorAndChecksItsValue)
{
    budget team("team", usd("1"));
    budget run = team.child("run", budget_caps(std::nullopt, 5));
    EXPECT_EQ(run.raise_cap(budget_dimension::tokens, 50), 5.0);
    EXPECT_EQ(run.raise_cap(budget_dimension::cost, 3, "team"), 1.0);
    EXPECT_EQ(run.raise_cap(budget_dimension::cost, 2), std::nullopt) << "it had none";
    EXPECT_EQ(team.state().caps.cost, usd("3"));
    EXPECT_EQ(run.state().caps.cost, usd("2"));
    EXPECT_THROW(run.raise_cap(budget_dimension::cost, 1, "nobody"), validation_error);
    EXPECT_THROW(run.raise_cap(budget_dimension::cost, -1), validation_error);
    EXPECT_THROW(run.raise_cap(budget_dimension::cost, std::nan("")), validation_error);
    EXPECT_THROW(run.raise_cap(budget_dimension::tokens, std::numeric_limits<double>::infinity()), validation_error);
    EXPECT_THROW(budget().raise_cap(budget_dimension::tokens, 1), validation_error);
    run.raise_cap(budget_dimension::tokens, 1e300);
    EXPECT_EQ(run.state().caps.tokens, UINT64_MAX);
}

TEST(Budget, ForceHoldsBeyondTheCap)
{
    budget b("run", usd("1"));
    reservation r = b.force(dollars("5"));
    EXPECT_TRUE(r);
    EXPECT_EQ(b.state().reserved.cost, usd("5"));
    r.settle(dollars("2"));
    EXPECT_TRUE(b.state().overrun);
    EXPECT_EQ(b.state().excess_cost, usd()) << "a person allowed it; the settle kept its reservation";
}

TEST(Budget, SpendSaturatesInsteadOfWrapping)
{
    budget b("run", budget_caps());
    b.charge(budget_amount(usd::max(), UINT64_MAX));
    b.charge(budget_amount(usd::max(), 1));
    EXPECT_EQ(b.state().spent.cost, usd::max());
    EXPECT_EQ(b.state().spent.tokens, UINT64_MAX);
    b.charge(budget_amount(usd("-5"), 0));
    EXPECT_EQ(b.state().spent.cost, usd::max()) << "spend is never refunded";
}

TEST(Budget, DescribesTheTree)
{
    budget team("team", budget_caps(usd("1"), 1000));
    budget a = team.child("a", usd("0.5"));
    budget b = team.child("b");
    a.charge(dollars("0.1", 10));
    const reservation held = b.force(dollars("0.2", 5));
    {
        budget gone = team.child("gone");
    }
    EXPECT_EQ(team.describe(),
              "team: spent $0.1 of $1, 10 of 1000 tokens; reserved $0.2, 5 tokens\n"
              "  a: spent $0.1 of $0.5, 10 tokens\n"
              "  b: spent $0, 0 tokens; reserved $0.2, 5 tokens\n");
    EXPECT_EQ(b.describe(), "b: spent $0, 0 tokens; reserved $0.2, 5 tokens\n");
}

TEST(Budget, AReservationKeepsItsTreeAlive)
{
    reservation r;
    {
        budget root("root", usd("1"));
        std::optional<admission> a = root.child("short-lived").try_reserve(dollars("0.5"));
        r = std::move(a->held);
    }
    EXPECT_EQ(r.passes(dollars("2")), budget_dimension::cost);
    r.settle(dollars("0.5"));
}

}  // namespace budget_test
}  // namespace

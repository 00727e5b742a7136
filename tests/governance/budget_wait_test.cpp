#include <reagent/base/error.hpp>
#include <reagent/governance/budget.hpp>

#include <boost/asio/bind_cancellation_slot.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/this_coro.hpp>
#include <boost/asio/use_awaitable.hpp>

#include <gtest/gtest.h>

#include <algorithm>
#include <list>
#include <tuple>

namespace {
namespace budget_wait_test {

using namespace reagent;

budget_amount dollars(const char* text)
{
    return budget_amount(usd(text));
}

awaitable<admission> reserve_with(budget b, budget_amount amount)
{
    admission a = co_await b.reserve(amount);
    co_return a;
}

/// One caller of `reserve`, its outcome and its cancellation.
struct caller {
    std::string name;
    asio::cancellation_signal stop;
    bool done = false, cancelled = false;
    admission answer;
};

struct bench {
    asio::io_context io;
    std::list<caller> callers;
    std::vector<std::string> finished;  // in order

    caller& start(std::string name, const budget& b, const char* amount)
    {
        caller& c = callers.emplace_back();
        c.name = std::move(name);
        asio::co_spawn(io, reserve_with(b, dollars(amount)), asio::bind_cancellation_slot(c.stop.slot(), [this, &c](std::exception_ptr e, admission a) {
                           c.done = true;
                           c.cancelled = is_cancellation(e);
                           c.answer = std::move(a);
                           finished.push_back(c.name);
                       }));
        run();
        return c;
    }
    void run()
    {
        io.restart();
        io.poll();
    }
    void cancel(caller& c)
    {
        c.stop.emit(asio::cancellation_type::terminal);
        run();
    }
    /// Everybody lets go; then nothing may be left.
    void finish()
    {
        for (caller& c : callers) c.answer.held.release();
        run();
    }
};

using names = std::vector<std::string>;

TEST(BudgetWait, WaitersAreServedInOrderOfArrival)
{
    bench t;
    budget b("b", usd("10"));
    caller& first = t.start("first", b, "10");
    caller& big = t.start("big", b, "8");
    caller& small = t.start("small", b, "1");
    EXPECT_TRUE(first.answer.held);
    EXPECT_EQ(b.state().waiting, 2u);
    first.answer.held.settle(dollars("5"));  // 5 free: enough for small, but big was first... and can never fit now
    t.run();
    EXPECT_TRUE(big.answer.refused) << "a head that can never fit is answered";
    EXPECT_TRUE(small.answer.held) << "and holds nobody up";
    EXPECT_EQ(t.finished, (names{"first", "big", "small"}));
    t.finish();
    EXPECT_EQ(b.state().reserved.cost, usd());
    EXPECT_EQ(b.state().waiting, 0u);
}

TEST(BudgetWait, ASmallOneNeverOvertakesTheHead)
{
    bench t;
    budget b("b", usd("10"));
    caller& one = t.start("one", b, "5");
    caller& two = t.start("two", b, "5");
    caller& big = t.start("big", b, "10");
    caller& small = t.start("small", b, "1");
    one.answer.held.release();
    t.run();
    EXPECT_FALSE(big.done);
    EXPECT_FALSE(small.done) << "5 are free, but the head needs 10";
    const std::optional<admission> newcomer = b.try_reserve(dollars("1"));
    EXPECT_FALSE(newcomer) << "a newcomer does not overtake either";
    two.answer.held.release();
    t.run();
    EXPECT_TRUE(big.done);
    EXPECT_FALSE(small.done);
    big.answer.held.release();
    t.run();
    EXPECT_TRUE(small.done);
    EXPECT_EQ(t.finished, (names{"one", "two", "big", "small"}));
}

TEST(BudgetWait, OneReleaseWakesAllThatFitInOrder)
{
    bench t;
    budget b("b", usd("10"));
    caller& all = t.start("all", b, "10");
    for (int i = 0; i < 12; ++i) t.start(std::to_string(i), b, "1");
    EXPECT_EQ(b.state().waiting, 12u);
    all.answer.held.release();
    t.run();
    EXPECT_EQ(t.finished, (names{"all", "0", "1", "2", "3", "4", "5", "6", "7", "8", "9"}));
    EXPECT_EQ(b.state().waiting, 2u);
    t.finish();
    t.finish();
    EXPECT_EQ(b.state().waiting, 0u);
    EXPECT_EQ(b.state().reserved.cost, usd());
}

TEST(BudgetWait, SpendingOutAnswersEverybody)
{
    bench t;
    budget b("b", usd("10"));
    caller& all = t.start("all", b, "10");
    std::vector<caller*> rest;
    for (int i = 0; i < 5; ++i) rest.push_back(&t.start(std::to_string(i), b, "1"));
    all.answer.held.settle(dollars("10"));
    t.run();
    for (caller* c : rest) {
        EXPECT_TRUE(c->done);
        EXPECT_EQ(c->answer.refused, budget_dimension::cost);
        EXPECT_EQ(c->answer.spent.cost, usd("10"));
    }
    EXPECT_EQ(b.state().waiting, 0u);
}

TEST(BudgetWait, CancellingAWaiterLeavesNothingBehind)
{
    bench t;
    budget b("b", usd("10"));
    caller& holder = t.start("holder", b, "6");
    caller& head = t.start("head", b, "5");
    caller& next = t.start("next", b, "4");
    t.cancel(head);
    EXPECT_TRUE(head.cancelled);
    EXPECT_TRUE(next.answer.held) << "what stood behind it moves up at once";
    EXPECT_EQ(b.state().reserved.cost, usd("10"));
    EXPECT_EQ(b.state().waiting, 0u);
    (void)holder;
    t.finish();
    EXPECT_EQ(b.state().reserved.cost, usd());
}

TEST(BudgetWait, AGrantThatMeetsACancellationIsGivenBack)
{
    bench t;
    budget b("b", usd("10"));
    caller& holder = t.start("holder", b, "10");
    caller& late = t.start("late", b, "10");
    caller& behind = t.start("behind", b, "10");
    asio::post(t.io, [&] {
        holder.answer.held.release();  // grants `late`; its completion is posted but has not run
        EXPECT_EQ(b.state().reserved.cost, usd("10"));
        EXPECT_FALSE(late.done);
        late.stop.emit(asio::cancellation_type::terminal);
    });
    t.run();
    EXPECT_TRUE(late.cancelled);
    EXPECT_FALSE(late.answer.held);
    EXPECT_TRUE(behind.answer.held) << "the money went to the next in line";
    t.finish();
    EXPECT_EQ(b.state().reserved.cost, usd());
    EXPECT_EQ(b.state().waiting, 0u);
}

TEST(BudgetWait, RaisingTheCapWakes)
{
    bench t;
    budget team("team", usd("10"));
    budget run = team.child("run");
    caller& holder = t.start("holder", run, "10");
    caller& waiter = t.start("waiter", run, "5");
    run.raise_cap(budget_dimension::cost, 15, "team");
    t.run();
    EXPECT_TRUE(waiter.answer.held);
    EXPECT_TRUE(holder.answer.held);
}

TEST(BudgetWait, LoweringTheCapRefusesWhoCanNeverFit)
{
    bench t;
    budget b("b", usd("10"));
    caller& holder = t.start("holder", b, "10");
    caller& waiter = t.start("waiter", b, "5");
    b.raise_cap(budget_dimension::cost, 4);
    t.run();
    EXPECT_TRUE(waiter.answer.refused);
    EXPECT_TRUE(holder.answer.held) << "what is admitted stays admitted";
}

TEST(BudgetWait, ALineInOneSubtreeHoldsUpNoOther)
{
    bench t;
    budget root("root", usd("100"));
    budget a = root.child("a", usd("10"));
    budget b = root.child("b", usd("10"));
    caller& holder = t.start("a holds", a, "10");
    caller& waits = t.start("a waits", a, "10");
    caller& other = t.start("b goes", b, "10");
    EXPECT_FALSE(waits.done);
    EXPECT_TRUE(other.answer.held);
    EXPECT_EQ(a.state().waiting, 1u);
    EXPECT_EQ(b.state().waiting, 0u);
    EXPECT_EQ(root.state().waiting, 1u);
    holder.answer.held.release();
    t.run();
    EXPECT_TRUE(waits.answer.held);
}

TEST(BudgetWait, AWaiterThatPassesItsOwnBudgetStandsInTheNextLine)
{
    bench t;
    budget root("root", usd("20"));
    budget a = root.child("a", usd("10"));
    budget b = root.child("b");
    caller& a_holds = t.start("a holds", a, "10");
    caller& a_first = t.start("a first", a, "10");   // a is short
    caller& b_holds = t.start("b holds", b, "10");   // root is full now
    caller& b_waits = t.start("b waits", b, "10");   // root is short
    caller& a_second = t.start("a second", a, "5");  // behind a first
    b_holds.answer.held.release();
    t.run();
    EXPECT_TRUE(b_waits.done) << "root has room and a first is held up by a alone";
    EXPECT_FALSE(a_first.done);
    a_holds.answer.held.settle(budget_amount());
    t.run();
    EXPECT_TRUE(a_first.answer.held) << "now a has room, and so has root";
    EXPECT_FALSE(a_second.done);
    a_first.answer.held.release();
    b_waits.answer.held.release();
    t.run();
    EXPECT_TRUE(a_second.answer.held);
    t.finish();
    EXPECT_EQ(root.state().reserved.cost, usd());
    EXPECT_EQ(root.state().waiting, 0u);
}

TEST(BudgetWait, SiblingsBehindOneThatStandsHigherUpKeepTheirOrder)
{
    bench t;
    budget root("root", usd("10"));
    budget a = root.child("a", usd("8"));
    budget b = root.child("b");
    caller& holds = t.start("b holds", b, "10");
    caller& a1 = t.start("a1", a, "8");  // root's line
    caller& a2 = t.start("a2", a, "1");  // behind it, in a's line
    caller& b1 = t.start("b1", b, "2");  // root's line, after a1
    holds.answer.held.release();
    t.run();
    EXPECT_EQ(t.finished, (names{"b holds", "a1", "b1"})) << "a2 needs a, which a1 fills";
    EXPECT_FALSE(a2.done);
    a1.answer.held.release();
    t.run();
    EXPECT_TRUE(a2.answer.held);
    (void)b1;
    t.cancel(a2);
    t.finish();
    EXPECT_EQ(root.state().reserved.cost, usd());
}

TEST(BudgetWait, CancellingOneThatStandsHigherUpFreesItsSiblings)
{
    bench t;
    budget root("root", usd("10"));
    budget a = root.child("a", usd("8"));
    budget b = root.child("b");
    caller& holds = t.start("b holds", b, "9");
    caller& a1 = t.start("a1", a, "8");
    caller& a2 = t.start("a2", a, "1");
    EXPECT_FALSE(a2.done);
    t.cancel(a1);
    EXPECT_TRUE(a2.answer.held);
    (void)holds;
    t.finish();
    EXPECT_EQ(root.state().reserved.cost, usd());
    EXPECT_EQ(root.state().waiting, 0u);
}

TEST(BudgetWait, ASpentOutParentAnswersTheLineOfAChild)
{
    bench t;
    budget root("root", usd("20"));
    budget a = root.child("a", usd("10"));
    budget b = root.child("b");
    caller& a_holds = t.start("a holds", a, "10");
    caller& a_waits = t.start("a waits", a, "10");
    caller& b_holds = t.start("b holds", b, "10");
    b_holds.answer.held.settle(dollars("15"));  // an overrun in the other subtree
    t.run();
    ASSERT_TRUE(a_waits.answer.refused);
    EXPECT_EQ(a_waits.answer.budget_name, "root");
    EXPECT_TRUE(a_holds.answer.held);
}

TEST(BudgetWait, HandlesMayDieWhileOthersWait)
{
    bench t;
    caller* waiter;
    caller* holder;
    {
        budget root("root", usd("1"));
        budget child = root.child("child");
        holder = &t.start("holder", child, "1");
        waiter = &t.start("waiter", root.child("other"), "1");
    }
    EXPECT_FALSE(waiter->done);
    holder->answer.held.release();
    t.run();
    EXPECT_TRUE(waiter->answer.held);
    waiter->answer.held.release();
}

TEST(BudgetWait, AContextMayDieWithItsWaiters)
{
    budget b("b", usd("1"));
    const reservation outside = b.force(dollars("1"));
    {
        bench t;
        caller& waiter = t.start("waiter", b, "1");
        t.cancel(waiter);
        caller& other = t.start("granted, never resumed", b, "1");
        b.raise_cap(budget_dimension::cost, 2);
        EXPECT_FALSE(other.done);
        EXPECT_EQ(b.state().reserved.cost, usd("2"));
    }
    EXPECT_EQ(b.state().reserved.cost, usd("1")) << "what was granted to it came back";
}

TEST(BudgetWait, TheContextRunsDryByItself)
{
    asio::io_context io;
    budget b("b", usd("1"));
    reservation held = b.force(dollars("1"));
    bool granted = false;
    asio::co_spawn(io, reserve_with(b, dollars("1")), [&](std::exception_ptr, admission a) { granted = a.granted(); });
    asio::post(io, [&] { asio::post(io, [&] { held.release(); }); });
    io.run();  // waiting counts as work, so this returns only after the grant
    EXPECT_TRUE(granted);
}

awaitable<void> one_call(budget b, budget_amount worst, budget_amount actual, int& granted, int& in_flight, int& peak)
{
    admission a = co_await b.reserve(worst);
    if (a.refused) co_return;
    ++granted;
    peak = std::max(peak, ++in_flight);
    const any_io_executor ex = co_await asio::this_coro::executor;
    for (int i = 0; i < 3; ++i) co_await asio::post(ex, asio::use_awaitable);
    --in_flight;
    a.held.settle(actual);
}

TEST(BudgetWait, Case_C9_AThousandCallersOnACapForTenOnOneThread)
{
    for (const auto& [usage, least, most] : {std::tuple("1", 10, 10), std::tuple("0.1", 91, 100)}) {
        asio::io_context io;
        budget b("b", usd("10"));
        int granted = 0, in_flight = 0, peak = 0;
        for (int i = 0; i < 1000; ++i)
            asio::co_spawn(io, one_call(b, dollars("1"), dollars(usage), granted, in_flight, peak), [](std::exception_ptr e) { EXPECT_FALSE(e); });
        io.run();
        EXPECT_EQ(peak, 10);
        EXPECT_GE(granted, least);
        EXPECT_LE(granted, most);
        EXPECT_LE(b.state().spent.cost, usd("10"));
        EXPECT_EQ(b.state().reserved.cost, usd());
        EXPECT_EQ(b.state().waiting, 0u);
    }
}

/// Every caller that ever started ends; then nothing is held and nobody waits, whatever was cancelled in between.
TEST(BudgetWait, CancellationAtEveryStepLeaksNothing)
{
    for (int step = 0; step < 12; ++step)
        for (const int victim : {0, 1, 2, 3}) {
            SCOPED_TRACE(::testing::Message() << "step " << step << " victim " << victim);
            bench t;
            budget root("root", usd("10"));
            budget a = root.child("a", usd("6"));
            caller* all[] = {&t.start("0", a, "6"), &t.start("1", a, "6"), &t.start("2", root, "10"), &t.start("3", a, "3")};
            for (int at = 0; at < 12; ++at) {
                if (at == step) all[victim]->stop.emit(asio::cancellation_type::terminal);
                t.io.restart();
                t.io.poll_one();
                caller* holder = all[at / 3];
                if (at % 3 == 0 && holder->done) holder->answer.held.settle(dollars("0.5"));
            }
            t.run();
            for (int i = 0; i < 4; ++i) t.finish();
            for (const caller& c : t.callers) EXPECT_TRUE(c.done) << c.name;
            EXPECT_EQ(root.state().reserved.cost, usd());
            EXPECT_EQ(root.state().waiting, 0u);
        }
}

}  // namespace budget_wait_test
}  // namespace

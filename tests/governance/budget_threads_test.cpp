#include <reagent/base/error.hpp>
#include <reagent/governance/budget.hpp>

#include <boost/asio/bind_cancellation_slot.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/this_coro.hpp>
#include <boost/asio/use_awaitable.hpp>

#include <gtest/gtest.h>

#include <atomic>
#include <deque>
#include <thread>

namespace {
namespace budget_threads_test {

using namespace reagent;

constexpr int threads = 4;
constexpr int callers = 1000;

struct tally {
    std::atomic<int> in_flight{0}, peak{0}, granted{0}, refused{0}, cancelled{0}, over_cap{0}, wrong_thread{0};
};

/// spent + reserved of a budget never passes its cap, whoever looks whenever.
void check_cap(const budget& b, tally& t)
{
    const budget_state s = b.state();
    if (s.caps.cost && s.spent.cost + s.reserved.cost > *s.caps.cost) ++t.over_cap;
}

awaitable<void> pause(int turns)
{
    const any_io_executor ex = co_await asio::this_coro::executor;
    for (int i = 0; i < turns; ++i) co_await asio::post(ex, asio::use_awaitable);
}

awaitable<void> one_call(budget root, budget mine, budget_amount worst, budget_amount actual, int turns, tally& t)
{
    const std::thread::id home = std::this_thread::get_id();
    admission a = co_await mine.reserve(worst);
    if (std::this_thread::get_id() != home) ++t.wrong_thread;
    if (a.refused) {
        ++t.refused;
        co_return;
    }
    ++t.granted;
    const int now = ++t.in_flight;
    for (int seen = t.peak; seen < now && !t.peak.compare_exchange_weak(seen, now);) {}
    check_cap(root, t);
    check_cap(mine, t);
    co_await pause(turns);
    --t.in_flight;
    a.held.settle(actual);
    check_cap(root, t);
}

struct contexts {
    std::deque<asio::io_context> all;
    contexts()
    {
        for (int i = 0; i < threads; ++i) all.emplace_back(1);
    }
    asio::io_context& operator[](int i) { return all[static_cast<std::size_t>(i % threads)]; }
    void run()
    {
        std::vector<std::thread> pool;
        for (asio::io_context& io : all) pool.emplace_back([&io] { io.run(); });
        for (std::thread& t : pool) t.join();
    }
};

void expect_all_back(const budget& root)
{
    EXPECT_EQ(root.state().reserved.cost, usd());
    EXPECT_EQ(root.state().reserved.tokens, 0u);
    EXPECT_EQ(root.state().waiting, 0u);
}

TEST(BudgetThreads, Case_C9_AThousandCallersOnACapForTen)
{
    contexts io;
    budget root("root", usd("10"));
    tally t;
    const auto note = [&](std::exception_ptr e) { EXPECT_FALSE(e); };
    for (int i = 0; i < callers; ++i) asio::co_spawn(io[i], one_call(root, root, budget_amount(usd("1")), budget_amount(usd("1")), 3, t), note);
    io.run();
    EXPECT_EQ(t.granted, 10) << "at the worst-case usage exactly ten go out";
    EXPECT_EQ(t.refused, callers - 10);
    EXPECT_LE(t.peak, 10);
    EXPECT_EQ(t.over_cap, 0);
    EXPECT_EQ(t.wrong_thread, 0) << "a waiter completes on its own executor";
    EXPECT_EQ(root.state().spent.cost, usd("10"));
    expect_all_back(root);
}

TEST(BudgetThreads, Case_C9_SmallerUsageAdmitsMoreAndNeverMoreThanTenAtOnce)
{
    contexts io;
    budget root("root", usd("10"));
    tally t;
    const auto note = [&](std::exception_ptr e) { EXPECT_FALSE(e); };
    for (int i = 0; i < callers; ++i)
        asio::co_spawn(io[i], one_call(root, root.child("run", usd("1")), budget_amount(usd("1")), budget_amount(usd("0.02")), 2, t), note);
    io.run();
    EXPECT_GT(t.granted, 100);
    EXPECT_LE(t.peak, 10);
    EXPECT_EQ(t.granted + t.refused, callers);
    EXPECT_EQ(t.over_cap, 0);
    EXPECT_EQ(root.state().spent.cost, usd::from_nanos(20'000'000LL * t.granted));
    expect_all_back(root);
}

TEST(BudgetThreads, Case_C11_TeamsShareARootWithoutPassingAnyCap)
{
    contexts io;
    budget root("root", usd("10"));
    std::vector<budget> teams;
    for (int i = 0; i < 7; ++i) teams.push_back(root.child("team", usd("4")));
    tally t;
    const auto note = [&](std::exception_ptr e) { EXPECT_FALSE(e); };
    for (int i = 0; i < callers; ++i)
        asio::co_spawn(io[i],
                       one_call(root, teams[static_cast<std::size_t>(i) % teams.size()], budget_amount(usd::from_nanos(300'000'000 + 100'000'000 * (i % 9))),
                                budget_amount(usd("0.03")), i % 4, t),
                       note);
    io.run();
    EXPECT_EQ(t.granted + t.refused, callers);
    EXPECT_EQ(t.over_cap, 0);
    EXPECT_GT(t.refused, 0);
    expect_all_back(root);
}

/// One call that is cancelled from its own executor at some point of its life.
struct storm_call {
    asio::cancellation_signal stop;
};

TEST(BudgetThreads, CancelStormsLeaveNothingHeld)
{
    for (unsigned seed = 1; seed <= 3; ++seed) {
        contexts io;
        budget root("root", usd("10"));
        std::vector<budget> teams;
        for (int i = 0; i < 5; ++i) teams.push_back(root.child("team", usd("3")));
        tally t;
        std::deque<storm_call> calls(callers);
        std::uint32_t dice = seed;
        for (int i = 0; i < callers; ++i) {
            storm_call& c = calls[static_cast<std::size_t>(i)];
            dice = dice * 1664525u + 1013904223u;
            const auto note = [&t](std::exception_ptr e) {
                if (is_cancellation(e)) {
                    ++t.cancelled;
                } else {
                    EXPECT_FALSE(e);
                }
            };
            asio::co_spawn(io[i], one_call(root, teams[dice % 5], budget_amount(usd("1")), budget_amount(usd("0.001")), static_cast<int>(dice >> 8) % 5, t),
                           asio::bind_cancellation_slot(c.stop.slot(), note));
            if (dice % 3 != 0) {
                asio::io_context& home = io[i];
                asio::post(home, [&home, &c, hops = (dice >> 12) % 6]() mutable {
                    // A few turns later, so that some meet the wait, some the grant on its way, some the call.
                    struct hop {
                        asio::io_context& home;
                        storm_call& c;
                        unsigned left;
                        void operator()()
                        {
                            if (left == 0) c.stop.emit(asio::cancellation_type::terminal);
                            else asio::post(home, hop{home, c, left - 1});
                        }
                    };
                    hop{home, c, hops}();
                });
            }
        }
        io.run();
        EXPECT_GT(t.cancelled, 0);
        EXPECT_EQ(t.over_cap, 0);
        EXPECT_EQ(t.wrong_thread, 0);
        expect_all_back(root);
        for (const budget& team : teams) expect_all_back(team);
    }
}

TEST(BudgetThreads, ChildrenComeAndGoWhileOthersReserve)
{
    contexts io;
    budget root("root", usd("10"));
    tally t;
    const auto note = [&](std::exception_ptr e) { EXPECT_FALSE(e); };
    for (int i = 0; i < callers; ++i)
        asio::post(io[i], [&, i] {
            budget deep = root.child("a").child("b", usd("1"));
            asio::co_spawn(io[i], one_call(root, deep, budget_amount(usd("0.9")), budget_amount(usd("0.001")), 1, t), note);
            if (i % 100 == 0) { EXPECT_NE(root.describe(), ""); }
        });
    io.run();
    EXPECT_EQ(t.granted, callers);
    EXPECT_EQ(t.over_cap, 0);
    EXPECT_EQ(root.describe(), "root: spent $1 of $10, 0 tokens\n") << "no child is left";
    expect_all_back(root);
}

}  // namespace budget_threads_test
}  // namespace

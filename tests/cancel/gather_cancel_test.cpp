// Groups and the other combinators of base, cancelled after every handler.
#include "cancel_world.hpp"

#include <reagent/base/gather.hpp>
#include <reagent/base/offload.hpp>
#include <reagent/base/task_scope.hpp>
#include <reagent/base/with_deadline.hpp>
#include <reagent/testing/live_counter.hpp>

#include <gtest/gtest.h>

#include <atomic>
#include <thread>

namespace {
namespace gather_cancel_test {

using namespace cancel_tests;

/// Branches of several kinds; each holds a token while its frame lives.
class branches {
public:
    branches(std::shared_ptr<rt::manual_clock> clock, rt::live_counter counter) : clock_(std::move(clock)), counter_(std::move(counter)) {}
    awaitable<int> hopping(int n) { return hop(counter_.make(), n); }
    awaitable<int> sleeping(int ms) { return sleep(counter_.make(), clock_, ms); }
    awaitable<int> failing() { return fail(counter_.make()); }
    /// Takes its time to end once cancelled.
    awaitable<int> lingering() { return isolated(linger(counter_.make(), clock_)); }
    awaitable<int> group(gather_options how)
    {
        std::vector<awaitable<int>> all;
        all.push_back(hopping(2));
        all.push_back(failing());
        all.push_back(sleeping(5));
        all.push_back(hopping(4));
        all.push_back(lingering());
        return count(counter_.make(), std::move(all), how);
    }
    /// How many values a group brought.
    static awaitable<int> count(rt::live_counter::token, std::vector<awaitable<int>> all, gather_options how)
    {
        const std::vector<branch_outcome<int>> outcomes = co_await gather<int>(std::move(all), how);
        int values = 0;
        for (const branch_outcome<int>& o : outcomes) values += o.has_value() ? 1 : 0;
        co_return values;
    }
    const rt::live_counter& counter() const { return counter_; }
    const std::shared_ptr<rt::manual_clock>& clock() const { return clock_; }

private:
    static awaitable<int> hop(rt::live_counter::token, int n)
    {
        co_await hops(n);
        co_return n;
    }
    static awaitable<int> sleep(rt::live_counter::token, clock_ptr clock, int ms)
    {
        co_await sleep_until(clock, clock->now() + std::chrono::milliseconds(ms));
        co_return ms;
    }
    static awaitable<int> fail(rt::live_counter::token)
    {
        co_await hops(1);
        throw std::runtime_error("broken");
    }
    static awaitable<int> linger(rt::live_counter::token, clock_ptr clock)
    {
        std::exception_ptr stopped;
        try {
            co_await sleep_until(clock, clock->now() + 20ms);
        } catch (...) {
            stopped = std::current_exception();
        }
        if (!stopped) co_return 1;
        co_await asio::this_coro::reset_cancellation_state(asio::disable_cancellation());
        co_await sleep_until(clock, clock->now() + 5ms);
        std::rethrow_exception(stopped);
    }
    std::shared_ptr<rt::manual_clock> clock_;
    rt::live_counter counter_;
};

using body = std::function<awaitable<int>(branches&)>;

class group_case final : public rt::cancel_case {
public:
    group_case(body what, int value, rt::live_counter counter) : all_(clock_, std::move(counter)), what_(std::move(what)), value_(value) {}
    awaitable<void> operation() override
    {
        const long before = all_.counter().live();
        int value = co_await what_(all_);
        got_ = value;
        // Joined means joined: no frame of a branch outlives the call.
        left_ = all_.counter().live() - before;
    }
    void finish() override
    {
        if (all_.counter().live() != 0) trouble_ += std::to_string(all_.counter().live()) + " frames outlive the operation; ";
        if (clock_->armed() != 0) trouble_ += "a timer is left; ";
    }
    std::shared_ptr<rt::manual_clock> clock() override { return clock_; }
    std::string verify(const rt::cancel_outcome& o) override
    {
        std::string out = trouble_ + complaints_of(o);
        if (left_ != 0) out += "returned before its branches; ";
        if (!o.signalled && got_ != value_) out += "gave " + std::to_string(got_) + "; ";
        return out;
    }

private:
    std::shared_ptr<rt::manual_clock> clock_ = std::make_shared<rt::manual_clock>();
    branches all_;
    body what_;
    int value_, got_ = -1;
    long left_ = 0;
    std::string trouble_;
};

/// `value` is what the operation gives when nobody cancels it.
rt::cancel_report everywhere(body what, int value, bool repeatedly = false)
{
    const rt::live_counter counter;
    rt::cancel_options options;
    options.quiet(0ms).live("frames", [&counter] { return counter.live(); });
    if (repeatedly) options.again(impatience);
    const rt::cancel_report r = rt::cancel_everywhere([&](asio::io_context&) { return std::make_unique<group_case>(what, value, counter); }, options);
    EXPECT_GT(counter.made(), 0);
    return r;
}

void holds(gather_options how, int value)
{
    for (const bool repeatedly : {false, true}) {
        const rt::cancel_report r = everywhere([how](branches& b) { return b.group(how); }, value, repeatedly);
        EXPECT_TRUE(r) << r;
        if (how.keeps_outcomes()) EXPECT_GT(r.returned, 3u) << r;
        else EXPECT_GT(r.aborted, 3u) << r;
    }
}

TEST(CancelGather, All)
{
    holds(gather_options(), 4);
}
TEST(CancelGather, AllTwoAtATime)
{
    holds(gather_options().limit(2), 4);
}
TEST(CancelGather, FirstTwo)
{
    holds(gather_options().first(2), 2);
}
TEST(CancelGather, AQuorumOfThree)
{
    holds(gather_options().quorum(3), 3);
}
TEST(CancelGather, AQuorumOutOfReach)
{
    holds(gather_options().quorum(5), 1);
}
TEST(CancelGather, KeepingOutcomes)
{
    holds(gather_options().keep_outcomes(), 4);
}

TEST(CancelGather, Nested)
{
    const auto nested = [](branches& b) {
        std::vector<awaitable<int>> outer;
        outer.push_back(b.group(gather_options()));
        outer.push_back(b.group(gather_options().first(1)));
        outer.push_back(b.group(gather_options().quorum(2).limit(3)));
        outer.push_back(b.sleeping(30));
        return branches::count(b.counter().make(), std::move(outer), gather_options().quorum(3));
    };
    for (const bool repeatedly : {false, true}) {
        const rt::cancel_report r = everywhere(nested, 3, repeatedly);
        EXPECT_TRUE(r) << r;
        EXPECT_GT(r.aborted, 10u) << r;
    }
}

awaitable<int> guarded(branches* b, awaitable<int> work, duration limit)
{
    int value = 0;
    try {
        value = co_await with_deadline<int>(b->clock(), b->clock()->now() + limit, std::move(work), "the branch");
    } catch (const timeout_error&) {
        value = -7;
    }
    co_return value;
}

TEST(CancelGather, ADeadlineAroundAGroupAndOneThatPasses)
{
    const rt::cancel_report in_time = everywhere([](branches& b) { return guarded(&b, b.group(gather_options()), 1h); }, 4);
    EXPECT_TRUE(in_time) << in_time;
    EXPECT_GT(in_time.aborted, 3u);
    const rt::cancel_report late = everywhere([](branches& b) { return guarded(&b, b.lingering(), 3ms); }, -7);
    EXPECT_TRUE(late) << late;
    EXPECT_GT(late.aborted, 1u);
}

awaitable<void> as_task(awaitable<int> work, int* sum)
{
    const int value = co_await std::move(work);
    *sum += value;
}

awaitable<int> scoped(branches* b)
{
    int sum = 0;
    task_scope scope(co_await asio::this_coro::executor);
    scope.spawn("hops", as_task(b->hopping(3), &sum));
    scope.spawn("sleeps", as_task(b->sleeping(5), &sum));
    scope.spawn("lingers", as_task(b->lingering(), &sum));
    co_await scope.join();
    co_return sum;
}

TEST(CancelGather, AScopeThatIsJoined)
{
    const rt::cancel_report r = everywhere([](branches& b) { return scoped(&b); }, 9);
    EXPECT_TRUE(r) << r;
    EXPECT_GT(r.aborted, 3u) << r;
}

/// Blocking work on a pool is waited for, cancelled or not.
awaitable<int> offloaded(rt::live_counter::token, asio::thread_pool* pool, std::atomic<int>* running)
{
    auto work = [running] {
        ++*running;
        std::this_thread::yield();
        --*running;
        return 5;
    };
    co_await hops(1);
    const int value = co_await offload(*pool, work);
    if (*running != 0) co_return -1;
    co_await hops(1);
    co_return value;
}

TEST(CancelGather, WorkOnAPool)
{
    asio::thread_pool pool(1);
    std::atomic<int> running{0};
    const rt::cancel_report r = everywhere([&](branches& b) { return offloaded(b.counter().make(), &pool, &running); }, 5);
    EXPECT_TRUE(r) << r;
    EXPECT_EQ(running, 0);
    pool.join();
}

}  // namespace gather_cancel_test
}  // namespace

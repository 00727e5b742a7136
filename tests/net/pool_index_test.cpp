#include "pool_index.hpp"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace reagent {
namespace {
namespace pool_index_test {

using namespace net_detail;
using std::chrono::seconds;

const steady_time epoch = steady_time(seconds(1000));

class fake final : public pooled {
public:
    fake(int n, int& alive, bool bad = false) : number(n), bad_(bad), alive_(alive)
    {
        born = epoch;
        ++alive_;
    }
    ~fake() override { --alive_; }
    bool stale() noexcept override { return bad_; }
    int number;

private:
    bool bad_;
    int& alive_;
};

int number_of(const pooled_ptr& c)
{
    return c ? static_cast<const fake&>(*c).number : 0;
}

class caller final : public pool_waiter {
public:
    explicit caller(std::string n, std::vector<std::string>& log) : name(std::move(n)), log_(log) {}
    void granted(pooled_ptr c) noexcept override
    {
        connection = std::move(c);
        log_.push_back(name);
    }
    std::string name;
    pooled_ptr connection;

private:
    std::vector<std::string>& log_;
};

pool_limits limits(std::size_t max_open, std::size_t max_idle = 64)
{
    pool_limits l;
    l.max_open = max_open;
    l.max_idle = max_idle;
    return l;
}

TEST(PoolIndex, OriginsDifferBySchemeHostAndPort)
{
    pool_index pool(limits(0));
    pool_origin& a = pool.origin(false, "a", 80);
    EXPECT_EQ(&a, &pool.origin(false, "a", 80));
    EXPECT_NE(&a, &pool.origin(true, "a", 80));
    EXPECT_NE(&a, &pool.origin(false, "a", 81));
    EXPECT_NE(&a, &pool.origin(false, "b", 80));
    EXPECT_EQ(&a, &pool.origin(false, "a", 80));
}

TEST(PoolIndex, UnlimitedByDefaultAndNewestFirst)
{
    int alive = 0;
    {
        pool_index pool(limits(0));
        pool_origin& o = pool.origin(false, "a", 80);
        for (int i = 1; i <= 3; ++i) {
            ASSERT_TRUE(pool.reserve(o));
            pool.give_back(o, std::make_unique<fake>(i, alive), epoch);
        }
        EXPECT_EQ(pool.idle(), 3u);
        EXPECT_EQ(pool.open(), 3u);
        EXPECT_EQ(number_of(pool.take_idle(o, epoch)), 3);
        EXPECT_EQ(alive, 2);
    }
    EXPECT_EQ(alive, 0);
}

TEST(PoolIndex, Case_E1_IdleAgeTotalAgeAndStaleness)
{
    int alive = 0;
    pool_index pool(limits(0));
    pool_origin& o = pool.origin(false, "a", 80);
    const auto put = [&](int n, steady_time when, bool bad = false) {
        ASSERT_TRUE(pool.reserve(o));
        pool.give_back(o, std::make_unique<fake>(n, alive, bad), when);
    };
    put(1, epoch);
    EXPECT_EQ(number_of(pool.take_idle(o, epoch + seconds(20))), 0);  // idle too long
    put(2, epoch);
    const pooled_ptr two = pool.take_idle(o, epoch + seconds(20) - duration(1));
    EXPECT_EQ(number_of(two), 2);
    put(3, epoch + seconds(299));
    EXPECT_EQ(number_of(pool.take_idle(o, epoch + seconds(300))), 0);  // too old in all
    put(4, epoch, false);
    put(5, epoch, true);
    EXPECT_EQ(number_of(pool.take_idle(o, epoch)), 4);  // 5 was stale
    EXPECT_EQ(pool.stale_dropped(), 1u);
    put(6, epoch + seconds(300));
    EXPECT_EQ(pool.idle(), 0u);  // not taken in at all
}

TEST(PoolIndex, WhatIsDroppedGivesItsSlotBack)
{
    int alive = 0;
    pool_index pool(limits(1));
    pool_origin& o = pool.origin(false, "a", 80);
    ASSERT_TRUE(pool.reserve(o));
    pool.give_back(o, std::make_unique<fake>(1, alive, true), epoch);
    EXPECT_EQ(pool.take_idle(o, epoch), nullptr);  // it was stale
    EXPECT_EQ(pool.open(), 0u);
    EXPECT_TRUE(pool.reserve(o));
    pool_index wide(limits(2));
    pool_origin& p = wide.origin(false, "a", 80);
    ASSERT_TRUE(wide.reserve(p) && wide.reserve(p));
    wide.give_back(p, std::make_unique<fake>(2, alive), epoch);
    auto young = std::make_unique<fake>(3, alive);
    young->born = epoch + seconds(20);
    wide.give_back(p, std::move(young), epoch + seconds(20));  // 2 has become too old
    EXPECT_EQ(wide.idle(), 1u);
    EXPECT_EQ(wide.open(), 1u);
}

TEST(PoolIndex, MaxIdle)
{
    int alive = 0;
    pool_index pool(limits(0, 2));
    pool_origin& o = pool.origin(false, "a", 80);
    for (int i = 1; i <= 3; ++i) ASSERT_TRUE(pool.reserve(o));
    for (int i = 1; i <= 3; ++i) pool.give_back(o, std::make_unique<fake>(i, alive), epoch);
    EXPECT_EQ(pool.idle(), 2u);
    EXPECT_EQ(pool.open(), 2u);
    EXPECT_EQ(alive, 2);
    pool.close_idle();
    EXPECT_EQ(pool.open(), 0u);
    EXPECT_EQ(alive, 0);
}

TEST(PoolIndex, Case_E3_FifoAndAnyConnectionServesAnyWaiter)
{
    int alive = 0;
    std::vector<std::string> log;
    pool_index pool(limits(2));
    pool_origin& o = pool.origin(false, "a", 80);
    ASSERT_TRUE(pool.reserve(o));
    ASSERT_TRUE(pool.reserve(o));
    EXPECT_FALSE(pool.reserve(o));
    caller a("a", log), b("b", log), c("c", log);
    pool.enqueue(o, a);
    pool.enqueue(o, b);
    pool.enqueue(o, c);
    EXPECT_EQ(pool.waiting(), 3u);
    pool.give_back(o, std::make_unique<fake>(1, alive), epoch);  // a connection
    pool.leave(b);                                               // gave up
    pool.leave(b);
    pool.give_back(o, nullptr, epoch);  // a slot only
    EXPECT_EQ(log, std::vector<std::string>({"a", "c"}));
    EXPECT_EQ(number_of(a.connection), 1);
    EXPECT_FALSE(c.connection);
    EXPECT_EQ(pool.open(), 2u);
    pool.give_back(o, std::move(a.connection), epoch);
    EXPECT_EQ(o.idle(), 1u);
    EXPECT_FALSE(pool.reserve(o));  // the idle one holds its slot
    EXPECT_EQ(number_of(pool.take_idle(o, epoch)), 1);
}

TEST(PoolIndex, Case_E3_NobodyOvertakesTheQueue)
{
    std::vector<std::string> log;
    pool_index pool(limits(1));
    pool_origin& o = pool.origin(false, "a", 80);
    ASSERT_TRUE(pool.reserve(o));
    caller a("a", log);
    pool.enqueue(o, a);
    EXPECT_FALSE(pool.reserve(o));
    pool.give_back(o, nullptr, epoch);
    EXPECT_FALSE(pool.reserve(o));  // a has it
    pool.give_back(o, nullptr, epoch);
    EXPECT_TRUE(pool.reserve(o));
}

TEST(PoolIndex, SweepForgetsOldConnectionsAndEmptyOrigins)
{
    int alive = 0;
    pool_index pool(limits(0));
    for (int i = 0; i < 100; ++i) {
        pool_origin& o = pool.origin(false, "host" + std::to_string(i), 80);
        ASSERT_TRUE(pool.reserve(o));
        pool.give_back(o, std::make_unique<fake>(i, alive), epoch);
    }
    EXPECT_EQ(alive, 100);
    // The next one to come back, of any origin, takes the old ones along.
    pool_origin& o = pool.origin(false, "other", 80);
    ASSERT_TRUE(pool.reserve(o));
    pool.give_back(o, nullptr, epoch + seconds(20));
    EXPECT_EQ(alive, 0);
    EXPECT_EQ(pool.open(), 0u);
}

}  // namespace pool_index_test
}  // namespace
}  // namespace reagent

#include <reagent/net/deadline_queue.hpp>
#include <reagent/testing/manual_clock.hpp>
#include <reagent/testing/run.hpp>

#include <gtest/gtest.h>

#include <random>
#include <string>
#include <vector>

namespace reagent {
namespace {
namespace deadline_queue_test {

using std::chrono::seconds;

class entry final : public deadline_entry {
public:
    entry(std::string n, std::vector<std::string>& log) : name(std::move(n)), log_(log) {}
    steady_time on_deadline(steady_time now) override
    {
        if (again > now) return std::exchange(again, steady_time::min());
        log_.push_back(name);
        return steady_time::max();
    }
    std::string name;
    steady_time again = steady_time::min();

private:
    std::vector<std::string>& log_;
};

struct fixture {
    asio::io_context context;
    std::shared_ptr<testing::manual_clock> clock = std::make_shared<testing::manual_clock>();
    deadline_queue queue{context.get_executor(), clock};
    std::vector<std::string> log;
    void advance(duration d)
    {
        clock->advance(d);
        testing::run_until_idle(context);
    }
};

TEST(DeadlineQueue, FiresInOrderOfTime)
{
    fixture f;
    entry a("a", f.log), b("b", f.log), c("c", f.log);
    const steady_time now = f.queue.now();
    f.queue.link(b, now + seconds(2));
    f.queue.link(c, now + seconds(3));
    f.queue.link(a, now + seconds(1));
    f.advance(seconds(1));
    EXPECT_EQ(f.log, std::vector<std::string>({"a"}));
    f.advance(seconds(2));
    EXPECT_EQ(f.log, std::vector<std::string>({"a", "b", "c"}));
    EXPECT_EQ(f.queue.size(), 0u);
    EXPECT_EQ(f.clock->armed(), 0u);
}

TEST(DeadlineQueue, TheTimerIsArmedOnlyWhileEntriesAreLinked)
{
    fixture f;
    EXPECT_EQ(f.clock->armed(), 0u);
    {
        entry a("a", f.log), b("b", f.log);
        f.queue.link(a, f.queue.now() + seconds(5));
        f.queue.link(b, steady_time::max());
        EXPECT_EQ(f.clock->armed(), 1u);
        f.queue.unlink(a);
        f.queue.unlink(a);
        EXPECT_EQ(f.queue.size(), 1u);
    }
    EXPECT_EQ(f.queue.size(), 0u);
    EXPECT_EQ(f.clock->armed(), 0u);
}

TEST(DeadlineQueue, AnEntryWithoutTimeArmsNothing)
{
    fixture f;
    entry a("a", f.log);
    f.queue.link(a, steady_time::max());
    EXPECT_EQ(f.clock->armed(), 0u);
}

TEST(DeadlineQueue, ALaterTimeIsLookedAtAgain)
{
    fixture f;
    entry a("a", f.log);
    const steady_time start = f.queue.now();
    f.queue.link(a, start + seconds(1));
    a.again = start + seconds(10);  // bytes have moved
    f.advance(seconds(1));
    EXPECT_EQ(f.log.size(), 0u);
    EXPECT_TRUE(a.linked());
    f.advance(seconds(8));
    EXPECT_EQ(f.log.size(), 0u);
    f.advance(seconds(1));
    EXPECT_EQ(f.log.size(), 1u);
}

TEST(DeadlineQueue, AnEarlierTimeRearms)
{
    fixture f;
    entry a("a", f.log);
    f.queue.link(a, f.queue.now() + seconds(10));
    f.queue.link(a, f.queue.now() + seconds(2));
    f.advance(seconds(2));
    EXPECT_EQ(f.log.size(), 1u);
}

TEST(DeadlineQueue, ManyEntriesAgainstASimpleModel)
{
    fixture f;
    std::mt19937 random(7);
    std::vector<std::unique_ptr<entry>> entries;
    std::vector<int> due(300, -1);
    const steady_time start = f.queue.now();
    for (std::size_t i = 0; i < due.size(); ++i) entries.push_back(std::make_unique<entry>(std::to_string(i), f.log));
    for (int step = 0; step < 5000; ++step) {
        const std::size_t i = random() % due.size();
        if (random() % 3 == 0) {
            f.queue.unlink(*entries[i]);
            due[i] = -1;
        } else {
            due[i] = static_cast<int>(random() % 1000) + 1;
            f.queue.link(*entries[i], start + seconds(due[i]));
        }
    }
    std::vector<int> fired_at;
    for (int t = 1; t <= 1000; ++t) {
        const std::size_t before = f.log.size();
        f.clock->advance(seconds(1));
        f.context.restart();
        f.context.poll();
        for (std::size_t k = before; k < f.log.size(); ++k) EXPECT_EQ(due[static_cast<std::size_t>(std::stoi(f.log[k]))], t);
    }
    EXPECT_EQ(f.log.size(), static_cast<std::size_t>(std::count_if(due.begin(), due.end(), [](int d) { return d > 0; })));
}

}  // namespace deadline_queue_test
}  // namespace
}  // namespace reagent

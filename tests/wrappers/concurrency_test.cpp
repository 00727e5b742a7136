#include "wrap_world.hpp"

#include <reagent/providers/concurrency_limit.hpp>

#include <boost/asio/bind_cancellation_slot.hpp>
#include <boost/asio/cancellation_signal.hpp>
#include <boost/asio/co_spawn.hpp>

namespace {
namespace concurrency_test {

using namespace wrap_world_detail;
using ::testing::ElementsAre;

class ConcurrencyLimit : public ::testing::Test {
protected:
    concurrency_limit limit(std::size_t most, std::size_t waiting = 100)
    {
        return concurrency_limit(concurrency_options(most).max_waiting(waiting).clock(w.clock));
    }
    /// Starts a call that notes its name when it ends.
    void start(const provider_ptr& p, const std::string& name, milliseconds total = 0ms)
    {
        generate_request request = asking(name);
        if (total.count() != 0) request.options.total = total;
        asio::co_spawn(w.io, p->generate(std::move(request)),
                       asio::bind_cancellation_slot(stops[name].slot(), [this, name](const std::exception_ptr& failure, const generate_result&) {
                           ended.push_back(failure ? name + "!" + code_of(failure).message() : name);
                       }));
    }
    void run(std::size_t until)
    {
        ASSERT_TRUE(rt::run_until(w.io, *w.clock, [&] { return ended.size() == until; }));
    }
    world w;
    std::map<std::string, asio::cancellation_signal> stops;
    std::vector<std::string> ended;
    std::shared_ptr<scripted_provider> slow = scripted_provider::make({scripted_round("ok").delay(w.slow(1s)).times(0)});
};

TEST_F(ConcurrencyLimit, SoManyAtOnceAndTheOthersInOrder)
{
    const concurrency_limit two = limit(2);
    const provider_ptr p = with_concurrency_limit(slow, two);
    for (const char* name : {"a", "b", "c", "d", "e"}) start(p, name);
    rt::run_until_idle(w.io);
    EXPECT_EQ(two.active(), 2U);
    EXPECT_EQ(two.waiting(), 3U);
    run(5);
    EXPECT_THAT(ended, ElementsAre("a", "b", "c", "d", "e"));
    EXPECT_EQ(w.elapsed(), 3s);
    EXPECT_EQ(two.active(), 0U);
}

TEST_F(ConcurrencyLimit, SharedByProviders)
{
    const concurrency_limit one = limit(1);
    start(with_concurrency_limit(slow, one), "a");
    start(with_concurrency_limit(scripted_provider::make({scripted_round("ok")}), one), "b");
    run(2);
    EXPECT_THAT(ended, ElementsAre("a", "b"));
}

TEST_F(ConcurrencyLimit, ACancelledWaiterLeavesTheLine)
{
    const concurrency_limit one = limit(1);
    const provider_ptr p = with_concurrency_limit(slow, one);
    for (const char* name : {"a", "b", "c"}) start(p, name);
    rt::run_until_idle(w.io);
    stops["b"].emit(asio::cancellation_type::terminal);
    rt::run_until_idle(w.io);
    EXPECT_EQ(one.waiting(), 1U);
    run(3);
    EXPECT_THAT(ended, ElementsAre("b!Operation canceled", "a", "c"));
    EXPECT_EQ(w.elapsed(), 2s);
}

TEST_F(ConcurrencyLimit, ATurnThatMeetsACancellationGoesToTheNext)
{
    const concurrency_limit one = limit(1);
    const provider_ptr p = with_concurrency_limit(slow, one);
    for (const char* name : {"a", "b", "c"}) start(p, name);
    rt::run_until_idle(w.io);
    // The end of `a` wakes `b` by a post; the cancellation is there before it.
    w.clock->advance(1s);
    while (ended.empty()) ASSERT_TRUE(w.io.poll_one());
    stops["b"].emit(asio::cancellation_type::terminal);
    start(p, "d");  // nobody goes before those who wait
    run(4);
    EXPECT_THAT(ended, ElementsAre("a", "b!Operation canceled", "c", "d"));
    EXPECT_EQ(one.active(), 0U);
    EXPECT_EQ(one.waiting(), 0U);
}

TEST_F(ConcurrencyLimit, WaitingCountsAgainstTheCallsTime)
{
    const provider_ptr p = with_concurrency_limit(slow, limit(1));
    start(p, "a");
    start(p, "b", 500ms);
    run(2);
    EXPECT_THAT(ended, ElementsAre("b!the total time of the operation is used up", "a"));
}

TEST_F(ConcurrencyLimit, TheLineIsBounded)
{
    const provider_ptr p = with_concurrency_limit(slow, limit(1, 1));
    for (const char* name : {"a", "b", "c"}) start(p, name);
    run(3);
    EXPECT_THAT(ended, ElementsAre("c!a size or count limit was passed", "a", "b"));
    EXPECT_EQ(concurrency_options(1).max_waiting(), 10'000U);
    EXPECT_THROW(concurrency_limit(0), validation_error);
}

TEST_F(ConcurrencyLimit, AFailedOrDroppedCallMakesRoom)
{
    const concurrency_limit one = limit(1);
    const auto p = scripted_provider::make({failing(refusal(503)), scripted_round("ok").deltas(2).times(0)});
    const provider_ptr limited = with_concurrency_limit(p, one);
    EXPECT_TRUE(w.failure(limited));
    EXPECT_EQ(one.active(), 0U);
    w.io.restart();
    {
        const model_call_ptr call = limited->start(asking("hi"));
        event_batch batch;
        EXPECT_TRUE(rt::complete(w.io, call->read(batch)));
        EXPECT_EQ(one.active(), 1U);
    }
    EXPECT_EQ(one.active(), 0U);
    // One that has ended holds nothing, however long its reader keeps it.
    const model_call_ptr call = limited->start(asking("hi"));
    event_batch batch;
    while (rt::complete(w.io, call->read(batch))) EXPECT_EQ(one.active(), 1U);
    EXPECT_EQ(one.active(), 0U);
    EXPECT_EQ(p->open_calls(), 0U);
}

}  // namespace concurrency_test
}  // namespace

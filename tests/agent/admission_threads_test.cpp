#include <reagent/agent/agent.hpp>
#include <reagent/model/attempt_gate.hpp>
#include <reagent/model/pricing.hpp>

#include <boost/asio/io_context.hpp>
#include <boost/asio/post.hpp>

#include <gtest/gtest.h>

#include <atomic>
#include <mutex>
#include <thread>

namespace {
namespace admission_threads_test {

using namespace reagent;

/// What a server would see: the worst case of its open requests plus the usage of its answered ones.
class outside {
public:
    void arrive(std::int64_t worst)
    {
        const std::lock_guard lock(mutex_);
        ++arrived;
        now_ += worst;
        most = std::max(most, now_);
    }
    void answer(std::int64_t worst, std::int64_t used)
    {
        const std::lock_guard lock(mutex_);
        now_ += used - worst;
    }
    std::int64_t most = 0;
    int arrived = 0;

private:
    std::mutex mutex_;
    std::int64_t now_ = 0;
};

class far_model final : public provider {
public:
    far_model(outside& o, std::uint64_t output) : seen(o), output_used(output) {}
    bool admits_attempts() const noexcept override { return true; }
    std::string_view model() const noexcept override { return "far"; }
    awaitable<generate_result> generate(generate_request request) override
    {
        attempt_info info;
        info.model = "far";
        info.input_bound = 60;
        info.output_bound = request.options.max_tokens;
        permit right = co_await request.gate->admit(std::move(info));
        right.mark_sent();
        seen.arrive(100);
        const any_io_executor ex = co_await asio::this_coro::executor;
        for (int i = 0; i < 3; ++i) co_await asio::post(ex, asio::use_awaitable);
        generate_result r;
        r.usage.emplace();
        r.usage->input = 60;
        r.usage->output = output_used;
        r.stop_reason = "end_turn";
        r.text = "ok";
        seen.answer(100, static_cast<std::int64_t>(60 + output_used));
        attempt_outcome out;
        out.request_left = out.complete = true;
        out.status = 200;
        out.usage = r.usage;
        right.settle(out);
        co_return r;
    }
    outside& seen;
    const std::uint64_t output_used;
};

/// A thousand runs over `threads` contexts on one budget of 1000 nano-dollars.
void thousand_callers(unsigned threads, std::uint64_t output_used, outside& seen, budget& money)
{
    std::atomic<int> ended{0};
    std::vector<std::thread> pool;
    for (unsigned t = 0; t < threads; ++t) {
        pool.emplace_back([&, t] {
            asio::io_context context;
            const agent a(context.get_executor(), std::make_shared<far_model>(seen, output_used), agent_options().rates(rates(1, 1)));
            for (unsigned i = t; i < 1000; i += threads)
                a.async_run(run_request("hi").budget(money.child("run")).max_tokens(40), [&](error_code, const run_result&) { ++ended; });
            context.run();
        });
    }
    for (std::thread& t : pool) t.join();
    EXPECT_EQ(ended.load(), 1000);
}

TEST(AdmissionThreads, Case_C9_ExactlyTenArriveWhenUsageIsTheWorstCase)
{
    for (const unsigned threads : {1u, 4u}) {
        outside seen;
        budget money("team", usd::from_nanos(1000));
        thousand_callers(threads, 40, seen, money);
        EXPECT_EQ(seen.arrived, 10) << threads << " threads";
        EXPECT_LE(seen.most, 1000);
        EXPECT_EQ(money.state().spent.cost, usd::from_nanos(1000));
        EXPECT_EQ(money.state().reserved.cost, usd());
    }
}

TEST(AdmissionThreads, Case_C9_SmallerUsageLetsMoreArriveAndTheSumHolds)
{
    for (const unsigned threads : {1u, 4u}) {
        outside seen;
        budget money("team", usd::from_nanos(1000));
        thousand_callers(threads, 0, seen, money);
        EXPECT_GT(seen.arrived, 10);
        EXPECT_LE(seen.most, 1000);
        EXPECT_LE(money.state().spent.cost, usd::from_nanos(1000));
    }
}

}  // namespace admission_threads_test
}  // namespace

// Does anything stay behind? A million runs (or the number given) of an agent with a tool, a gate and a budget, a hundred at a time, every tenth
// cancelled half way. Afterwards nothing may be alive and memory may not have grown with the number of runs.
//
//     soak [runs]
#include "bench_common.hpp"
#include "counted.hpp"

#include <reagent/agent/agent.hpp>
#include <reagent/agent/make_tool.hpp>

#include <boost/asio/bind_cancellation_slot.hpp>
#include <boost/asio/cancellation_signal.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/post.hpp>

#include <atomic>
#include <memory>

namespace {

namespace asio = boost::asio;
using bench::counted;

constexpr int at_once = 100;
constexpr int cancel_every = 10;
constexpr double limit_bytes_per_run = 16;

/// Asks for the tool, then answers; every answer passes through the executor once.
class two_rounds final : public reagent::provider {
public:
    std::string_view name() const noexcept override { return "two-rounds"; }
    std::string_view model() const noexcept override { return "gpt-4o-mini"; }
    reagent::awaitable<reagent::generate_result> generate(reagent::generate_request request) override
    {
        const counted guard;
        co_await asio::post(asio::use_awaitable);
        reagent::generate_result result;
        result.model = "gpt-4o-mini";
        result.usage.emplace();
        result.usage->input = 100;
        result.usage->output = 10;
        if (request.messages.back()->who == reagent::role::user) {
            result.stop_reason = "tool_use";
            result.tool_calls.emplace_back("call_1", "add", reagent::json::object().set("a", 1).set("b", 2));
        } else {
            result.stop_reason = "end_turn";
            result.text = "three";
        }
        co_return result;
    }
};

struct add_args {
    int a = 0, b = 0;
};
BOOST_DESCRIBE_STRUCT(add_args, (), (a, b))
int add(add_args args)
{
    const counted guard;
    return args.a + args.b;
}

/// One place of the hundred: starts its next run when the last one has ended.
class lane {
public:
    lane(asio::io_context& context, const reagent::agent& agent, const reagent::budget& money, int& left, std::uint64_t& wrong)
        : context_(context), agent_(agent), money_(money), left_(left), wrong_(wrong)
    {}

    void start_next()
    {
        if (left_ == 0) return;
        const bool cancel = --left_ % cancel_every == 0;
        reagent::run_request request("one plus two?");
        request.budget(reagent::budget(money_).child("run"));
        auto finish = [this, cancel, alive = counted()](reagent::error_code ec, const reagent::run_result& result) {
            const bool as_expected = cancel || (!ec && result.completed() && result.text() == "three");
            if (!as_expected) ++wrong_;
            asio::post(context_, [this] { start_next(); });
        };
        agent_.async_run(std::move(request), asio::bind_cancellation_slot(signal_.slot(), std::move(finish)));
        if (cancel) asio::post(context_, [this] { signal_.emit(asio::cancellation_type::terminal); });
    }

private:
    asio::io_context& context_;
    const reagent::agent& agent_;
    const reagent::budget& money_;
    int& left_;
    std::uint64_t& wrong_;
    asio::cancellation_signal signal_;
};

}  // namespace

int main(int argc, char** argv)
{
    const int runs = argc > 1 ? std::atoi(argv[1]) : 1'000'000;
    if (runs < 1000) {
        std::fprintf(stderr, "usage: soak [runs]      (at least 1000)\n");
        return 2;
    }
    asio::io_context context(1);
    const reagent::budget money("all", reagent::budget_caps(reagent::usd("1000000000")));
    const reagent::agent agent(context.get_executor(), std::make_shared<two_rounds>(),
                               reagent::agent_options().tool(reagent::make_tool("add", "Adds two numbers.", &add)));

    std::uint64_t wrong = 0;
    const auto soak = [&](int count) {
        int left = count;
        std::vector<std::unique_ptr<lane>> lanes;
        for (int i = 0; i < at_once; ++i) {
            lanes.push_back(std::make_unique<lane>(context, agent, money, left, wrong));
            lanes.back()->start_next();
        }
        context.restart();
        context.run();
        return bench::status_kb("VmRSS:");
    };
    const std::int64_t began = bench::monotonic_ns();
    const long before = soak(runs / 10);  // pools and caches reach their size
    const long after = soak(runs - runs / 10);
    const double seconds = static_cast<double>(bench::monotonic_ns() - began) / 1e9;
    const double bytes_per_run = static_cast<double>(after - before) * 1024 / (runs - runs / 10);
    const bool held = wrong == 0 && counted::alive == 0 && bytes_per_run <= limit_bytes_per_run && money.state().reserved.cost == reagent::usd();
    std::printf(
        "{\"bench\":\"soak\",\"runs\":%d,\"wrong\":%llu,\"alive\":%lld,\"runs_per_s\":%.0f,\"rss_kb_early\":%ld,\"rss_kb_end\":%ld,\"bytes_per_run\":%.2f,"
        "\"limit_bytes_per_run\":%.0f}\n",
        runs, static_cast<unsigned long long>(wrong), static_cast<long long>(counted::alive), runs / seconds, before, after, bytes_per_run,
        limit_bytes_per_run);
    return held ? 0 : 1;
}

#include "demo_report.hpp"

#include "terminal.hpp"

#include <reagent/model/message.hpp>

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace reagent_app {
namespace {

using reagent::json;
using reagent::run_outcome;

constexpr double least_spent_share = 0.6;
constexpr double longest_seconds = 30;
constexpr std::size_t shown_problems = 3;

json rounded(double value, int digits)
{
    return json::number::from_text(fmt::format("{:.{}f}", value, digits));
}
json amount(reagent::usd value)
{
    return json::number::from_text(value.to_string());
}

}  // namespace

void demo_report::add(const reagent::run_result& result)
{
    switch (result.outcome()) {
    case run_outcome::completed: ++completed_; break;
    case run_outcome::halted:
        ++halted_;
        if (!result.text().empty()) ++halted_with_text_;
        break;
    default: ++failed_; break;
    }
    const reagent::run_metrics& m = result.metrics();
    turns_ += m.turns;
    tool_calls_ += m.tool_calls;
    input_ += m.input_tokens + m.cache_creation_tokens + m.cache_read_tokens;
    output_ += m.output_tokens;
    cost_of_runs_ += result.cost();
    latencies_ms_.push_back(std::chrono::duration<double, std::milli>(m.duration).count());
    for (const std::string& violation : reagent::check_transcript(result.messages()))
        if (problems_.size() < shown_problems) problems_.push_back("transcript of " + result.run_id() + ": " + violation);
}

void demo_report::add_refused(const std::string& why)
{
    ++failed_;
    latencies_ms_.push_back(0);
    if (problems_.size() < shown_problems) problems_.push_back("a run did not start: " + why);
}

void demo_report::close(reagent::usd spent, std::chrono::nanoseconds elapsed, double peak_rss_mb)
{
    spent_ = spent;
    elapsed_ = elapsed;
    peak_rss_mb_ = peak_rss_mb;
    std::ranges::sort(latencies_ms_);
}

double demo_report::percentile_ms(double p) const
{
    if (latencies_ms_.empty()) return 0;
    const auto rank = static_cast<std::size_t>(std::ceil(p / 100 * static_cast<double>(latencies_ms_.size())));
    return latencies_ms_[std::max<std::size_t>(rank, 1) - 1];
}

std::vector<std::string> demo_report::broken_promises() const
{
    std::vector<std::string> broken = problems_;
    const auto promise = [&](bool kept, std::string otherwise) {
        if (!kept) broken.push_back(std::move(otherwise));
    };
    promise(ended() == agents_, fmt::format("{} of {} runs ended", ended(), agents_));
    promise(completed_ > 0, "no run completed");
    promise(halted_with_text_ > 0, "no run was halted with partial text");
    promise(failed_ > 0, "no run failed by an injected fault");
    promise(spent_ <= cap_, fmt::format("${} was spent, the cap is ${}", spent_.to_string(), cap_.to_string()));
    promise(spent_.to_double() >= least_spent_share * cap_.to_double(), fmt::format("only ${} of ${} was spent", spent_.to_string(), cap_.to_string()));
    promise(cost_of_runs_ <= spent_, fmt::format("the runs say ${}, the budget says ${}", cost_of_runs_.to_string(), spent_.to_string()));
    promise(std::chrono::duration<double>(elapsed_).count() <= longest_seconds, fmt::format("it took more than {} s", longest_seconds));
    return broken;
}

json demo_report::to_json() const
{
    const double seconds = std::chrono::duration<double>(elapsed_).count();
    return json::object()
        .set("agents", agents_)
        .set("outcomes", json::object().set("completed", completed_).set("halted", halted_).set("failed", failed_))
        .set("turns", turns_)
        .set("tool_calls", tool_calls_)
        .set("tokens", json::object().set("input", input_).set("output", output_))
        .set("spent_usd", amount(spent_))
        .set("cap_usd", amount(cap_))
        .set("latency_ms",
             json::object().set("p50", rounded(percentile_ms(50), 1)).set("p90", rounded(percentile_ms(90), 1)).set("p99", rounded(percentile_ms(99), 1)))
        .set("elapsed_ms", rounded(seconds * 1000, 1))
        .set("agents_per_s", rounded(seconds > 0 ? static_cast<double>(ended()) / seconds : 0, 1))
        .set("peak_rss_mb", rounded(peak_rss_mb_, 1));
}

std::vector<std::string> demo_report::table() const
{
    const double seconds = std::chrono::duration<double>(elapsed_).count();
    const double share = cap_ > reagent::usd() ? 100 * spent_.to_double() / cap_.to_double() : 0;
    return {
        fmt::format("{:<14} {:>9}", "agents", grouped(agents_)),
        fmt::format("{:<14} {:>9}   answered", "  completed", grouped(completed_)),
        fmt::format("{:<14} {:>9}   stopped by the budget, {} with partial text", "  halted", grouped(halted_), grouped(halted_with_text_)),
        fmt::format("{:<14} {:>9}   by injected faults", "  failed", grouped(failed_)),
        fmt::format("{:<14} {:>9}   and {} tool calls", "turns", grouped(turns_), grouped(tool_calls_)),
        fmt::format("{:<14} {:>9}   in, {} out", "tokens", grouped(input_), grouped(output_)),
        fmt::format("{:<14} {:>9.4f}   of ${:.4f}, {:.1f} %", "spent $", spent_.to_double(), cap_.to_double(), share),
        fmt::format("{:<14} {:>9.0f}   p50, {:.0f} p90, {:.0f} p99", "latency ms", percentile_ms(50), percentile_ms(90), percentile_ms(99)),
        fmt::format("{:<14} {:>9.0f}   in {:.2f} s", "agents/s", seconds > 0 ? static_cast<double>(ended()) / seconds : 0, seconds),
        fmt::format("{:<14} {:>9.1f}", "peak memory MB", peak_rss_mb_),
    };
}

}  // namespace reagent_app

#pragma once
#include <reagent/agent/run_result.hpp>
#include <reagent/base/json.hpp>
#include <reagent/base/usd.hpp>

#include <chrono>
#include <cstdint>
#include <string>
#include <vector>

namespace reagent_app {

/// Figures of a crowd of runs, gathered as they end. No I/O.
class demo_report {
public:
    demo_report(std::size_t agents, reagent::usd cap) : agents_(agents), cap_(cap) {}

    /// Takes one ended run; its transcript is checked here.
    void add(const reagent::run_result& result);
    /// A run that could not even start.
    void add_refused(const std::string& why);
    /// What the budget says at the end, and how long the whole crowd took.
    void close(reagent::usd spent, std::chrono::nanoseconds elapsed, double peak_rss_mb);

    std::size_t ended() const noexcept { return completed_ + halted_ + failed_; }
    std::size_t completed() const noexcept { return completed_; }
    std::size_t halted() const noexcept { return halted_; }
    std::size_t failed() const noexcept { return failed_; }

    /// What the demo promises and did not keep, a line each; empty when all holds.
    std::vector<std::string> broken_promises() const;
    reagent::json to_json() const;
    /// The final table, a line each.
    std::vector<std::string> table() const;

private:
    double percentile_ms(double p) const;

    std::size_t agents_;
    reagent::usd cap_, spent_, cost_of_runs_;
    std::size_t completed_ = 0, halted_ = 0, failed_ = 0, halted_with_text_ = 0;
    std::uint64_t turns_ = 0, tool_calls_ = 0, input_ = 0, output_ = 0;
    std::vector<double> latencies_ms_;
    std::vector<std::string> problems_;
    std::chrono::nanoseconds elapsed_{0};
    double peak_rss_mb_ = 0;
};

}  // namespace reagent_app

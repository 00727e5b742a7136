#pragma once
#include <reagent/base/json.hpp>
#include <reagent/base/usd.hpp>

#include <chrono>
#include <cstdint>
#include <map>
#include <optional>
#include <string>

namespace reagent::inline v0 {

/// What a run counted (spec/loop-and-providers.md §13.3). `turns` are model rounds; tokens are cumulative.
class run_metrics {
public:
    run_metrics() = default;
    std::uint64_t turns = 0;          ///< model rounds that completed
    std::uint64_t session_turns = 0;  ///< rounds inside a provider that owns its cycle
    std::uint64_t tool_calls = 0;     ///< calls the model made, unknown and denied ones included
    std::map<std::string, std::uint64_t, std::less<>> by_tool;
    std::uint64_t input_tokens = 0, output_tokens = 0, cache_creation_tokens = 0, cache_read_tokens = 0;
    std::optional<usd> cost;  ///< empty when nothing was priced
    std::uint64_t unpriced_rounds = 0;
    std::uint64_t estimated_rounds = 0;  ///< priced by guess, or settled without reported usage
    std::uint64_t attempts = 0;          ///< requests that left, retries included
    std::uint64_t dropped_calls = 0;     ///< over `max_calls_per_round`
    std::uint64_t repeated_calls = 0;    ///< times the identical-call guard warned
    std::uint64_t compactions = 0, tokens_trimmed = 0;
    std::chrono::nanoseconds duration{0};
    json to_json() const;
};

}  // namespace reagent::inline v0

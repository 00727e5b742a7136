#pragma once
#include <reagent/model/provider.hpp>

#include <chrono>
#include <cstddef>
#include <optional>

namespace reagent::inline v0 {

/// Setters chain.
class hedge_options {
public:
    hedge_options() = default;
    /// Starts the second attempt after this long, whatever was seen. Default: after the percentile of the latencies seen.
    hedge_options& delay(std::chrono::milliseconds d) { return delay_ = d, *this; }
    /// The share of calls that are expected to be faster, 0 to 1. Default 0.95. Throws `validation_error` for another number.
    hedge_options& percentile(double share);
    /// Latencies that must have been seen before a call is hedged. Default 20.
    hedge_options& min_samples(std::size_t n) { return min_samples_ = n, *this; }
    /// The latest so many latencies count, at least 1. Default 200.
    hedge_options& max_samples(std::size_t n) { return max_samples_ = n == 0 ? 1 : n, *this; }
    /// Never earlier than this. Default 10 ms.
    hedge_options& min_delay(std::chrono::milliseconds d) { return min_delay_ = d, *this; }
    hedge_options& clock(clock_ptr c) { return clock_ = std::move(c), *this; }

    const std::optional<std::chrono::milliseconds>& delay() const noexcept { return delay_; }
    double percentile() const noexcept { return percentile_; }
    std::size_t min_samples() const noexcept { return min_samples_; }
    std::size_t max_samples() const noexcept { return max_samples_; }
    std::chrono::milliseconds min_delay() const noexcept { return min_delay_; }
    const clock_ptr& clock() const noexcept { return clock_; }

private:
    std::optional<std::chrono::milliseconds> delay_;
    double percentile_ = 0.95;
    std::size_t min_samples_ = 20, max_samples_ = 200;
    std::chrono::milliseconds min_delay_{10};
    clock_ptr clock_;
};

/// A call that is slower than most gets a second attempt beside the first. The first to deliver wins: with a stream its first delta, in one piece its answer.
/// The other is cancelled and has ended before the winner is read on. Both count, and both pass the gate: under a budget the second waits until its own
/// worst case is reserved, or until the first has won. It starts only when an attempt of the first has left. For requests whose repetition does no harm.
/// Latencies are what the caller waits, of streams to the first delta; those of streams and of answers in one piece are kept apart.
/// Errors: those of the first attempt, once the second has failed as well; a halt of the first at once.
/// Cancellation: terminal; both are cancelled and joined.
provider_ptr with_hedge(provider_ptr inner, hedge_options options = hedge_options());

}  // namespace reagent::inline v0

/// The latest latencies. Without clock.
#pragma once
#include <reagent/base/clock.hpp>

#include <cstddef>
#include <vector>

namespace reagent::inline v0::providers_detail {

class latency_window {
public:
    /// Keeps the latest `most`, at least 1.
    explicit latency_window(std::size_t most) : most_(most) {}
    void add(duration latency);
    std::size_t size() const noexcept { return samples_.size(); }
    /// The nearest rank: the smallest latency that at least `share` of them do not pass. Zero when none is known.
    duration percentile(double share) const;

private:
    std::size_t most_, next_ = 0;
    std::vector<duration> samples_;
};

}  // namespace reagent::inline v0::providers_detail

#include "latency_window.hpp"

#include <algorithm>
#include <cmath>

namespace reagent::inline v0::providers_detail {

void latency_window::add(duration latency)
{
    if (samples_.size() < most_) samples_.push_back(latency);
    else samples_[next_] = latency;
    next_ = (next_ + 1) % most_;
}

duration latency_window::percentile(double share) const
{
    if (samples_.empty()) return duration(0);
    std::vector<duration> sorted = samples_;
    const double n = static_cast<double>(sorted.size());
    const auto rank = static_cast<std::ptrdiff_t>(std::clamp(std::ceil(share * n), 1.0, n)) - 1;
    std::ranges::nth_element(sorted, sorted.begin() + rank);
    return sorted[static_cast<std::size_t>(rank)];
}

}  // namespace reagent::inline v0::providers_detail

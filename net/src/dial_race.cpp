#include "dial_race.hpp"

namespace reagent::inline v0::net_detail {

dial_race::dial_race(const std::vector<ip_address>& found)
{
    order_.reserve(found.size());
    std::vector<ip_address> preferred, other;
    for (const ip_address& a : found) (a.is_v4() == found.front().is_v4() ? preferred : other).push_back(a);
    for (std::size_t i = 0; i < preferred.size() || i < other.size(); ++i) {
        if (i < preferred.size()) order_.push_back(preferred[i]);
        if (i < other.size()) order_.push_back(other[i]);
    }
}

const ip_address* dial_race::next(steady_time now)
{
    if (started_ == order_.size() || now < next_at_) return nullptr;
    next_at_ = now + stagger;
    ++running_;
    return &order_[started_++];
}

void dial_race::failed() noexcept
{
    --running_;
    next_at_ = steady_time::min();
}

steady_time dial_race::due() const noexcept
{
    return started_ == order_.size() ? steady_time::max() : next_at_;
}

}  // namespace reagent::inline v0::net_detail

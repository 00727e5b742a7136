#include "server_rate.hpp"

#include <algorithm>
#include <chrono>

namespace reagent::inline v0::net_detail {

std::uint64_t server_rate::key_of(const ip_address& peer) noexcept
{
    const auto& b = peer.bytes();
    const bool mapped = !peer.is_v4() && std::all_of(b.begin(), b.begin() + 10, [](std::uint8_t x) { return x == 0; }) && b[10] == 0xff && b[11] == 0xff;
    std::uint64_t key = 0;
    if (peer.is_v4() || mapped) {
        for (std::size_t i = 12; i < 16; ++i) key = key << 8U | b[i];
        return key;  // no global IPv6 network is below 2^32
    }
    for (std::size_t i = 0; i < 8; ++i) key = key << 8U | b[i];
    return key;
}

duration server_rate::admit(std::uint64_t peer, steady_time now)
{
    const auto known = by_key_.find(peer);
    if (known == by_key_.end()) {
        if (by_key_.size() >= max_peers_ && !buckets_.empty()) {
            by_key_.erase(buckets_.back().key);
            buckets_.pop_back();
        }
        buckets_.push_front({peer, burst_ - 1, now});
        by_key_.emplace(peer, buckets_.begin());
        return {};
    }
    buckets_.splice(buckets_.begin(), buckets_, known->second);
    bucket& b = *known->second;
    const double passed = std::chrono::duration<double>(now - b.seen).count();
    b.tokens = std::min(burst_, b.tokens + std::max(passed, 0.0) * per_second_);
    b.seen = now;
    if (b.tokens >= 1) {
        b.tokens -= 1;
        return {};
    }
    // A rate of almost nothing is a wait that no duration holds.
    constexpr double longest = 365.0 * 24 * 3600;
    const std::chrono::duration<double> wait(std::min((1 - b.tokens) / per_second_, longest));
    return std::max(std::chrono::duration_cast<duration>(wait), duration(1));
}

}  // namespace reagent::inline v0::net_detail

#pragma once
#include <reagent/base/address.hpp>
#include <reagent/base/clock.hpp>

#include <cstddef>
#include <cstdint>
#include <list>
#include <unordered_map>

namespace reagent::inline v0::net_detail {

/// Requests a second of each peer, as token buckets. No I/O, no clock of its own; memory bounded by the number of peers remembered.
class server_rate {
public:
    server_rate(double per_second, double burst, std::size_t max_peers) : per_second_(per_second), burst_(burst < 1 ? 1 : burst), max_peers_(max_peers) {}
    /// What a peer counts as: an IPv4 address, or the /64 of an IPv6 one, as its owner has all of it. An IPv4 address mapped into IPv6 counts as IPv4.
    static std::uint64_t key_of(const ip_address& peer) noexcept;
    /// Zero when a request may pass, and it counts; else how long until one may.
    duration admit(std::uint64_t peer, steady_time now);
    std::size_t peers() const noexcept { return by_key_.size(); }

private:
    struct bucket {
        std::uint64_t key = 0;
        double tokens = 0;
        steady_time seen{};
    };
    double per_second_, burst_;
    std::size_t max_peers_;
    std::list<bucket> buckets_;  // the last seen in front
    std::unordered_map<std::uint64_t, std::list<bucket>::iterator> by_key_;
};

}  // namespace reagent::inline v0::net_detail

#pragma once
#include <reagent/net/proxy.hpp>

#include <cstddef>
#include <cstdint>
#include <deque>

namespace reagent::inline v0::net_detail {

class pool_index;

/// The routes a client has seen, by the number that the pool knows them by; 0 leads straight there. One stays where it is, and the same, as long as an
/// exchange is under way on it.
class route_table {
public:
    route_table() : seen_(1) {}
    const http_route& operator[](std::uint32_t number) const noexcept { return seen_[number].way; }
    /// Those remembered besides the straight one.
    std::size_t size() const noexcept { return seen_.size() - 1; }
    /// The number of `way`. Where `max` are remembered, one that is new takes the place of the longest unused one, whose idle connections are closed; while
    /// each of them has an exchange under way, it is added.
    std::uint32_t number_of(const http_route& way, std::size_t max, pool_index& pool);

private:
    struct entry {
        http_route way;
        std::uint64_t used = 0;  // by the count of uses
    };
    std::deque<entry> seen_;
    std::uint64_t uses_ = 0;
};

}  // namespace reagent::inline v0::net_detail

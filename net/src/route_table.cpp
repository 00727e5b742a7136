#include "route_table.hpp"

#include "pool_index.hpp"

#include <vector>

namespace reagent::inline v0::net_detail {

std::uint32_t route_table::number_of(const http_route& way, std::size_t max, pool_index& pool)
{
    const std::uint64_t now = ++uses_;
    for (std::size_t i = 0; i < seen_.size(); ++i) {
        if (seen_[i].way != way) continue;
        seen_[i].used = now;
        return static_cast<std::uint32_t>(i);
    }
    std::size_t place = 0;
    if (size() >= max) {
        std::vector<bool> busy(seen_.size(), false);
        pool.mark_busy_routes(busy);
        for (std::size_t i = 1; i < seen_.size(); ++i)
            if (!busy[i] && (place == 0 || seen_[i].used < seen_[place].used)) place = i;
    }
    if (place == 0) {
        place = seen_.size();
        seen_.emplace_back();
    } else {
        pool.forget_route(static_cast<std::uint32_t>(place));
    }
    seen_[place].way = way;
    seen_[place].used = now;
    return static_cast<std::uint32_t>(place);
}

}  // namespace reagent::inline v0::net_detail

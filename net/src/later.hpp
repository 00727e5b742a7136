#pragma once
#include <reagent/base/clock.hpp>

namespace reagent::inline v0::net_detail {

/// `a + b` that stays at the end of time.
inline steady_time later(steady_time a, duration b) noexcept
{
    return b >= steady_time::max() - a ? steady_time::max() : a + b;
}

}  // namespace reagent::inline v0::net_detail

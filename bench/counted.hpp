#pragma once

namespace bench {

/// Counts the objects it is a member of.
struct counted {
    counted() noexcept { ++alive; }
    counted(const counted&) noexcept { ++alive; }
    counted(counted&&) noexcept { ++alive; }
    counted& operator=(const counted&) = default;
    ~counted() { --alive; }
    static inline long alive = 0;
};

}  // namespace bench

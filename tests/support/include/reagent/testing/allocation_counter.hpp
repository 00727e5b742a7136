#pragma once
#include <cstddef>
#include <cstdint>

namespace reagent::inline v0::testing {

/// Counts `operator new` of the calling thread from its construction on. A program that uses this class has `operator new` replaced by one
/// that counts and calls `malloc`.
class allocation_counter {
public:
    allocation_counter() noexcept;
    std::uint64_t allocations() const noexcept;
    std::uint64_t frees() const noexcept;
    std::uint64_t bytes() const noexcept;
    /// Starts again at zero.
    void reset() noexcept;

private:
    std::uint64_t allocations_ = 0, frees_ = 0, bytes_ = 0;
};

}  // namespace reagent::inline v0::testing

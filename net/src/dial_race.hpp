#pragma once
#include <reagent/base/address.hpp>
#include <reagent/base/clock.hpp>

#include <cstddef>
#include <vector>

namespace reagent::inline v0::net_detail {

/// Who is tried when, without I/O (Happy Eyeballs, RFC 8305 sections 4 and 5): families alternate, beginning with that of the first address; the next
/// one starts when the last has had its time, or at once when one fails. Whoever connects first has won; the race need not know.
class dial_race {
public:
    static constexpr duration stagger = std::chrono::milliseconds(250);
    explicit dial_race(const std::vector<ip_address>& found);
    /// The address to start now; null when it is nobody's turn yet. Its time counts from `now`.
    const ip_address* next(steady_time now);
    /// One of those under way has failed.
    void failed() noexcept;
    /// When `next` is worth asking again; `steady_time::max()` when all have started.
    steady_time due() const noexcept;
    /// All have failed, or there was none.
    bool lost() const noexcept { return running_ == 0 && started_ == order_.size(); }
    const std::vector<ip_address>& order() const noexcept { return order_; }

private:
    std::vector<ip_address> order_;
    std::size_t started_ = 0, running_ = 0;
    steady_time next_at_ = steady_time::min();
};

}  // namespace reagent::inline v0::net_detail

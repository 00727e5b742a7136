#pragma once
#include <map>
#include <string>

namespace reagent::inline v0::testing {

/// The open file descriptors of the process with what they are (`/proc/self/fd`): `7 -> socket:[123]`.
class fd_snapshot {
public:
    static fd_snapshot take();
    const std::map<int, std::string>& open() const noexcept { return open_; }
    /// One line for what `now` has more, and one for what it has less; empty when the same.
    std::string added(const fd_snapshot& now) const;
    std::string difference(const fd_snapshot& now) const;
    friend bool operator==(const fd_snapshot&, const fd_snapshot&) = default;

private:
    std::map<int, std::string> open_;
};

}  // namespace reagent::inline v0::testing

#pragma once
#include <string>
#include <vector>

namespace reagent::inline v0::testing {

/// Dispositions (handler, flags, mask) of all signals of the process and the blocked set of this thread: the library must leave both alone.
class signal_snapshot {
public:
    static signal_snapshot take();
    /// One line for each signal that is handled or blocked differently in `now`; empty when the same.
    std::string difference(const signal_snapshot& now) const;
    friend bool operator==(const signal_snapshot& a, const signal_snapshot& b) { return a.difference(b).empty(); }

private:
    struct entry {
        const void* handler = nullptr;
        int flags = 0;
        std::string mask;
        bool blocked = false;
        friend bool operator==(const entry&, const entry&) = default;
    };
    std::vector<entry> entries_;  ///< by signal number
};

}  // namespace reagent::inline v0::testing

#pragma once
#include <reagent/base/clock.hpp>

#include <cstddef>
#include <memory>
#include <vector>

namespace reagent::inline v0 {

/// One pending limit. Lives in its owner; unlinks itself when it dies.
class deadline_entry {
public:
    deadline_entry() = default;
    deadline_entry(const deadline_entry&) = delete;
    deadline_entry& operator=(const deadline_entry&) = delete;
    virtual ~deadline_entry();
    bool linked() const noexcept { return index_ != npos; }

protected:
    /// Called on the queue's executor when the entry's time has come, after it was unlinked. Answer a later time to be linked again (an idle
    /// limit whose bytes have moved), or `steady_time::max()`.
    virtual steady_time on_deadline(steady_time now) = 0;
    /// The time it is linked for; meaningful while linked.
    steady_time linked_for() const noexcept { return when_; }

private:
    friend class deadline_queue;
    static constexpr std::size_t npos = static_cast<std::size_t>(-1);
    class deadline_queue* queue_ = nullptr;
    std::size_t index_ = npos;
    steady_time when_{};  ///< as in its slot, for those who ask
};

/// All limits of a client's calls in one intrusive heap behind one timer, armed only while entries are linked. A timer that must fire earlier is
/// re-armed, one that fires too early looks again: bytes cost no timer call. Unsafe to share; belongs to one executor.
class deadline_queue {
public:
    deadline_queue(any_io_executor ex, clock_ptr clock);
    ~deadline_queue();
    void link(deadline_entry& entry, steady_time when);
    void unlink(deadline_entry& entry) noexcept;
    std::size_t size() const noexcept { return live_; }
    steady_time now() const noexcept { return clock_->now(); }

private:
    void fire();
    void rearm();
    /// Times lie side by side, so that looking for a place touches no entry; one who leaves only empties its slot. A call on a client with a
    /// thousand others open would otherwise touch the memory of ten of them.
    struct slot {
        steady_time when{};
        deadline_entry* entry = nullptr;  ///< null when it has left
    };
    void put(std::size_t i, slot s) noexcept;
    void sift_up(std::size_t i) noexcept;
    void sift_down(std::size_t i) noexcept;
    void pop_front() noexcept;
    void compact() noexcept;
    clock_ptr clock_;
    std::vector<slot> heap_;
    std::size_t live_ = 0;
    std::unique_ptr<clock_timer> timer_;
    steady_time armed_ = steady_time::max();
    bool firing_ = false;
};

}  // namespace reagent::inline v0

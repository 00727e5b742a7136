#include <reagent/net/deadline_queue.hpp>

#include <algorithm>
#include <cassert>
#include <utility>

namespace reagent::inline v0 {

deadline_entry::~deadline_entry()
{
    if (queue_) queue_->unlink(*this);
}

deadline_queue::deadline_queue(any_io_executor ex, clock_ptr clock) : clock_(std::move(clock))
{
    timer_ = clock_->make_timer(std::move(ex), [this] { fire(); });
}

deadline_queue::~deadline_queue()
{
    for (const slot& s : heap_) {
        if (s.entry == nullptr) continue;
        s.entry->queue_ = nullptr;
        s.entry->index_ = deadline_entry::npos;
    }
}

void deadline_queue::link(deadline_entry& entry, steady_time when)
{
    if (entry.queue_ == this) {
        const bool earlier = when < entry.when_;
        heap_[entry.index_].when = entry.when_ = when;
        if (earlier) sift_up(entry.index_);
        else sift_down(entry.index_);
    } else {
        assert(!entry.queue_);
        heap_.push_back({when, &entry});
        ++live_;
        entry.queue_ = this;
        entry.when_ = when;
        entry.index_ = heap_.size() - 1;
        sift_up(entry.index_);
    }
    rearm();
}

void deadline_queue::unlink(deadline_entry& entry) noexcept
{
    if (entry.queue_ != this) return;
    heap_[entry.index_].entry = nullptr;
    --live_;
    entry.queue_ = nullptr;
    entry.index_ = deadline_entry::npos;
    compact();
    // The timer stays as it is while others wait: it looks again when it fires. The last one out switches it off.
    if (live_ == 0 && !firing_ && armed_ != steady_time::max()) {
        armed_ = steady_time::max();
        timer_->disarm();
    }
}

void deadline_queue::fire()
{
    armed_ = steady_time::max();
    firing_ = true;
    const steady_time now = clock_->now();
    while (!heap_.empty() && (heap_.front().entry == nullptr || heap_.front().when <= now)) {
        if (heap_.front().entry == nullptr) {
            pop_front();
            continue;
        }
        deadline_entry& due = *heap_.front().entry;
        unlink(due);
        // An entry that asks for a time already past would keep this loop for ever: it is asked again at the next firing.
        const steady_time again = due.on_deadline(now);
        if (again != steady_time::max()) link(due, again > now ? again : now + duration(1));
    }
    firing_ = false;
    rearm();
}

void deadline_queue::rearm()
{
    if (firing_ || live_ == 0 || heap_.front().when >= armed_) return;
    armed_ = heap_.front().when;
    timer_->arm(armed_);
}

void deadline_queue::put(std::size_t i, slot s) noexcept
{
    heap_[i] = s;
    if (s.entry != nullptr) s.entry->index_ = i;
}

void deadline_queue::sift_up(std::size_t i) noexcept
{
    const slot moving = heap_[i];
    while (i > 0) {
        const std::size_t parent = (i - 1) / 2;
        if (heap_[parent].when <= moving.when) break;
        put(i, heap_[parent]);
        i = parent;
    }
    put(i, moving);
}

void deadline_queue::sift_down(std::size_t i) noexcept
{
    const slot moving = heap_[i];
    for (;;) {
        std::size_t child = 2 * i + 1;
        if (child >= heap_.size()) break;
        if (child + 1 < heap_.size() && heap_[child + 1].when < heap_[child].when) ++child;
        if (moving.when <= heap_[child].when) break;
        put(i, heap_[child]);
        i = child;
    }
    put(i, moving);
}

void deadline_queue::pop_front() noexcept
{
    const slot last = heap_.back();
    heap_.pop_back();
    if (heap_.empty()) return;
    put(0, last);
    sift_down(0);
}

// Empty slots are swept when they outnumber the others: every call then pays for one.
void deadline_queue::compact() noexcept
{
    constexpr std::size_t tolerated = 64;
    if (live_ != 0 && heap_.size() <= 2 * live_ + tolerated) return;
    std::erase_if(heap_, [](const slot& s) { return s.entry == nullptr; });
    std::make_heap(heap_.begin(), heap_.end(), [](const slot& a, const slot& b) { return a.when > b.when; });
    for (std::size_t i = 0; i < heap_.size(); ++i) heap_[i].entry->index_ = i;
}

}  // namespace reagent::inline v0

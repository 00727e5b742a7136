#include <reagent/net/deadline_queue.hpp>

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
    for (deadline_entry* e : heap_) {
        e->queue_ = nullptr;
        e->index_ = deadline_entry::npos;
    }
}

void deadline_queue::link(deadline_entry& entry, steady_time when)
{
    if (entry.queue_ == this) {
        const bool earlier = when < entry.when_;
        entry.when_ = when;
        if (earlier) sift_up(entry.index_);
        else sift_down(entry.index_);
    } else {
        assert(!entry.queue_);
        heap_.push_back(&entry);
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
    const std::size_t hole = entry.index_;
    deadline_entry* last = heap_.back();
    heap_.pop_back();
    entry.queue_ = nullptr;
    entry.index_ = deadline_entry::npos;
    if (last != &entry) {
        heap_[hole] = last;
        last->index_ = hole;
        sift_up(hole);
        sift_down(last->index_);
    }
    // The timer stays as it is while others wait: it looks again when it fires. The last one out switches it off.
    if (heap_.empty() && !firing_ && armed_ != steady_time::max()) {
        armed_ = steady_time::max();
        timer_->disarm();
    }
}

void deadline_queue::fire()
{
    armed_ = steady_time::max();
    firing_ = true;
    const steady_time now = clock_->now();
    while (!heap_.empty() && heap_.front()->when_ <= now) {
        deadline_entry& due = *heap_.front();
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
    if (firing_ || heap_.empty() || heap_.front()->when_ >= armed_) return;
    armed_ = heap_.front()->when_;
    timer_->arm(armed_);
}

void deadline_queue::sift_up(std::size_t i) noexcept
{
    while (i > 0) {
        const std::size_t parent = (i - 1) / 2;
        if (heap_[parent]->when_ <= heap_[i]->when_) return;
        std::swap(heap_[parent], heap_[i]);
        heap_[parent]->index_ = parent;
        heap_[i]->index_ = i;
        i = parent;
    }
}

void deadline_queue::sift_down(std::size_t i) noexcept
{
    for (;;) {
        std::size_t least = i;
        for (std::size_t child = 2 * i + 1; child <= 2 * i + 2 && child < heap_.size(); ++child)
            if (heap_[child]->when_ < heap_[least]->when_) least = child;
        if (least == i) return;
        std::swap(heap_[least], heap_[i]);
        heap_[least]->index_ = least;
        heap_[i]->index_ = i;
        i = least;
    }
}

}  // namespace reagent::inline v0

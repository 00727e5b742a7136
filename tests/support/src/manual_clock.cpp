#include <reagent/testing/manual_clock.hpp>

#include <boost/asio/post.hpp>
#include <boost/asio/prefer.hpp>

#include <atomic>
#include <map>
#include <mutex>
#include <utility>
#include <vector>

namespace reagent::inline v0::testing {

namespace {

struct node {
    node(any_io_executor executor, std::function<void()> f) : ex(std::move(executor)), fire(std::move(f)) {}
    any_io_executor ex;
    std::function<void()> fire;
    // Moves on at every arm, disarm and destruction: a posted call of an older generation does nothing.
    std::atomic<std::uint64_t> generation = 0;
};

using due_key = std::pair<steady_time, std::uint64_t>;

struct entry {
    std::shared_ptr<node> timer;
    any_io_executor work;  // keeps the context running while armed
    std::uint64_t generation = 0;
};

void post_call(entry due)
{
    asio::post(due.work, [timer = due.timer, generation = due.generation] {
        if (timer->generation.load() == generation) timer->fire();
    });
}

}  // namespace

struct manual_clock::impl {
    mutable std::mutex lock;
    // Far from zero, so that code which takes "zero" for "never" shows up neither by luck nor by accident.
    steady_time now = steady_time(std::chrono::hours(1000));
    system_time wall = system_time(std::chrono::seconds(1'750'000'000));
    std::uint64_t sequence = 0;
    std::map<due_key, entry> armed;

    std::vector<entry> move_to(steady_time when)
    {
        std::vector<entry> due;
        const std::lock_guard guard(lock);
        if (when > now) {
            wall += std::chrono::duration_cast<system_time::duration>(when - now);
            now = when;
        }
        while (!armed.empty() && armed.begin()->first.first <= now) {
            due.push_back(std::move(armed.begin()->second));
            armed.erase(armed.begin());
        }
        return due;
    }
};

namespace {

template <class Impl>
class manual_timer final : public clock_timer {
public:
    manual_timer(std::shared_ptr<Impl> clock, any_io_executor ex, std::function<void()> fire)
        : clock_(std::move(clock)), node_(std::make_shared<node>(std::move(ex), std::move(fire)))
    {}
    ~manual_timer() override { disarm(); }

    void arm(steady_time when) override
    {
        disarm();
        entry e;
        e.timer = node_;
        e.work = asio::prefer(node_->ex, asio::execution::outstanding_work.tracked);
        e.generation = node_->generation.load();
        {
            const std::lock_guard guard(clock_->lock);
            if (when > clock_->now) {
                key_ = due_key(when, clock_->sequence++);
                clock_->armed.emplace(key_, std::move(e));
                return;
            }
        }
        post_call(std::move(e));
    }

    void disarm() noexcept override
    {
        node_->generation.fetch_add(1);
        entry dropped;  // its executor is let go outside the lock
        const std::lock_guard guard(clock_->lock);
        if (const auto at = clock_->armed.find(key_); at != clock_->armed.end() && at->second.timer == node_) {
            std::swap(dropped, at->second);
            clock_->armed.erase(at);
        }
    }

private:
    std::shared_ptr<Impl> clock_;
    std::shared_ptr<node> node_;
    due_key key_;
};

}  // namespace

manual_clock::manual_clock() : impl_(std::make_shared<impl>()) {}
manual_clock::~manual_clock() = default;

steady_time manual_clock::now() const noexcept
{
    const std::lock_guard guard(impl_->lock);
    return impl_->now;
}

system_time manual_clock::wall() const noexcept
{
    const std::lock_guard guard(impl_->lock);
    return impl_->wall;
}

std::unique_ptr<clock_timer> manual_clock::make_timer(any_io_executor ex, std::function<void()> fire)
{
    return std::make_unique<manual_timer<impl>>(impl_, std::move(ex), std::move(fire));
}

void manual_clock::advance(duration d)
{
    advance_to(now() + d);
}

void manual_clock::advance_to(steady_time when)
{
    for (entry& due : impl_->move_to(when)) post_call(std::move(due));
}

std::optional<duration> manual_clock::advance_to_next()
{
    const steady_time when = next();
    if (when == steady_time::max()) return std::nullopt;
    const duration step = when - now();
    advance_to(when);
    return step;
}

void manual_clock::set_wall(system_time t)
{
    const std::lock_guard guard(impl_->lock);
    impl_->wall = t;
}

std::size_t manual_clock::armed() const noexcept
{
    const std::lock_guard guard(impl_->lock);
    return impl_->armed.size();
}

steady_time manual_clock::next() const noexcept
{
    const std::lock_guard guard(impl_->lock);
    return impl_->armed.empty() ? steady_time::max() : impl_->armed.begin()->first.first;
}

}  // namespace reagent::inline v0::testing

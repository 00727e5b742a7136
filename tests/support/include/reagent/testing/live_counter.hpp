#pragma once
#include <atomic>
#include <memory>

namespace reagent::inline v0::testing {

/// Counts the live copies of its tokens: put one into each object, coroutine frame or closure that must be gone at the end.
class live_counter {
    struct counts {
        std::atomic<long> live = 0, made = 0;
    };

public:
    class token {
    public:
        token(const token& other) : token(other.counts_) {}
        token& operator=(const token&) = delete;
        ~token() { counts_->live.fetch_sub(1); }

    private:
        friend class live_counter;
        explicit token(std::shared_ptr<counts> c) : counts_(std::move(c))
        {
            counts_->live.fetch_add(1);
            counts_->made.fetch_add(1);
        }
        std::shared_ptr<counts> counts_;
    };

    token make() const { return token(counts_); }
    long live() const noexcept { return counts_->live.load(); }
    /// Tokens made in all, copies included: shows that the counted code ran.
    long made() const noexcept { return counts_->made.load(); }

private:
    std::shared_ptr<counts> counts_ = std::make_shared<counts>();
};

}  // namespace reagent::inline v0::testing

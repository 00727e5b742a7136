#pragma once
#include <reagent/model/provider.hpp>

#include <cstddef>
#include <memory>

namespace reagent::inline v0 {

/// Setters chain.
class concurrency_options {
public:
    explicit concurrency_options(std::size_t most) : most_(most) {}
    /// Calls that may wait; one more fails with `errc::limit_exceeded`, retryable. Default 10 000.
    concurrency_options& max_waiting(std::size_t n) { return max_waiting_ = n, *this; }
    concurrency_options& clock(clock_ptr c) { return clock_ = std::move(c), *this; }
    std::size_t most() const noexcept { return most_; }
    std::size_t max_waiting() const noexcept { return max_waiting_; }
    const clock_ptr& clock() const noexcept { return clock_; }

private:
    std::size_t most_, max_waiting_ = 10'000;
    clock_ptr clock_;
};

/// So many calls at once, the others in line, first come first served. A handle on shared state; thread safe.
class concurrency_limit {
public:
    /// Throws `validation_error` when nothing may run.
    explicit concurrency_limit(concurrency_options options);
    explicit concurrency_limit(std::size_t most) : concurrency_limit(concurrency_options(most)) {}
    std::size_t active() const;
    std::size_t waiting() const;

    struct impl;
    const std::shared_ptr<impl>& shared() const noexcept { return impl_; }

private:
    std::shared_ptr<impl> impl_;
};

/// A call waits for its turn before anything of it leaves, and holds its place to its end. The wait is part of the call's time: at its deadline
/// it throws `timeout_error(errc::deadline)`. Cancellation: terminal; the place in line is given up.
provider_ptr with_concurrency_limit(provider_ptr inner, concurrency_limit limit);

}  // namespace reagent::inline v0

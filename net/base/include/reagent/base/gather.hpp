#pragma once
#include <reagent/base/asio.hpp>
#include <reagent/base/outcome.hpp>
#include <reagent/base/spawn.hpp>

#include <cstddef>
#include <functional>
#include <type_traits>
#include <utility>
#include <vector>

namespace reagent::inline v0 {

/// When a group is done and how many of its branches run at once.
class gather_options {
public:
    gather_options() noexcept = default;
    /// At most `n` branches at a time, started in order; 0 is no limit, the default.
    gather_options& limit(std::size_t n) noexcept
    {
        limit_ = n;
        return *this;
    }
    /// Done with the first `k` values; the rest is cancelled. A failed branch counts for nothing, all others then still run.
    gather_options& first(std::size_t k) noexcept
    {
        wanted_ = k;
        give_up_ = false;
        return *this;
    }
    /// As `first`, but the group also ends as soon as so many branches have failed that `k` values are out of reach.
    gather_options& quorum(std::size_t k) noexcept
    {
        wanted_ = k;
        give_up_ = true;
        return *this;
    }
    /// A cancelled group returns its outcomes instead of throwing `operation_aborted`, so that finished work is not lost.
    gather_options& keep_outcomes(bool on = true) noexcept
    {
        keep_outcomes_ = on;
        return *this;
    }
    std::size_t limit() const noexcept { return limit_; }
    std::size_t wanted() const noexcept { return wanted_; }
    bool gives_up() const noexcept { return give_up_; }
    bool keeps_outcomes() const noexcept { return keep_outcomes_; }

private:
    std::size_t limit_ = 0;
    std::size_t wanted_ = 0;  // 0: all
    bool give_up_ = false;
    bool keep_outcomes_ = false;
};

/// Asked for each branch that ends, in the order they end: true stops the group (siblings are cancelled and joined).
template <class T>
using stop_predicate = std::function<bool(std::size_t index, const branch_outcome<T>& outcome)>;

namespace base_detail {

/// Runs `branches` under the caller's cancellation state, which must be its own: starts them in order, asks `stop` for each that has ended,
/// and returns when none lives. True when the group was cancelled from outside.
awaitable<bool> drive_branches(std::vector<awaitable<void>> branches, std::size_t limit, std::function<bool(std::size_t)> stop);

template <class T>
awaitable<std::vector<branch_outcome<T>>> gather_body(std::vector<awaitable<T>> branches, gather_options options, stop_predicate<T> stop_on)
{
    const std::size_t n = branches.size();
    std::vector<branch_outcome<T>> outcomes(n);
    std::vector<awaitable<void>> recorded;
    recorded.reserve(n);
    for (std::size_t i = 0; i < n; ++i) recorded.push_back(record_outcome<T>(std::move(branches[i]), &outcomes[i]));
    std::size_t values = 0, ended = 0;
    std::function<bool(std::size_t)> stop = [&](std::size_t i) {
        ++ended;
        values += outcomes[i].has_value() ? 1 : 0;
        if (stop_on && stop_on(i, outcomes[i])) return true;
        if (options.wanted() == 0) return false;
        return values >= options.wanted() || (options.gives_up() && values + (n - ended) < options.wanted());
    };
    const bool cancelled = co_await drive_branches(std::move(recorded), options.limit(), std::move(stop));
    if (cancelled && !options.keeps_outcomes()) throw boost::system::system_error(asio::error::operation_aborted);
    co_return outcomes;
}

}  // namespace base_detail

/// The one way to run operations side by side. Every branch ends as an outcome at its own index; a failure cancels nobody. The group is joined
/// before this returns, whatever happens.
/// Errors: `operation_aborted` when cancelled (see `gather_options::keep_outcomes`); what `stop_on` throws.
/// Cancellation: terminal, passed to every running branch, which are then joined.
template <class T>
awaitable<std::vector<branch_outcome<T>>> gather(std::vector<awaitable<T>> branches, gather_options options = gather_options(),
                                                 std::type_identity_t<stop_predicate<T>> stop_on = {})
{
    return isolated(base_detail::gather_body<T>(std::move(branches), options, std::move(stop_on)));
}

}  // namespace reagent::inline v0

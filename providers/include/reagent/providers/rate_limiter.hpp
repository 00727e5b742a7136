#pragma once
#include <reagent/base/random.hpp>
#include <reagent/base/secret.hpp>
#include <reagent/model/provider.hpp>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string_view>

namespace reagent::inline v0 {

/// Setters chain.
class rate_options {
public:
    rate_options() = default;
    /// Requests that may leave in any 60 seconds. Default: what the service's answers teach.
    rate_options& requests_per_minute(std::uint64_t n) { return requests_ = n, *this; }
    /// Tokens in any 60 seconds: a prompt counts as a fourth of its bytes and `max_tokens` as the answer, until the answer's usage is known. A request
    /// above the whole of it leaves when nothing else counts.
    rate_options& tokens_per_minute(std::uint64_t n) { return tokens_ = n, *this; }
    /// Whether to keep to the limits that answers name in their headers. Default true.
    rate_options& learn(bool on) { return learn_ = on, *this; }
    /// After a refusal those who wait start anew over this long a time, at random moments. Default 1 s.
    rate_options& spread(std::chrono::milliseconds t) { return spread_ = t, *this; }
    /// How long a 429 that does not say is taken to mean. Default 1 s.
    rate_options& default_wait(std::chrono::milliseconds t) { return default_wait_ = t, *this; }
    /// Calls that may wait; one more fails with `errc::limit_exceeded`, retryable. Default 10 000.
    rate_options& max_waiting(std::size_t n) { return max_waiting_ = n, *this; }
    rate_options& clock(clock_ptr c) { return clock_ = std::move(c), *this; }
    /// Drawn from under a lock.
    rate_options& random(random_source r) { return random_ = std::move(r), *this; }

    std::optional<std::uint64_t> requests_per_minute() const noexcept { return requests_; }
    std::optional<std::uint64_t> tokens_per_minute() const noexcept { return tokens_; }
    bool learns() const noexcept { return learn_; }
    std::chrono::milliseconds spread() const noexcept { return spread_; }
    std::chrono::milliseconds default_wait() const noexcept { return default_wait_; }
    std::size_t max_waiting() const noexcept { return max_waiting_; }
    const clock_ptr& clock() const noexcept { return clock_; }
    const random_source& random() const noexcept { return random_; }

private:
    std::optional<std::uint64_t> requests_, tokens_;
    bool learn_ = true;
    std::chrono::milliseconds spread_ = std::chrono::seconds(1), default_wait_ = std::chrono::seconds(1);
    std::size_t max_waiting_ = 10'000;
    clock_ptr clock_;
    random_source random_;
};

/// What all callers of one service and key may send. A handle on shared state: give the same one to every provider that uses the key. Thread safe.
class rate_limiter {
public:
    explicit rate_limiter(rate_options options = rate_options());
    std::size_t waiting() const;

    struct impl;
    const std::shared_ptr<impl>& shared() const noexcept { return impl_; }

private:
    std::shared_ptr<impl> impl_;
};

/// The limiters of a program, one for each service and key. Keeps no key. Thread safe.
class rate_limiters {
public:
    explicit rate_limiters(rate_options each = rate_options());
    rate_limiter of(std::string_view service, const secret& key);

private:
    struct impl;
    std::shared_ptr<impl> impl_;
};

/// A call waits, first come first served, until the limiter lets it leave. A refusal that asks to slow down (429, or `Retry-After`) holds all callers back, not
/// one: until the time it names, and then each for a while more, so that they do not return at once. An exhausted quota holds nobody back. It retries nothing: put
/// it below a retry, which then sends every attempt through it.
/// The wait is part of the call's time: one that would end after the call's deadline fails at once with `timeout_error(errc::deadline)`.
/// Cancellation: terminal; the place in line is given up.
provider_ptr with_rate_limit(provider_ptr inner, rate_limiter limiter);

}  // namespace reagent::inline v0

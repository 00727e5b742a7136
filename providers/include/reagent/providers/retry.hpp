#pragma once
#include <reagent/base/log_sink.hpp>
#include <reagent/model/provider.hpp>
#include <reagent/providers/backoff.hpp>

#include <chrono>
#include <exception>
#include <functional>

namespace reagent::inline v0 {

/// When and how often a failed call is sent again. Setters chain.
class retry_options {
public:
    retry_options() = default;
    /// Attempts of a call in all, the first included; at least 1. Default 3.
    retry_options& attempts(unsigned n) { return attempts_ = n, *this; }
    /// Default exponential: 1 s, 2 s, 4 s, … at most 30 s.
    retry_options& wait(backoff b) { return wait_ = b, *this; }
    /// Default full.
    retry_options& spread(jitter j) { return spread_ = j, *this; }
    /// A service that asks for more than this is not waited for: the call fails at once. Default 60 s.
    retry_options& max_retry_after(std::chrono::milliseconds most) { return max_retry_after_ = most, *this; }
    /// Longest time of one attempt, which is then cancelled and joined; zero, the default, is none. A timed-out attempt is retried.
    retry_options& attempt_limit(std::chrono::milliseconds most) { return attempt_limit_ = most, *this; }
    /// Decides instead of the error's `retryable`. Cancellation, `halt_error`, `validation_error` and `config_error` are never asked about.
    retry_options& when(std::function<bool(const std::exception_ptr&)> retryable) { return when_ = std::move(retryable), *this; }
    /// Must be the clock of the provider below.
    retry_options& clock(clock_ptr c) { return clock_ = std::move(c), *this; }
    retry_options& random(random_source r) { return random_ = std::move(r), *this; }
    /// Told of each retry, at level info.
    retry_options& log(log_sink l) { return log_ = std::move(l), *this; }

    unsigned attempts() const noexcept { return attempts_; }
    const backoff& wait() const noexcept { return wait_; }
    const jitter& spread() const noexcept { return spread_; }
    std::chrono::milliseconds max_retry_after() const noexcept { return max_retry_after_; }
    std::chrono::milliseconds attempt_limit() const noexcept { return attempt_limit_; }
    const std::function<bool(const std::exception_ptr&)>& when() const noexcept { return when_; }
    const clock_ptr& clock() const noexcept { return clock_; }
    const random_source& random() const noexcept { return random_; }
    const log_sink& log() const noexcept { return log_; }

private:
    unsigned attempts_ = 3;
    backoff wait_ = backoff::exponential();
    jitter spread_ = jitter::full();
    std::chrono::milliseconds max_retry_after_ = std::chrono::seconds(60), attempt_limit_{0};
    std::function<bool(const std::exception_ptr&)> when_;
    clock_ptr clock_;
    random_source random_;
    log_sink log_;
};

/// Sends a failed call again when the same request may succeed (spec/loop-and-providers.md §11.3). The wait is the jittered back-off on top of what the service asks
/// for (`Retry-After`), which is a floor. Not retried: cancellation, `halt_error`, an exhausted quota, a passed deadline; what comes after the first delivered
/// delta, unless the request accepts resets; and what would have to wait past the call's deadline, which fails at once with the last error.
/// Of several layers of retry the outermost counts attempts; those below it send once, so that attempts do not multiply.
/// Errors: the last attempt's own, unchanged but for the attempts in it; `timeout_error(errc::attempt_timeout)` `[Retry] Timeout`.
/// Cancellation: terminal, in every wait.
provider_ptr with_retry(provider_ptr inner, retry_options options = retry_options());

}  // namespace reagent::inline v0

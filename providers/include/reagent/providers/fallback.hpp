#pragma once
#include <reagent/base/error.hpp>
#include <reagent/model/provider.hpp>

#include <chrono>
#include <cstddef>
#include <exception>
#include <functional>
#include <optional>
#include <vector>

namespace reagent::inline v0 {

/// Every provider of a fallback failed. The message names each one's failure; retryable when one of them is.
class all_failed_error : public error {
public:
    explicit all_failed_error(std::vector<std::exception_ptr> errors);
    /// In the order of the providers.
    const std::vector<std::exception_ptr>& errors() const noexcept { return errors_; }
    /// When the first of them may be asked again, where one of those that are retryable said so.
    std::optional<std::chrono::milliseconds> retry_after() const noexcept { return retry_after_; }

private:
    std::vector<std::exception_ptr> errors_;
    std::optional<std::chrono::milliseconds> retry_after_;
};

/// Setters chain.
class fallback_options {
public:
    fallback_options() = default;
    /// Whether the failure of provider `index` leads to the next one. Default: every failure does. Cancellation, `halt_error`, `validation_error`,
    /// `config_error` and the call's passed deadline are never asked about.
    fallback_options& when(std::function<bool(const std::exception_ptr&, std::size_t index)> next) { return when_ = std::move(next), *this; }
    /// Only failures after which the same request may succeed elsewhere soon: what is retryable.
    fallback_options& only_retryable() { return only_retryable_ = true, *this; }
    /// Told of each change of provider.
    fallback_options& on_fallback(std::function<void(const std::exception_ptr&, std::size_t from, std::size_t to)> f) { return told_ = std::move(f), *this; }
    fallback_options& clock(clock_ptr c) { return clock_ = std::move(c), *this; }

    const std::function<bool(const std::exception_ptr&, std::size_t)>& when() const noexcept { return when_; }
    bool retryable_only() const noexcept { return only_retryable_; }
    const std::function<void(const std::exception_ptr&, std::size_t, std::size_t)>& on_fallback() const noexcept { return told_; }
    const clock_ptr& clock() const noexcept { return clock_; }

private:
    std::function<bool(const std::exception_ptr&, std::size_t)> when_;
    std::function<void(const std::exception_ptr&, std::size_t, std::size_t)> told_;
    bool only_retryable_ = false;
    clock_ptr clock_;
};

/// Asks the providers in order with the same request until one answers (spec/loop-and-providers.md §11.1). Not after the first delivered delta, unless the
/// request accepts resets. `model` is the first one's, `max_output` the largest.
/// Errors: what leads to no next provider, as it is; `all_failed_error` when the last one failed after others, the only one's own error when there is but one.
/// Throws `validation_error` for an empty list.
provider_ptr with_fallback(std::vector<provider_ptr> providers, fallback_options options = fallback_options());

}  // namespace reagent::inline v0

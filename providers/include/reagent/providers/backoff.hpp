#pragma once
#include <reagent/base/random.hpp>

#include <chrono>
#include <cstdint>

namespace reagent::inline v0 {

/// How the wait grows from attempt to attempt (spec/loop-and-providers.md §11.3). Pure.
class backoff {
public:
    /// `base`, doubled each time, at most `most`.
    static backoff exponential(std::chrono::milliseconds base = std::chrono::seconds(1), std::chrono::milliseconds most = std::chrono::seconds(30));
    /// `step`, twice `step`, …
    static backoff linear(std::chrono::milliseconds step = std::chrono::seconds(1));
    static backoff fixed(std::chrono::milliseconds span);
    /// The wait between attempt `attempt` (from 1) and the next, before jitter.
    std::chrono::milliseconds after(unsigned attempt) const noexcept;

private:
    enum class growth : std::uint8_t { exponential, linear, fixed };
    backoff(growth g, std::chrono::milliseconds base, std::chrono::milliseconds most) noexcept : growth_(g), base_(base), most_(most) {}
    growth growth_;
    std::chrono::milliseconds base_, most_;
};

/// How much of the wait is left to chance, so that callers who failed together do not come back together. Pure.
class jitter {
public:
    static jitter none() noexcept { return jitter(0); }
    /// From nothing to the whole wait.
    static jitter full() noexcept { return jitter(1); }
    /// From half of the wait to the whole.
    static jitter equal() noexcept { return jitter(0.5); }
    /// The share of the wait that varies, 0 to 1. Throws `validation_error` for another number.
    static jitter share(double of_wait);
    /// The wait to keep, never above `base`; `unit` is from 0 (included) to 1.
    std::chrono::milliseconds apply(std::chrono::milliseconds base, double unit) const noexcept;

private:
    explicit jitter(double share) noexcept : share_(share) {}
    double share_;
};

/// A number from 0 (included) to 1 (excluded).
double random_unit(const random_source& source);

}  // namespace reagent::inline v0

#include <reagent/base/error.hpp>
#include <reagent/providers/backoff.hpp>

#include <algorithm>
#include <cmath>

namespace reagent::inline v0 {

using std::chrono::milliseconds;

namespace {

milliseconds not_negative(milliseconds m) noexcept
{
    return std::max(m, milliseconds(0));
}

}  // namespace

backoff backoff::exponential(milliseconds base, milliseconds most)
{
    return backoff(growth::exponential, not_negative(base), not_negative(most));
}

backoff backoff::linear(milliseconds step)
{
    return backoff(growth::linear, not_negative(step), milliseconds::max());
}

backoff backoff::fixed(milliseconds span)
{
    return backoff(growth::fixed, not_negative(span), milliseconds::max());
}

milliseconds backoff::after(unsigned attempt) const noexcept
{
    // As doubles: a long series stays within its bound instead of overflowing.
    const double base = static_cast<double>(base_.count()), n = static_cast<double>(std::max(attempt, 1U));
    double wait = base;
    if (growth_ == growth::exponential) wait = base * std::exp2(std::min(n - 1, 1000.0));
    else if (growth_ == growth::linear) wait = base * n;
    constexpr double longest = 1e12;
    const double most = std::min(static_cast<double>(most_.count()), longest);
    return milliseconds(static_cast<std::int64_t>(std::min(wait, most)));
}

jitter jitter::share(double of_wait)
{
    if (!(of_wait >= 0 && of_wait <= 1)) throw validation_error("[Retry] jitter must be a share from 0 to 1");
    return jitter(of_wait);
}

milliseconds jitter::apply(milliseconds base, double unit) const noexcept
{
    const double b = static_cast<double>(base.count());
    return milliseconds(static_cast<std::int64_t>(std::floor(b - b * share_ + unit * b * share_)));
}

double random_unit(const random_source& source)
{
    const std::uint64_t bits = source ? source() : random_bits();
    return static_cast<double>(bits >> 11U) * 0x1p-53;
}

}  // namespace reagent::inline v0

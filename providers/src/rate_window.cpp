#include "rate_window.hpp"

#include <algorithm>
#include <cmath>

namespace reagent::inline v0::providers_detail {

namespace {

constexpr std::chrono::seconds window(60);

duration seconds_of(double s) noexcept
{
    constexpr double longest = 1e9;  // thirty years
    return std::chrono::duration_cast<duration>(std::chrono::duration<double>(std::clamp(s, 0.0, longest)));
}

double seconds_in(duration d) noexcept
{
    return std::chrono::duration<double>(d).count();
}

}  // namespace

void rate_dimension::forget(steady_time now)
{
    while (!last_minute_.empty() && now - last_minute_.front().at >= window) {
        sum_ -= last_minute_.front().amount;
        last_minute_.pop_front();
    }
    if (known_ && now >= full_) known_ = false;
}

steady_time rate_dimension::earliest(steady_time now, std::uint64_t amount)
{
    forget(now);
    steady_time when = earliest_learned(now, amount);
    if (!cap_) return when;
    const std::uint64_t wanted = std::min(amount, *cap_);  // more than all of it fits an empty window
    std::uint64_t sum = sum_;
    for (const entry& e : last_minute_) {
        if (sum <= *cap_ - wanted) break;
        sum -= e.amount;
        when = std::max(when, e.at + window);
    }
    return when;
}

steady_time rate_dimension::earliest_learned(steady_time now, std::uint64_t amount) noexcept
{
    if (!known_) return now;
    const double short_of = static_cast<double>(amount) + taken_since_ - remaining_;
    if (short_of <= 0) return now;
    // It fills evenly; what is not to be had before the window is full is to be had then.
    const double gained = limit_ - remaining_;
    if (gained <= 0 || short_of > gained) return std::max(now, full_);
    return std::max(now, at_ + seconds_of(seconds_in(full_ - at_) * short_of / gained));
}

void rate_dimension::take(steady_time now, std::uint64_t ticket, std::uint64_t amount)
{
    taken_since_ += static_cast<double>(amount);
    // Kept without a cap too: what an answer tells does not yet hold those who left after its request.
    last_minute_.push_back({now, ticket, amount});
    sum_ += amount;
}

void rate_dimension::correct(std::uint64_t ticket, std::uint64_t amount) noexcept
{
    const auto found = std::ranges::lower_bound(last_minute_, ticket, {}, &entry::ticket);
    if (found == last_minute_.end() || found->ticket != ticket) return;
    sum_ += amount - found->amount;
    found->amount = amount;
}

void rate_dimension::learn(steady_time now, system_time wall, std::uint64_t ticket, const rate_limit_window& w) noexcept
{
    if (!w.remaining || !w.reset || (known_ && ticket < told_by_)) return;
    const duration rest = std::chrono::duration_cast<duration>(*w.reset - wall);
    if (rest.count() <= 0) return;
    known_ = true;
    told_by_ = ticket;
    remaining_ = static_cast<double>(*w.remaining);
    limit_ = w.limit ? static_cast<double>(*w.limit) : remaining_;
    at_ = now;
    full_ = now + rest;
    taken_since_ = 0;
    for (auto e = last_minute_.rbegin(); e != last_minute_.rend() && e->ticket > ticket; ++e) taken_since_ += static_cast<double>(e->amount);
}

rate_window::rate_window(std::optional<std::uint64_t> request_cap, std::optional<std::uint64_t> token_cap, duration spread) noexcept
    : spread_(std::max(spread, duration(0)))
{
    if (request_cap) limits_[requests].cap(*request_cap);
    if (token_cap) limits_[tokens].cap(*token_cap);
}

bool rate_window::counts_tokens() const noexcept
{
    return limits_[tokens].matters() || limits_[input_tokens].matters() || limits_[output_tokens].matters();
}

std::uint64_t rate_window::amount_of(std::size_t d, const rate_amounts& a) noexcept
{
    if (d == requests) return 1;
    if (d == input_tokens) return a.input;
    if (d == output_tokens) return a.output;
    return a.input + a.output;
}

steady_time rate_window::earliest(steady_time now, const rate_amounts& amounts, std::size_t waiting, double unit)
{
    steady_time when = std::max(now, opens_);
    const steady_time from = std::max(last_return_, opens_);
    if (when < spread_end_ && from < spread_end_) {
        // The first of so many moments drawn from what is left of the time.
        const double n = static_cast<double>(std::max<std::size_t>(waiting, 1));
        const double share = 1 - std::pow(1 - unit, 1 / n);
        when = std::max(when, from + seconds_of(seconds_in(spread_end_ - from) * share));
    }
    for (std::size_t d = 0; d < dimensions; ++d) when = std::max(when, limits_[d].earliest(now, amount_of(d, amounts)));
    return when;
}

std::uint64_t rate_window::take(steady_time now, const rate_amounts& amounts)
{
    const std::uint64_t ticket = next_ticket_++;
    for (std::size_t d = 0; d < dimensions; ++d) limits_[d].take(now, ticket, amount_of(d, amounts));
    last_return_ = now;
    return ticket;
}

void rate_window::correct(std::uint64_t ticket, const rate_amounts& used) noexcept
{
    for (std::size_t d = tokens; d < dimensions; ++d) limits_[d].correct(ticket, amount_of(d, used));
}

void rate_window::learn(steady_time now, system_time wall, std::uint64_t ticket, const rate_limit_info& info) noexcept
{
    limits_[requests].learn(now, wall, ticket, info.requests);
    limits_[tokens].learn(now, wall, ticket, info.tokens);
    limits_[input_tokens].learn(now, wall, ticket, info.input_tokens);
    limits_[output_tokens].learn(now, wall, ticket, info.output_tokens);
}

void rate_window::refused(steady_time now, duration wait) noexcept
{
    opens_ = std::max(opens_, now + std::max(wait, duration(0)));
    spread_end_ = opens_ + spread_;
}

}  // namespace reagent::inline v0::providers_detail

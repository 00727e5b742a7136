/// When the next request may leave. Without I/O, clock, lock or dice.
#pragma once
#include <reagent/base/clock.hpp>
#include <reagent/model/generate.hpp>

#include <array>
#include <cstdint>
#include <deque>
#include <optional>

namespace reagent::inline v0::providers_detail {

/// One dimension of a service's limits: requests, or tokens of a kind.
class rate_dimension {
public:
    /// At most so much in any 60 seconds.
    void cap(std::uint64_t per_minute) noexcept { cap_ = per_minute; }
    bool matters() const noexcept { return cap_ || known_; }
    /// The first time from `now` on when `amount` more fits.
    steady_time earliest(steady_time now, std::uint64_t amount);
    void take(steady_time now, std::uint64_t ticket, std::uint64_t amount);
    /// The request `ticket` used another amount than was taken for it.
    void correct(std::uint64_t ticket, std::uint64_t amount) noexcept;
    /// An answer to the request `ticket` named its window. What was taken after that request is not in it.
    void learn(steady_time now, system_time wall, std::uint64_t ticket, const rate_limit_window& w) noexcept;

private:
    struct entry {
        steady_time at;
        std::uint64_t ticket, amount;
    };
    void forget(steady_time now);
    steady_time earliest_learned(steady_time now, std::uint64_t amount) noexcept;

    std::optional<std::uint64_t> cap_;
    std::deque<entry> last_minute_;  // by ticket
    std::uint64_t sum_ = 0;
    // As the service told: `remaining_` was left at `at_`, and all of `limit_` will be at `full_`.
    bool known_ = false;
    std::uint64_t told_by_ = 0;
    double limit_ = 0, remaining_ = 0, taken_since_ = 0;
    steady_time at_{}, full_{};
};

/// What one request counts as.
class rate_amounts {
public:
    rate_amounts() = default;
    rate_amounts(std::uint64_t in, std::uint64_t out) noexcept : input(in), output(out) {}
    std::uint64_t input = 0, output = 0;
};

/// All limits of a service, and its refusals.
class rate_window {
public:
    rate_window(std::optional<std::uint64_t> requests, std::optional<std::uint64_t> tokens, duration spread) noexcept;
    /// Whether amounts of tokens make a difference.
    bool counts_tokens() const noexcept;
    /// The first time from `now` on when the request may leave. `waiting`: how many stand in line, this one, the first, included; `unit`: a draw from 0 to 1 that
    /// stays the caller's while it is first.
    steady_time earliest(steady_time now, const rate_amounts& amounts, std::size_t waiting, double unit);
    /// It leaves. Gives its ticket.
    std::uint64_t take(steady_time now, const rate_amounts& amounts);
    void correct(std::uint64_t ticket, const rate_amounts& used) noexcept;
    void learn(steady_time now, system_time wall, std::uint64_t ticket, const rate_limit_info& info) noexcept;
    /// The service refused and wants to be left alone for `wait`.
    void refused(steady_time now, duration wait) noexcept;
    /// When a caller of now could leave at the earliest, as far as refusals go.
    steady_time held_until() const noexcept { return opens_; }

private:
    enum dimension : std::size_t { requests, tokens, input_tokens, output_tokens, dimensions };
    static std::uint64_t amount_of(std::size_t d, const rate_amounts& a) noexcept;

    std::array<rate_dimension, dimensions> limits_;
    std::uint64_t next_ticket_ = 1;
    duration spread_;
    steady_time opens_{};       ///< nobody leaves before
    steady_time spread_end_{};  ///< until here the returns are strewn
    steady_time last_return_{};
};

}  // namespace reagent::inline v0::providers_detail

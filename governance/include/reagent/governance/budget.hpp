#pragma once
#include <reagent/base/asio.hpp>
#include <reagent/base/usd.hpp>

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

namespace reagent::inline v0 {

struct budget_node;
class budget;
namespace governance_detail {
struct budget_access;
}

/// An amount under the two names a budget counts.
class budget_amount {
public:
    budget_amount() = default;
    explicit budget_amount(usd c, std::uint64_t t = 0) noexcept : cost(c), tokens(t) {}
    usd cost;
    std::uint64_t tokens = 0;
};
/// Limits; one that is absent is unlimited. Zero admits nothing.
class budget_caps {
public:
    budget_caps() = default;
    explicit budget_caps(usd c) noexcept : cost(c) {}
    budget_caps(std::optional<usd> c, std::optional<std::uint64_t> t) noexcept : cost(c), tokens(t) {}
    std::optional<usd> cost;
    std::optional<std::uint64_t> tokens;
};
enum class budget_dimension : std::uint8_t { cost, tokens };
/// `budget.maxCostUsd` or `budget.maxTokens`.
std::string_view budget_rule(budget_dimension d) noexcept;

/// What one budget of a tree looks like at a moment.
class budget_state {
public:
    budget_state() = default;
    budget_amount spent, reserved;
    budget_caps caps;
    std::size_t waiting = 0;          ///< reservations of this budget and its descendants that wait
    bool overrun = false;             ///< more is spent than a cap allows: nothing is admitted
    usd excess_cost;                  ///< what settles passed their reservations by, in total
    std::uint64_t excess_tokens = 0;  ///< likewise
};

/// Money held for one attempt, in the budget and all its ancestors. Settle or release it; dying unsettled releases.
/// Keeps the budget alive by itself. Thread safe as far as the budget is; one reservation belongs to one caller.
class reservation {
public:
    reservation() noexcept = default;
    reservation(reservation&&) noexcept;
    reservation& operator=(reservation&&) noexcept;
    ~reservation();
    /// Whether a budget holds anything for it; a granted admission of no budget at all is empty.
    explicit operator bool() const noexcept { return node_ != nullptr; }
    const budget_amount& held() const noexcept { return held_; }
    /// Spends `actual` and frees the rest, waking waiters in FIFO order. More than held is recorded as excess, never cut. Negative amounts count as zero.
    void settle(const budget_amount& actual) noexcept;
    void release() noexcept;
    /// Whether `so_far` reported for this attempt would pass a cap on top of what is spent without it; the dimension passed.
    std::optional<budget_dimension> passes(const budget_amount& so_far) const noexcept;

private:
    friend struct governance_detail::budget_access;
    reservation(std::shared_ptr<budget_node> node, const budget_amount& held) noexcept;
    std::shared_ptr<budget_node> node_;
    budget_amount held_;
};

/// What `reserve` answered: a reservation, or which budget of the chain can never fit it as things stand.
class admission {
public:
    admission() noexcept = default;
    reservation held;
    std::optional<budget_dimension> refused;
    std::string budget_name;  ///< of the budget that refused
    budget_amount spent;      ///< of that budget
    budget_caps caps;         ///< of that budget
    bool granted() const noexcept { return !refused; }
    /// The budget that refused; empty when granted.
    budget refused_by() const noexcept;

private:
    friend struct governance_detail::budget_access;
    std::shared_ptr<budget_node> refuser_;
};

/// A cap on money and tokens that reserves before it admits (design §4). A handle on a shared node; budgets form a tree, a child draws from its
/// parent. Thread safe; waiters complete on their own executor, and a grant that meets a cancellation is given back.
/// Never more than a cap is admitted: in every budget of the tree spent + reserved stays within it, unless a settle passes its reservation.
class budget {
public:
    budget() noexcept = default;  ///< no budget: everything fits
    budget(std::string name, budget_caps caps);
    budget(std::string name, usd cap) : budget(std::move(name), budget_caps(cap)) {}
    budget child(std::string name, budget_caps caps = {}) const;
    budget child(std::string name, usd cap) const { return child(std::move(name), budget_caps(cap)); }
    explicit operator bool() const noexcept { return node_ != nullptr; }
    /// Whether this budget or an ancestor caps that dimension.
    bool caps_cost() const noexcept;
    bool caps_tokens() const noexcept;
    /// Holds `amount` here and in every ancestor, or waits while another holder's release could make it fit, or answers refused. Waiting is
    /// FIFO in each budget that is short; a line in one budget holds up no one who does not need that budget. A waiter that can never fit any
    /// more is answered refused. Cancellation: terminal and total, `operation_aborted`; nothing is held then.
    awaitable<admission> reserve(budget_amount amount) const;
    /// As `reserve` without waiting: empty when it would have to wait.
    std::optional<admission> try_reserve(budget_amount amount) const;
    /// Holds `amount` whatever the caps say: a person has allowed this one attempt.
    reservation force(budget_amount amount) const;
    /// The refusal that any reservation would get now because a budget of the chain has spent its cap.
    std::optional<admission> exhausted() const;
    /// Sets a cap of this budget or of the nearest ancestor with that name, higher or lower, and wakes waiters; the old cap.
    /// Throws `validation_error` when `new_cap` is not a finite number ≥ 0 or no budget of the chain has the name.
    std::optional<double> raise_cap(budget_dimension d, double new_cap, std::string_view name = {}) const;
    /// Adds spend that was not reserved.
    void charge(const budget_amount& actual) const noexcept;
    budget_state state() const;
    /// The parent; empty at the root.
    budget parent() const noexcept;
    const std::string& name() const noexcept;
    /// The tree below and including this budget, one line each, for reports.
    std::string describe() const;

private:
    friend class admission;
    explicit budget(std::shared_ptr<budget_node> node) noexcept : node_(std::move(node)) {}
    std::shared_ptr<budget_node> node_;
};

}  // namespace reagent::inline v0

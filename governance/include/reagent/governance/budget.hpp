#pragma once
#include <reagent/base/asio.hpp>
#include <reagent/base/usd.hpp>

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <variant>

namespace reagent::inline v0 {

/// An amount under the two names a budget counts.
class budget_amount {
public:
    budget_amount() = default;
    budget_amount(usd c, std::uint64_t t) noexcept : cost(c), tokens(t) {}
    usd cost;
    std::uint64_t tokens = 0;
};
class budget_caps {
public:
    budget_caps() = default;
    explicit budget_caps(usd c) noexcept : cost(c) {}
    std::optional<usd> cost;
    std::optional<std::uint64_t> tokens;
};
enum class budget_dimension : std::uint8_t { cost, tokens };
/// `budget.maxCostUsd` or `budget.maxTokens`.
std::string_view budget_rule(budget_dimension d) noexcept;

class budget_state {
public:
    budget_amount spent, reserved;
    budget_caps caps;
    std::size_t waiting = 0;
    bool overrun = false;  ///< a settle passed its reservation and the cap: admission is stopped
    usd excess_cost;       ///< by how much
    std::uint64_t excess_tokens = 0;
};

class budget;

/// Money held for one attempt, in the budget and all its ancestors. Settle or release it; dying unsettled releases.
class reservation {
public:
    reservation() noexcept = default;
    reservation(reservation&&) noexcept;
    reservation& operator=(reservation&&) noexcept;
    ~reservation();
    explicit operator bool() const noexcept { return node_ != nullptr; }
    const budget_amount& held() const noexcept { return held_; }
    /// Spends `actual` (at most recorded, more than held is recorded as overrun) and frees the rest, waking waiters in FIFO order.
    void settle(const budget_amount& actual) noexcept;
    void release() noexcept;
    /// Whether `so_far` reported for this attempt would pass a cap on top of what is spent without it; the dimension passed.
    std::optional<budget_dimension> passes(const budget_amount& so_far) const noexcept;

private:
    friend class budget;
    struct access;
    std::shared_ptr<struct budget_node> node_;
    budget_amount held_;
};

/// What `reserve` answered: a reservation, or which budget of the chain cannot ever fit it as things stand.
class admission {
public:
    reservation held;
    std::optional<budget_dimension> refused;
    std::string budget_name;  ///< of the budget that refused
    budget_amount spent;      ///< of that budget
    budget_caps caps;
    bool granted() const noexcept { return !refused; }
};

/// A cap on money and tokens that reserves before it admits (design §4). A handle on a shared node; budgets form a tree, a child draws from its
/// parent. Thread safe; waiters complete on their own executor, and a grant that meets a cancellation is given back.
class budget {
public:
    budget() noexcept = default;  ///< no budget: everything fits
    budget(std::string name, budget_caps caps);
    budget child(std::string name, budget_caps caps = {});
    budget child(std::string name, usd cap) { return child(std::move(name), budget_caps(cap)); }
    explicit operator bool() const noexcept { return node_ != nullptr; }
    /// Whether this budget or an ancestor caps that dimension.
    bool caps_cost() const noexcept;
    bool caps_tokens() const noexcept;
    /// Holds `amount` here and in every ancestor, or waits FIFO while another holder's release could make it fit, or answers refused.
    /// Cancellation: terminal and total; nothing is held then.
    awaitable<admission> reserve(budget_amount amount);
    /// As `reserve` without waiting: empty when it would have to wait.
    std::optional<admission> try_reserve(budget_amount amount);
    /// Raises (or lowers) a cap of this budget or of the named ancestor and wakes waiters.
    void raise_cap(budget_dimension d, double new_cap, std::string_view name = {});
    /// Adds spend that was not reserved.
    void charge(const budget_amount& actual) noexcept;
    budget_state state() const;
    const std::string& name() const noexcept;
    /// The whole tree for reports.
    std::string describe() const;

private:
    explicit budget(std::shared_ptr<budget_node> node) noexcept : node_(std::move(node)) {}
    std::shared_ptr<budget_node> node_;
};

}  // namespace reagent::inline v0

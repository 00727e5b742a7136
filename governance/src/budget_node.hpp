/// The ledger behind `budget`: a tree of nodes under one mutex, and the line of those who wait. No I/O, no clock; the executor of a waiter is
/// only carried along.
#pragma once
#include <reagent/base/context_watcher.hpp>
#include <reagent/governance/budget.hpp>

#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

namespace reagent::inline v0 {
namespace governance_detail {

struct budget_waiter;

/// Waiters in ticket order, intrusive: an erased completion handler must never be move-assigned (style.md §3).
class waiter_line {
public:
    budget_waiter* front() const noexcept { return head_; }
    bool empty() const noexcept { return head_ == nullptr; }
    void insert(budget_waiter& w) noexcept;
    void erase(budget_waiter& w) noexcept;

private:
    budget_waiter* head_ = nullptr;
    budget_waiter* tail_ = nullptr;
};

/// What all nodes of one tree share.
struct budget_tree {
    std::mutex mutex;
    std::uint64_t next_ticket = 1;
    std::size_t waiters = 0;
    budget_node* first_short = nullptr;  ///< nodes with a line
    struct candidate {
        std::uint64_t ticket;
        budget_node* node;
    };
    std::vector<candidate> scratch;  ///< capacity ≥ waiters, so that waking allocates nothing
};

}  // namespace governance_detail

struct budget_node : std::enable_shared_from_this<budget_node> {
    budget_node(std::shared_ptr<governance_detail::budget_tree> t, std::shared_ptr<budget_node> p, std::string n, budget_caps c);
    budget_node(const budget_node&) = delete;
    budget_node& operator=(const budget_node&) = delete;
    ~budget_node();

    const std::shared_ptr<governance_detail::budget_tree> tree;
    const std::shared_ptr<budget_node> parent;
    const std::string name;
    // Below: under tree->mutex.
    budget_caps caps;
    budget_amount spent, reserved, excess;
    governance_detail::waiter_line line;
    std::size_t waiting = 0;  ///< waiters of this node and its descendants
    std::size_t above = 0;    ///< waiters of this subtree that passed this node and stand in an ancestor's line
    budget_node* prev_short = nullptr;
    budget_node* next_short = nullptr;
    budget_node* first_child = nullptr;
    budget_node* prev_sibling = nullptr;
    budget_node* next_sibling = nullptr;
};

namespace governance_detail {

using reserve_handler = asio::any_completion_handler<void(error_code, admission)>;

/// One `reserve` that waits. Owned by the line it stands in, then by the posted completion.
struct budget_waiter final : context_watcher {
    enum class stage : std::uint8_t { waiting, answered, cancelled };
    budget_waiter(reserve_handler h, any_io_executor ex, std::shared_ptr<budget_node> l, const budget_amount& a)
        : context_watcher(ex), handler(std::move(h)), executor(std::move(ex)), leaf(std::move(l)), amount(a)
    {}
    /// Leaves the line and is gone.
    void context_ends() noexcept override;

    reserve_handler handler;
    any_io_executor executor;
    std::shared_ptr<budget_node> leaf;
    budget_amount amount;
    admission answer;
    std::uint64_t ticket = 0;
    stage at_stage = stage::waiting;  // under the mutex
    budget_node* where = nullptr;     // the node whose line it stands in
    budget_waiter* prev = nullptr;
    budget_waiter* next = nullptr;
};

/// Answered waiters on their way out of the lock, in order.
class answered_waiters {
public:
    answered_waiters() noexcept = default;
    answered_waiters(const answered_waiters&) = delete;
    answered_waiters& operator=(const answered_waiters&) = delete;
    void add(budget_waiter& w) noexcept;
    /// Posts each completion to its own executor; call without the lock.
    void post_all() noexcept;

private:
    budget_waiter* head_ = nullptr;
    budget_waiter* tail_ = nullptr;
};

struct budget_access {
    static reservation hold(std::shared_ptr<budget_node> node, const budget_amount& amount) noexcept { return reservation(std::move(node), amount); }
    static admission refusal(budget_node& by, budget_dimension d);
};

/// Negative amounts count as zero.
budget_amount sanitised(budget_amount a) noexcept;
std::uint64_t add_saturating(std::uint64_t a, std::uint64_t b) noexcept;

// All of these want tree->mutex held.
enum class placement : std::uint8_t { granted, waits, refused };
struct placed {
    placement what = placement::granted;
    budget_node* where = nullptr;  ///< the node that is short or refuses
    budget_dimension dimension = budget_dimension::cost;
};
/// Where a reservation with that ticket stands. Changes nothing.
placed place(budget_node& leaf, const budget_amount& amount, std::uint64_t ticket) noexcept;
/// The nearest budget of the chain that has spent a cap.
std::optional<placed> spent_out(budget_node& leaf) noexcept;
void hold(budget_node& leaf, const budget_amount& amount) noexcept;
void let_go(budget_node& leaf, const budget_amount& amount) noexcept;
void spend(budget_node& leaf, const budget_amount& actual) noexcept;
void record_excess(budget_node& leaf, const budget_amount& held, const budget_amount& actual) noexcept;
/// Puts a new waiter into the line of `where`.
void join_line(budget_waiter& w, budget_node& where);
/// Takes a waiter out for good.
void leave_line(budget_waiter& w) noexcept;
/// Answers everyone who fits now or can never fit, in ticket order.
void answer_waiters(budget_tree& tree, answered_waiters& out) noexcept;

}  // namespace governance_detail
}  // namespace reagent::inline v0

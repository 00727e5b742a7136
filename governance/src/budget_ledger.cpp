#include "budget_node.hpp"

#include <algorithm>
#include <limits>

namespace reagent::inline v0 {

namespace gd = governance_detail;

budget_node::budget_node(std::shared_ptr<gd::budget_tree> t, std::shared_ptr<budget_node> p, std::string n, budget_caps c)
    : tree(std::move(t)), parent(std::move(p)), name(std::move(n)), caps(c)
{
    if (!parent) return;
    const std::lock_guard lock(tree->mutex);
    next_sibling = parent->first_child;
    if (next_sibling) next_sibling->prev_sibling = this;
    parent->first_child = this;
}

budget_node::~budget_node()
{
    if (!parent) return;
    const std::lock_guard lock(tree->mutex);
    if (prev_sibling) prev_sibling->next_sibling = next_sibling;
    else parent->first_child = next_sibling;
    if (next_sibling) next_sibling->prev_sibling = prev_sibling;
}

namespace governance_detail {
namespace {

std::uint64_t sub_saturating(std::uint64_t a, std::uint64_t b) noexcept
{
    return a > b ? a - b : 0;
}

/// Whether it could fit if every holder released.
std::optional<budget_dimension> never_fits(const budget_node& n, const budget_amount& amount) noexcept
{
    // A cap that is spent out admits nothing, not even an amount of zero (governance §2 P2, P3).
    if (n.caps.cost && (n.spent.cost >= *n.caps.cost || amount.cost > *n.caps.cost - n.spent.cost)) return budget_dimension::cost;
    if (n.caps.tokens && (n.spent.tokens >= *n.caps.tokens || amount.tokens > *n.caps.tokens - n.spent.tokens)) return budget_dimension::tokens;
    return {};
}

bool fits_now(const budget_node& n, const budget_amount& amount) noexcept
{
    if (n.caps.cost && amount.cost > *n.caps.cost - n.spent.cost - n.reserved.cost) return false;
    if (n.caps.tokens && amount.tokens > sub_saturating(*n.caps.tokens, add_saturating(n.spent.tokens, n.reserved.tokens))) return false;
    return true;
}

void link_short(budget_node& n) noexcept
{
    budget_tree& tree = *n.tree;
    n.prev_short = nullptr;
    n.next_short = tree.first_short;
    if (n.next_short) n.next_short->prev_short = &n;
    tree.first_short = &n;
}

void unlink_short(budget_node& n) noexcept
{
    if (n.prev_short) n.prev_short->next_short = n.next_short;
    else n.tree->first_short = n.next_short;
    if (n.next_short) n.next_short->prev_short = n.prev_short;
    n.prev_short = n.next_short = nullptr;
}

void enter(budget_waiter& w, budget_node& where) noexcept
{
    if (where.line.empty()) link_short(where);
    where.line.insert(w);
    w.where = &where;
    for (budget_node* n = w.leaf.get(); n != &where; n = n->parent.get()) ++n->above;
}

void step_out(budget_waiter& w) noexcept
{
    budget_node& where = *w.where;
    where.line.erase(w);
    w.where = nullptr;
    if (where.line.empty()) unlink_short(where);
    for (budget_node* n = w.leaf.get(); n != &where; n = n->parent.get()) --n->above;
}

void count_waiter(budget_waiter& w, bool in) noexcept
{
    for (budget_node* n = w.leaf.get(); n; n = n->parent.get()) in ? ++n->waiting : --n->waiting;
    in ? ++w.leaf->tree->waiters : --w.leaf->tree->waiters;
}

}  // namespace

void waiter_line::insert(budget_waiter& w) noexcept
{
    budget_waiter* after = tail_;
    // A newcomer goes to the end; one that moves up from a descendant's line has waited long and belongs near the front.
    if (after && after->ticket > w.ticket) {
        budget_waiter* before = head_;
        while (before->ticket < w.ticket) before = before->next;
        after = before->prev;
    }
    w.prev = after;
    w.next = after ? after->next : head_;
    (w.prev ? w.prev->next : head_) = &w;
    (w.next ? w.next->prev : tail_) = &w;
}

void waiter_line::erase(budget_waiter& w) noexcept
{
    (w.prev ? w.prev->next : head_) = w.next;
    (w.next ? w.next->prev : tail_) = w.prev;
    w.prev = w.next = nullptr;
}

void answered_waiters::add(budget_waiter& w) noexcept
{
    w.next = nullptr;
    (tail_ ? tail_->next : head_) = &w;
    tail_ = &w;
}

std::uint64_t add_saturating(std::uint64_t a, std::uint64_t b) noexcept
{
    return a > std::numeric_limits<std::uint64_t>::max() - b ? std::numeric_limits<std::uint64_t>::max() : a + b;
}

budget_amount sanitised(budget_amount a) noexcept
{
    if (a.cost < usd()) a.cost = usd();
    return a;
}

admission budget_access::refusal(budget_node& by, budget_dimension d)
{
    admission a;
    a.refused = d;
    a.budget_name = by.name;
    a.spent = by.spent;
    a.caps = by.caps;
    a.refuser_ = by.shared_from_this();
    return a;
}

placed place(budget_node& leaf, const budget_amount& amount, std::uint64_t ticket) noexcept
{
    for (budget_node* n = &leaf; n; n = n->parent.get())
        if (const auto d = never_fits(*n, amount)) return {placement::refused, n, *d};
    for (budget_node* n = &leaf; n; n = n->parent.get()) {
        const budget_waiter* first = n->line.front();
        // One of this subtree that already stands higher up was first here: nobody overtakes it.
        if (n->above > 0 || (first && first->ticket < ticket) || !fits_now(*n, amount)) return {placement::waits, n, {}};
    }
    return {};
}

std::optional<placed> spent_out(budget_node& leaf) noexcept
{
    for (budget_node* n = &leaf; n; n = n->parent.get())
        if (const auto d = never_fits(*n, budget_amount())) return placed{placement::refused, n, *d};
    return {};
}

void hold(budget_node& leaf, const budget_amount& amount) noexcept
{
    for (budget_node* n = &leaf; n; n = n->parent.get()) {
        n->reserved.cost += amount.cost;
        n->reserved.tokens = add_saturating(n->reserved.tokens, amount.tokens);
    }
}

void let_go(budget_node& leaf, const budget_amount& amount) noexcept
{
    for (budget_node* n = &leaf; n; n = n->parent.get()) {
        n->reserved.cost = std::max(usd(), n->reserved.cost - amount.cost);
        n->reserved.tokens = sub_saturating(n->reserved.tokens, amount.tokens);
    }
}

void spend(budget_node& leaf, const budget_amount& actual) noexcept
{
    for (budget_node* n = &leaf; n; n = n->parent.get()) {
        n->spent.cost += actual.cost;
        n->spent.tokens = add_saturating(n->spent.tokens, actual.tokens);
    }
}

void record_excess(budget_node& leaf, const budget_amount& held, const budget_amount& actual) noexcept
{
    const usd cost = std::max(usd(), actual.cost - held.cost);
    const std::uint64_t tokens = sub_saturating(actual.tokens, held.tokens);
    if (cost == usd() && tokens == 0) return;
    for (budget_node* n = &leaf; n; n = n->parent.get()) {
        n->excess.cost += cost;
        n->excess.tokens = add_saturating(n->excess.tokens, tokens);
    }
}

void join_line(budget_waiter& w, budget_node& where)
{
    budget_tree& tree = *w.leaf->tree;
    if (tree.scratch.capacity() <= tree.waiters) tree.scratch.reserve(std::max<std::size_t>(16, 2 * tree.waiters));
    w.ticket = tree.next_ticket++;
    count_waiter(w, true);
    enter(w, where);
}

void leave_line(budget_waiter& w) noexcept
{
    step_out(w);
    count_waiter(w, false);
}

void answer_waiters(budget_tree& tree, answered_waiters& out) noexcept
{
    // Each round looks at the head of every line, oldest first, and starts over after a change, so that the order holds across lines too.
    for (bool changed = tree.first_short != nullptr; changed;) {
        changed = false;
        tree.scratch.clear();
        for (budget_node* n = tree.first_short; n; n = n->next_short)
            if (n->above == 0) tree.scratch.push_back({n->line.front()->ticket, n});
        if (tree.scratch.size() > 1) std::sort(tree.scratch.begin(), tree.scratch.end(), [](const auto& a, const auto& b) { return a.ticket < b.ticket; });
        for (const budget_tree::candidate& c : tree.scratch) {
            budget_waiter& w = *c.node->line.front();
            step_out(w);  // it must not stand in its own way
            const placed p = place(*w.leaf, w.amount, w.ticket);
            if (p.what == placement::waits) {
                enter(w, *p.where);
                if (p.where == c.node) continue;
            } else {
                count_waiter(w, false);
                if (p.what == placement::granted) {
                    hold(*w.leaf, w.amount);
                    w.answer.held = budget_access::hold(w.leaf, w.amount);
                } else {
                    w.answer = budget_access::refusal(*p.where, p.dimension);
                }
                w.at_stage = budget_waiter::stage::answered;
                out.add(w);
            }
            changed = true;
            break;
        }
    }
}

}  // namespace governance_detail
}  // namespace reagent::inline v0

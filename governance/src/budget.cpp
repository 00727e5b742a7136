#include "budget_node.hpp"

#include <reagent/base/error.hpp>

#include <boost/asio/error.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/prefer.hpp>
#include <boost/asio/this_coro.hpp>

#include <cmath>

namespace reagent::inline v0 {

namespace gd = governance_detail;

std::string_view budget_rule(budget_dimension d) noexcept
{
    return d == budget_dimension::cost ? "budget.maxCostUsd" : "budget.maxTokens";
}

namespace governance_detail {
namespace {

void deliver(std::unique_ptr<budget_waiter> w)
{
    auto slot = asio::get_associated_cancellation_slot(w->handler);
    if (slot.is_connected()) slot.clear();
    bool cancelled;
    {
        const std::lock_guard lock(w->leaf->tree->mutex);
        cancelled = w->at_stage == budget_waiter::stage::cancelled;
    }
    reserve_handler handler(std::move(w->handler));
    const any_io_executor alive = w->executor;
    admission answer = std::move(w->answer);
    w.reset();
    if (cancelled) {
        answer = admission();  // a grant that met the cancellation goes back
        std::move(handler)(error_code(asio::error::operation_aborted), admission());
    } else {
        std::move(handler)(error_code(), std::move(answer));
    }
}

struct cancel_waiter {
    budget_waiter* waiter;  // lives until `deliver`, which clears the slot first
    void operator()(asio::cancellation_type type) const
    {
        if (type == asio::cancellation_type::none) return;
        budget_waiter& w = *waiter;
        budget_tree& tree = *w.leaf->tree;
        answered_waiters out;
        {
            const std::lock_guard lock(tree.mutex);
            if (w.at_stage == budget_waiter::stage::waiting) {
                leave_line(w);
                out.add(w);
                answer_waiters(tree, out);
            }
            w.at_stage = budget_waiter::stage::cancelled;
        }
        out.post_all();
    }
};

struct start_waiting {
    template <class Handler>
    void operator()(Handler&& h, any_io_executor ex, std::shared_ptr<budget_node> leaf, const budget_amount& amount) const
    {
        auto tracked = asio::prefer(ex, asio::execution::outstanding_work.tracked);
        auto owned = std::make_unique<budget_waiter>(reserve_handler(std::forward<Handler>(h)), std::move(tracked), std::move(leaf), amount);
        budget_waiter& w = *owned;
        // Asked of the erased handler: erasing puts a cancellation state of its own into the slot of the bare one.
        auto slot = asio::get_associated_cancellation_slot(w.handler);
        if (slot.is_connected()) slot.template emplace<cancel_waiter>(cancel_waiter{&w});
        budget_tree& tree = *w.leaf->tree;
        answered_waiters out;
        {
            const std::lock_guard lock(tree.mutex);
            // Things may have moved since the first look.
            const placed p = place(*w.leaf, amount, tree.next_ticket);
            if (p.what == placement::waits) {
                join_line(w, *p.where);
            } else {
                if (p.what == placement::granted) {
                    hold(*w.leaf, amount);
                    w.answer.held = budget_access::hold(w.leaf, amount);
                } else {
                    w.answer = budget_access::refusal(*p.where, p.dimension);
                }
                w.at_stage = budget_waiter::stage::answered;
                out.add(w);
            }
        }
        (void)owned.release();  // the line or the completion owns it now
        out.post_all();
    }
};

/// Empty when it would have to wait.
std::optional<admission> reserve_now(const std::shared_ptr<budget_node>& node, const budget_amount& amount)
{
    admission a;
    if (!node) return a;
    const std::lock_guard lock(node->tree->mutex);
    const placed p = place(*node, amount, node->tree->next_ticket);
    if (p.what == placement::waits) return {};
    if (p.what == placement::refused) return budget_access::refusal(*p.where, p.dimension);
    hold(*node, amount);
    a.held = budget_access::hold(node, amount);
    return a;
}

awaitable<admission> reserve_or_wait(std::shared_ptr<budget_node> node, budget_amount amount)
{
    std::optional<admission> now = reserve_now(node, amount);
    if (now) co_return std::move(*now);
    const any_io_executor ex = co_await asio::this_coro::executor;
    const start_waiting start;
    admission a =
        co_await asio::async_initiate<const asio::use_awaitable_t<>, void(error_code, admission)>(start, asio::use_awaitable, ex, std::move(node), amount);
    co_return a;
}

}  // namespace

void budget_waiter::context_ends() noexcept
{
    const std::shared_ptr<budget_node> node = leaf;  // outlives this
    answered_waiters out;
    {
        const std::lock_guard lock(node->tree->mutex);
        if (at_stage != stage::waiting) return;  // the context has its completion
        leave_line(*this);
        answer_waiters(*node->tree, out);
    }
    out.post_all();
    delete this;
}

void answered_waiters::post_all() noexcept
{
    while (budget_waiter* w = head_) {
        head_ = w->next;
        w->next = nullptr;
        const any_io_executor ex = w->executor;
        asio::post(ex, [owned = std::unique_ptr<budget_waiter>(w)]() mutable { deliver(std::move(owned)); });
    }
    tail_ = nullptr;
}

}  // namespace governance_detail

// ---- reservation

reservation::reservation(std::shared_ptr<budget_node> node, const budget_amount& held) noexcept : node_(std::move(node)), held_(held) {}

reservation::reservation(reservation&& o) noexcept : node_(std::move(o.node_)), held_(std::exchange(o.held_, budget_amount())) {}

reservation& reservation::operator=(reservation&& o) noexcept
{
    if (this != &o) {
        release();
        node_ = std::move(o.node_);
        held_ = std::exchange(o.held_, budget_amount());
    }
    return *this;
}

reservation::~reservation()
{
    release();
}

void reservation::settle(const budget_amount& reported) noexcept
{
    const budget_amount actual = gd::sanitised(reported);  // before all else: it may be our own `held`
    const std::shared_ptr<budget_node> node = std::move(node_);
    const budget_amount held = std::exchange(held_, budget_amount());
    if (!node) return;
    gd::answered_waiters out;
    {
        const std::lock_guard lock(node->tree->mutex);
        gd::let_go(*node, held);
        gd::spend(*node, actual);
        gd::record_excess(*node, held, actual);
        gd::answer_waiters(*node->tree, out);
    }
    out.post_all();
}

void reservation::release() noexcept
{
    settle(budget_amount());
}

std::optional<budget_dimension> reservation::passes(const budget_amount& so_far) const noexcept
{
    if (!node_) return {};
    const std::lock_guard lock(node_->tree->mutex);
    for (const budget_node* n = node_.get(); n; n = n->parent.get()) {
        if (n->caps.cost && n->spent.cost + so_far.cost > *n->caps.cost) return budget_dimension::cost;
        if (n->caps.tokens && gd::add_saturating(n->spent.tokens, so_far.tokens) > *n->caps.tokens) return budget_dimension::tokens;
    }
    return {};
}

budget admission::refused_by() const noexcept
{
    return budget(refuser_);
}

// ---- budget

budget::budget(std::string name, budget_caps caps) : node_(std::make_shared<budget_node>(std::make_shared<gd::budget_tree>(), nullptr, std::move(name), caps))
{}

budget budget::child(std::string name, budget_caps caps) const
{
    if (!node_) return budget(std::move(name), caps);
    return budget(std::make_shared<budget_node>(node_->tree, node_, std::move(name), caps));
}

namespace {
template <class Has>
bool any_in_chain(const std::shared_ptr<budget_node>& node, Has has) noexcept
{
    if (!node) return false;
    const std::lock_guard lock(node->tree->mutex);
    for (const budget_node* n = node.get(); n; n = n->parent.get())
        if (has(*n)) return true;
    return false;
}
}  // namespace

bool budget::caps_cost() const noexcept
{
    return any_in_chain(node_, [](const budget_node& n) { return n.caps.cost.has_value(); });
}

bool budget::caps_tokens() const noexcept
{
    return any_in_chain(node_, [](const budget_node& n) { return n.caps.tokens.has_value(); });
}

awaitable<admission> budget::reserve(budget_amount amount) const
{
    return gd::reserve_or_wait(node_, gd::sanitised(amount));
}

std::optional<admission> budget::try_reserve(budget_amount amount) const
{
    return gd::reserve_now(node_, gd::sanitised(amount));
}

reservation budget::force(budget_amount amount) const
{
    if (!node_) return {};
    const budget_amount wanted = gd::sanitised(amount);
    const std::lock_guard lock(node_->tree->mutex);
    gd::hold(*node_, wanted);
    return gd::budget_access::hold(node_, wanted);
}

std::optional<admission> budget::exhausted() const
{
    if (!node_) return {};
    const std::lock_guard lock(node_->tree->mutex);
    const std::optional<gd::placed> by = gd::spent_out(*node_);
    if (!by) return {};
    return gd::budget_access::refusal(*by->where, by->dimension);
}

std::optional<double> budget::raise_cap(budget_dimension d, double new_cap, std::string_view name) const
{
    if (!std::isfinite(new_cap) || new_cap < 0) throw validation_error("budget: a cap must be a finite number of at least 0");
    budget_node* target = node_.get();
    if (!name.empty())
        while (target && target->name != name) target = target->parent.get();
    if (!target) throw validation_error("budget: no budget named \"" + std::string(name) + "\" in the chain");
    std::optional<double> old;
    gd::answered_waiters out;
    {
        const std::lock_guard lock(target->tree->mutex);
        if (d == budget_dimension::cost) {
            if (target->caps.cost) old = target->caps.cost->to_double();
            target->caps.cost = usd::from_double(new_cap);
        } else {
            if (target->caps.tokens) old = static_cast<double>(*target->caps.tokens);
            target->caps.tokens = new_cap >= 0x1p64 ? UINT64_MAX : static_cast<std::uint64_t>(new_cap);
        }
        gd::answer_waiters(*target->tree, out);
    }
    out.post_all();
    return old;
}

void budget::charge(const budget_amount& actual) const noexcept
{
    if (!node_) return;
    gd::answered_waiters out;
    {
        const std::lock_guard lock(node_->tree->mutex);
        gd::spend(*node_, gd::sanitised(actual));
        gd::answer_waiters(*node_->tree, out);
    }
    out.post_all();
}

budget_state budget::state() const
{
    budget_state s;
    if (!node_) return s;
    const std::lock_guard lock(node_->tree->mutex);
    s.spent = node_->spent;
    s.reserved = node_->reserved;
    s.caps = node_->caps;
    s.waiting = node_->waiting;
    s.overrun = (s.caps.cost && s.spent.cost > *s.caps.cost) || (s.caps.tokens && s.spent.tokens > *s.caps.tokens);
    s.excess_cost = node_->excess.cost;
    s.excess_tokens = node_->excess.tokens;
    return s;
}

budget budget::parent() const noexcept
{
    return budget(node_ ? node_->parent : nullptr);
}

const std::string& budget::name() const noexcept
{
    static const std::string none;
    return node_ ? node_->name : none;
}

namespace {
void describe_node(std::string& out, const budget_node& n, std::size_t depth)
{
    out.append(2 * depth, ' ').append(n.name).append(": spent $").append(n.spent.cost.to_string());
    if (n.caps.cost) out.append(" of $").append(n.caps.cost->to_string());
    out.append(", ").append(std::to_string(n.spent.tokens));
    if (n.caps.tokens) out.append(" of ").append(std::to_string(*n.caps.tokens));
    out.append(" tokens");
    if (n.reserved.cost > usd() || n.reserved.tokens > 0)
        out.append("; reserved $").append(n.reserved.cost.to_string()).append(", ").append(std::to_string(n.reserved.tokens)).append(" tokens");
    if (n.excess.cost > usd() || n.excess.tokens > 0)
        out.append("; over reservation $").append(n.excess.cost.to_string()).append(", ").append(std::to_string(n.excess.tokens)).append(" tokens");
    if (n.waiting > 0) out.append("; ").append(std::to_string(n.waiting)).append(" waiting");
    out.push_back('\n');
    const budget_node* last = n.first_child;  // newest first: print in the order they were made
    while (last && last->next_sibling) last = last->next_sibling;
    for (; last; last = last->prev_sibling) describe_node(out, *last, depth + 1);
}
}  // namespace

std::string budget::describe() const
{
    std::string out;
    if (!node_) return out;
    const std::lock_guard lock(node_->tree->mutex);
    describe_node(out, *node_, 0);
    return out;
}

}  // namespace reagent::inline v0

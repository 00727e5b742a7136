#include "pool_index.hpp"

#include <cassert>
#include <utility>

namespace reagent::inline v0::net_detail {
namespace {
constexpr duration sweep_every = std::chrono::seconds(5);
}

pool_origin& pool_index::origin(bool tls, std::string_view host, std::uint16_t port, std::uint32_t route)
{
    if (last_ && last_->port == port && last_->route == route && last_->tls == tls && last_->host == host) return *last_;
    auto at = origins_.find(key_view{host, route, port, tls});
    if (at == origins_.end()) {
        at = origins_.try_emplace(key{std::string(host), route, port, tls}).first;
        at->second.tls = tls;
        at->second.host.assign(host);
        at->second.port = port;
        at->second.route = route;
    }
    last_ = &at->second;
    return *last_;
}

bool pool_index::too_old(const pooled& c, steady_time now) const noexcept
{
    return (limits_.max_total_age > duration::zero() && now - c.born >= limits_.max_total_age) ||
        (limits_.max_idle_age > duration::zero() && now - c.idle_since >= limits_.max_idle_age);
}

// The oldest stand in front; one that is old in all may stand anywhere, and is met when it is taken or swept.
void pool_index::expire(pool_origin& o, steady_time now)
{
    while (!o.idle_.empty() && too_old(*o.idle_.front(), now)) {
        o.idle_.pop_front();
        --o.open_;
    }
}

pooled_ptr pool_index::take_idle(pool_origin& o, steady_time now)
{
    while (!o.idle_.empty()) {
        pooled_ptr c = std::move(o.idle_.back());
        o.idle_.pop_back();
        if (!too_old(*c, now)) {
            if (!c->stale()) return c;
            ++stale_dropped_;
        }
        --o.open_;
    }
    return nullptr;
}

bool pool_index::reserve(pool_origin& o) noexcept
{
    if (limits_.max_open != 0 && (o.open_ >= limits_.max_open || o.first_)) return false;
    ++o.open_;
    return true;
}

void pool_index::enqueue(pool_origin& o, pool_waiter& w) noexcept
{
    assert(!w.waiting());
    w.origin_ = &o;
    w.before_ = o.last_;
    w.behind_ = nullptr;
    (o.last_ ? o.last_->behind_ : o.first_) = &w;
    o.last_ = &w;
    ++o.waiting_;
}

void pool_index::leave(pool_waiter& w) noexcept
{
    if (!w.origin_) return;
    pool_origin& o = *std::exchange(w.origin_, nullptr);
    (w.before_ ? w.before_->behind_ : o.first_) = w.behind_;
    (w.behind_ ? w.behind_->before_ : o.last_) = w.before_;
    w.before_ = w.behind_ = nullptr;
    --o.waiting_;
}

void pool_index::give_back(pool_origin& o, pooled_ptr connection, steady_time now)
{
    assert(o.open_ > 0);
    if (connection) {
        connection->idle_since = now;
        if (too_old(*connection, now)) connection.reset();
    }
    if (pool_waiter* first = o.first_) {
        leave(*first);
        first->granted(std::move(connection));
    } else if (connection && o.idle_.size() < limits_.max_idle) {
        expire(o, now);
        o.idle_.push_back(std::move(connection));
    } else {
        connection.reset();
        --o.open_;
    }
    if (now >= next_sweep_) sweep(now);
}

void pool_index::sweep(steady_time now)
{
    next_sweep_ = now + sweep_every;
    last_ = nullptr;
    for (auto at = origins_.begin(); at != origins_.end();) {
        pool_origin& o = at->second;
        o.open_ -= std::erase_if(o.idle_, [&](const pooled_ptr& c) { return too_old(*c, now); });
        if (o.open_ == 0 && o.waiting_ == 0) at = origins_.erase(at);
        else ++at;
    }
}

void pool_index::close_idle()
{
    for (auto& [k, o] : origins_) {
        o.open_ -= o.idle_.size();
        o.idle_.clear();
    }
}

void pool_index::mark_busy_routes(std::vector<bool>& busy) const
{
    for (const auto& [k, o] : origins_)
        if (k.route < busy.size() && (o.open_ > o.idle_.size() || o.waiting_ > 0)) busy[k.route] = true;
}

void pool_index::forget_route(std::uint32_t route)
{
    last_ = nullptr;
    std::erase_if(origins_, [route](const auto& entry) { return entry.first.route == route; });
}

std::size_t pool_index::open() const noexcept
{
    std::size_t n = 0;
    for (const auto& [k, o] : origins_) n += o.open_;
    return n;
}

std::size_t pool_index::idle() const noexcept
{
    std::size_t n = 0;
    for (const auto& [k, o] : origins_) n += o.idle_.size();
    return n;
}

std::size_t pool_index::waiting() const noexcept
{
    std::size_t n = 0;
    for (const auto& [k, o] : origins_) n += o.waiting_;
    return n;
}

}  // namespace reagent::inline v0::net_detail

#pragma once
#include <reagent/base/clock.hpp>

#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace reagent::inline v0::net_detail {

class pool_origin;

/// What the pool keeps: a connection between two exchanges.
class pooled {
public:
    virtual ~pooled() = default;
    /// Whether the peer has closed it or sent bytes nobody asked for.
    virtual bool stale() noexcept = 0;
    steady_time born{};
    steady_time idle_since{};
};
using pooled_ptr = std::unique_ptr<pooled>;

/// One who waits for a slot. A member of its own queue: no allocation, and leaving costs nothing.
class pool_waiter {
public:
    pool_waiter() = default;
    pool_waiter(const pool_waiter&) = delete;
    pool_waiter& operator=(const pool_waiter&) = delete;
    bool waiting() const noexcept { return origin_ != nullptr; }

protected:
    ~pool_waiter() = default;
    /// A slot is yours, with an idle connection or without (then dial). Called from inside `give_back`; must not call the pool.
    virtual void granted(pooled_ptr connection) noexcept = 0;

private:
    friend class pool_index;
    pool_origin* origin_ = nullptr;
    pool_waiter* before_ = nullptr;
    pool_waiter* behind_ = nullptr;
};

/// Connections to one scheme, host and port by one route.
class pool_origin {
public:
    bool tls = false;
    std::string host;
    std::uint16_t port = 0;
    std::uint32_t route = 0;  ///< 0 straight there; what else there is, the client knows
    std::size_t open() const noexcept { return open_; }
    std::size_t idle() const noexcept { return idle_.size(); }
    std::size_t waiting() const noexcept { return waiting_; }

private:
    friend class pool_index;
    std::deque<pooled_ptr> idle_;  // newest at the back
    std::size_t open_ = 0;         // slots: in use, being dialled, idle
    std::size_t waiting_ = 0;
    pool_waiter* first_ = nullptr;
    pool_waiter* last_ = nullptr;
};

class pool_limits {
public:
    std::size_t max_open = 0;  ///< slots per origin, 0 unlimited
    std::size_t max_idle = 64;
    duration max_idle_age = std::chrono::seconds(20);    ///< 0 off
    duration max_total_age = std::chrono::seconds(300);  ///< 0 off
};

/// The pool's decisions, without sockets, timers or coroutines. A slot is taken by `take_idle`, `reserve` or a grant, and given back exactly once by
/// `give_back`. Ages are looked at when connections come and go; nothing wakes up for them.
class pool_index {
public:
    explicit pool_index(pool_limits limits) : limits_(limits) {}
    /// The entry of an origin, which lives while it has slots or waiters, and at least until the next `sweep`.
    pool_origin& origin(bool tls, std::string_view host, std::uint16_t port, std::uint32_t route = 0);
    /// The most recently used idle connection that is young enough and not stale, its slot with it; null when there is none.
    pooled_ptr take_idle(pool_origin& o, steady_time now);
    /// A slot for a new connection; false when the origin is full.
    bool reserve(pool_origin& o) noexcept;
    /// Queues behind everyone else.
    void enqueue(pool_origin& o, pool_waiter& w) noexcept;
    /// Leaves the queue. Does nothing for one who is not in it.
    void leave(pool_waiter& w) noexcept;
    /// Gives a slot back, with its connection when that can be used again. The first waiter gets both, whatever the connection served before.
    void give_back(pool_origin& o, pooled_ptr connection, steady_time now);
    /// Drops idle connections past their age everywhere, and entries with nothing in them.
    void sweep(steady_time now);
    /// Drops all idle connections.
    void close_idle();
    /// Sets `busy[route]` for each route on which connections are in use or being dialled, or are waited for.
    void mark_busy_routes(std::vector<bool>& busy) const;
    /// Drops the entries of a route that is not busy, its idle connections with them.
    void forget_route(std::uint32_t route);

    std::size_t open() const noexcept;
    std::size_t idle() const noexcept;
    std::size_t waiting() const noexcept;
    std::uint64_t stale_dropped() const noexcept { return stale_dropped_; }

private:
    class key {
    public:
        std::string host;
        std::uint32_t route;
        std::uint16_t port;
        bool tls;
    };
    class key_view {
    public:
        std::string_view host;
        std::uint32_t route;
        std::uint16_t port;
        bool tls;
    };
    struct hash {
        using is_transparent = void;
        std::size_t operator()(const key_view& k) const noexcept
        {
            return std::hash<std::string_view>()(k.host) * 31 + k.port * 2u + k.route * 131u + (k.tls ? 1u : 0u);
        }
        std::size_t operator()(const key& k) const noexcept { return (*this)(key_view{k.host, k.route, k.port, k.tls}); }
    };
    struct equal {
        using is_transparent = void;
        template <class A, class B>
        bool operator()(const A& a, const B& b) const noexcept
        {
            return a.port == b.port && a.tls == b.tls && a.route == b.route && std::string_view(a.host) == std::string_view(b.host);
        }
    };

    bool too_old(const pooled& c, steady_time now) const noexcept;
    void expire(pool_origin& o, steady_time now);

    pool_limits limits_;
    std::unordered_map<key, pool_origin, hash, equal> origins_;
    pool_origin* last_ = nullptr;  // most programs talk to one origin
    steady_time next_sweep_{};
    std::uint64_t stale_dropped_ = 0;
};

}  // namespace reagent::inline v0::net_detail

#include "ares_lookup.hpp"
#include "hosts_file.hpp"
#include "name_cache.hpp"
#include "parking.hpp"

#include <reagent/base/error.hpp>
#include <reagent/base/untrusted_text.hpp>
#include <reagent/net/resolver.hpp>

#include <boost/asio/error.hpp>
#include <boost/asio/this_coro.hpp>

#include <list>
#include <unordered_map>

namespace reagent::inline v0 {
namespace {

using net_detail::ares_lookup;
using net_detail::lookup_result;
using net_detail::parking;

// `localhost` and names below it are loopback and never asked of a server (RFC 6761, section 6.3).
bool is_localhost(std::string_view host) noexcept
{
    if (host.ends_with('.')) host.remove_suffix(1);
    return host == "localhost" || host.ends_with(".localhost");
}

[[noreturn]] void throw_unresolved(const std::string& host, const std::string& why)
{
    throw error(errc::resolve_failed, "[resolver] " + untrusted_text(host, 255) + ": " + why, true);
}

class flight;

/// What outlives the resolver for as long as somebody waits.
struct resolver_state {
    resolver_state(any_io_executor e, dns_options o)
        : ex(std::move(e)), options(std::move(o)), time(options.clock ? options.clock : clock::system()), cache(options.max_cached)
    {}
    any_io_executor ex;
    dns_options options;
    clock_ptr time;
    net_detail::name_cache cache;
    std::unordered_map<std::string, flight*> flights;
};

/// One look-up under way and all who wait for it, who own it together: it ends with the last of them.
class flight : public std::enable_shared_from_this<flight> {
public:
    flight(std::shared_ptr<resolver_state> s, std::string host)
        : state_(std::move(s)), host_(std::move(host)), look_up_(state_->ex, state_->options, state_->time, [this](lookup_result r) { landed(std::move(r)); })
    {
        state_->flights.emplace(host_, this);
        look_up_.start(host_);
    }
    flight(const flight&) = delete;
    flight& operator=(const flight&) = delete;
    ~flight() { leave(); }

    bool done = false;
    lookup_result result;
    std::list<parking> waiters;

private:
    // From inside a callback of c-ares: those who wait go on later, and the last of them ends us.
    void landed(lookup_result r)
    {
        if (!r.addresses.empty()) state_->cache.keep(host_, r.addresses, r.ttl, state_->time->now());
        else if (r.absent) state_->cache.keep_absent(host_, r.trouble, state_->time->now());
        result = std::move(r);
        done = true;
        leave();
        for (parking& w : waiters) w.wake();
    }
    void leave()
    {
        const auto at = state_->flights.find(host_);
        if (at != state_->flights.end() && at->second == this) state_->flights.erase(at);
    }
    std::shared_ptr<resolver_state> state_;
    std::string host_;
    ares_lookup look_up_;
};

std::shared_ptr<flight> join(const std::shared_ptr<resolver_state>& state, const std::string& host)
{
    const auto at = state->flights.find(host);
    return at != state->flights.end() ? at->second->shared_from_this() : std::make_shared<flight>(state, host);
}

/// A place among those who wait, left however the coroutine ends.
class seat {
public:
    seat(flight& f, any_io_executor ex) : flight_(f), at_(f.waiters.emplace(f.waiters.end(), std::move(ex))) {}
    seat(const seat&) = delete;
    seat& operator=(const seat&) = delete;
    ~seat() { flight_.waiters.erase(at_); }
    parking& place() noexcept { return *at_; }

private:
    flight& flight_;
    std::list<parking>::iterator at_;
};

awaitable<std::vector<ip_address>> ask(std::shared_ptr<resolver_state> state, std::string host)
{
    if (const auto* known = state->cache.find(host, state->time->now())) {
        if (known->addresses.empty()) throw_unresolved(host, known->trouble);
        co_return known->addresses;
    }
    std::vector<ip_address> listed;
    if (!state->options.hosts_file.empty()) listed = net_detail::hosts_of(state->options.hosts_file, host);
    if (!listed.empty()) {
        state->cache.keep(host, listed, net_detail::name_cache::shortest, state->time->now());
        co_return listed;
    }
    const std::shared_ptr<flight> joined = join(state, host);
    if (!joined->done) {
        seat here(*joined, state->ex);
        co_await here.place().wait();
    }
    const auto cancel_state = co_await asio::this_coro::cancellation_state;
    if (cancel_state.cancelled() != asio::cancellation_type::none) throw boost::system::system_error(asio::error::operation_aborted, "co_await");
    if (joined->result.addresses.empty()) throw_unresolved(host, joined->result.trouble);
    co_return joined->result.addresses;
}

class system_resolver final : public resolver {
public:
    system_resolver(any_io_executor ex, dns_options options) : state_(std::make_shared<resolver_state>(std::move(ex), std::move(options))) {}

    awaitable<std::vector<ip_address>> resolve(std::string host) override
    {
        std::vector<ip_address> found;
        if (const auto literal = ip_address::parse(host)) {
            found.push_back(*literal);
        } else if (is_localhost(host)) {
            // Servers on localhost listen on 127.0.0.1 more often than on ::1.
            found.push_back(*ip_address::parse("127.0.0.1"));
            found.push_back(*ip_address::parse("::1"));
        } else if (host.empty() || host.size() > 255) {
            throw error(errc::resolve_failed, "[resolver] a host name has 1 to 255 characters");
        } else {
            found = co_await ask(state_, std::move(host));
        }
        co_return found;
    }

    void forget(const std::string& host) noexcept override { state_->cache.forget(host); }

private:
    std::shared_ptr<resolver_state> state_;
};

}  // namespace

resolver_ptr make_system_resolver(any_io_executor ex, dns_options options)
{
    return std::make_shared<system_resolver>(std::move(ex), std::move(options));
}

}  // namespace reagent::inline v0

#pragma once
#include <reagent/base/address.hpp>
#include <reagent/base/asio.hpp>
#include <reagent/net/resolver.hpp>

#include <functional>
#include <memory>
#include <string>
#include <vector>

namespace reagent::inline v0::net_detail {

/// What a look-up found.
class lookup_result {
public:
    lookup_result() = default;
    std::vector<ip_address> addresses;  ///< IPv6 first, each family in the order c-ares prefers
    std::chrono::seconds ttl{0};        ///< smallest of all records used
    bool absent = false;                ///< the servers say that there is no such name, or no address of it
    std::string trouble;                ///< why there are no addresses
};

/// One look-up by c-ares on a reactor, both families at once, with a channel of its own: c-ares 1.18 cancels whole channels only. Destroying it ends
/// it at once, with its sockets and timers, but not from inside `done`.
class ares_lookup {
public:
    /// `done` is called once, on the executor or from inside `start`. Throws `error(errc::resolve_failed)` when c-ares cannot be set up.
    ares_lookup(any_io_executor ex, const dns_options& options, const clock_ptr& clock, std::function<void(lookup_result)> done);
    ares_lookup(const ares_lookup&) = delete;
    ares_lookup& operator=(const ares_lookup&) = delete;
    ~ares_lookup();
    void start(const std::string& host);

    /// What IPv6 gets once IPv4 has answered (RFC 8305, section 3).
    static constexpr duration resolution_delay = std::chrono::milliseconds(50);

private:
    struct impl;
    std::shared_ptr<impl> impl_;
};

}  // namespace reagent::inline v0::net_detail

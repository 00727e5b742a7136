#pragma once
#include <reagent/base/address.hpp>
#include <reagent/base/asio.hpp>
#include <reagent/base/clock.hpp>

#include <chrono>
#include <memory>
#include <string>
#include <vector>

namespace reagent::inline v0 {

/// Names to addresses, behind an interface so that tests and guards can stand in.
class resolver {
public:
    virtual ~resolver() = default;
    /// All addresses in order of preference, never empty. Throws `error(errc::resolve_failed)` naming the host.
    /// Cancellation: terminal, at once.
    virtual awaitable<std::vector<ip_address>> resolve(std::string host) = 0;
    /// None of the addresses of `host` took a connection: what is remembered of it is of no use.
    virtual void forget(const std::string&) noexcept {}
};
using resolver_ptr = std::shared_ptr<resolver>;

/// How names are asked for.
class dns_options {
public:
    dns_options() = default;
    std::vector<std::string> servers;         ///< `address[:port]`; empty: as the system is configured
    std::chrono::milliseconds timeout{2000};  ///< of the first try of each server; later tries wait longer
    int tries = 3;
    std::string hosts_file = "/etc/hosts";  ///< asked before any server; empty: none
    std::size_t max_cached = 1024;          ///< names remembered; those used longest ago go first
    clock_ptr clock;                        ///< of the cache; null: the system clock
};

/// Literals without I/O, `localhost` to the loopback addresses, then the hosts file, then the servers, by c-ares on `ex`: IPv6 and IPv4 addresses are
/// asked for at the same time, and once IPv4 has answered, IPv6 has 50 ms more (RFC 8305, section 3). However many ask for a name, one
/// look-up is under way; it ends with the last of them. An answer is remembered as long as its time to live says, 1 s at least and 60 s at most; that a
/// name or an address does not exist, for 2 s; a failure not at all. Not thread safe.
resolver_ptr make_system_resolver(any_io_executor ex, dns_options options = {});

}  // namespace reagent::inline v0

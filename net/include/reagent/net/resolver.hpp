#pragma once
#include <reagent/base/address.hpp>
#include <reagent/base/asio.hpp>

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
};
using resolver_ptr = std::shared_ptr<resolver>;

/// How names are asked for.
class dns_options {
public:
    dns_options() = default;
    std::vector<std::string> servers;         ///< `address[:port]`; empty: as the system is configured
    std::chrono::milliseconds timeout{2000};  ///< of the first try of each server; later tries wait longer
    int tries = 3;
};

/// Literals without I/O, `localhost` to the loopback addresses, everything else by c-ares on `ex`. Not thread safe.
resolver_ptr make_system_resolver(any_io_executor ex, dns_options options = {});

}  // namespace reagent::inline v0

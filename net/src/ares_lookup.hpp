#pragma once
#include <reagent/base/address.hpp>
#include <reagent/base/asio.hpp>
#include <reagent/net/resolver.hpp>

#include <memory>
#include <string>
#include <vector>

namespace reagent::inline v0::net_detail {

/// One look-up by c-ares on a reactor, with a channel of its own: c-ares 1.18 cancels whole channels only. Destroying it ends it at once, with
/// its sockets and timers.
class ares_lookup {
public:
    ares_lookup(any_io_executor ex, const dns_options& options);
    ares_lookup(const ares_lookup&) = delete;
    ares_lookup& operator=(const ares_lookup&) = delete;
    ~ares_lookup();
    /// Single use. Throws `error(errc::resolve_failed)`. Cancellation: terminal, at once.
    awaitable<std::vector<ip_address>> run(std::string host);

private:
    struct impl;
    std::shared_ptr<impl> impl_;
};

}  // namespace reagent::inline v0::net_detail

#pragma once
#include "dial_stop.hpp"
#include "transport.hpp"

#include <reagent/base/address.hpp>
#include <reagent/net/deadline_queue.hpp>
#include <reagent/net/http_client.hpp>

#include <memory>
#include <string>
#include <vector>

namespace reagent::inline v0::net_detail {

class connect_outcome;
class ready_hub;
class tls_context;

/// Where a connection shall lead, and by which way. Refers to what its owner keeps until the dial has ended.
class dial_target {
public:
    dial_target(const url& t, const http_route& v, std::string l) : to(t), via(v), label(std::move(l)) {}
    const url& to;
    const http_route& via;
    std::string label;           ///< what messages begin with
    bool always_tunnel = false;  ///< through a proxy by CONNECT without TLS, too
};

/// Makes connections: name, TCP or Unix-domain socket, proxy, TLS. Belongs to a client and dies with it, after all dials.
class dialler {
public:
    dialler(any_io_executor ex, const http_client_options& options, clock_ptr clock, deadline_queue& times);
    ~dialler();
    /// A transport ready for requests. `stop` ends it from outside. Errors: `error(errc::resolve_failed)`, `transport_error(errc::connect_failed | tls_failed |
    /// proxy_refused)`. Cancellation: terminal, `operation_aborted`. Lifetimes: `target` and `stop` until the end.
    awaitable<std::unique_ptr<transport>> dial(const dial_target& target, dial_stop& stop);
    /// Made when first asked for: the system's store takes long to read.
    tls_context& tls();
    std::uint64_t resumed() const noexcept;

private:
    awaitable<std::vector<ip_address>> look_up(const std::string& host, dial_stop& stop);
    awaitable<std::unique_ptr<transport>> connect_host(const dial_target& target, const url& to, dial_stop& stop);
    awaitable<void> shake_hands(transport& wire, std::string label, dial_stop& stop);
    awaitable<void> tunnel(transport& wire, const dial_target& target, dial_stop& stop);

    any_io_executor ex_;
    std::shared_ptr<ready_hub> hub_;
    const http_client_options& options_;
    clock_ptr clock_;
    deadline_queue& times_;
    resolver_ptr names_;
    std::unique_ptr<tls_context> tls_;
};

}  // namespace reagent::inline v0::net_detail

#pragma once
#include "transport.hpp"

#include <cstdint>
#include <memory>
#include <string>

namespace reagent::inline v0 {
class tls_options;
class tls_server_options;
}  // namespace reagent::inline v0

namespace reagent::inline v0::net_detail {

/// Trust anchors, protocol settings and sessions of a client, shared by its connections: TLS 1.2 or later, chain and host name always verified.
class tls_context {
public:
    /// Throws `config_error` naming the option.
    explicit tls_context(const tls_options& options);
    tls_context(const tls_context&) = delete;
    tls_context& operator=(const tls_context&) = delete;
    ~tls_context();
    /// TLS to `host` (a name or an address literal) over a connected transport. A session of an earlier connection to the same host and port is
    /// resumed when the server agrees. Lifetimes: what the transport needs it keeps alive itself.
    std::unique_ptr<transport> wrap(std::unique_ptr<transport> inner, const std::string& host, std::uint16_t port, bool literal);
    /// Handshakes that resumed a session.
    std::uint64_t resumed() const noexcept;

private:
    struct impl;
    std::unique_ptr<impl> impl_;
};

/// The server's side of the same.
class tls_server_context {
public:
    /// Throws `config_error` naming the option.
    explicit tls_server_context(const tls_server_options& options);
    tls_server_context(const tls_server_context&) = delete;
    tls_server_context& operator=(const tls_server_context&) = delete;
    ~tls_server_context();
    std::unique_ptr<transport> wrap(std::unique_ptr<transport> inner);
    /// Handshakes that resumed a session.
    std::uint64_t resumed() const noexcept;

private:
    struct impl;
    std::unique_ptr<impl> impl_;
};

}  // namespace reagent::inline v0::net_detail

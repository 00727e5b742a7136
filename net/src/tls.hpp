#pragma once
#include "socket_link.hpp"

#include <memory>
#include <string>

namespace reagent::inline v0 {
class tls_options;
}

namespace reagent::inline v0::net_detail {

/// Trust anchors and protocol settings of a client, shared by its connections: TLS 1.2 or later, chain and host name always verified.
class tls_context {
public:
    /// Throws `config_error` naming the option.
    explicit tls_context(const tls_options& options);
    tls_context(const tls_context&) = delete;
    tls_context& operator=(const tls_context&) = delete;
    ~tls_context();
    /// TLS to `host` (a name or an address literal) over a connected link. Lifetimes: what the transport needs it keeps alive itself.
    std::unique_ptr<transport> wrap(std::unique_ptr<socket_link> link, const std::string& host, bool literal);

private:
    struct impl;
    std::unique_ptr<impl> impl_;
};

}  // namespace reagent::inline v0::net_detail

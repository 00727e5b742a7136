#pragma once
#include "tls_sessions.hpp"
#include "transport.hpp"

#include <openssl/ssl.h>

#include <memory>
#include <string>

namespace reagent::inline v0::net_detail {

struct ctx_free {
    void operator()(SSL_CTX* p) const noexcept { SSL_CTX_free(p); }
};
struct ssl_free {
    void operator()(SSL* p) const noexcept { SSL_free(p); }
};
using ctx_ptr = std::unique_ptr<SSL_CTX, ctx_free>;
using ssl_ptr = std::unique_ptr<SSL, ssl_free>;

/// The oldest entry of OpenSSL's queue is the cause; the queue is left empty.
std::string take_ssl_error();

/// What the callbacks of OpenSSL reach from a connection: its application data points here.
class tls_peer {
public:
    virtual void refused(X509_STORE_CTX* store) = 0;
    virtual void ticket(SSL_SESSION* session) = 0;
    static tls_peer& of(const SSL* ssl) noexcept { return *static_cast<tls_peer*>(SSL_get_app_data(ssl)); }

protected:
    ~tls_peer() = default;
};

/// TLS over `inner`; `ssl` knows its side and what it verifies. `sessions` may be null; `key` is where ours are kept.
std::unique_ptr<transport> make_tls_transport(std::unique_ptr<transport> inner, ssl_ptr ssl, std::shared_ptr<tls_sessions> sessions, std::string key);

}  // namespace reagent::inline v0::net_detail

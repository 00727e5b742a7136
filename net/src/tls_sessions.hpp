#pragma once
#include <openssl/ssl.h>

#include <cstdint>
#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

namespace reagent::inline v0::net_detail {

struct session_free {
    void operator()(SSL_SESSION* s) const noexcept { SSL_SESSION_free(s); }
};
using session_ptr = std::unique_ptr<SSL_SESSION, session_free>;

/// Sessions to resume, by host and port. A resumed session skips the check of chain and name, so the key is exact, and the map belongs to one context.
class tls_sessions {
public:
    static constexpr std::size_t max_origins = 256, per_origin = 2;
    /// Keeps a copy: OpenSSL spoils the original when its connection ends without a goodbye.
    void keep(const std::string& key, SSL_SESSION* s);
    /// The newest one. A ticket of TLS 1.3 is used once (RFC 8446, appendix C.4).
    session_ptr take(const std::string& key);
    std::size_t origins() const noexcept { return origins_.size(); }
    std::uint64_t resumed = 0;

private:
    struct entry {
        std::vector<session_ptr> sessions;
        std::uint64_t used = 0;
    };
    std::unordered_map<std::string, entry> origins_;
    std::uint64_t uses_ = 0;
};

}  // namespace reagent::inline v0::net_detail

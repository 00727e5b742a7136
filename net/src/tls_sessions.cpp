#include "tls_sessions.hpp"

#include <algorithm>

namespace reagent::inline v0::net_detail {

void tls_sessions::keep(const std::string& key, SSL_SESSION* s)
{
    session_ptr copy(SSL_SESSION_dup(s));
    if (!copy) return;
    if (origins_.size() >= max_origins && !origins_.contains(key))
        origins_.erase(std::min_element(origins_.begin(), origins_.end(), [](const auto& a, const auto& b) { return a.second.used < b.second.used; }));
    entry& e = origins_[key];
    e.used = ++uses_;
    if (e.sessions.size() >= per_origin) e.sessions.erase(e.sessions.begin());
    e.sessions.push_back(std::move(copy));
}

session_ptr tls_sessions::take(const std::string& key)
{
    const auto at = origins_.find(key);
    if (at == origins_.end()) return nullptr;
    entry& e = at->second;
    e.used = ++uses_;
    if (SSL_SESSION_get_protocol_version(e.sessions.back().get()) < TLS1_3_VERSION) return session_ptr(SSL_SESSION_dup(e.sessions.back().get()));
    session_ptr s = std::move(e.sessions.back());
    e.sessions.pop_back();
    if (e.sessions.empty()) origins_.erase(at);
    return s;
}

}  // namespace reagent::inline v0::net_detail

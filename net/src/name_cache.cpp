#include "name_cache.hpp"

#include <algorithm>

namespace reagent::inline v0::net_detail {

const name_cache::entry* name_cache::find(const std::string& host, steady_time now)
{
    const auto at = entries_.find(host);
    if (at == entries_.end()) return nullptr;
    if (at->second.until <= now) {
        entries_.erase(at);
        return nullptr;
    }
    at->second.used = ++uses_;
    return &at->second;
}

name_cache::entry& name_cache::place(const std::string& host, steady_time now)
{
    if (entries_.size() >= max_ && !entries_.contains(host)) {
        std::erase_if(entries_, [&](const auto& e) { return e.second.until <= now; });
        if (entries_.size() >= max_)
            entries_.erase(std::min_element(entries_.begin(), entries_.end(), [](const auto& a, const auto& b) { return a.second.used < b.second.used; }));
    }
    entry& e = entries_[host];
    e = entry();
    e.used = ++uses_;
    return e;
}

void name_cache::keep(const std::string& host, std::vector<ip_address> addresses, std::chrono::seconds ttl, steady_time now)
{
    if (max_ == 0) return;
    entry& e = place(host, now);
    e.addresses = std::move(addresses);
    e.until = now + std::clamp(ttl, shortest, longest);
}

void name_cache::keep_absent(const std::string& host, std::string trouble, steady_time now)
{
    if (max_ == 0) return;
    entry& e = place(host, now);
    e.trouble = std::move(trouble);
    e.until = now + absence;
}

}  // namespace reagent::inline v0::net_detail

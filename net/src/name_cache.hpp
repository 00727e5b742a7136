#pragma once
#include <reagent/base/address.hpp>
#include <reagent/base/clock.hpp>

#include <chrono>
#include <cstdint>
#include <string>
#include <unordered_map>
#include <vector>

namespace reagent::inline v0::net_detail {

/// What is remembered of names, without I/O and with the time handed in.
class name_cache {
public:
    static constexpr std::chrono::seconds shortest{1}, longest{60}, absence{2};
    class entry {
    public:
        entry() = default;
        std::vector<ip_address> addresses;
        std::string trouble;  ///< why there are none
    private:
        friend class name_cache;
        steady_time until{};
        std::uint64_t used = 0;
    };
    explicit name_cache(std::size_t max_names) : max_(max_names) {}
    /// Null when nothing is known, or no longer.
    const entry* find(const std::string& host, steady_time now);
    void keep(const std::string& host, std::vector<ip_address> addresses, std::chrono::seconds ttl, steady_time now);
    void keep_absent(const std::string& host, std::string trouble, steady_time now);
    void forget(const std::string& host) noexcept { entries_.erase(host); }
    std::size_t size() const noexcept { return entries_.size(); }

private:
    entry& place(const std::string& host, steady_time now);
    std::size_t max_;
    std::uint64_t uses_ = 0;
    std::unordered_map<std::string, entry> entries_;
};

}  // namespace reagent::inline v0::net_detail

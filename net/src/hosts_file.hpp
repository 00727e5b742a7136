#pragma once
#include <reagent/base/address.hpp>

#include <string>
#include <string_view>
#include <vector>

namespace reagent::inline v0::net_detail {

/// The addresses of `host` in text of the form of /etc/hosts: an address, then names, in any case, `#` for comments. Lines that are not are skipped.
std::vector<ip_address> hosts_in(std::string_view text, std::string_view host);
/// The same of a file; nothing when it cannot be read.
std::vector<ip_address> hosts_of(const std::string& path, std::string_view host);

}  // namespace reagent::inline v0::net_detail

#include "ares_lookup.hpp"

#include <reagent/base/error.hpp>
#include <reagent/net/resolver.hpp>

namespace reagent::inline v0 {
namespace {

// `localhost` and names below it are loopback and never asked of a server (RFC 6761, section 6.3).
bool is_localhost(std::string_view host) noexcept
{
    if (host.ends_with('.')) host.remove_suffix(1);
    return host == "localhost" || host.ends_with(".localhost");
}

class system_resolver final : public resolver {
public:
    system_resolver(any_io_executor ex, dns_options options) : ex_(std::move(ex)), options_(std::move(options)) {}

    awaitable<std::vector<ip_address>> resolve(std::string host) override
    {
        std::vector<ip_address> found;
        if (const auto literal = ip_address::parse(host)) {
            found.push_back(*literal);
        } else if (is_localhost(host)) {
            // Servers on localhost listen on 127.0.0.1 more often than on ::1.
            found.push_back(*ip_address::parse("127.0.0.1"));
            found.push_back(*ip_address::parse("::1"));
        } else if (host.empty() || host.size() > 255) {
            throw error(errc::resolve_failed, "[resolver] a host name has 1 to 255 characters");
        } else {
            net_detail::ares_lookup look_up(ex_, options_);
            found = co_await look_up.run(std::move(host));
        }
        co_return found;
    }

private:
    any_io_executor ex_;
    dns_options options_;
};

}  // namespace

resolver_ptr make_system_resolver(any_io_executor ex, dns_options options)
{
    return std::make_shared<system_resolver>(std::move(ex), std::move(options));
}

}  // namespace reagent::inline v0

#pragma once
#include <reagent/base/address.hpp>
#include <reagent/base/secret.hpp>
#include <reagent/base/url.hpp>

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace reagent::inline v0 {

/// How connections reach the host of a request: straight, over a Unix-domain socket, or through a proxy.
class http_route {
public:
    enum class kind : std::uint8_t { direct, unix_socket, proxy };
    /// Straight.
    http_route() = default;
    /// Over a socket of this machine; the URL of the request still gives Host, and the name TLS verifies. Throws `validation_error` for a path that is
    /// empty or longer than 107 bytes.
    static http_route unix_socket(std::string path);
    /// Through an HTTP proxy at an http or https URL, whose user info becomes Basic credentials: https requests by CONNECT, http requests in absolute
    /// form. The proxy looks the name up.
    static http_route proxy(const url& at);

    kind how() const noexcept { return how_; }
    bool direct() const noexcept { return how_ == kind::direct; }
    bool proxied() const noexcept { return how_ == kind::proxy; }
    const std::string& path() const noexcept { return path_; }
    const url& at() const noexcept { return at_; }
    /// Value of Proxy-Authorization; empty without credentials.
    const secret& authorization() const noexcept { return authorization_; }
    friend bool operator==(const http_route& a, const http_route& b) noexcept;

private:
    kind how_ = kind::direct;
    std::string path_;
    url at_;
    secret authorization_;
};

/// Which requests go through which proxy. Nothing does unless told; requests to the loopback never do.
class proxy_rules {
public:
    proxy_rules() = default;
    /// Proxies for http requests, for https requests, and for those the other has no proxy for. `text` is an http or https URL, or `[user:password@]host[:port]`;
    /// empty is none. Throws `config_error` naming `key`, and never the credentials.
    proxy_rules& http(std::string_view text, std::string_view key = "proxy.http");
    proxy_rules& https(std::string_view text, std::string_view key = "proxy.https");
    proxy_rules& all(std::string_view text, std::string_view key = "proxy.all");
    /// Hosts that are reached straight, separated by commas or spaces: `*` is all; a name means itself and all names below it, with a leading dot or without;
    /// an address means itself, `10.0.0.0/8` or `fd00::/8` a network; each but `*` may end with `:port` (an IPv6 address then stands in brackets). Letters match in any
    /// case; a name in the list is compared with the URL's host as text, never looked up. What is none of these matches nothing.
    proxy_rules& bypass(std::string_view list);
    /// HTTP_PROXY, HTTPS_PROXY, ALL_PROXY and NO_PROXY, each in lower case first. Where REQUEST_METHOD is set, HTTP_PROXY in upper case may be a header that
    /// a web server passed on, and is not read. `get` is `getenv` unless given.
    static proxy_rules from_environment(const std::function<const char*(const char*)>& get = {});

    bool empty() const noexcept { return !http_ && !https_ && !all_; }
    /// The proxy of a request to `to`; null when it goes straight.
    const http_route* route_for(const url& to) const noexcept;

private:
    class bypass_rule {
    public:
        bypass_rule() = default;
        std::string name;  // lower case, no dot in front; empty for an address
        ip_address network;
        unsigned prefix = 0;
        std::uint16_t port = 0;  // 0 any
        bool all = false;
    };
    static bool matches(const bypass_rule& rule, const url& to, const std::optional<ip_address>& literal) noexcept;
    static std::optional<bypass_rule> parse_rule(std::string_view word);

    std::optional<http_route> http_, https_, all_;
    std::vector<bypass_rule> bypass_;
};

}  // namespace reagent::inline v0

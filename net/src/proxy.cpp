#include "socket_link.hpp"

#include <reagent/base/ascii.hpp>
#include <reagent/base/base64.hpp>
#include <reagent/base/error.hpp>
#include <reagent/net/proxy.hpp>

#include <algorithm>
#include <charconv>
#include <cstdlib>

namespace reagent::inline v0 {
namespace {

std::string percent_decoded(std::string_view text)
{
    std::string out;
    for (std::size_t i = 0; i < text.size(); ++i) {
        unsigned value = 0;
        if (text[i] == '%' && i + 2 < text.size() && std::from_chars(text.data() + i + 1, text.data() + i + 3, value, 16).ptr == text.data() + i + 3) {
            out.push_back(static_cast<char>(value));
            i += 2;
        } else {
            out.push_back(text[i]);
        }
    }
    return out;
}

template <class T>
bool whole_number(std::string_view text, T& out) noexcept
{
    const auto r = std::from_chars(text.data(), text.data() + text.size(), out);
    return !text.empty() && r.ec == std::errc() && r.ptr == text.data() + text.size();
}

http_route proxy_of(std::string_view text, std::string_view key)
{
    const bool has_scheme = text.find("://") != std::string_view::npos;
    // The text may hold a password: no message repeats it.
    if (has_scheme && !starts_but_case(text, "http://") && !starts_but_case(text, "https://"))
        throw config_error(std::string(key) + ": a proxy is reached by http or https; other protocols, SOCKS among them, are not supported");
    const auto parsed = url::parse(has_scheme ? std::string(text) : "http://" + std::string(text));
    if (!parsed) throw config_error(std::string(key) + ": not the URL of a proxy; it looks like http://proxy.example:3128");
    return http_route::proxy(*parsed);
}

void set(std::optional<http_route>& where, std::string_view text, std::string_view key)
{
    if (text.empty()) where.reset();
    else where = proxy_of(text, key);
}

// The names of RFC 6761, section 6.3, too.
bool stays_here(const url& to) noexcept
{
    std::string_view host = to.host();
    if (host.ends_with('.')) host.remove_suffix(1);
    return to.loopback() || (to.kind() == url::host_kind::name && (host == "localhost" || host.ends_with(".localhost")));
}

// 1 to 65535: a list that says 0 does not mean any.
bool port_number(std::string_view text, std::uint16_t& out) noexcept
{
    return whole_number(text, out) && out != 0;
}

bool in_network(const ip_address& a, const ip_address& network, unsigned prefix) noexcept
{
    if (a.is_v4() != network.is_v4()) return false;
    const std::size_t first = a.is_v4() ? 12 : 0;
    for (unsigned bit = 0; bit < prefix; ++bit) {
        const auto mask = static_cast<std::uint8_t>(0x80u >> (bit % 8));
        if ((a.bytes()[first + bit / 8] & mask) != (network.bytes()[first + bit / 8] & mask)) return false;
    }
    return true;
}

}  // namespace

http_route http_route::unix_socket(std::string path)
{
    if (path.empty() || path.size() > net_detail::socket_link::max_path || path.find('\0') != std::string::npos)
        throw validation_error("[http] the path of a Unix-domain socket has 1 to " + std::to_string(net_detail::socket_link::max_path) + " bytes");
    http_route r;
    r.how_ = kind::unix_socket;
    r.path_ = std::move(path);
    return r;
}

http_route http_route::proxy(const url& at)
{
    http_route r;
    r.how_ = kind::proxy;
    r.at_ = at;
    if (!at.userinfo().empty()) {
        std::string credentials = percent_decoded(at.userinfo());
        if (credentials.find(':') == std::string::npos) credentials += ':';
        r.authorization_ = secret("Basic " + base64_encode(credentials));
    }
    return r;
}

bool operator==(const http_route& a, const http_route& b) noexcept
{
    return a.how_ == b.how_ && a.path_ == b.path_ && a.at_.scheme() == b.at_.scheme() && a.at_.host() == b.at_.host() && a.at_.port() == b.at_.port() &&
        a.authorization_.reveal() == b.authorization_.reveal();
}

proxy_rules& proxy_rules::http(std::string_view text, std::string_view key)
{
    set(http_, text, key);
    return *this;
}

proxy_rules& proxy_rules::https(std::string_view text, std::string_view key)
{
    set(https_, text, key);
    return *this;
}

proxy_rules& proxy_rules::all(std::string_view text, std::string_view key)
{
    set(all_, text, key);
    return *this;
}

std::optional<proxy_rules::bypass_rule> proxy_rules::parse_rule(std::string_view word)
{
    bypass_rule rule;
    if (word == "*") {
        rule.all = true;
        return rule;
    }
    // A port follows the bracket, or the only colon there is.
    std::string_view host = word, port;
    if (word.starts_with('[')) {
        const std::size_t end = word.find(']');
        if (end == std::string_view::npos) return std::nullopt;
        host = word.substr(1, end - 1);
        port = word.substr(end + 1);
        if (!port.empty() && port[0] != ':') return std::nullopt;
        if (!port.empty() && !port_number(port.substr(1), rule.port)) return std::nullopt;
    } else if (std::count(word.begin(), word.end(), ':') == 1) {
        const std::size_t colon = word.find(':');
        host = word.substr(0, colon);
        if (!port_number(word.substr(colon + 1), rule.port)) return std::nullopt;
    }
    const std::size_t slash = host.find('/');
    if (const auto address = ip_address::parse(host.substr(0, slash))) {
        rule.network = *address;
        const unsigned bits = address->is_v4() ? 32 : 128;
        rule.prefix = bits;
        if (slash != std::string_view::npos && (!whole_number(host.substr(slash + 1), rule.prefix) || rule.prefix > bits)) return std::nullopt;
        return rule;
    }
    if (host.starts_with("*.")) host.remove_prefix(1);
    while (host.starts_with('.')) host.remove_prefix(1);
    while (host.ends_with('.')) host.remove_suffix(1);
    if (host.empty() || slash != std::string_view::npos) return std::nullopt;
    rule.name = to_lower(host);
    return rule;
}

proxy_rules& proxy_rules::bypass(std::string_view list)
{
    bypass_.clear();
    while (!list.empty()) {
        const std::size_t end = std::min(list.find_first_of(", \t"), list.size());
        if (const auto rule = parse_rule(list.substr(0, end))) bypass_.push_back(*rule);
        list.remove_prefix(std::min(end + 1, list.size()));
    }
    return *this;
}

bool proxy_rules::matches(const bypass_rule& rule, const url& to, const std::optional<ip_address>& literal) noexcept
{
    if (rule.all) return true;
    if (rule.port != 0 && rule.port != to.port()) return false;
    if (rule.name.empty()) return literal && in_network(*literal, rule.network, rule.prefix);
    if (literal) return false;  // its last numbers are no domain
    std::string_view host = to.host();
    if (host.ends_with('.')) host.remove_suffix(1);
    if (!host.ends_with(rule.name)) return false;
    return host.size() == rule.name.size() || host[host.size() - rule.name.size() - 1] == '.';
}

const http_route* proxy_rules::route_for(const url& to) const noexcept
{
    const std::optional<http_route>& own = to.tls() ? https_ : http_;
    const std::optional<http_route>& chosen = own ? own : all_;
    if (!chosen || stays_here(to)) return nullptr;
    const std::optional<ip_address> literal = to.kind() == url::host_kind::name ? std::nullopt : ip_address::parse(to.host());
    for (const bypass_rule& rule : bypass_)
        if (matches(rule, to, literal)) return nullptr;
    return &*chosen;
}

proxy_rules proxy_rules::from_environment(const std::function<const char*(const char*)>& get)
{
    std::string name;
    const auto value = [&](std::string_view upper, bool upper_too = true) -> std::string_view {
        for (const bool as_given : {false, true}) {
            if (as_given && !upper_too) break;
            name = as_given ? std::string(upper) : to_lower(upper);
            const char* found = get ? get(name.c_str()) : std::getenv(name.c_str());
            if (found && *found) return found;
        }
        return {};
    };
    const bool answers_requests = !value("REQUEST_METHOD").empty();
    proxy_rules rules;
    const std::string_view http = value("HTTP_PROXY", !answers_requests);
    rules.http(http, name);
    const std::string_view https = value("HTTPS_PROXY");
    rules.https(https, name);
    const std::string_view all = value("ALL_PROXY");
    rules.all(all, name);
    return rules.bypass(value("NO_PROXY"));
}

}  // namespace reagent::inline v0

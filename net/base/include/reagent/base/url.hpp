#pragma once
#include <boost/system/result.hpp>

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

namespace reagent::inline v0 {

/// An absolute http or https URL, parsed once by the WHATWG rules that matter to a client: decimal, octal, hex and short IPv4, IPv6 literals,
/// IDNA host names, default ports, percent-encoding of what may not stand in a request line. What gate, guard and client all take. Copies share one
/// immutable text.
class url {
public:
    enum class host_kind : std::uint8_t { name, ipv4, ipv6 };
    url() : parts_(nowhere()) {}
    url(const url&) = default;  // and no move: what was moved from stays readable
    url& operator=(const url&) = default;
    ~url() = default;
    /// Errors: `errc::invalid_url`. Never throws but for memory.
    static boost::system::result<url> parse(std::string_view text);
    /// Parses or throws `validation_error` naming `what` and at most 200 characters of the text.
    static url parse_or_throw(std::string_view text, std::string_view what);

    const std::string& scheme() const noexcept { return parts_->scheme; }
    bool tls() const noexcept { return parts_->scheme == "https"; }
    /// Lower-case ASCII; an IPv6 literal without brackets, compressed; an IPv4 literal in dotted decimal.
    const std::string& host() const noexcept { return parts_->host; }
    host_kind kind() const noexcept { return parts_->kind; }
    std::uint16_t port() const noexcept { return parts_->port; }
    bool default_port() const noexcept;
    /// Path and query as sent in the request line, never empty.
    const std::string& target() const noexcept { return parts_->target; }
    const std::string& userinfo() const noexcept { return parts_->userinfo; }
    /// `host` or `host:port` as the Host header wants it, brackets around IPv6.
    std::string authority() const;
    /// `scheme://authority`, the key of a connection pool.
    std::string origin() const;
    /// Whole text without user info and fragment.
    std::string text() const;
    /// Whole text with the query cut to `?…`, fit for logs.
    std::string redacted() const;
    /// A syntactically valid 127/8 address, `::1`, or `localhost`.
    bool loopback() const noexcept;
    /// This URL with `suffix` put after the path (one trailing slash of the path is dropped, an existing query string is kept after it).
    url joined(std::string_view suffix) const;
    /// `reference` as a link in a document at this URL: absolute, `//host/…`, `/path`, `path`, `?query` or nothing (RFC 3986 §5, with the WHATWG
    /// reading of backslashes, tabs and line ends). Errors: `errc::invalid_url`, for other schemes than http and https too.
    boost::system::result<url> resolve(std::string_view reference) const;

private:
    struct parts {
        std::string scheme, host, target = "/", userinfo;
        std::uint16_t port = 0;
        host_kind kind = host_kind::name;
    };
    static const std::shared_ptr<const parts>& nowhere();
    explicit url(parts p) : parts_(std::make_shared<const parts>(std::move(p))) {}
    std::shared_ptr<const parts> parts_;
};

}  // namespace reagent::inline v0

#pragma once
#include <reagent/base/asio.hpp>
#include <reagent/base/clock.hpp>
#include <reagent/base/error.hpp>
#include <reagent/base/url.hpp>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace reagent::inline v0 {

class http_route;

/// Header fields in order, names as received; look-up ignores case. Stored in one string, so a head costs two allocations.
class http_fields {
public:
    void add(std::string_view name, std::string_view value);
    /// The first value, empty when absent.
    std::string_view get(std::string_view name) const noexcept;
    bool contains(std::string_view name) const noexcept;
    std::size_t size() const noexcept { return spans_.size(); }
    std::pair<std::string_view, std::string_view> operator[](std::size_t i) const noexcept;
    void clear() noexcept;
    /// Makes room for `count` fields of `bytes` in all.
    void reserve(std::size_t bytes, std::size_t count);

private:
    struct span {
        std::uint32_t name_at, name_size, value_at, value_size;
    };
    std::string text_;
    std::vector<span> spans_;
};

/// Limits of one exchange; zero is off, negative ones are refused.
class http_limits {
public:
    http_limits() = default;
    std::chrono::nanoseconds connect = std::chrono::seconds(10);  ///< name, TCP and TLS
    std::chrono::nanoseconds first_byte{0};                       ///< last request byte to end of response head
    std::chrono::nanoseconds idle = std::chrono::seconds(600);    ///< moved by bytes in either direction
    steady_time deadline = steady_time::max();                    ///< absolute, never moved
    std::size_t max_head = 64 * 1024;                             ///< bytes of a response head, 1xx and trailers alike: errc::headers_too_large; 64 KiB at most
    std::uint64_t max_body = 64ull * 1024 * 1024;                 ///< decoded bytes; 0 off (streams): errc::body_too_large
};

/// One request. `body` is a view of what the caller keeps alive until the exchange's head has come.
class http_request {
public:
    http_request() = default;
    http_request(std::string m, url u) : method(std::move(m)), target(std::move(u)) {}
    std::string method = "GET";
    url target;
    /// Ready-made header lines, each ending CRLF (`Authorization: Bearer …\r\n`); Host and Content-Length are the client's. A view: the caller keeps them alive
    /// until the exchange's head has come, as a reused connection that dies sends them twice. `open` refuses malformed lines.
    std::string_view header_lines;
    std::string_view body;
    http_limits limits;
    /// What to do when a reused connection dies before a byte of the answer came: send again once on a fresh one, or fail with `stale()` set, for a
    /// caller who has to account for each request that leaves.
    bool resend = true;
    /// Dial even if an idle connection is there.
    bool fresh = false;
    /// Send `Expect: 100-continue` and hold the body back until the peer says 100, or for `http_client_options::continue_wait`. An answer that comes
    /// first is the answer: the body stays unsent and the connection is not used again. Nothing where there is no body.
    bool expect_continue = false;
    /// The way to the host, kept alive by the caller as the header lines are; null: as the client's options say.
    const http_route* route = nullptr;
};

class http_head {
public:
    unsigned status = 0;
    http_fields fields;
};

/// A fault below HTTP or of its framing, with what the system said: `cause()` is `ECONNREFUSED`, `ECONNRESET` and the like in the system category,
/// or empty when the system had no part in it. `code()` stays the `errc`.
class transport_error : public error {
public:
    transport_error(errc what, std::string message, bool retryable, error_code cause = {}, bool stale = false)
        : error(what, std::move(message), retryable), cause_(cause), stale_(stale)
    {}
    const error_code& cause() const noexcept { return cause_; }
    /// A reused connection died before a byte of the answer came: the request may be sent again on a fresh one.
    bool stale() const noexcept { return stale_; }

private:
    error_code cause_;
    bool stale_ = false;
};

/// How a body ended, for those who judge it.
enum class body_end : std::uint8_t { open, complete, aborted };

}  // namespace reagent::inline v0

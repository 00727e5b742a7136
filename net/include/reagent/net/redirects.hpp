#pragma once
#include <reagent/net/http_client.hpp>

#include <functional>
#include <memory>
#include <string>

namespace reagent::inline v0 {

/// How far `open_following` goes along.
class redirect_policy {
public:
    redirect_policy() = default;
    int max = 5;                            ///< redirects, not requests; 0 follows none
    bool same_origin = false;               ///< refuse another scheme, host or port
    std::function<void(const url&)> check;  ///< called with each next URL before it is asked; throws to refuse it
};

/// What each answer leads to, without I/O: 301 and 302 turn POST into GET, 303 everything but HEAD, 307 and 308 keep method and body (RFC 9110,
/// section 15.4). Across origins only Accept, Accept-Language, User-Agent and, with a body, Content-Type and Content-Encoding go along: any
/// other line may be a credential. From https to http is refused. The request's route
/// stays: over a Unix socket every origin is asked over that socket. Not movable: the request points into it.
class redirect_trail {
public:
    redirect_trail(http_request first, redirect_policy policy);
    redirect_trail(const redirect_trail&) = delete;
    redirect_trail& operator=(const redirect_trail&) = delete;
    /// The request to send. Its header lines live here.
    const http_request& request() const noexcept { return request_; }
    /// Whether `head` is a redirect, and `request()` now the next. A 3xx without Location, 300 and 304 are answers like any other.
    /// Throws `transport_error(errc::redirect_refused)`, and what `policy.check` throws.
    bool follow(const http_head& head);

private:
    [[noreturn]] void refuse(const std::string& why) const;
    void keep_lines(bool origin_changed);

    http_request request_;
    redirect_policy policy_;
    std::string lines_;
    int followed_ = 0;
};

/// `http_client::open` that follows redirects; `http_client` itself never does. Limits: the deadline is one for all hops, the others are each
/// hop's own. Errors: those of `open` and `redirect_trail::follow`. Lifetimes and cancellation: as `open`.
awaitable<http_exchange> open_following(http_client client, http_request request, redirect_policy policy = redirect_policy());

}  // namespace reagent::inline v0

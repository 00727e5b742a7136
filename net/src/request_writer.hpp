#pragma once
#include <reagent/net/http_types.hpp>

#include <string>

namespace reagent::inline v0::net_detail {

/// Throws `validation_error` for anything that would let a value start a line of its own or contradict the framing (RFC 9112, section 11.1).
/// `checked`: header lines that have passed, which are not looked at again; takes those that pass.
void check_request(const http_request& request, std::string& checked);
/// Appends the head of a checked `request` to `out`: request line, Host, the caller's lines, `Accept-Encoding: identity` unless named there, exact
/// Content-Length, the empty line. With `proxy` in absolute form, for a plain request that a proxy passes on.
void write_request_head(std::string& out, const http_request& request, const http_route* proxy = nullptr);

}  // namespace reagent::inline v0::net_detail

#include "request_writer.hpp"

#include <reagent/base/ascii.hpp>
#include <reagent/net/proxy.hpp>

#include <array>
#include <charconv>

namespace reagent::inline v0::net_detail {
namespace {

constexpr std::array<bool, 256> make_token_table() noexcept
{
    std::array<bool, 256> t{};
    for (unsigned c = '0'; c <= '9'; ++c) t[c] = true;
    for (unsigned c = 'a'; c <= 'z'; ++c) t[c] = t[c - 32] = true;
    for (const char c : std::string_view("!#$%&'*+-.^_`|~")) t[static_cast<unsigned char>(c)] = true;
    return t;
}
constexpr std::array<bool, 256> token_table = make_token_table();

bool is_token(std::string_view s) noexcept
{
    for (const char c : s)
        if (!token_table[static_cast<unsigned char>(c)]) return false;
    return !s.empty();
}

void check_lines(std::string_view lines)
{
    while (!lines.empty()) {
        const std::size_t end = lines.find("\r\n");
        if (end == std::string_view::npos) throw validation_error("[http] header lines must each end with CRLF");
        const std::string_view line = lines.substr(0, end);
        lines.remove_prefix(end + 2);
        const std::size_t colon = line.find(':');
        const std::string_view name = line.substr(0, colon);
        // The message never repeats the line: it may hold a key.
        if (colon == std::string_view::npos || !is_token(name)) throw validation_error("[http] a header line has no valid field name");
        for (const char c : line.substr(colon + 1)) {
            const auto u = static_cast<unsigned char>(c);
            if ((u < 0x20 && c != '\t') || u == 0x7f)
                throw validation_error("[http] the header field " + std::string(name.substr(0, 64)) + " holds a control character");
        }
        switch (name.size()) {
        case 4:
            if (equal_but_case(name, "host")) throw validation_error("[http] the header field Host is set by the client");
            break;
        case 6:
            if (equal_but_case(name, "expect")) throw validation_error("[http] the header field Expect is set by the client");
            break;
        case 7:
            if (equal_but_case(name, "trailer") || equal_but_case(name, "upgrade")) throw validation_error("[http] Trailer and Upgrade are not supported");
            break;
        case 10:
            if (equal_but_case(name, "connection")) throw validation_error("[http] the header field Connection is set by the client");
            break;
        case 14:
            if (equal_but_case(name, "content-length")) throw validation_error("[http] the header field Content-Length is set by the client");
            break;
        case 19:
            if (equal_but_case(name, "proxy-authorization")) throw validation_error("[http] the header field Proxy-Authorization is set by the client");
            break;
        case 17:
            if (equal_but_case(name, "transfer-encoding")) throw validation_error("[http] the header field Transfer-Encoding is set by the client");
            break;
        default: break;
        }
    }
}

bool names_accept_encoding(std::string_view lines) noexcept
{
    constexpr std::string_view name = "accept-encoding";
    while (!lines.empty()) {
        if (lines.size() > name.size() && lines[name.size()] == ':' && equal_but_case(lines.substr(0, name.size()), name)) return true;
        const std::size_t end = lines.find('\n');
        lines.remove_prefix(end == std::string_view::npos ? lines.size() : end + 1);
    }
    return false;
}

void check_target(std::string_view target)
{
    if (!target.starts_with('/')) throw validation_error("[http] the request target must start with /");
    for (const char c : target) {
        const auto u = static_cast<unsigned char>(c);
        if (u <= 0x20 || u == 0x7f) throw validation_error("[http] the request target holds a space or control character");
    }
}

void check_host(std::string_view host)
{
    if (host.empty()) throw validation_error("[http] the URL has no host");
    for (const char c : host) {
        const auto u = static_cast<unsigned char>(c);
        if (u <= 0x20 || u >= 0x7f || c == '/' || c == '@') throw validation_error("[http] the host name holds a character that may not stand there");
    }
}

}  // namespace

void check_request(const http_request& request, std::string& checked)
{
    const http_limits& limits = request.limits;
    const auto negative = [](std::chrono::nanoseconds d) { return d.count() < 0; };
    if (negative(limits.connect) || negative(limits.first_byte) || negative(limits.idle))
        throw validation_error("[http] the limits connect, first_byte and idle must not be negative; zero is off");
    if (!is_token(request.method) || equal_but_case(request.method, "connect"))
        throw validation_error("[http] the method must be an HTTP token other than CONNECT");
    check_target(request.target.target());
    check_host(request.target.host());
    if (request.header_lines == checked) return;
    check_lines(request.header_lines);
    checked.assign(request.header_lines);
}

void write_request_head(std::string& out, const http_request& request, const http_route* proxy)
{
    const url& to = request.target;
    out.append(request.method).append(" ");
    if (proxy) out.append(to.origin());  // RFC 9112, section 3.2.2
    out.append(to.target()).append(" HTTP/1.1\r\nHost: ");
    const bool brackets = to.kind() == url::host_kind::ipv6;
    if (brackets) out.push_back('[');
    out.append(to.host());
    if (brackets) out.push_back(']');
    std::array<char, 24> digits;
    const auto number = [&](std::uint64_t n) {
        const auto end = std::to_chars(digits.data(), digits.data() + digits.size(), n).ptr;
        out.append(digits.data(), static_cast<std::size_t>(end - digits.data()));
    };
    if (!to.default_port()) {
        out.push_back(':');
        number(to.port());
    }
    out.append("\r\n").append(request.header_lines);
    if (proxy && !proxy->authorization().empty()) out.append("Proxy-Authorization: ").append(proxy->authorization().reveal()).append("\r\n");
    if (!names_accept_encoding(request.header_lines)) out.append("Accept-Encoding: identity\r\n");
    // A method that defines a body says that there is none, too (RFC 9110, section 8.6).
    const bool says_length = !request.body.empty() || request.method == "POST" || request.method == "PUT" || request.method == "PATCH";
    if (request.expect_continue && !request.body.empty()) out.append("Expect: 100-continue\r\n");
    if (says_length) {
        out.append("Content-Length: ");
        number(request.body.size());
        out.append("\r\n");
    }
    out.append("\r\n");
}

}  // namespace reagent::inline v0::net_detail

#include "request_reader.hpp"

#include "body_parser.hpp"

#include <reagent/base/ascii.hpp>

#include <algorithm>
#include <cstring>
#include <new>
#include <utility>

namespace reagent::inline v0::net_detail {
namespace http = boost::beast::http;
namespace {

constexpr std::size_t max_blank = 32;  // bytes of blank lines in front of a request line

std::string_view trimmed(std::string_view s) noexcept
{
    const auto blank = [](char c) { return c == ' ' || c == '\t'; };
    while (!s.empty() && blank(s.front())) s.remove_prefix(1);
    while (!s.empty() && blank(s.back())) s.remove_suffix(1);
    return s;
}

bool is_alnum(char c) noexcept
{
    return (c >= '0' && c <= '9') || (to_lower(c) >= 'a' && to_lower(c) <= 'z');
}

// Letters of a method; what begins otherwise (a TLS hello, say) is no request, however long it goes on.
bool begins_a_method(char c) noexcept
{
    return is_alnum(c) || (c != '\0' && std::strchr("!#$%&'*+-.^_`|~", c) != nullptr);
}

// uri-host [ ":" port ] without user info; a comma would be two hosts in one field.
bool plain_host(std::string_view value) noexcept
{
    return std::all_of(value.begin(), value.end(), [](char c) { return is_alnum(c) || (c != '\0' && std::strchr("-._~%!$&'()*+;=:[]", c) != nullptr); });
}

// ` HTTP/2.0` and the like: a version, though not ours.
bool names_a_version(std::string_view line) noexcept
{
    if (line.size() < 9) return false;
    const std::string_view v = line.substr(line.size() - 9);
    const auto digit = [](char c) { return c >= '0' && c <= '9'; };
    return v.starts_with(" HTTP/") && v != " HTTP/1.0" && v != " HTTP/1.1" && digit(v[6]) && v[7] == '.' && digit(v[8]);
}

}  // namespace

class request_reader::parser final : public body_parser<true> {
public:
    explicit parser(request_reader& owner) : owner_(owner)
    {
        if (owner.limits_.body == 0) body_limit(boost::none);
        else body_limit(owner.limits_.body);
    }

private:
    void on_request_impl(http::verb, view method, view target, int version, code&) override
    {
        owner_.head_.method.assign(method.data(), method.size());
        owner_.head_.target.assign(target.data(), target.size());
        owner_.head_.minor = version == 10 ? 0 : 1;
    }
    void on_response_impl(int, view, int, code&) override {}
    void on_field_impl(http::field f, view name, view value, code&) override
    {
        if (owner_.head_done_) return;  // trailers are framing to us
        if (f == http::field::host) ++owner_.hosts_;
        else if (f == http::field::content_length) ++owner_.lengths_;
        else if (f == http::field::transfer_encoding) ++owner_.transfers_;
        owner_.head_.fields.add({name.data(), name.size()}, {value.data(), value.size()});
    }

    request_reader& owner_;
};

request_reader::request_reader(request_limits limits) : limits_(limits)
{
    start();
}

request_reader::~request_reader()
{
    parser_->~parser();
}

void request_reader::start() noexcept
{
    static_assert(sizeof(parser) <= sizeof(storage_) && alignof(parser) <= 8);
    if (parser_) parser_->~parser();
    parser_ = new (storage_) parser(*this);
}

void request_reader::reset() noexcept
{
    start();
    head_.method.clear();
    head_.target.clear();
    head_.fields.clear();
    head_.minor = 1;
    line_at_ = scanned_ = lines_ = blank_ = 0;
    body_bytes_ = framing_bytes_ = 0;
    content_length_.reset();
    failure_text_ = {};
    status_ = hosts_ = lengths_ = transfers_ = 0;
    head_done_ = done_ = keep_alive_ = wants_continue_ = false;
}

void request_reader::fail(unsigned status, std::string_view text) noexcept
{
    status_ = status;
    failure_text_ = text;
    keep_alive_ = false;
}

// Blank lines before a request line are let pass (RFC 9112, section 2.2).
std::size_t request_reader::skip_blank_lines(const char* data, std::size_t n)
{
    std::size_t at = 0;
    while (n - at >= 2 && data[at] == '\r' && data[at + 1] == '\n') at += 2;
    blank_ += at;
    if (blank_ > max_blank) fail(400, "too many blank lines before the request");
    else if (at < n && data[at] != '\r' && !begins_a_method(data[at])) fail(400, "this is not an HTTP/1.1 request");
    return at;
}

// The size of the whole head, or 0 while it is incomplete or bad. Looks at each byte once, however the head is cut.
std::size_t request_reader::head_size(const char* data, std::size_t n)
{
    for (;;) {
        const std::size_t from = std::max(line_at_, scanned_);
        const char* lf = static_cast<const char*>(std::memchr(data + from, '\n', n - from));
        const std::size_t end = lf ? static_cast<std::size_t>(lf - data) : n;
        // A CR seen last time may have been the last byte then.
        const std::size_t cr_from = from > line_at_ ? from - 1 : from;
        const char* cr = end > cr_from ? static_cast<const char*>(std::memchr(data + cr_from, '\r', end - cr_from)) : nullptr;
        if (cr && static_cast<std::size_t>(cr - data) + 1 < end) return fail(400, "a CR without LF in the head"), 0;
        if (lf && !cr) return fail(400, "a LF without CR in the head"), 0;
        if (lines_ == 0 && end - line_at_ > limits_.line + (cr ? 1 : 0)) return fail(414, "the request line passes its limit"), 0;
        if (end + (lf ? 1 : 0) > limits_.head) return fail(431, "the request head passes its limit"), 0;
        if (lines_ > 0 && end > line_at_ && (data[line_at_] == ' ' || data[line_at_] == '\t')) return fail(400, "a folded header line"), 0;
        if (!lf) {
            scanned_ = n;
            return 0;
        }
        if (lines_ > 0 && end - line_at_ == 1) return end + 1;
        ++lines_;
        line_at_ = end + 1;
    }
}

void request_reader::read_head(const char* data, std::size_t n)
{
    boost::system::error_code ec;
    head_.fields.reserve(n, lines_);
    parser_->header_limit(static_cast<std::uint32_t>(std::min<std::size_t>(n + 1, UINT32_MAX)));
    parser_->put({data, n}, ec);
    const std::string_view line(data, static_cast<std::size_t>(static_cast<const char*>(std::memchr(data, '\r', n)) - data));
    if (ec == http::error::multiple_content_length) return fail(400, "Content-Length fields contradict each other");
    if (ec == http::error::bad_content_length) return fail(400, transfers_ > 0 ? "both Content-Length and Transfer-Encoding" : "Content-Length is no number");
    if (ec == http::error::bad_transfer_encoding)
        return fail(400, lengths_ > 0 ? "both Content-Length and Transfer-Encoding" : "Transfer-Encoding is given twice");
    if (ec == http::error::bad_version && names_a_version(line)) return fail(505, "only HTTP/1.0 and HTTP/1.1 are spoken here");
    if (ec && ec != http::error::body_limit) return fail(400, "the request head is not HTTP/1.1");
    if (!ec && !parser_->is_header_done()) return fail(400, "the request head is not HTTP/1.1");
    check_target();
    if (!failed()) check_framing();
    if (!failed()) check_head();
    // Last, so that a bad request is told so whatever length it claims.
    if (!failed() && ec) fail(413, "the request body passes its limit");
}

void request_reader::check_target()
{
    std::string& t = head_.target;
    if (head_.method == "CONNECT") return fail(501, "CONNECT is not served here");
    if (t.find('#') != std::string::npos) return fail(400, "a fragment in the request target");
    if (t.starts_with('/') || (t == "*" && head_.method == "OPTIONS")) return;
    const std::size_t scheme = starts_but_case(t, "http://") ? 7 : starts_but_case(t, "https://") ? 8 : 0;
    if (scheme == 0) return fail(400, "the request target is neither a path nor a URL");
    const std::size_t path = std::min(t.find_first_of("/?", scheme), t.size());
    if (path == scheme) return fail(400, "a request target without a host");
    // The host that counts, whatever the Host field says (RFC 9112, section 3.2.2).
    http_fields fields;
    fields.reserve(t.size() + 64 * head_.fields.size(), head_.fields.size() + 1);
    fields.add("Host", std::string_view(t).substr(scheme, path - scheme));
    for (std::size_t i = 0; i < head_.fields.size(); ++i)
        if (const auto [name, value] = head_.fields[i]; !equal_but_case(name, "host")) fields.add(name, value);
    head_.fields = std::move(fields);
    t.erase(0, path);
    if (!t.starts_with('/')) t.insert(0, 1, '/');
}

void request_reader::check_framing()
{
    if (lengths_ > 1 || head_.fields.get("content-length").find(',') != std::string_view::npos) return fail(400, "Content-Length is given twice");
    if (transfers_ == 0) return;
    if (transfers_ > 1) return fail(400, "Transfer-Encoding is given twice");
    if (lengths_ > 0) return fail(400, "both Content-Length and Transfer-Encoding");
    if (head_.minor == 0) return fail(400, "Transfer-Encoding in an HTTP/1.0 request");
    const std::string_view value = trimmed(head_.fields.get("transfer-encoding"));
    if (equal_but_case(value, "chunked") && parser_->chunked()) return;
    // Without `chunked` at the end nobody can tell where the body ends (RFC 9112, section 6.3).
    if (!parser_->chunked()) return fail(400, "Transfer-Encoding does not end in chunked");
    fail(501, "a transfer coding other than chunked");
}

void request_reader::check_head()
{
    if (hosts_ > 1 || (hosts_ == 0 && head_.minor == 1)) return fail(400, hosts_ > 1 ? "more than one Host field" : "no Host field");
    if (!plain_host(head_.fields.get("host"))) return fail(400, "the Host field is no host");
    const std::string_view expect = head_.fields.get("expect");
    if (!expect.empty() && head_.minor == 1) {
        if (!equal_but_case(expect, "100-continue")) return fail(417, "only 100-continue can be expected");
        wants_continue_ = true;
    }
}

request_reader::outcome request_reader::feed(char* data, std::size_t n)
{
    outcome out;
    if (done_ || failed()) return out;
    if (!head_done_) {
        if (line_at_ == 0 && scanned_ == 0) {
            out.consumed = skip_blank_lines(data, n);
            if (failed() || out.consumed == n) return out;
            // Half a blank line: the line it belongs to is not there yet.
            if (n - out.consumed == 1 && data[out.consumed] == '\r') return out;
        }
        const std::size_t size = head_size(data + out.consumed, n - out.consumed);
        if (size == 0) return out;
        read_head(data + out.consumed, size);
        if (failed()) return out;
        out.consumed += size;
        head_done_ = true;
        keep_alive_ = parser_->keep_alive();
        if (const auto length = parser_->content_length()) content_length_ = *length;
        if (parser_->is_done()) done_ = true;
        if (done_) wants_continue_ = false;
    }
    parser_->body_size = 0;
    while (!done_ && !failed() && out.consumed < n) {
        if (parser_->needs_more_first(data + out.consumed, n - out.consumed)) break;
        boost::system::error_code ec;
        const std::size_t before = parser_->body_size;
        const std::size_t used = parser_->put({data + out.consumed, n - out.consumed}, ec);
        const std::size_t fresh = parser_->body_size - before;
        out.consumed += used;
        body_bytes_ += fresh;
        framing_bytes_ += used - fresh;
        if (ec == http::error::need_more) {
            if (n - out.consumed >= limits_.head) fail(431, "a chunk header or trailer passes the limit of a head");
            break;
        }
        if (ec == http::error::body_limit) fail(413, "the request body passes its limit");
        else if (ec) fail(400, "the chunked body is malformed");
        // Chunks of one byte cost five more; what is far beyond that pays us for reading chunk extensions.
        else if (framing_bytes_ > limits_.head + 16 * body_bytes_) fail(431, "the framing of the chunks outweighs the body");
        else if (parser_->is_done()) done_ = true;
    }
    if (parser_->body_size > 0) out.body_at = static_cast<std::size_t>(parser_->body - data);
    out.body_size = parser_->body_size;
    return out;
}

}  // namespace reagent::inline v0::net_detail

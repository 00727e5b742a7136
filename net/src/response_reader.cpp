#include "response_reader.hpp"

#include "body_parser.hpp"

#include <reagent/base/ascii.hpp>

#include <algorithm>
#include <array>
#include <cstring>
#include <new>

namespace reagent::inline v0::net_detail {
namespace http = boost::beast::http;
namespace {

constexpr std::string_view version_prefix = "HTTP/1.";

bool named(std::string_view line, std::string_view name) noexcept
{
    if (line.size() <= name.size() || line[name.size()] != ':') return false;
    for (std::size_t i = 0; i < name.size(); ++i)
        if (to_lower(line[i]) != name[i]) return false;
    return true;
}

// Whether Transfer-Encoding is `chunked` and nothing else.
bool plain_chunked(std::string_view value) noexcept
{
    constexpr std::string_view word = "chunked";
    const auto blank = [](char c) { return c == ' ' || c == '\t'; };
    while (!value.empty() && blank(value.front())) value.remove_prefix(1);
    while (!value.empty() && blank(value.back())) value.remove_suffix(1);
    return equal_but_case(value, word);
}

bool may_trail(std::string_view name) noexcept
{
    constexpr std::array<std::string_view, 21> kept_to_heads = {"authorization",
                                                                "cache-control",
                                                                "connection",
                                                                "content-encoding",
                                                                "content-length",
                                                                "content-range",
                                                                "content-type",
                                                                "cookie",
                                                                "host",
                                                                "keep-alive",
                                                                "location",
                                                                "proxy-authenticate",
                                                                "proxy-authorization",
                                                                "retry-after",
                                                                "set-cookie",
                                                                "te",
                                                                "trailer",
                                                                "transfer-encoding",
                                                                "upgrade",
                                                                "vary",
                                                                "www-authenticate"};
    return std::none_of(kept_to_heads.begin(), kept_to_heads.end(), [&](std::string_view k) { return equal_but_case(name, k); });
}

// A head with both framings, without its Content-Length lines; empty when there is no Transfer-Encoding in it.
std::string without_length(std::string_view head)
{
    std::string kept;
    bool dropping = false, transfer = false;
    while (!head.empty()) {
        const std::size_t end = std::min(head.find("\r\n"), head.size() - 2) + 2;
        const std::string_view line = head.substr(0, end);
        head.remove_prefix(end);
        const bool folded = line[0] == ' ' || line[0] == '\t';
        if (!folded) dropping = named(line, "content-length");
        if (!dropping) kept.append(line);
        transfer = transfer || named(line, "transfer-encoding");
    }
    return transfer ? kept : std::string();
}

}  // namespace

class response_reader::parser final : public body_parser<false> {
public:
    explicit parser(response_reader& owner) : owner_(owner) { body_limit(boost::none); }

private:
    void on_request_impl(http::verb, view, view, int, code&) override {}
    void on_response_impl(int status, view, int version, code&) override
    {
        owner_.head_.status = static_cast<unsigned>(status);
        owner_.old_ = version < 11;
    }
    void on_field_impl(http::field, view name, view value, code&) override
    {
        if (!owner_.head_done_) owner_.head_.fields.add({name.data(), name.size()}, {value.data(), value.size()});
        else owner_.add_trailer({name.data(), name.size()}, {value.data(), value.size()});
    }

    response_reader& owner_;
};

response_reader::response_reader(std::size_t max_head, bool no_body, bool may_switch) : max_head_(max_head), no_body_(no_body), may_switch_(may_switch)
{
    start();
}

response_reader::~response_reader()
{
    parser_->~parser();
}

void response_reader::start() noexcept
{
    static_assert(sizeof(parser) <= sizeof(storage_) && alignof(parser) <= 8);
    if (parser_) parser_->~parser();
    parser_ = new (storage_) parser(*this);
    if (no_body_) parser_->skip(true);
    head_.status = 0;
    head_.fields.clear();
    scanned_ = 0;
}

void response_reader::reset() noexcept
{
    start();
    head_bytes_ = 0;
    content_length_.reset();
    trailers_.reset();
    failure_text_ = {};
    failure_ = errc{};
    head_done_ = done_ = keep_alive_ = ambiguous_ = continue_seen_ = false;
}

void response_reader::add_trailer(std::string_view name, std::string_view value)
{
    if (!may_trail(name)) return;
    if (!trailers_) trailers_ = std::make_unique<http_fields>();
    trailers_->add(name, value);
}

void response_reader::fail(errc what, std::string_view text) noexcept
{
    failure_ = what;
    failure_text_ = text;
}

bool response_reader::put_head(const char* data, std::size_t n)
{
    boost::system::error_code ec;
    parser_->header_limit(static_cast<std::uint32_t>(std::min<std::size_t>(n + 1, UINT32_MAX)));
    parser_->put({data, n}, ec);
    if (!ec && parser_->is_header_done()) return true;
    const bool conflict = ec == http::error::bad_content_length || ec == http::error::bad_transfer_encoding;
    if (conflict && !ambiguous_) {
        // Both framings: chunked wins (RFC 9112, section 6.3), and the connection is not used again.
        const std::string cleaned = without_length({data, n});
        if (!cleaned.empty()) {
            ambiguous_ = true;
            start();
            return put_head(cleaned.data(), cleaned.size());
        }
    }
    if (ec == http::error::multiple_content_length) fail(errc::malformed_response, "Content-Length fields contradict each other");
    else if (ec == http::error::bad_content_length) fail(errc::malformed_response, "Content-Length is no number");
    else if (ec == http::error::bad_transfer_encoding) fail(errc::malformed_response, "Transfer-Encoding is given twice");
    else fail(errc::malformed_response, "the response head is not HTTP/1.1");
    return false;
}

// True when a head has been read, whose bytes are then consumed.
bool response_reader::read_head(char* data, std::size_t n, outcome& out)
{
    const std::string_view text(data, n);
    if (!version_prefix.starts_with(text.substr(0, version_prefix.size()))) {
        fail(errc::malformed_response, "the response does not start with HTTP/1.");
        return false;
    }
    const std::size_t end = text.find("\r\n\r\n", scanned_ > 3 ? scanned_ - 3 : 0);
    const std::size_t size = end == std::string_view::npos ? n : end + 4;
    if (head_bytes_ + size > max_head_ || (end == std::string_view::npos && head_bytes_ + size == max_head_)) {
        fail(errc::headers_too_large, "the response head passes its limit");
        return false;
    }
    if (end == std::string_view::npos) {
        scanned_ = n;
        return false;
    }
    head_.fields.reserve(size, static_cast<std::size_t>(std::count(data, data + size, '\n')));
    if (!put_head(data, size)) return false;
    head_bytes_ += size;
    out.consumed += size;
    return true;
}

response_reader::outcome response_reader::feed(char* data, std::size_t n)
{
    outcome out;
    while (!head_done_ && !failed() && out.consumed < n) {
        if (!read_head(data + out.consumed, n - out.consumed, out)) return out;
        const unsigned status = head_.status;
        continue_seen_ = continue_seen_ || status == 100;
        if (status >= 200 || (status == 101 && may_switch_)) finish_head();
        else if (status < 100) fail(errc::malformed_response, "the status code is below 100");
        else if (status == 101) fail(errc::malformed_response, "the peer switched protocols unasked");
        else start();
    }
    parser_->body_size = 0;
    while (!done_ && !failed() && head_done_ && out.consumed < n) {
        if (parser_->needs_more_first(data + out.consumed, n - out.consumed)) break;
        boost::system::error_code ec;
        const std::size_t used = parser_->put({data + out.consumed, n - out.consumed}, ec);
        out.consumed += used;
        if (ec == http::error::need_more) {
            if (n - out.consumed >= max_head_) fail(errc::headers_too_large, "a chunk header or trailer passes the limit of a head");
            break;
        }
        if (ec) {
            fail(errc::malformed_response, "the chunked body is malformed");
            break;
        }
        if (parser_->is_done()) finish();
    }
    if (parser_->body_size > 0) out.body_at = static_cast<std::size_t>(parser_->body - data);
    out.body_size = parser_->body_size;
    return out;
}

void response_reader::finish_head()
{
    head_done_ = true;
    // A sender that does not know the field may not mean it: the framing counts as faulty (RFC 9112, section 6.1).
    if (old_ && head_.fields.contains("transfer-encoding")) ambiguous_ = true;
    if (parser_->is_done()) return finish();
    if (const auto length = parser_->content_length()) content_length_ = *length;
    if (head_.fields.contains("transfer-encoding") && (!parser_->chunked() || !plain_chunked(head_.fields.get("transfer-encoding"))))
        fail(errc::bad_encoding, "a transfer coding other than chunked");
}

void response_reader::finish()
{
    done_ = true;
    keep_alive_ = parser_->keep_alive() && !ambiguous_;
}

void response_reader::end_of_input(bool clean)
{
    if (done_ || failed()) return;
    if (!head_done_) return fail(errc::transport_failed, "the connection closed before the response head was complete");
    boost::system::error_code ec;
    parser_->put_eof(ec);
    if (ec || !clean) return fail(errc::stream_truncated, "the response ended before its body was complete");
    done_ = true;
}

}  // namespace reagent::inline v0::net_detail

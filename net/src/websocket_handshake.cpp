#include "websocket_handshake.hpp"

#include "request_writer.hpp"

#include <reagent/base/ascii.hpp>
#include <reagent/base/base64.hpp>
#include <reagent/base/untrusted_text.hpp>

#include <openssl/evp.h>

#include <algorithm>
#include <array>

namespace reagent::inline v0 {
namespace {

class websocket_category_impl final : public boost::system::error_category {
public:
    const char* name() const noexcept override { return "reagent.websocket"; }
    std::string message(int value) const override
    {
        switch (static_cast<websocket_fault>(value)) {
        case websocket_fault::refused: return "the peer did not switch to WebSocket";
        case websocket_fault::bad_handshake: return "the peer's answer is no WebSocket handshake";
        case websocket_fault::bad_opcode: return "a frame is of no known kind";
        case websocket_fault::reserved_bits: return "a frame has a reserved bit set, no extension was agreed to";
        case websocket_fault::masked: return "a frame of the server is masked";
        case websocket_fault::bad_length: return "a frame's length is not in its shortest form";
        case websocket_fault::bad_fragment: return "a frame continues no message, or begins one inside another";
        case websocket_fault::bad_control: return "a control frame is fragmented or too long";
        case websocket_fault::bad_text: return "a text message is not UTF-8";
        case websocket_fault::bad_close: return "a close frame has an impossible code or reason";
        case websocket_fault::too_large: return "a message is larger than the limit";
        case websocket_fault::cut: return "the peer ended the connection without a close frame";
        case websocket_fault::broken: return "the connection broke";
        }
        return "unknown error";
    }
    boost::system::error_condition default_error_condition(int value) const noexcept override
    {
        switch (static_cast<websocket_fault>(value)) {
        case websocket_fault::refused: return {value, *this};
        case websocket_fault::cut:
        case websocket_fault::broken: return condition::unavailable;
        default: return condition::malformed;
        }
    }
};

bool worth_another_try(websocket_fault fault, unsigned status) noexcept
{
    return fault == websocket_fault::cut || fault == websocket_fault::broken || status == 408 || status == 429 || status >= 500;
}

// Whether one of the fields `name` lists `token`.
bool lists(const http_fields& fields, std::string_view name, std::string_view token) noexcept
{
    for (std::size_t i = 0; i < fields.size(); ++i) {
        const auto [field, value] = fields[i];
        if (!equal_but_case(field, name)) continue;
        for (std::string_view rest = value; !rest.empty();) {
            const std::size_t comma = std::min(rest.find(','), rest.size());
            std::string_view item = rest.substr(0, comma);
            rest.remove_prefix(std::min(comma + 1, rest.size()));
            const std::size_t from = std::min(item.find_first_not_of(" \t"), item.size());
            item.remove_prefix(from);
            item.remove_suffix(item.size() - std::min(item.find_last_not_of(" \t") + 1, item.size()));
            if (equal_but_case(item, token)) return true;
        }
    }
    return false;
}

std::size_t count(const http_fields& fields, std::string_view name) noexcept
{
    std::size_t n = 0;
    for (std::size_t i = 0; i < fields.size(); ++i) n += equal_but_case(fields[i].first, name) ? 1 : 0;
    return n;
}

constexpr std::string_view protocol_field = "Sec-WebSocket-Protocol";

}  // namespace

websocket_error::websocket_error(websocket_fault fault, std::string message, error_code cause, unsigned status, std::string body)
    : error(make_error_code(fault), std::move(message), worth_another_try(fault, status)), fault_(fault), cause_(cause), status_(status), body_(std::move(body))
{}

const boost::system::error_category& websocket_category() noexcept
{
    static const websocket_category_impl instance;
    return instance;
}

error_code make_error_code(websocket_fault fault) noexcept
{
    return {static_cast<int>(fault), websocket_category()};
}

url websocket_url(std::string_view text, std::string_view what)
{
    // Whatever surrounds or breaks the scheme, the parser of URLs decides about the rest.
    const std::size_t colon = std::min(text.find(':'), text.size());
    const std::string_view scheme = text.substr(0, colon);
    if (equal_but_case(scheme, "ws") || equal_but_case(scheme, "wss"))
        return url::parse_or_throw("http" + std::string(scheme.size() == 3 ? "s" : "") + std::string(text.substr(colon)), what);
    return url::parse_or_throw(text, what);
}

namespace net_detail {

void check_websocket_options(const url& to, const websocket_options& o)
{
    const auto negative = [](std::chrono::nanoseconds d) { return d.count() < 0; };
    if (negative(o.connect) || negative(o.handshake) || negative(o.idle) || negative(o.ping_every) || negative(o.pong_within) || negative(o.close_within))
        throw validation_error("[websocket] the limits connect, handshake, idle, ping_every, pong_within and close_within must not be negative; zero is off");
    if (o.message_max == 0) throw validation_error("[websocket] message_max must be at least 1");
    http_request r("GET", to);
    r.header_lines = o.header_lines;
    std::string checked;
    check_request(r, checked);
    constexpr std::string_view ours = "sec-websocket-";
    for (std::string_view rest = o.header_lines; !rest.empty(); rest.remove_prefix(rest.find("\r\n") + 2))
        if (equal_but_case(rest.substr(0, ours.size()), ours)) throw validation_error("[websocket] the header fields Sec-WebSocket-… are set by the client");
    for (const std::string& p : o.protocols) {
        const bool token = !p.empty() && std::all_of(p.begin(), p.end(), [](char c) {
            return c > ' ' && c < 0x7f && std::string_view("()<>@,;:\\\"/[]?={}").find(c) == std::string_view::npos;
        });
        if (!token || std::count(o.protocols.begin(), o.protocols.end(), p) != 1)
            throw validation_error("[websocket] sub-protocols must be HTTP tokens, each given once");
    }
}

std::string websocket_request_head(const url& to, const websocket_options& options, std::string_view key)
{
    http_request r("GET", to);
    r.header_lines = options.header_lines;
    std::string head;
    write_request_head(head, r);
    head.resize(head.size() - 2);
    head.append("Connection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: ").append(key).append("\r\n");
    for (std::size_t i = 0; i < options.protocols.size(); ++i) head.append(i == 0 ? "Sec-WebSocket-Protocol: " : ", ").append(options.protocols[i]);
    return head.append(options.protocols.empty() ? "\r\n" : "\r\n\r\n");
}

std::string websocket_accept(std::string_view key)
{
    const std::string text = std::string(key) + "258EAFA5-E914-47DA-95CA-C5AB0DC85B11";
    std::array<unsigned char, EVP_MAX_MD_SIZE> digest{};
    unsigned size = 0;
    if (EVP_Digest(text.data(), text.size(), digest.data(), &size, EVP_sha1(), nullptr) != 1)
        throw error(errc::unexpected, "[websocket] no SHA-1 in this OpenSSL");
    return base64_encode(std::string_view(reinterpret_cast<const char*>(digest.data()), size));
}

handshake_reader::handshake_reader(std::size_t max_head, std::string accept, std::vector<std::string> protocols)
    : reader_(max_head, false, true), accept_(std::move(accept)), protocols_(std::move(protocols))
{}

void handshake_reader::fail(websocket_fault what, std::string_view text)
{
    failed_ = true;
    fault_ = what;
    failure_text_ = text;
}

void handshake_reader::feed(std::string_view bytes)
{
    unparsed_.append(bytes);
    const bool had_head = reader_.head_done();
    const response_reader::outcome o = reader_.feed(unparsed_.data(), unparsed_.size());
    refusal_.append(unparsed_, o.body_at, std::min(o.body_size, websocket_options::max_refusal - refusal_.size()));
    unparsed_.erase(0, o.consumed);
    if (reader_.head_done() && !had_head) judge();
    if (reader_.failed() && !reader_.head_done()) fail(websocket_fault::bad_handshake, reader_.failure_text());
}

void handshake_reader::end_of_input(bool clean)
{
    if (done()) return;
    reader_.end_of_input(clean);
    if (!refused_) fail(websocket_fault::cut, reader_.failure_text());
}

void handshake_reader::judge()
{
    const http_fields& f = reader_.head().fields;
    if (reader_.head().status != 101) {
        refused_ = true;
        return;
    }
    const std::string_view chosen = f.get(protocol_field);
    const auto known = std::find(protocols_.begin(), protocols_.end(), chosen);
    if (!lists(f, "upgrade", "websocket")) fail(websocket_fault::bad_handshake, "the answer does not switch to websocket");
    else if (!lists(f, "connection", "upgrade")) fail(websocket_fault::bad_handshake, "the field Connection of the answer does not name the upgrade");
    else if (!reader_.keep_alive()) fail(websocket_fault::bad_handshake, "the answer is HTTP/1.0 or ends the connection");
    else if (count(f, "sec-websocket-accept") != 1 || f.get("sec-websocket-accept") != accept_)
        fail(websocket_fault::bad_handshake, "Sec-WebSocket-Accept does not fit our key");
    else if (f.contains("sec-websocket-extensions")) fail(websocket_fault::bad_handshake, "the peer chose an extension, none was offered");
    else if (f.contains(protocol_field) && known == protocols_.end())
        fail(websocket_fault::bad_handshake, "the peer chose a sub-protocol that was not offered");
    else if (count(f, protocol_field) > 1) fail(websocket_fault::bad_handshake, "the peer chose several sub-protocols");
    else switched_ = true;
    if (switched_ && known != protocols_.end()) protocol_ = *known;
}

void handshake_reader::raise(const std::string& label) const
{
    if (refused_) {
        const unsigned status = reader_.head().status;
        throw websocket_error(websocket_fault::refused, label + ": the peer answered the handshake with status " + std::to_string(status), {}, status,
                              refusal_);
    }
    throw websocket_error(fault_, label + ": " + failure_text_);
}

}  // namespace net_detail
}  // namespace reagent::inline v0

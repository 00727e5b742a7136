#pragma once
#include <reagent/base/asio.hpp>
#include <reagent/base/random.hpp>
#include <reagent/net/http_client.hpp>
#include <reagent/net/http_types.hpp>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace reagent::inline v0 {

/// The http(s) URL of a `ws://` or `wss://` one (RFC 6455, section 3); http and https pass. Throws `validation_error` naming `what`.
url websocket_url(std::string_view text, std::string_view what = "url");

/// What went wrong with a WebSocket; an `error_code` of its own. `refused` is no `condition`, cut and broken are `unavailable`, all else is `malformed`.
enum class websocket_fault : std::uint8_t {
    refused = 1,    ///< the handshake was answered with another status than 101: `status()` and `body()`
    bad_handshake,  ///< a 101 that is no consent to what was asked
    bad_opcode,     ///< a frame of no known kind
    reserved_bits,  ///< a frame that uses an extension nobody agreed to
    masked,         ///< a masked frame, which servers do not send
    bad_length,     ///< a length that is not in its shortest form
    bad_fragment,   ///< a continuation of nothing, or a new message inside another
    bad_control,    ///< a control frame in fragments or of more than 125 bytes
    bad_text,       ///< a text message that is no UTF-8
    bad_close,      ///< a close frame with an impossible code or reason
    too_large,      ///< a message over `websocket_options::message_max`
    cut,            ///< the connection ended without a close frame
    broken,         ///< the connection broke
};

const boost::system::error_category& websocket_category() noexcept;
error_code make_error_code(websocket_fault fault) noexcept;

}  // namespace reagent::inline v0

namespace boost::system {
template <>
struct is_error_code_enum<reagent::websocket_fault> : std::true_type {};
}  // namespace boost::system

namespace reagent::inline v0 {

/// A WebSocket that was refused or has failed; `code()` is the fault.
class websocket_error : public error {
public:
    websocket_error(websocket_fault fault, std::string message, error_code cause = {}, unsigned status = 0, std::string body = {});
    websocket_fault fault() const noexcept { return fault_; }
    /// What the system said of a broken connection, else empty.
    const error_code& cause() const noexcept { return cause_; }
    /// Of the answer that refused; else 0.
    unsigned status() const noexcept { return status_; }
    /// The first bytes of that answer's body, at most `websocket_options::max_refusal`. The peer's words: bound and mark them before showing them.
    const std::string& body() const noexcept { return body_; }

private:
    websocket_fault fault_;
    error_code cause_;
    unsigned status_;
    std::string body_;
};

class websocket_options {
public:
    websocket_options() = default;
    /// Bytes of a refusing answer's body that an error keeps.
    static constexpr std::size_t max_refusal = 1024;

    std::string header_lines;            ///< as `http_request::header_lines`; those that begin with Sec-WebSocket- are ours
    std::vector<std::string> protocols;  ///< sub-protocols, the dearest first
    random_source random;                ///< of the handshake's key; empty: `random_bits`
    const http_route* route = nullptr;   ///< kept by the caller until the connection is there; null: as the client's options say

    std::chrono::nanoseconds connect = std::chrono::seconds(10);      ///< name, TCP, proxy and TLS; 0 off, as below
    std::chrono::nanoseconds handshake = std::chrono::seconds(10);    ///< from then to the end of the answer's head
    std::chrono::nanoseconds idle = std::chrono::seconds(600);        ///< without a byte in either direction, while something waits for one
    std::chrono::nanoseconds ping_every = std::chrono::seconds(30);   ///< silence of the peer after which it gets a ping, while a message is read
    std::chrono::nanoseconds pong_within = std::chrono::seconds(10);  ///< from that ping to the next byte
    std::chrono::nanoseconds close_within = std::chrono::seconds(5);  ///< from the start of `close` to the peer's close frame
    std::size_t max_head = 64 * 1024;                                 ///< bytes of the answer's head, 64 KiB at most
    std::size_t message_max = 16 * 1024 * 1024;                       ///< bytes of one message received
};

enum class websocket_kind : std::uint8_t { text, binary };

/// One message.
class websocket_message {
public:
    websocket_message() = default;
    websocket_kind kind = websocket_kind::text;
    std::string bytes;
};

/// A WebSocket client connection (RFC 6455, no extensions). It keeps the state of its client alive; lives on the client's executor. One `read` at a time,
/// beside any number of `send`s and `ping`s, which go out in their order, and one `close`. Pings are answered, and pongs and the peer's close heard, while a
/// read is under way. Destroying it ends the connection at once; what is under way then throws `error(errc::closed)`.
/// What is cancelled (terminal) throws `operation_aborted` and leaves the connection as it is: a message that has begun to arrive or to leave goes on
/// without its caller, the former to the next `read`.
class websocket {
public:
    /// Connects as `http_client` does (through a proxy always by CONNECT) and shakes hands.
    /// Errors: `validation_error` before any I/O; `timeout_error(errc::connect_timeout | first_byte_timeout)`; those of dialling (`http_client::open`);
    /// `websocket_error(refused | bad_handshake | cut | broken)`. Redirects are refusals. Cancellation: terminal, `operation_aborted`, the connection is closed.
    static awaitable<websocket> connect(http_client client, url to, websocket_options options = websocket_options());

    websocket() noexcept;
    websocket(websocket&&) noexcept;
    websocket& operator=(websocket&&) noexcept;
    ~websocket();

    /// The next message, whole; false when the connection has been closed properly (`close_code` says how). `to` is touched only with true.
    /// Errors: `websocket_error`; `timeout_error(errc::idle_timeout)`; `validation_error` when another read is under way. A failure stays: the next read fails the same way.
    awaitable<bool> read(websocket_message& to);
    /// Sends one message, and returns when all of it was handed to the kernel. Text must be UTF-8.
    /// Errors: `validation_error`; `error(errc::closed)` when the connection is closed or closing; those of `read`.
    awaitable<void> send(websocket_kind kind, std::string bytes);
    awaitable<void> send_text(std::string text) { return send(websocket_kind::text, std::move(text)); }
    awaitable<void> send_binary(std::string bytes) { return send(websocket_kind::binary, std::move(bytes)); }
    /// Sends a ping, at most 125 bytes; the answer is counted by `pongs()`. Errors: as `send`.
    awaitable<void> ping(std::string payload = std::string());
    /// Says goodbye after what is being sent, waits for the peer's goodbye, and ends the connection. Messages that arrive meanwhile are dropped, a read ends with
    /// false. True when the peer answered in time; never throws for what the peer does. Codes: 1000 to 1003, 1007 to 1013 but for 1010, 3000 to 4999; a reason of at
    /// most 123 bytes of UTF-8. On a connection that is over it answers whether that was proper.
    awaitable<bool> close(unsigned code = 1000, std::string reason = std::string());

    /// The head of the answer that switched protocols, and the sub-protocol it chose (empty: none).
    const http_head& head() const noexcept;
    std::string_view protocol() const noexcept;
    /// Open for `send`.
    bool is_open() const noexcept;
    /// What the peer said at the end: 1005 for no code, 1006 when it has said nothing (yet). The reason is the peer's words.
    unsigned close_code() const noexcept;
    std::string_view close_reason() const noexcept;
    std::uint64_t pongs() const noexcept;

    struct impl;
    explicit websocket(std::shared_ptr<impl> i) noexcept;

private:
    void leave() noexcept;
    std::shared_ptr<impl> impl_;
};

}  // namespace reagent::inline v0

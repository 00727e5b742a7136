#pragma once
#include <reagent/base/asio.hpp>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace reagent::inline v0::testing {

/// What a server does on one connection, step after step. While it plays, the peer's bytes are read all the time (unless `stop_reading`), so that
/// requests, FIN and RST are seen when they arrive. After the last step the connection stays open until the peer closes it.
class byte_script {
public:
    enum class action : std::uint8_t { request, send, trickle, forever, gate, half_close, reset, close, stall, stop_reading, read_again, repeat };
    class step {
    public:
        explicit step(action a, std::string b = {}) : what(a), bytes(std::move(b)) {}
        action what;
        std::string bytes;  ///< to send, or the gate's name
    };

    /// Waits for one whole HTTP request: head, then a body by content-length or chunked. It is then in the log.
    byte_script& request() { return add(action::request); }
    /// Sends the bytes in as few writes as the socket takes.
    byte_script& send(std::string bytes) { return add(action::send, std::move(bytes)); }
    /// Sends one byte per write; on a shared context the loop goes round in between, so that the client can read each byte alone.
    byte_script& trickle(std::string bytes) { return add(action::trickle, std::move(bytes)); }
    /// Sends the bytes again and again until the peer closes.
    byte_script& send_forever(std::string bytes) { return add(action::forever, std::move(bytes)); }
    /// Waits until the test calls `byte_server::open(name)`; passes at once when that has happened.
    byte_script& gate(std::string name) { return add(action::gate, std::move(name)); }
    /// Shuts the sending side down: the peer sees the end of the stream and can still send.
    byte_script& half_close() { return add(action::half_close); }
    /// Drops the connection with RST.
    byte_script& reset() { return add(action::reset); }
    byte_script& close() { return add(action::close); }
    /// Says nothing more until the peer closes. What follows is not played.
    byte_script& stall() { return add(action::stall); }
    /// No byte of the peer is taken from here on: its writes fill the buffers and block.
    byte_script& stop_reading() { return add(action::stop_reading); }
    byte_script& read_again() { return add(action::read_again); }
    /// Starts again at the first step: a keep-alive server.
    byte_script& repeat() { return add(action::repeat); }

    const std::vector<step>& steps() const noexcept { return steps_; }
    /// `request`, then `send(response)`, for ever: what most tests need.
    static byte_script answering(std::string response);

private:
    byte_script& add(action what, std::string bytes = {})
    {
        steps_.emplace_back(what, std::move(bytes));
        return *this;
    }
    std::vector<step> steps_;
};

/// One request as it came: the head with its blank line, and the body after chunk decoding.
class byte_request {
public:
    byte_request() = default;
    std::string head;
    std::string body;
    /// `POST`, `/v1/chat/completions`, and a header's value by its name in any case (empty when absent).
    std::string method() const;
    std::string target() const;
    std::string header(std::string_view name) const;
};

enum class byte_end : std::uint8_t { open, fin, reset, ours };

/// What one connection saw.
class byte_connection {
public:
    byte_connection() = default;
    std::vector<byte_request> requests;
    std::size_t received = 0;       ///< bytes
    std::size_t sent = 0;           ///< bytes the kernel took
    byte_end end = byte_end::open;  ///< who ended it: the peer with FIN or RST, or this server
    std::chrono::steady_clock::time_point accepted, ended;
};

/// What happened on all connections, in order: `0 accept`, `0 request`, `1 accept`, `0 gate:go`, `0 fin`, `0 done` …
class byte_log {
public:
    byte_log() = default;
    std::vector<byte_connection> connections;
    std::vector<std::string> events;
    bool saw(std::string_view event) const noexcept;
    std::size_t requests() const noexcept;
    std::size_t open() const noexcept;  ///< connections not ended yet
    /// The request at `index` counted over all connections by connection, then order. Throws `std::out_of_range`.
    const byte_request& request(std::size_t index = 0) const;
};

/// A loopback server that misbehaves on purpose: each connection plays a script, everything seen is logged. On a context shared with the test it is
/// deterministic and its pending accept counts as work, so `stop()` it before expecting `run()` to return. On a thread of its own it is
/// independent of the client's context. Public members may be called from any thread; the destructor stops, and joins an own thread. On a
/// context shared with the test it belongs to that context's thread, or to a time when nothing runs it.
class byte_server {
public:
    /// The i-th connection plays `scripts[i]`, later ones the last.
    byte_server(any_io_executor ex, std::vector<byte_script> scripts);
    byte_server(any_io_executor ex, byte_script script);
    /// At another IPv4 address of the loopback and a port of the caller's choice. Throws `boost::system::system_error` when it is taken.
    byte_server(any_io_executor ex, byte_script script, const std::string& address, std::uint16_t port);
    /// On a thread of its own.
    explicit byte_server(std::vector<byte_script> scripts);
    explicit byte_server(byte_script script);
    byte_server(const byte_server&) = delete;
    byte_server& operator=(const byte_server&) = delete;
    ~byte_server();

    std::uint16_t port() const noexcept;
    /// `http://127.0.0.1:PORT`
    std::string origin() const;
    /// Opens a gate for all connections, now and later.
    void open(std::string gate);
    /// Stops accepting and closes every connection.
    void stop();
    byte_log log() const;
    /// Blocks until `seen(log)` holds, at most `limit`: for a server on a thread of its own; on a shared context use `run_until`.
    bool wait_until(const std::function<bool(const byte_log&)>& seen, std::chrono::milliseconds limit = std::chrono::seconds(20)) const;

private:
    struct impl;
    struct own_thread;
    std::shared_ptr<impl> impl_;
    std::unique_ptr<own_thread> thread_;
};

/// A listening port of loopback that refuses connections: bound, not listening, for as long as the object lives.
class refused_port {
public:
    refused_port();
    refused_port(const refused_port&) = delete;
    refused_port& operator=(const refused_port&) = delete;
    ~refused_port();
    std::uint16_t port() const noexcept { return port_; }

private:
    int fd_;
    std::uint16_t port_ = 0;
};

}  // namespace reagent::inline v0::testing

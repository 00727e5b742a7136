/// The other side of a WebSocket by hand: frames as bytes, and a peer on a real socket that a test moves step by step.
#pragma once
#include <reagent/base/base64.hpp>

#include <boost/asio/io_context.hpp>

#include <openssl/evp.h>

#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <cstdint>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

namespace reagent::net_tests {

/// A frame of a server. `reserved`: 4 is RSV1, 2 RSV2, 1 RSV3.
inline std::string frame(unsigned opcode, std::string_view payload, bool fin = true, unsigned reserved = 0)
{
    std::string out(1, static_cast<char>((fin ? 0x80u : 0u) | (reserved << 4) | opcode));
    const auto big_endian = [&out](std::uint64_t n, int bytes) {
        for (int i = bytes - 1; i >= 0; --i) out += static_cast<char>(n >> (8 * i) & 0xff);
    };
    if (payload.size() < 126) {
        out += static_cast<char>(payload.size());
    } else if (payload.size() < 65536) {
        out += '\x7e';
        big_endian(payload.size(), 2);
    } else {
        out += '\x7f';
        big_endian(payload.size(), 8);
    }
    return out.append(payload);
}

/// What Sec-WebSocket-Accept must be.
inline std::string accept_for(const std::string& key)
{
    const std::string text = key + "258EAFA5-E914-47DA-95CA-C5AB0DC85B11";
    std::array<unsigned char, EVP_MAX_MD_SIZE> digest{};
    unsigned size = 0;
    EVP_Digest(text.data(), text.size(), digest.data(), &size, EVP_sha1(), nullptr);
    return base64_encode({reinterpret_cast<const char*>(digest.data()), size});
}

/// The answer that switches, for a request whose head has `key`.
inline std::string consent_for(const std::string& key, const std::string& more_lines = {})
{
    return "HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Accept: " + accept_for(key) + "\r\n" + more_lines +
        "\r\n";
}

inline std::string field_of(const std::string& head, const std::string& name)
{
    const std::size_t at = head.find("\r\n" + name + ": ");
    if (at == std::string::npos) return {};
    const std::size_t from = at + name.size() + 4;
    return head.substr(from, head.find("\r\n", from) - from);
}

/// A frame of a client, unmasked.
struct seen_frame {
    unsigned opcode = 0;
    bool fin = false, masked = false;
    std::uint32_t mask = 0;
    std::string payload;
    std::string text() const { return std::to_string(opcode) + " " + payload; }
};

inline std::vector<seen_frame> frames_of(std::string_view bytes)
{
    std::vector<seen_frame> out;
    const auto number = [&](std::size_t at, std::size_t n) {
        std::uint64_t v = 0;
        for (std::size_t i = 0; i < n; ++i) v = v << 8 | static_cast<unsigned char>(bytes[at + i]);
        return v;
    };
    while (bytes.size() >= 2) {
        seen_frame f;
        f.opcode = static_cast<unsigned>(bytes[0]) & 15;
        f.fin = (bytes[0] & 0x80) != 0;
        f.masked = (bytes[1] & 0x80) != 0;
        std::uint64_t size = static_cast<unsigned>(bytes[1]) & 127;
        std::size_t at = 2;
        const std::size_t wide = size == 126 ? 2 : size == 127 ? 8 : 0;
        if (bytes.size() < at + wide + (f.masked ? 4 : 0)) break;
        if (wide != 0) size = number(at, wide);
        at += wide;
        if (f.masked) {
            f.mask = static_cast<std::uint32_t>(number(at, 4));
            at += 4;
        }
        if (bytes.size() < at + size) break;
        f.payload.assign(bytes.substr(at, size));
        if (f.masked)
            for (std::size_t i = 0; i < f.payload.size(); ++i) f.payload[i] = static_cast<char>(f.payload[i] ^ bytes[at - 4 + i % 4]);
        bytes.remove_prefix(at + size);
        out.push_back(std::move(f));
    }
    return out;
}

/// `1 hi|9 |`
inline std::string texts_of(std::string_view bytes)
{
    std::string out;
    for (const seen_frame& f : frames_of(bytes)) out += f.text() + "|";
    return out;
}

/// A server of one connection.
class ws_peer {
public:
    ws_peer() : listener_(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0))
    {
        sockaddr_in at{};
        at.sin_family = AF_INET;
        at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
        socklen_t size = sizeof at;
        auto* address = reinterpret_cast<sockaddr*>(&at);
        if (::bind(listener_, address, size) != 0 || ::listen(listener_, 8) != 0 || ::getsockname(listener_, address, &size) != 0)
            throw std::runtime_error("listen");
        port_ = ntohs(at.sin_port);
    }
    ws_peer(const ws_peer&) = delete;
    ws_peer& operator=(const ws_peer&) = delete;
    ~ws_peer()
    {
        ::close(listener_);
        if (fd_ >= 0) ::close(fd_);
    }
    std::uint16_t port() const { return port_; }
    /// Takes what has come. False when nobody has connected.
    bool look()
    {
        if (fd_ < 0) {
            fd_ = ::accept4(listener_, nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK);
            if (fd_ < 0) return false;
            const int on = 1;
            ::setsockopt(fd_, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
        }
        static std::array<char, 256 * 1024> buffer;
        for (;;) {
            const ssize_t n = ::recv(fd_, buffer.data(), buffer.size(), 0);
            if (n > 0) {
                bytes_.append(buffer.data(), static_cast<std::size_t>(n));
                continue;
            }
            ended_ = ended_ || n == 0 || errno == ECONNRESET;
            break;
        }
        return true;
    }
    /// All of it; waits for a client that does not take it.
    void say(std::string_view bytes)
    {
        while (!bytes.empty()) {
            const ssize_t n = ::send(fd_, bytes.data(), bytes.size(), MSG_NOSIGNAL);
            if (n < 0 && errno != EAGAIN) return;
            if (n > 0) bytes.remove_prefix(static_cast<std::size_t>(n));
            else if (context_ && context_->stopped()) context_->restart();
            else if (context_) context_->poll();
        }
    }
    /// Each byte alone.
    void say_bytewise(std::string_view bytes, boost::asio::io_context& context)
    {
        for (const char c : bytes) {
            say({&c, 1});
            context.restart();
            context.poll();
        }
    }
    void help(boost::asio::io_context& context) { context_ = &context; }
    void hang_up() { ::shutdown(fd_, SHUT_WR); }
    bool ended()
    {
        look();
        return ended_;
    }
    std::string head() const { return bytes_.substr(0, bytes_.find("\r\n\r\n") + 4); }
    std::string key() const { return field_of(head(), "Sec-WebSocket-Key"); }
    std::string accept() const { return accept_for(key()); }
    /// The answer that switches; from here on `seen` is what follows the head.
    std::string consent(const std::string& more_lines = {})
    {
        const std::string answer = consent_for(key(), more_lines);
        forget();
        return answer;
    }
    void forget() { bytes_.clear(); }
    const std::string& seen() const { return bytes_; }

private:
    int listener_, fd_ = -1;
    std::uint16_t port_ = 0;
    std::string bytes_;
    bool ended_ = false;
    boost::asio::io_context* context_ = nullptr;
};

}  // namespace reagent::net_tests

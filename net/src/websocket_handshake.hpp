#pragma once
#include "response_reader.hpp"

#include <reagent/net/websocket.hpp>

#include <string>
#include <string_view>
#include <vector>

namespace reagent::inline v0::net_detail {

/// Throws `validation_error` for what cannot be asked.
void check_websocket_options(const url& to, const websocket_options& options);
/// The request that asks for the switch, and the answer that proves the peer understood `key` (RFC 6455, section 4).
std::string websocket_request_head(const url& to, const websocket_options& options, std::string_view key);
std::string websocket_accept(std::string_view key);

/// The answer to the handshake from bytes, without I/O.
class handshake_reader {
public:
    handshake_reader(std::size_t max_head, std::string accept, std::vector<std::string> protocols);
    void feed(std::string_view bytes);
    void end_of_input(bool clean);
    /// The connection is there, or it is clear that it will not be.
    bool done() const noexcept
    {
        return switched_ || failed_ || (refused_ && (reader_.done() || reader_.failed() || refusal_.size() == websocket_options::max_refusal));
    }
    /// Whether the head of a refusal has come; its body may be incomplete.
    bool refused() const noexcept { return refused_; }
    bool switched() const noexcept { return switched_; }
    const http_head& head() const noexcept { return reader_.head(); }
    std::string_view protocol() const noexcept { return protocol_; }
    /// Bytes behind the head: the first frames.
    const std::string& behind() const noexcept { return unparsed_; }
    /// Throws what is wrong: a refusal, or an answer that is none. `label` begins the message.
    [[noreturn]] void raise(const std::string& label) const;

private:
    void judge();
    void fail(websocket_fault what, std::string_view text);

    response_reader reader_;
    std::string accept_, unparsed_, refusal_, failure_text_;
    std::vector<std::string> protocols_;
    std::string_view protocol_;
    websocket_fault fault_{};
    bool switched_ = false, refused_ = false, failed_ = false;
};

}  // namespace reagent::inline v0::net_detail

#pragma once
#include "transport.hpp"

#include <reagent/net/websocket.hpp>

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

namespace reagent::inline v0::net_detail {

enum class frame_op : std::uint8_t { read, write, ping, close };

/// How an operation of a `frame_stream` ended.
class frame_result {
public:
    frame_result() = default;
    enum class kind : std::uint8_t {
        ok,
        closed,   ///< the peer's close frame has come and is answered
        failed,   ///< `fault`, with `text` and perhaps `cause`
        aborted,  ///< because another operation failed before, or the stream was dropped
    };
    kind how = kind::ok;
    websocket_fault fault{};
    std::string text;
    error_code cause;
};

/// Who is told. Called on the executor, never inside the start of an operation.
class frame_owner {
public:
    virtual void frame_ended(frame_op which, frame_result result) = 0;
    virtual void bytes_moved(direction d) = 0;
    virtual void pong_came() = 0;

protected:
    ~frame_owner() = default;
};

/// The frames of a WebSocket client over a transport, after the handshake. One operation of each kind at a time. Operations under way keep it alive; `drop`
/// ends them, and after it nobody is told any more.
class frame_stream {
public:
    virtual ~frame_stream() = default;
    /// Reads the next message into `message`.
    virtual void read() = 0;
    virtual void write(websocket_kind kind, std::string bytes) = 0;
    virtual void ping(std::string_view payload) = 0;
    virtual void close(unsigned code, std::string_view reason) = 0;
    /// Closes the transport.
    virtual void drop() noexcept = 0;
    /// The peer's close frame.
    virtual unsigned close_code() const noexcept = 0;
    virtual std::string_view close_reason() const noexcept = 0;

    websocket_message message;
};

/// `behind`: bytes that came after the handshake. `owner` lives until `drop`.
std::shared_ptr<frame_stream> make_frame_stream(any_io_executor ex, std::unique_ptr<transport> wire, std::string behind, std::size_t message_max,
                                                frame_owner& owner);

}  // namespace reagent::inline v0::net_detail

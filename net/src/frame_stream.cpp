// The one unit that sees Beast's WebSocket stream.
#include "frame_stream.hpp"

#include "websocket_handshake.hpp"

#include <reagent/base/utf8.hpp>

#include <boost/asio/post.hpp>
#include <boost/beast/websocket/stream.hpp>

#include <algorithm>
#include <optional>
#include <utility>

namespace reagent::inline v0::net_detail {
namespace {

namespace beast = boost::beast;

class core;

using moved_handler = asio::any_completion_handler<void(error_code, std::size_t)>;

// One message is one frame, masked and written in pieces of this size, which one TLS record holds.
constexpr std::size_t write_piece = 16 * 1024 - 64;
// A message grows by what has come, not by what its frame promises.
constexpr std::size_t least_room = 1536, most_room = 64 * 1024;

/// What lies below Beast: the transport, with erased handlers. The synchronous half is for the handshake alone, which takes place in memory: Beast opens a stream
/// by its own handshake only, and ours with the peer is over.
class wire_layer {
public:
    using executor_type = any_io_executor;
    explicit wire_layer(core& c) noexcept : core_(&c) {}
    executor_type get_executor() const noexcept;
    template <class Buffers, class Handler>
    void async_read_some(const Buffers& to, Handler&& handler);
    template <class Buffers, class Handler>
    void async_write_some(const Buffers& from, Handler&& handler);

    template <class Buffers>
    std::size_t read_some(const Buffers& to, error_code& ec)
    {
        ec = {};
        const std::size_t n = asio::buffer_copy(to, asio::buffer(answer_));
        answer_.erase(0, n);
        return n;
    }
    template <class Buffers>
    std::size_t write_some(const Buffers& from, error_code& ec)
    {
        ec = {};
        for (auto at = asio::buffer_sequence_begin(from); at != asio::buffer_sequence_end(from); ++at)
            request_.append(static_cast<const char*>(asio::const_buffer(*at).data()), asio::const_buffer(*at).size());
        if (request_.ends_with("\r\n\r\n")) consent();
        return asio::buffer_size(from);
    }
    template <class Buffers>
    std::size_t read_some(const Buffers& to)
    {
        error_code ec;
        return read_some(to, ec);
    }
    template <class Buffers>
    std::size_t write_some(const Buffers& from)
    {
        error_code ec;
        return write_some(from, ec);
    }

private:
    void consent();
    core* core_;
    std::string request_, answer_;
};

void beast_close_socket(wire_layer&) {}
template <class Handler>
void async_teardown(beast::role_type, wire_layer& w, Handler&& handler)
{
    // The owner ends the connection as soon as it hears of the end.
    asio::post(w.get_executor(), [h = std::forward<Handler>(handler)]() mutable { std::move(h)(error_code()); });
}

/// The handler of all of Beast's operations.
class ended {
public:
    ended(std::shared_ptr<core> c, frame_op which) noexcept : core_(std::move(c)), which_(which) {}
    void operator()(error_code ec, std::size_t n = 0);

private:
    std::shared_ptr<core> core_;
    frame_op which_;
};

class core final : public frame_stream, public std::enable_shared_from_this<core> {
public:
    core(any_io_executor ex, std::unique_ptr<transport> wire, std::string behind, frame_owner& owner)
        : ex_(std::move(ex)), wire_(std::move(wire)), behind_(std::move(behind)), owner_(&owner)
    {
        stream_.emplace(*this);
    }
    void open(std::size_t message_max)
    {
        error_code ec;
        stream_->handshake("peer", "/", ec);
        if (ec) throw error(errc::unexpected, "[websocket] the stream does not open: " + ec.message());
        stream_->read_message_max(message_max);
        stream_->auto_fragment(false);
        stream_->write_buffer_bytes(write_piece);
        stream_->control_callback([this](beast::websocket::frame_type kind, beast::string_view) {
            if (kind == beast::websocket::frame_type::pong && owner_) owner_->pong_came();
        });
    }
    const any_io_executor& executor() const noexcept { return ex_; }

    // ---- operations
    void read() override
    {
        message.bytes.clear();
        filled_ = 0;
        read_piece();
    }
    void write(websocket_kind kind, std::string bytes) override
    {
        outgoing_ = std::move(bytes);
        stream_->binary(kind == websocket_kind::binary);
        stream_->async_write_some(true, asio::const_buffer(outgoing_.data(), outgoing_.size()), ended(shared_from_this(), frame_op::write));
    }
    void ping(std::string_view payload) override
    {
        stream_->async_ping(beast::websocket::ping_data(payload.data(), payload.size()), ended(shared_from_this(), frame_op::ping));
    }
    void close(unsigned code, std::string_view reason) override
    {
        closing_ = true;
        beast::websocket::close_reason why(static_cast<std::uint16_t>(code));
        why.reason.assign(reason.data(), reason.size());
        stream_->async_close(why, ended(shared_from_this(), frame_op::close));
    }
    void drop() noexcept override
    {
        owner_ = nullptr;
        if (wire_) wire_->farewell();
        wire_.reset();
        // With it go operations that wait for each other: Beast's close holds the right to write and wants to read, while a read that has met a broken frame wants
        // to write. They would keep us, and we them.
        stream_.reset();
    }
    unsigned close_code() const noexcept override { return stream_ ? stream_->reason().code : 0; }
    std::string_view close_reason() const noexcept override
    {
        return stream_ ? std::string_view(stream_->reason().reason.data(), stream_->reason().reason.size()) : std::string_view();
    }

    void op_ended(frame_op which, error_code ec, std::size_t n)
    {
        if (!owner_) return;
        if (which == frame_op::read) {
            filled_ += n;
            message.bytes.resize(filled_);
            if (!ec && !stream_->is_message_done()) return read_piece();
            message.kind = stream_->got_text() ? websocket_kind::text : websocket_kind::binary;
            if (!ec && message.kind == websocket_kind::text && utf8_incomplete_tail(message.bytes) != 0) ec = refuse_text();
        }
        owner_->frame_ended(which, judged(ec));
    }

    // ---- the transport
    void start_read(char* to, std::size_t n, moved_handler h)
    {
        to_ = to;
        room_ = n;
        move(direction::read, {}, true, std::move(h));
    }
    void start_write(std::string_view a, std::string_view b, moved_handler h)
    {
        first_ = a;
        second_ = b;
        move(direction::write, {}, true, std::move(h));
    }

private:
    void read_piece()
    {
        // Not by `read_size_hint`, which asserts that a last frame has bytes left; a peer may send one without any.
        const std::size_t room = std::clamp<std::size_t>(filled_, least_room, most_room);
        message.bytes.resize(filled_ + room);
        stream_->async_read_some(asio::mutable_buffer(message.bytes.data() + filled_, room), ended(shared_from_this(), frame_op::read));
    }

    // Tries once; what would block waits and tries again. The end of an operation is never told inside its start. The handler keeps us alive, so it is
    // never ours: a context that dies takes it along.
    void move(direction d, error_code ec, bool starting, moved_handler h)
    {
        io_result r;
        if (!wire_) {
            ec = asio::error::operation_aborted;
        } else if (!ec) {
            if (d == direction::write) {
                if (first_.empty()) r.status = io_status::ok;  // Asio starts a write of nothing, too
                else r = wire_->try_write(first_, second_);
            } else if (!behind_.empty()) {
                r.status = io_status::ok;
                r.bytes = behind_.copy(to_, room_);
                behind_.erase(0, r.bytes);
            } else {
                r = wire_->try_read(to_, room_);
            }
            switch (r.status) {
            case io_status::ok: break;
            case io_status::would_block:
                wire_->when_ready(r.wanted, [this, d, h = std::move(h)](const error_code& e) mutable { move(d, e, false, std::move(h)); });
                return;
            case io_status::closed: ec = asio::error::eof; break;
            case io_status::truncated:
                ec = asio::error::eof;
                wire_text_ = "TLS broke off without close_notify";
                break;
            case io_status::failed:
                ec = r.error ? r.error : make_error_code(errc::transport_failed);
                wire_text_ = wire_->failure_text();
                break;
            }
        }
        if (r.bytes != 0 && owner_) owner_->bytes_moved(d);
        if (!starting) std::move(h)(ec, r.bytes);
        else asio::post(ex_, [this, h = std::move(h), ec, n = r.bytes]() mutable { pass(std::move(h), ec, n); });
    }

    // Who has begun a write would go on with it, in a stream that is no more.
    void pass(moved_handler h, error_code ec, std::size_t n)
    {
        if (wire_) std::move(h)(ec, n);
        else std::move(h)(make_error_code(asio::error::operation_aborted), std::size_t(0));
    }

    // Beast looks for an unfinished character at the end of the last frame alone when that frame is not empty.
    error_code refuse_text()
    {
        if (!closing_) close(beast::websocket::close_code::bad_payload, {});
        return beast::websocket::make_error_code(beast::websocket::error::bad_frame_payload);
    }

    frame_result judged(error_code ec) const
    {
        using e = beast::websocket::error;
        frame_result r;
        if (!ec) return r;
        r.how = frame_result::kind::failed;
        if (ec == e::closed) r.how = frame_result::kind::closed;
        else if (ec == asio::error::operation_aborted) r.how = frame_result::kind::aborted;
        else if (ec == asio::error::eof) r.fault = websocket_fault::cut;
        else if (ec == e::message_too_big || ec == e::buffer_overflow) r.fault = websocket_fault::too_large;
        else if (ec == e::bad_opcode) r.fault = websocket_fault::bad_opcode;
        else if (ec == e::bad_reserved_bits) r.fault = websocket_fault::reserved_bits;
        else if (ec == e::bad_masked_frame) r.fault = websocket_fault::masked;
        else if (ec == e::bad_size) r.fault = websocket_fault::bad_length;
        else if (ec == e::bad_continuation || ec == e::bad_data_frame) r.fault = websocket_fault::bad_fragment;
        else if (ec == e::bad_control_fragment || ec == e::bad_control_size) r.fault = websocket_fault::bad_control;
        else if (ec == e::bad_frame_payload) r.fault = websocket_fault::bad_text;
        else if (ec == e::bad_close_code || ec == e::bad_close_size || ec == e::bad_close_payload) r.fault = websocket_fault::bad_close;
        else {
            r.fault = websocket_fault::broken;
            r.cause = ec;
        }
        if (r.how == frame_result::kind::failed) r.text = make_error_code(r.fault).message();
        const std::string detail = r.fault == websocket_fault::broken && wire_text_.empty() ? ec.message() : wire_text_;
        if (!detail.empty() && (r.fault == websocket_fault::broken || r.fault == websocket_fault::cut)) r.text += ": " + detail;
        return r;
    }

    any_io_executor ex_;
    std::unique_ptr<transport> wire_;
    std::string behind_, outgoing_, wire_text_;
    frame_owner* owner_;
    bool closing_ = false;
    char* to_ = nullptr;
    std::size_t room_ = 0, filled_ = 0;
    std::string_view first_, second_;
    std::optional<beast::websocket::stream<wire_layer, false>> stream_;
};

void ended::operator()(error_code ec, std::size_t n)
{
    core_->op_ended(which_, ec, n);
}

wire_layer::executor_type wire_layer::get_executor() const noexcept
{
    return core_->executor();
}

template <class Buffers, class Handler>
void wire_layer::async_read_some(const Buffers& to, Handler&& handler)
{
    const asio::mutable_buffer first = beast::buffers_front(to);
    core_->start_read(static_cast<char*>(first.data()), first.size(), moved_handler(std::forward<Handler>(handler)));
}

// The first two parts that hold something; Asio comes again with the rest.
template <class Buffers, class Handler>
void wire_layer::async_write_some(const Buffers& from, Handler&& handler)
{
    std::string_view parts[2];
    std::size_t used = 0;
    for (auto at = asio::buffer_sequence_begin(from); at != asio::buffer_sequence_end(from) && used < 2; ++at) {
        const asio::const_buffer b(*at);
        if (b.size() != 0) parts[used++] = std::string_view(static_cast<const char*>(b.data()), b.size());
    }
    core_->start_write(parts[0], parts[1], moved_handler(std::forward<Handler>(handler)));
}

void wire_layer::consent()
{
    constexpr std::string_view field = "Sec-WebSocket-Key: ";
    const std::size_t at = request_.find(field) + field.size();
    answer_ = "HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: upgrade\r\nSec-WebSocket-Accept: " +
        websocket_accept(std::string_view(request_).substr(at, request_.find("\r\n", at) - at)) + "\r\n\r\n";
    request_ = std::string();
}

}  // namespace

std::shared_ptr<frame_stream> make_frame_stream(any_io_executor ex, std::unique_ptr<transport> wire, std::string behind, std::size_t message_max,
                                                frame_owner& owner)
{
    const auto made = std::make_shared<core>(std::move(ex), std::move(wire), std::move(behind), owner);
    made->open(message_max);
    return made;
}

}  // namespace reagent::inline v0::net_detail

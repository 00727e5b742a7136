// What a connection sends: heads, bodies, chunks, and what the kernel did not take yet.
#include "parking.hpp"
#include "server_connection.hpp"
#include "server_state.hpp"

#include <reagent/base/ascii.hpp>
#include <reagent/net/http_reason.hpp>

#include <boost/asio/post.hpp>

#include <array>
#include <charconv>
#include <cstring>

namespace reagent::inline v0::net_detail {
namespace {

void check_field(std::string_view name, std::string_view value)
{
    const auto token = [](char c) {
        return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c != '\0' && std::strchr("!#$%&'*+-.^_`|~", c) != nullptr);
    };
    bool good = !name.empty();
    for (const char c : name) good = good && token(c);
    if (!good) throw validation_error("[http_server] a response field has no valid name");
    for (const char c : value) {
        const auto u = static_cast<unsigned char>(c);
        if ((u < 0x20 && c != '\t') || u == 0x7f)
            throw validation_error("[http_server] the response field " + std::string(name.substr(0, 64)) + " holds a control character");
    }
    if (equal_but_case(name, "content-length") || equal_but_case(name, "transfer-encoding"))
        throw validation_error("[http_server] the response field " + std::string(name) + " is set by the server");
}

void append_number(std::string& out, std::uint64_t n, int base = 10)
{
    std::array<char, 24> digits{};
    const auto end = std::to_chars(digits.data(), digits.data() + digits.size(), n, base).ptr;
    out.append(digits.data(), end);
}

bool bodiless(unsigned status) noexcept
{
    return status < 200 || status == 204 || status == 304;
}

void check_status(unsigned status)
{
    if (status < 200 || status > 599) throw validation_error("[http_server] a response status must be from 200 to 599, not " + std::to_string(status));
}

// While one lives, who is told something is told later.
class inside_guard {
public:
    explicit inside_guard(unsigned& depth) noexcept : depth_(depth) { ++depth_; }
    inside_guard(const inside_guard&) = delete;
    inside_guard& operator=(const inside_guard&) = delete;
    ~inside_guard() { --depth_; }

private:
    unsigned& depth_;
};

}  // namespace

server_connection::listeners& server_connection::heard()
{
    if (!listeners_) listeners_ = std::make_unique<listeners>();
    return *listeners_;
}

// ---- heads

void server_connection::write_head(std::string& out, unsigned status, std::string_view content_type, const http_fields* fields, const std::size_t* length)
{
    out += "HTTP/1.1 ";
    append_number(out, status);
    out += ' ';
    out += http_reason(status);
    out += "\r\n";
    bool dated = false, said_close = false;
    if (!content_type.empty()) {
        check_field("Content-Type", content_type);
        out.append("Content-Type: ").append(content_type).append("\r\n");
    }
    for (std::size_t i = 0; fields != nullptr && i < fields->size(); ++i) {
        const auto [name, value] = (*fields)[i];
        check_field(name, value);
        dated = dated || equal_but_case(name, "date");
        if (equal_but_case(name, "connection")) {
            said_close = said_close || equal_but_case(value, "close");
            continue;
        }
        out.append(name).append(": ").append(value).append("\r\n");
    }
    if (said_close) keep_ = false;
    if (!dated) out += state_->date_line();
    chunked_ = length == nullptr && !http_10_ && !bodiless(status);
    if (length == nullptr && http_10_) keep_ = false;
    if (chunked_) out += "Transfer-Encoding: chunked\r\n";
    if (length != nullptr && !bodiless(status)) {
        out += "Content-Length: ";
        append_number(out, *length);
        out += "\r\n";
    }
    if (!keep_) out += "Connection: close\r\n";
    else if (http_10_) out += "Connection: keep-alive\r\n";
    out += "\r\n";
    head_only_ = head_only_ || bodiless(status);
}

// ---- answers

void server_connection::check_unbegun() const
{
    if (mode_ != mode::pending) throw validation_error("[http_server] the answer has begun already");
}

void server_connection::send(unsigned status, std::string_view content_type, const http_fields* fields, std::string body)
{
    if (closed()) return;
    const auto self = shared_from_this();
    const inside_guard inside(inside_);
    check_unbegun();
    check_status(status);
    std::string& head = state_->out_scratch;
    head.clear();
    const std::size_t length = body.size();
    write_head(head, status, content_type, fields, &length);
    mode_ = mode::ended;
    if (head_only_) body.clear();
    const io_result r = wire_->try_write(head, body);
    if (r.status != io_status::ok && r.status != io_status::would_block) return finish(peer_end::reset, false);
    if (r.bytes >= head.size()) {
        out_ = std::move(body);
        out_at_ = r.bytes - head.size();
    } else {
        out_.assign(head, r.bytes).append(body);
        out_at_ = 0;
    }
    after_write();
}

void server_connection::begin(unsigned status, std::string_view content_type, const http_fields* fields)
{
    if (closed()) return;
    check_unbegun();
    check_status(status);
    std::string head;
    write_head(head, status, content_type, fields, nullptr);
    out_ = std::move(head);
    out_at_ = 0;
    mode_ = mode::stream;
    // The head goes out with the first bytes, or by itself when none follow at once.
    corked_ = true;
    asio::post(state_->ex, [self = shared_from_this()] {
        if (self->closed() || !self->corked_) return;
        self->corked_ = false;
        self->flush();
    });
}

bool server_connection::write(std::string_view bytes)
{
    if (closed()) return false;
    if (mode_ != mode::stream) throw validation_error("[http_server] a write to an answer that has not begun, or has ended");
    if (bytes.empty() || head_only_) return true;
    const auto self = shared_from_this();
    const inside_guard inside(inside_);
    if (!chunked_) {
        put(bytes);
    } else {
        std::string& chunk = state_->out_scratch;
        chunk.clear();
        append_number(chunk, bytes.size(), 16);
        chunk.append("\r\n").append(bytes).append("\r\n");
        put(chunk);
    }
    return !closed() && has_room();
}

void server_connection::end()
{
    if (closed() || mode_ != mode::stream) return;
    const auto self = shared_from_this();
    const inside_guard inside(inside_);
    mode_ = mode::ended;
    if (chunked_ && !head_only_) put("0\r\n\r\n", false);
    else if (corked_) flush();
    else if (unsent() == 0) answered();
}

void server_connection::drop() noexcept
{
    if (closed()) return;
    const inside_guard inside(inside_);
    try {
        if (mode_ == mode::pending) refuse(500, "the request was not answered", {}, 0, keep_);
        else if (mode_ == mode::stream) raw_reset();
    } catch (...) {
        finish(peer_end::stopped, true);  // out of memory
    }
}

void server_connection::refuse(unsigned status, std::string_view text, std::string_view allow, std::uint64_t retry_after, bool keep)
{
    const auto self = shared_from_this();
    ++state_->stats.refused;
    if (stage_ != stage::answering) {  // before the request was handed out
        if (request_ && request_->reader.head_done()) {
            head_only_ = request_->reader.head().method == "HEAD";
            http_10_ = request_->reader.head().minor == 0;
        } else {
            head_only_ = http_10_ = false;
        }
        release_request();
        stage_ = stage::answering;
        ++state_->stats.busy;
        keep_ = keep && !state_->draining;
        if (!keep_) in_ = std::string();
    }
    mode_ = mode::pending;
    std::pair<std::string, std::string> words{"text/plain", std::string(text) + '\n'};
    if (state_->options.refusal) {
        try {
            std::pair<std::string, std::string> made = state_->options.refusal(status, text);
            check_field("Content-Type", made.first);
            words = std::move(made);
        } catch (...) {
            state_->log(log_level::error, "[http_server] the refusal failed: " + message_of(std::current_exception()));
        }
    }
    http_fields fields;
    if (!allow.empty()) fields.add("Allow", allow);
    if (retry_after > 0) fields.add("Retry-After", std::to_string(retry_after));
    send(status, words.first, &fields, std::move(words.second));
}

// ---- the socket

bool server_connection::has_room() const noexcept
{
    return closed() || unsent() <= state_->options.limits.high_water;
}

// Sends `bytes`, behind what waits already.
void server_connection::put(std::string_view bytes, bool bounded)
{
    const std::size_t waiting = corked_ ? 0 : unsent();
    if (waiting > 0) {
        if (bounded && waiting + bytes.size() > state_->options.limits.max_unsent) {
            state_->log(log_level::warn, "[http_server] a stream was cut: its handler goes on writing to a client that does not read");
            return finish(peer_end::stopped, true);
        }
        if (out_at_ > waiting) {
            out_.erase(0, out_at_);
            out_at_ = 0;
        }
        out_.append(bytes);
        return;
    }
    const std::string head = corked_ ? std::move(out_) : std::string();
    corked_ = false;
    out_ = std::string();
    out_at_ = 0;
    const io_result r = wire_->try_write(head, bytes);
    if (r.status != io_status::ok && r.status != io_status::would_block) return finish(peer_end::reset, false);
    if (r.bytes < head.size()) out_.append(head, r.bytes).append(bytes);
    else out_.assign(bytes.substr(r.bytes - head.size()));
    after_write();
}

void server_connection::flush()
{
    while (unsent() > 0) {
        const io_result r = wire_->try_write(std::string_view(out_).substr(out_at_), {});
        if (r.status == io_status::would_block) break;
        if (r.status != io_status::ok) return finish(peer_end::reset, false);
        out_at_ += r.bytes;
        since_ = state_->clock->now();
    }
    after_write();
}

// Some bytes went out, or none.
void server_connection::after_write()
{
    if (unsent() == 0) {
        out_ = std::string();
        out_at_ = 0;
        if (mode_ == mode::ended) answered();
    } else {
        wait_write();
    }
}

void server_connection::wait_write()
{
    if (waits_write_ || closed()) return;
    waits_write_ = true;
    since_ = state_->clock->now();
    arm();
    wire_->when_ready(direction::write, [self = shared_from_this()](error_code ec) {
        self->waits_write_ = false;
        if (!ec && !self->closed()) self->on_writable();
    });
}

void server_connection::on_writable()
{
    if (mode_ == mode::raw) return tell_room();
    flush();
    // Half empty, so that a writer is not woken for every packet that a slow reader takes.
    if (!closed() && mode_ == mode::stream && unsent() <= state_->options.limits.high_water / 2) tell_room();
}

void server_connection::tell_room()
{
    if (!listeners_) return;
    if (listeners_->room_waiter) listeners_->room_waiter->wake();
    if (!listeners_->room) return;
    const std::function<void()> f = std::move(listeners_->room);
    listeners_->room = nullptr;
    f();
}

void server_connection::answered()
{
    --state_->stats.busy;
    listeners_.reset();
    mode_ = mode::none;
    if (!keep_) return start_lingering();
    enter(stage::idle);
    if (in_.empty() || running_) return;
    asio::post(state_->ex, [self = shared_from_this()] { self->resume(); });
}

// ---- who is told

void server_connection::on_room(std::function<void()> f)
{
    if (closed()) return;
    if (!has_room()) {
        heard().room = std::move(f);
        return;
    }
    asio::post(state_->ex, [self = shared_from_this(), f = std::move(f)] {
        if (!self->closed()) f();
    });
}

void server_connection::on_gone(std::function<void(peer_end)> f)
{
    if (!closed()) heard().gone = std::move(f);
}

void server_connection::set_task(std::shared_ptr<handler_task> task)
{
    if (!closed() && stage_ == stage::answering && (mode_ == mode::pending || mode_ == mode::stream)) heard().task = std::move(task);
}

void server_connection::set_room_waiter(parking* waiter)
{
    if (waiter != nullptr) heard().room_waiter = waiter;
    else if (listeners_) listeners_->room_waiter = nullptr;
}

// ---- raw

void server_connection::take_raw()
{
    if (closed()) return;
    check_unbegun();
    mode_ = mode::raw;
}

raw_wire::status server_connection::raw_write(std::string_view bytes, std::size_t& written)
{
    written = 0;
    if (closed()) return raw_wire::status::gone;
    if (bytes.empty()) return raw_wire::status::ok;
    const io_result r = wire_->try_write(bytes, {});
    if (r.status == io_status::would_block) return raw_wire::status::would_block;
    if (r.status != io_status::ok) {
        const auto self = shared_from_this();
        const inside_guard inside(inside_);
        finish(peer_end::reset, false);
        return raw_wire::status::gone;
    }
    written = r.bytes;
    return raw_wire::status::ok;
}

void server_connection::raw_when_writable(std::function<void()> f)
{
    if (closed()) return;
    heard().room = std::move(f);
    wait_write();
}

void server_connection::raw_done(bool keep)
{
    if (closed()) return;
    const auto self = shared_from_this();
    const inside_guard inside(inside_);
    keep_ = keep_ && keep;
    answered();
}

void server_connection::raw_reset()
{
    if (closed()) return;
    listeners_.reset();  // whoever wanted to hear does this himself
    finish(peer_end::stopped, true);
}

}  // namespace reagent::inline v0::net_detail

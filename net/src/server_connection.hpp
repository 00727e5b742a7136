#pragma once
#include "transport.hpp"

#include <reagent/base/address.hpp>
#include <reagent/net/deadline_queue.hpp>
#include <reagent/net/http_server.hpp>

#include <memory>
#include <string>
#include <string_view>

namespace reagent::inline v0::net_detail {

struct incoming_request;
class parking;

/// A handler that is a coroutine, as long as it runs.
struct handler_task {
    handler_task() = default;
    handler_task(const handler_task&) = delete;
    handler_task& operator=(const handler_task&) = delete;
    virtual ~handler_task() = default;
    virtual void cancel() = 0;
};

/// One connection of a server: reads requests, hands them out one at a time, sends what comes back. No coroutine; one wait for reading at all times, so
/// that the end of the client is seen whatever goes on.
class server_connection final : public std::enable_shared_from_this<server_connection>, private deadline_entry {
public:
    server_connection(std::shared_ptr<server_state> state, std::unique_ptr<transport> wire, int fd, const ip_address& peer, bool has_peer,
                      std::uint64_t number);
    void start();
    void on_readable();
    /// Closes now. The one who answers hears of it.
    void finish(peer_end how, bool with_reset);
    /// No byte of a request is here and none is answered.
    bool idle() const noexcept { return stage_ == stage::fresh || stage_ == stage::idle; }
    bool closed() const noexcept { return stage_ == stage::closed; }
    /// Lets the answer under way be the last.
    void end_after_answer() noexcept { keep_ = false; }

    // What responders and raw wires ask for.
    void send(unsigned status, std::string_view content_type, const http_fields* fields, std::string body);
    void begin(unsigned status, std::string_view content_type, const http_fields* fields);
    bool write(std::string_view bytes);
    void end();
    /// The responder is gone.
    void drop() noexcept;
    bool has_room() const noexcept;
    void on_room(std::function<void()> f);
    void on_gone(std::function<void(peer_end)> f);
    void set_task(std::shared_ptr<handler_task> task);
    /// Where a coroutine waits for room; null when it has gone.
    void set_room_waiter(parking* waiter);
    void take_raw();
    raw_wire::status raw_write(std::string_view bytes, std::size_t& written);
    void raw_when_writable(std::function<void()> f);
    void raw_done(bool keep);
    void raw_reset();
    int native_handle() const noexcept { return closed() ? -1 : fd_; }
    const std::shared_ptr<server_state>& state() const noexcept { return state_; }

private:
    enum class stage : std::uint8_t { handshake, fresh, idle, head, body, answering, lingering, closed };
    enum class mode : std::uint8_t {
        none,
        pending,  ///< handed out, nothing sent
        stream,
        raw,
        ended  ///< all is said, some of it waits for the socket
    };
    /// What few answers need.
    struct listeners {
        std::function<void()> room;
        std::function<void(peer_end)> gone;
        std::shared_ptr<handler_task> task;
        parking* room_waiter = nullptr;
    };

    steady_time on_deadline(steady_time now) override;
    std::chrono::nanoseconds limit() const noexcept;
    steady_time due() const noexcept;
    void enter(stage s);
    void arm();
    void wait_handshake(direction d);
    void shake_hands();
    io_result drop_some(char* to) noexcept;
    void wait_read(direction d);
    void wait_write();
    void on_writable();
    void parse(std::size_t n);
    void resume();
    bool admitted();
    bool on_head();
    void dispatch();
    void keep_pipelined(std::string_view bytes);
    void refuse(unsigned status, std::string_view text, std::string_view allow, std::uint64_t retry_after, bool keep);
    void write_head(std::string& out, unsigned status, std::string_view content_type, const http_fields* fields, const std::size_t* length);
    void check_unbegun() const;
    void put(std::string_view bytes, bool bounded = true);
    void flush();
    void after_write();
    void answered();
    void start_lingering();
    void tell_room();
    void tell_gone(peer_end how);
    void release_request();
    std::size_t unsent() const noexcept { return out_.size() - out_at_; }
    listeners& heard();

    std::shared_ptr<server_state> state_;  // null once closed
    std::unique_ptr<transport> wire_;
    std::unique_ptr<incoming_request> request_;
    std::unique_ptr<listeners> listeners_;
    std::string in_;   // received and not yet understood: half a head, or what was pipelined
    std::string out_;  // not yet taken by the kernel, from out_at_ on
    std::size_t out_at_ = 0;
    steady_time since_{};  // start of the stage, or last progress in it
    std::uint64_t number_, requests_ = 0;
    std::size_t dropped_ = 0, pipelined_ = 0;
    ip_address peer_;
    int fd_;
    unsigned inside_ = 0;  // calls of responders on the stack: who is told something is told later then
    stage stage_ = stage::fresh;
    mode mode_ = mode::none;
    bool has_peer_;
    bool keep_ = true;        // the connection goes on behind this answer
    bool head_only_ = false;  // no body may follow
    bool http_10_ = false, chunked_ = false, waits_read_ = false, waits_write_ = false, running_ = false, corked_ = false;
};

}  // namespace reagent::inline v0::net_detail

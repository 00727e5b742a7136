#pragma once
#include "transport.hpp"

#include <boost/asio/append.hpp>
#include <boost/asio/associated_cancellation_slot.hpp>
#include <boost/asio/associated_executor.hpp>
#include <boost/asio/dispatch.hpp>
#include <boost/asio/posix/stream_descriptor.hpp>
#include <boost/intrusive/list.hpp>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <new>
#include <type_traits>
#include <utility>

namespace reagent::inline v0::net_detail {

class ready_hub;

/// A completion handler kept where it is: what a coroutine waits with is small, and is called without a detour over the heap.
class placed_handler {
public:
    placed_handler() = default;
    placed_handler(placed_handler&& other) noexcept : does_(std::exchange(other.does_, nullptr))
    {
        if (does_) does_(what::move, other.place_, place_, {});
    }
    placed_handler& operator=(placed_handler&&) = delete;
    ~placed_handler()
    {
        if (does_) does_(what::drop, place_, nullptr, {});
    }
    explicit operator bool() const noexcept { return does_ != nullptr; }
    /// Into an empty one.
    template <class Handler>
    void put(Handler&& handler)
    {
        using kept = std::decay_t<Handler>;
        if constexpr (sizeof(kept) <= room && alignof(kept) <= alignof(void*) && std::is_nothrow_move_constructible_v<kept>) {
            ::new (static_cast<void*>(place_)) kept(std::forward<Handler>(handler));
            does_ = &act<kept>;
        } else {
            put(ready_handler(std::forward<Handler>(handler)));  // which fits
        }
    }
    void operator()(const error_code& ec) { std::exchange(does_, nullptr)(what::call, place_, nullptr, ec); }

private:
    enum class what : std::uint8_t { call, move, drop };
    static constexpr std::size_t room = 3 * sizeof(void*);
    template <class Handler>
    static void act(what w, std::byte* from, std::byte* to, const error_code& ec)
    {
        Handler& kept = *std::launder(reinterpret_cast<Handler*>(from));
        if (w == what::call) {
            Handler moved(std::move(kept));
            kept.~Handler();
            std::move(moved)(ec);
            return;
        }
        if (w == what::move) ::new (static_cast<void*>(to)) Handler(std::move(kept));
        kept.~Handler();
    }

    void (*does_)(what, std::byte*, std::byte*, const error_code&) = nullptr;
    alignas(void*) std::byte place_[room];
};

/// One who waits for a socket, kept where the socket is: starting to wait allocates nothing.
class ready_wait : public boost::intrusive::list_base_hook<boost::intrusive::link_mode<boost::intrusive::auto_unlink>> {
public:
    ready_wait() = default;
    ready_wait(const ready_wait&) = delete;
    ready_wait& operator=(const ready_wait&) = delete;
    bool waiting() const noexcept { return static_cast<bool>(handler_); }

private:
    friend class ready_hub;
    placed_handler handler_;
    asio::cancellation_slot slot_;
    turn_task* first_ = nullptr;  // without which the wait makes no sense, and which makes none without the wait
};

/// What the hub knows of a socket: what may succeed since it was last found not to, and who waits for that.
class hub_socket {
public:
    explicit hub_socket(std::shared_ptr<ready_hub> hub) noexcept : hub_(std::move(hub)) {}
    ~hub_socket();
    hub_socket(const hub_socket&) = delete;
    hub_socket& operator=(const hub_socket&) = delete;
    /// Registers `fd`; at most once. False when the system refuses.
    bool watch(int fd) noexcept;
    /// Unregisters; waits end with `operation_aborted`.
    void unwatch() noexcept;

    /// To be told by who reads and writes: the next edge is what counts then.
    void drained() noexcept { readable_ = ended_; }
    void filled() noexcept { writable_ = false; }
    /// Nothing had come when this turn of the loop began; true only inside a turn.
    bool quiet() const noexcept;

    template <class Handler>
    void wait(direction d, Handler&& handler);
    template <class Handler>
    void wait_either(Handler&& handler);
    /// See `transport::at_turn_end`.
    void at_turn_end(turn_task& task);
    void cancel() noexcept;

private:
    friend class ready_hub;
    std::shared_ptr<ready_hub> hub_;
    ready_wait reads_, writes_;  // one who waits for either direction is in the first
    int fd_ = -1;
    bool readable_ = false, writable_ = false, ended_ = false, either_ = false;
};

/// The readiness of many sockets through one descriptor of the reactor. Each is registered once and edge-triggered; a turn of the loop finds out with
/// one system call what has become ready and lets those who wait go on, one after the other. Asio itself would make a system call for each wait.
/// Belongs to one strand or single-threaded context. Keeps the context running only while somebody waits; a context that dies takes the waiters along.
class ready_hub final : public std::enable_shared_from_this<ready_hub> {
public:
    /// Sockets that go on in one turn; the others follow in the next, so that the rest of the program gets its share.
    static constexpr std::size_t most_in_turn = 64;
    /// Null when the system gives no descriptor: sockets then wait one by one.
    static std::shared_ptr<ready_hub> make(any_io_executor ex);
    ready_hub(any_io_executor ex, int fd);
    bool in_turn() const noexcept { return in_turn_; }
    const any_io_executor& executor() const noexcept { return ex_; }

private:
    friend class hub_socket;
    using wait_list = boost::intrusive::list<ready_wait, boost::intrusive::constant_time_size<false>>;
    class wake_up;
    class turn_end;
    class cancel_wait;
    class aborted;
    template <class Handler>
    class dispatched;

    template <class Handler>
    void keep(ready_wait& w, Handler&& handler);
    void wait(ready_wait& w, bool ready_now);
    void end_turn_with(turn_task& task, ready_wait& w);
    void abort(ready_wait& w, bool from_slot) noexcept;
    void mark(hub_socket& s, unsigned events) noexcept;
    void look() noexcept;
    void run_due();
    void turn(bool by_reactor, bool look_first);
    void arm();
    void call_later();
    void rest() noexcept;
    void drop_all() noexcept;

    any_io_executor ex_;
    asio::posix::stream_descriptor watch_;
    wait_list waiting_, due_;
    boost::intrusive::list<turn_task, boost::intrusive::constant_time_size<false>> tasks_;
    bool armed_ = false, called_ = false, in_turn_ = false, dead_ = false;
};

class ready_hub::cancel_wait {
public:
    cancel_wait(ready_hub* hub, ready_wait* w) noexcept : hub_(hub), wait_(w) {}
    void operator()(asio::cancellation_type type)
    {
        if ((type & (asio::cancellation_type::terminal | asio::cancellation_type::partial | asio::cancellation_type::total)) == asio::cancellation_type::none)
            return;
        if (ready_wait* const w = std::exchange(wait_, nullptr)) hub_->abort(*w, true);
    }

private:
    ready_hub* hub_;
    ready_wait* wait_;
};

/// A handler with an executor that may not be the hub's.
template <class Handler>
class ready_hub::dispatched {
public:
    dispatched(any_io_executor ours, Handler h) : ours_(std::move(ours)), handler_(std::move(h)) {}
    void operator()(const error_code& ec) && { asio::dispatch(ours_, asio::append(std::move(handler_), ec)); }

private:
    any_io_executor ours_;  // for a handler without
    Handler handler_;
};

template <class Handler>
void ready_hub::keep(ready_wait& w, Handler&& handler)
{
    w.slot_ = asio::get_associated_cancellation_slot(handler);
    bool ours = false;
    if constexpr (std::is_same_v<asio::associated_executor_t<std::decay_t<Handler>, any_io_executor>, any_io_executor>)
        ours = asio::get_associated_executor(handler, ex_) == ex_;
    if (ours) w.handler_.put(std::forward<Handler>(handler));
    else w.handler_.put(dispatched<std::decay_t<Handler>>(ex_, std::forward<Handler>(handler)));
    if (w.slot_.is_connected()) w.slot_.template emplace<cancel_wait>(this, &w);
}

template <class Handler>
void hub_socket::wait(direction d, Handler&& handler)
{
    const bool reading = d == direction::read;
    ready_wait& w = reading ? reads_ : writes_;
    if (reading) either_ = false;
    hub_->keep(w, std::forward<Handler>(handler));
    hub_->wait(w, reading ? readable_ : writable_);
}

template <class Handler>
void hub_socket::wait_either(Handler&& handler)
{
    either_ = true;
    hub_->keep(reads_, std::forward<Handler>(handler));
    hub_->wait(reads_, readable_ || writable_);
}

inline bool hub_socket::quiet() const noexcept
{
    return hub_->in_turn() && !readable_ && !ended_;
}

}  // namespace reagent::inline v0::net_detail

#include <reagent/net/child_process.hpp>

#include "later.hpp"
#include "process_leftovers.hpp"
#include "process_spawn.hpp"
#include "waiting_place.hpp"

#include <reagent/base/spawn.hpp>

#include <boost/asio/posix/stream_descriptor.hpp>
#include <boost/asio/redirect_error.hpp>
#include <boost/asio/this_coro.hpp>

#include <cerrno>
#include <csignal>
#include <cstring>
#include <list>
#include <optional>

#include <unistd.h>

namespace reagent::inline v0 {
namespace {

using net_detail::parking;
using net_detail::waiting_place;
using descriptor = asio::posix::stream_descriptor;

constexpr std::size_t piece_size = 64 * 1024;
// What one wake-up takes of standard error; more would keep the reactor from others.
constexpr std::size_t most_errors_at_once = 16 * piece_size;
// A killed process dies as soon as it is scheduled; the destructor waits no longer than this.
constexpr std::chrono::milliseconds death_patience{100};

/// Out of the reactor without closing.
void hand_back(std::optional<descriptor>& borrowed) noexcept
{
    if (borrowed) borrowed->release();
    borrowed.reset();
}

[[noreturn]] void throw_aborted()
{
    throw boost::system::system_error(asio::error::operation_aborted);
}

}  // namespace

std::string exit_status::text() const
{
    switch (how_) {
    case kind::running: return "running";
    case kind::exited: return "exited (code " + std::to_string(value_) + ")";
    case kind::killed: {
        const char* name = ::sigabbrev_np(value_);
        return name ? std::string("killed (SIG") + name + ")" : "killed (signal " + std::to_string(value_) + ")";
    }
    case kind::unknown: break;
    }
    return "exited (status unknown)";
}

struct child_process::impl : std::enable_shared_from_this<impl> {
    enum class watched { exit, guard, errors };
    enum class read_end { data, end, not_yet };

    impl(any_io_executor e, process_options&& o)
        : ex(std::move(e)), options(std::move(o)), leftovers(net_detail::process_leftovers::of(ex)), time(options.clock ? options.clock : clock::system())
    {
        leftovers.sweep();
    }
    ~impl() { end_now(); }

    void start();
    void adopt(std::optional<descriptor>& to, net_detail::unique_fd& from);
    void wait_on(watched which);
    void happened(watched which);
    void drain_errors();
    void on_exit();
    void finish_if_over();
    void end_now() noexcept;
    read_end try_read(std::string& to);
    std::size_t try_write(std::string_view bytes);

    any_io_executor ex;
    process_options options;
    net_detail::process_leftovers& leftovers;
    clock_ptr time;
    net_detail::spawned_process process;
    std::optional<descriptor> in, out, err;
    std::optional<descriptor> exit, guard;  // borrowed from `process`
    std::list<parking*> waiting;            // for the end
    std::string tail;
    std::uint64_t errors_seen = 0;
    pid_t pid = -1;
    bool guarded = false;
    bool exited = false;  // the child is reaped
    bool over = false;    // and the guard
    bool gone = false;    // the handle is
};

void child_process::impl::adopt(std::optional<descriptor>& to, net_detail::unique_fd& from)
{
    if (!from) return;
    to.emplace(ex);
    to->assign(from.get());
    from.release();
}

void child_process::impl::start()
{
    process = net_detail::spawn_process(options);
    pid = process.pid;
    guarded = process.guard > 0;
    adopt(in, process.in);
    adopt(out, process.out);
    adopt(err, process.err);
    // Reaping goes by the numbers of the pidfds: `process` owns them, the reactor borrows them.
    if (process.exit) exit.emplace(ex).assign(process.exit.get());
    if (process.guard_exit) guard.emplace(ex).assign(process.guard_exit.get());
    if (err) wait_on(watched::errors);
    if (guard) wait_on(watched::guard);
    if (exit) wait_on(watched::exit);
    else on_exit();
}

void child_process::impl::wait_on(watched which)
{
    descriptor& d = which == watched::exit ? *exit : which == watched::guard ? *guard : *err;
    d.async_wait(asio::posix::descriptor_base::wait_read, [weak = weak_from_this(), which](const error_code& ec) {
        const auto self = weak.lock();
        if (self && !ec && !self->gone) self->happened(which);
    });
}

void child_process::impl::happened(watched which)
{
    switch (which) {
    case watched::errors:
        if (!err) return;
        drain_errors();
        if (err) wait_on(watched::errors);
        return;
    case watched::guard: finish_if_over(); return;
    case watched::exit: on_exit(); return;
    }
}

void child_process::impl::drain_errors()
{
    char piece[piece_size];
    for (std::size_t all = 0; err && all < most_errors_at_once;) {
        const ssize_t n = ::read(err->native_handle(), piece, sizeof piece);
        if (n < 0 && errno == EINTR) continue;
        if (n < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) return;
        if (n <= 0) {
            err.reset();
            return;
        }
        all += static_cast<std::size_t>(n);
        errors_seen += static_cast<std::uint64_t>(n);
        tail.append(piece, static_cast<std::size_t>(n));
        // Cut only when it has doubled, so that each byte moves once.
        if (tail.size() > 2 * options.error_tail + piece_size) tail.erase(0, tail.size() - options.error_tail);
    }
}

void child_process::impl::on_exit()
{
    if (exited) return;
    // The group first: while its members are not reaped its number is nobody else's. What they wrote is in the pipes.
    net_detail::kill_group(process);
    if (!net_detail::reap_child(process)) {
        wait_on(watched::exit);
        return;
    }
    exited = true;
    drain_errors();
    process.lifetime.reset();
    hand_back(exit);
    // A reader or writer must not wait for others who hold the pipe.
    error_code ignored;
    if (out) out->cancel(ignored);
    in.reset();
    finish_if_over();
}

void child_process::impl::finish_if_over()
{
    // The guard is reaped last: it keeps the number of the group.
    if (!exited || over || !net_detail::reap_guard(process)) return;
    over = true;
    hand_back(guard);
    err.reset();
    for (parking* w : waiting) w->wake();
}

void child_process::impl::end_now() noexcept
{
    if (gone) return;
    gone = true;
    hand_back(exit);
    hand_back(guard);
    if (!over && (process.pid > 0 || process.guard > 0)) {
        if (!net_detail::kill_and_reap(process, death_patience)) {
            try {
                options.log(log_level::error, "[process] " + std::to_string(process.pid) + " did not die of SIGKILL yet; it is reaped later");
                leftovers.keep(std::move(process));
            } catch (...) {
                // without memory for its place it stays with the operating system
            }
        }
    }
    exited = over = true;
    in.reset();
    out.reset();
    err.reset();
    for (parking* w : waiting) w->wake();
}

child_process::impl::read_end child_process::impl::try_read(std::string& to)
{
    if (!out) throw error(errc::closed, "[process] read from a process that was destroyed");
    char piece[piece_size];
    ssize_t n = 0;
    do n = ::read(out->native_handle(), piece, sizeof piece);
    while (n < 0 && errno == EINTR);
    if (n > 0) {
        to.append(piece, static_cast<std::size_t>(n));
        return read_end::data;
    }
    if (n == 0) return read_end::end;
    if (errno == EAGAIN || errno == EWOULDBLOCK) return exited ? read_end::end : read_end::not_yet;
    throw error(errc::transport_failed, std::string("[process] reading from a child process: ") + std::strerror(errno));
}

std::size_t child_process::impl::try_write(std::string_view bytes)
{
    if (exited) throw error(errc::transport_failed, "[process] written to a process that has " + process.status.text());
    if (!in) throw error(errc::closed, "[process] written to a process whose input is closed");
    const std::ptrdiff_t n = net_detail::write_quietly(in->native_handle(), bytes.data(), bytes.size());
    if (n >= 0) return static_cast<std::size_t>(n);
    if (errno == EAGAIN || errno == EWOULDBLOCK) return 0;
    throw error(errc::transport_failed,
                errno == EPIPE ? std::string("[process] the child process no longer reads its input")
                               : std::string("[process] writing to a child process: ") + std::strerror(errno));
}

awaitable<bool> child_process::read_body(std::shared_ptr<impl> self, std::string& to)
{
    for (;;) {
        const impl::read_end got = self->try_read(to);
        if (got != impl::read_end::not_yet) co_return got == impl::read_end::data;
        error_code ignored;
        co_await self->out->async_wait(asio::posix::descriptor_base::wait_read, asio::redirect_error(asio::use_awaitable, ignored));
        const auto state = co_await asio::this_coro::cancellation_state;
        if (state.cancelled() != asio::cancellation_type::none) throw_aborted();
    }
}

awaitable<void> child_process::write_body(std::shared_ptr<impl> self, std::string_view bytes)
{
    while (!bytes.empty()) {
        const std::size_t n = self->try_write(bytes);
        bytes.remove_prefix(n);
        if (n != 0) continue;
        error_code ignored;
        co_await self->in->async_wait(asio::posix::descriptor_base::wait_write, asio::redirect_error(asio::use_awaitable, ignored));
        const auto state = co_await asio::this_coro::cancellation_state;
        if (state.cancelled() != asio::cancellation_type::none) throw_aborted();
    }
}

awaitable<exit_status> child_process::wait_body(std::shared_ptr<impl> self)
{
    if (!self->over) {
        waiting_place here(self->ex, self->waiting);
        co_await here.place.wait();
        if (!self->over) throw_aborted();
    }
    co_return self->process.status;
}

// The rungs of `stop`, as a coroutine thread of its own: a cancellation takes it to the last one.
awaitable<void> child_process::climb(std::shared_ptr<impl> self)
{
    co_await asio::this_coro::reset_cancellation_state(asio::enable_total_cancellation());
    co_await asio::this_coro::throw_if_cancelled(false);
    self->in.reset();
    bool hurry = false;
    for (int rung = 0; rung < 2 && !self->over && !hurry; ++rung) {
        waiting_place here(self->ex, self->waiting);
        bool due = false;
        const std::unique_ptr<clock_timer> grace_timer = self->time->make_timer(self->ex, [&due, &here] {
            due = true;
            here.place.wake();
        });
        grace_timer->arm(net_detail::later(self->time->now(), rung == 0 ? self->options.close_grace : self->options.term_grace));
        co_await here.place.wait();
        hurry = !due && !self->over;
        if (due && rung == 0 && self->process.pid > 0) ::kill(-self->process.group, SIGTERM);
    }
    net_detail::kill_group(self->process);
    while (!self->over) {
        waiting_place here(self->ex, self->waiting);
        co_await here.place.wait();
    }
}

awaitable<exit_status> child_process::stop_body(std::shared_ptr<impl> self)
{
    co_await isolated(climb(self));
    co_return self->process.status;
}

child_process::child_process(any_io_executor ex, process_options options) : impl_(std::make_shared<impl>(std::move(ex), std::move(options)))
{
    impl_->start();
}
child_process::child_process(child_process&&) noexcept = default;

child_process& child_process::operator=(child_process&& o) noexcept
{
    if (this == &o) return *this;
    if (impl_) impl_->end_now();
    impl_ = std::move(o.impl_);
    return *this;
}

child_process::~child_process()
{
    if (impl_) impl_->end_now();
}

awaitable<bool> child_process::read(std::string& to)
{
    return read_body(impl_, to);
}
awaitable<void> child_process::write(std::string_view bytes)
{
    return write_body(impl_, bytes);
}
void child_process::close_input() noexcept
{
    impl_->in.reset();
}
awaitable<exit_status> child_process::wait()
{
    return wait_body(impl_);
}
awaitable<exit_status> child_process::stop()
{
    return stop_body(impl_);
}

void child_process::signal(int number) noexcept
{
    if (impl_->process.pid > 0 && !impl_->process.killed) ::kill(-impl_->process.group, number);
}

pid_t child_process::id() const noexcept
{
    return impl_->pid;
}
pid_t child_process::group() const noexcept
{
    return impl_->process.group;
}
bool child_process::guarded() const noexcept
{
    return impl_->guarded;
}
exit_status child_process::status() const noexcept
{
    return impl_->process.status;
}
std::string child_process::error_tail() const
{
    const std::string& all = impl_->tail;
    return all.size() > impl_->options.error_tail ? all.substr(all.size() - impl_->options.error_tail) : all;
}
std::uint64_t child_process::error_bytes() const noexcept
{
    return impl_->errors_seen;
}

}  // namespace reagent::inline v0

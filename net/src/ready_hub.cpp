#include "ready_hub.hpp"

#include <boost/asio/error.hpp>
#include <boost/asio/post.hpp>

#include <sys/epoll.h>
#include <unistd.h>

#include <array>
#include <cerrno>

namespace reagent::inline v0::net_detail {

/// The hub's own completion handler. The reactor keeps it while it waits; when the context dies it is destroyed uncalled, and the waiters with it.
class ready_hub::wake_up {
public:
    wake_up(std::shared_ptr<ready_hub> hub, bool by_reactor) noexcept : hub_(std::move(hub)), by_reactor_(by_reactor) {}
    wake_up(wake_up&&) noexcept = default;
    wake_up& operator=(wake_up&&) = delete;
    ~wake_up()
    {
        if (hub_) hub_->drop_all();
    }
    void operator()(const error_code& ec = {})
    {
        const std::shared_ptr<ready_hub> hub = std::move(hub_);
        hub->turn(by_reactor_, !ec);
    }

private:
    std::shared_ptr<ready_hub> hub_;
    bool by_reactor_;
};

class ready_hub::aborted {
public:
    explicit aborted(placed_handler h) noexcept : handler_(std::move(h)) {}
    void operator()() { handler_(asio::error::operation_aborted); }

private:
    placed_handler handler_;
};

/// However a turn ends, by an exception of one that goes on, too: what is left is not forgotten.
class ready_hub::turn_end {
public:
    explicit turn_end(ready_hub& hub) noexcept : hub_(hub) { hub_.in_turn_ = true; }
    turn_end(const turn_end&) = delete;
    turn_end& operator=(const turn_end&) = delete;
    ~turn_end()
    {
        hub_.in_turn_ = false;
        if (!hub_.due_.empty() || !hub_.tasks_.empty()) hub_.call_later();
        else if (!hub_.waiting_.empty()) hub_.arm();
    }

private:
    ready_hub& hub_;
};

std::shared_ptr<ready_hub> ready_hub::make(any_io_executor ex)
{
    const int fd = ::epoll_create1(EPOLL_CLOEXEC);
    if (fd < 0) return nullptr;
    auto hub = std::make_shared<ready_hub>(std::move(ex), fd);
    return hub->watch_.is_open() ? hub : nullptr;
}

ready_hub::ready_hub(any_io_executor ex, int fd) : ex_(std::move(ex)), watch_(ex_)
{
    error_code ec;
    watch_.assign(fd, ec);
    if (ec) ::close(fd);
}

void ready_hub::wait(ready_wait& w, bool ready_now)
{
    (ready_now ? due_ : waiting_).push_back(w);
    if (in_turn_) return;  // its end sees to it
    if (ready_now) call_later();
    else if (!called_) arm();
}

void ready_hub::end_turn_with(turn_task& task, ready_wait& w)
{
    tasks_.push_back(task);
    w.first_ = &task;
    if (!in_turn_) call_later();
}

void ready_hub::abort(ready_wait& w, bool from_slot) noexcept
{
    if (!w.waiting()) return;
    w.unlink();
    if (turn_task* const task = std::exchange(w.first_, nullptr); task && task->is_linked()) task->unlink();
    placed_handler handler(std::move(w.handler_));
    if (!from_slot && !dead_ && w.slot_.is_connected()) w.slot_.clear();
    if (!dead_) asio::post(ex_, aborted(std::move(handler)));
    rest();
}

void ready_hub::mark(hub_socket& s, unsigned events) noexcept
{
    if ((events & (EPOLLRDHUP | EPOLLHUP | EPOLLERR)) != 0) s.ended_ = true;
    if (s.ended_ || (events & EPOLLIN) != 0) s.readable_ = true;
    if ((events & (EPOLLOUT | EPOLLHUP | EPOLLERR)) != 0) s.writable_ = true;
    const auto make_due = [this](ready_wait& w) {
        if (!w.waiting()) return;
        w.unlink();
        due_.push_back(w);
    };
    if (s.readable_ || (s.either_ && s.writable_)) make_due(s.reads_);
    if (s.writable_) make_due(s.writes_);
}

// All are marked before anybody goes on: who does may close any socket.
void ready_hub::look() noexcept
{
    std::array<epoll_event, most_in_turn> events;
    int n = 0;
    do n = ::epoll_wait(watch_.native_handle(), events.data(), static_cast<int>(events.size()), 0);
    while (n < 0 && errno == EINTR);
    for (int i = 0; i < n; ++i) mark(*static_cast<hub_socket*>(events[static_cast<std::size_t>(i)].data.ptr), events[static_cast<std::size_t>(i)].events);
}

void ready_hub::run_due()
{
    while (!due_.empty()) {
        ready_wait& w = due_.front();
        w.unlink();
        w.first_ = nullptr;
        placed_handler handler(std::move(w.handler_));
        if (w.slot_.is_connected()) w.slot_.clear();
        handler({});
    }
}

void ready_hub::turn(bool by_reactor, bool look_first)
{
    (by_reactor ? armed_ : called_) = false;
    const turn_end at_exit(*this);
    if (look_first) look();
    run_due();
    while (!tasks_.empty()) {
        turn_task& task = tasks_.front();
        task.unlink();
        task.at_turn_end();
    }
}

void ready_hub::arm()
{
    if (armed_) return;
    armed_ = true;
    watch_.async_wait(asio::posix::descriptor_base::wait_read, wake_up(shared_from_this(), true));
}

void ready_hub::call_later()
{
    if (called_) return;
    called_ = true;
    asio::post(ex_, wake_up(shared_from_this(), false));
}

// Nobody waits: the context may end.
void ready_hub::rest() noexcept
{
    if (!armed_ || in_turn_ || dead_ || !waiting_.empty()) return;
    error_code ignored;
    watch_.cancel(ignored);
}

void ready_hub::drop_all() noexcept
{
    dead_ = true;
    tasks_.clear();
    for (wait_list* list : {&waiting_, &due_}) {
        while (!list->empty()) {
            ready_wait& w = list->front();
            w.unlink();
            const placed_handler handler(std::move(w.handler_));
        }
    }
}

hub_socket::~hub_socket()
{
    unwatch();
}

bool hub_socket::watch(int fd) noexcept
{
    epoll_event e{};
    e.events = EPOLLIN | EPOLLOUT | EPOLLRDHUP | EPOLLET;
    e.data.ptr = this;
    if (::epoll_ctl(hub_->watch_.native_handle(), EPOLL_CTL_ADD, fd, &e) != 0) return false;
    fd_ = fd;
    return true;
}

void hub_socket::unwatch() noexcept
{
    if (fd_ < 0) return;
    // Closing would not do: a child that is being started may share the socket for a moment.
    ::epoll_ctl(hub_->watch_.native_handle(), EPOLL_CTL_DEL, fd_, nullptr);
    fd_ = -1;
    cancel();
}

void hub_socket::at_turn_end(turn_task& task)
{
    hub_->end_turn_with(task, reads_);
}

void hub_socket::cancel() noexcept
{
    hub_->abort(reads_, false);
    hub_->abort(writes_, false);
}

}  // namespace reagent::inline v0::net_detail

#include "socket_watch.hpp"

#include <array>

#include <sys/epoll.h>
#include <unistd.h>

namespace reagent::inline v0::testing_detail {

socket_watch::socket_watch() noexcept : epoll_(::epoll_create1(EPOLL_CLOEXEC)) {}

socket_watch::~socket_watch()
{
    if (epoll_ >= 0) ::close(epoll_);
}

void socket_watch::add(int fd, std::uint64_t number)
{
    if (fd < 0 || epoll_ < 0) return;
    const auto at = static_cast<std::size_t>(fd);
    if (at >= numbers_.size()) numbers_.resize(at + 1);
    epoll_event e{};
    e.events = EPOLLRDHUP;  // and what is always reported: EPOLLHUP, EPOLLERR
    e.data.fd = fd;
    if (::epoll_ctl(epoll_, EPOLL_CTL_ADD, fd, &e) == 0) numbers_[at] = number;
}

void socket_watch::remove(int fd, std::uint64_t number) noexcept
{
    const auto at = static_cast<std::size_t>(fd);
    if (fd < 0 || at >= numbers_.size() || numbers_[at] != number) return;
    numbers_[at] = 0;
    ::epoll_ctl(epoll_, EPOLL_CTL_DEL, fd, nullptr);  // in vain when it is closed
}

std::vector<std::uint64_t> socket_watch::ended()
{
    std::vector<std::uint64_t> out;
    std::array<epoll_event, 64> events;
    for (;;) {
        const int n = epoll_ < 0 ? 0 : ::epoll_wait(epoll_, events.data(), static_cast<int>(events.size()), 0);
        for (int i = 0; i < n; ++i) {
            const int fd = events[static_cast<std::size_t>(i)].data.fd;
            const std::uint64_t number = numbers_[static_cast<std::size_t>(fd)];
            out.push_back(number);
            remove(fd, number);
        }
        if (n < static_cast<int>(events.size())) return out;
    }
}

}  // namespace reagent::inline v0::testing_detail

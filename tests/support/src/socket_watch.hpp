#pragma once
#include <cstdint>
#include <vector>

namespace reagent::inline v0::testing_detail {

/// Tells which of many sockets have been closed by their peers, in one system call however many there are. Without an epoll descriptor, when the
/// process has none left, it tells of none.
class socket_watch {
public:
    socket_watch() noexcept;
    socket_watch(const socket_watch&) = delete;
    socket_watch& operator=(const socket_watch&) = delete;
    ~socket_watch();
    /// Watches `fd` as `number`, which is not 0, until `remove`; a socket that is closed is watched no more.
    void add(int fd, std::uint64_t number);
    /// Nothing happens when another socket has the descriptor by now.
    void remove(int fd, std::uint64_t number) noexcept;
    /// The numbers of those whose peer has closed or reset the connection. They are watched no more.
    std::vector<std::uint64_t> ended();

private:
    int epoll_;
    std::vector<std::uint64_t> numbers_;  // by descriptor, 0 for none
};

}  // namespace reagent::inline v0::testing_detail

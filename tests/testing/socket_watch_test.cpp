#include "socket_watch.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <stdexcept>
#include <vector>

#include <sys/socket.h>
#include <unistd.h>

namespace {
namespace socket_watch_test {

/// Our end and the peer's.
struct connection {
    connection()
    {
        if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends.data()) != 0) throw std::runtime_error("socketpair");
    }
    connection(const connection&) = delete;
    connection& operator=(const connection&) = delete;
    ~connection()
    {
        for (const int fd : ends) ::close(fd);
    }
    int ours() const { return ends[0]; }
    void peer_writes() const { EXPECT_EQ(::write(ends[1], "x", 1), 1); }
    void peer_ends() const { ::shutdown(ends[1], SHUT_WR); }
    std::array<int, 2> ends{-1, -1};
};

TEST(SocketWatch, TellsOnceWhoHasEndedAndOfNobodyElse)
{
    reagent::testing_detail::socket_watch watch;
    std::array<connection, 200> all;
    for (std::size_t i = 0; i < all.size(); ++i) watch.add(all[i].ours(), i + 1);
    EXPECT_TRUE(watch.ended().empty());
    std::vector<std::uint64_t> expected;
    for (std::size_t i = 0; i < all.size(); ++i) {
        all[i].peer_writes();
        if (i % 2 == 0) continue;
        all[i].peer_ends();
        // One that is watched no more, and one whose descriptor has a new owner.
        if (i == 3) watch.remove(all[i].ours(), i + 1);
        else if (i == 5) watch.remove(all[i].ours(), 999);
        if (i != 3) expected.push_back(i + 1);
    }
    std::vector<std::uint64_t> told = watch.ended();
    std::sort(told.begin(), told.end());
    EXPECT_EQ(told, expected);
    EXPECT_TRUE(watch.ended().empty());
}

}  // namespace socket_watch_test
}  // namespace

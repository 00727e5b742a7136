// The starter of child processes leaves the signals of its host as they are, whatever they are, and gives its child none of them.
#include "child_process.hpp"

#include <reagent/base/error.hpp>
#include <reagent/testing/fd_snapshot.hpp>
#include <reagent/testing/signal_snapshot.hpp>

#include <gtest/gtest.h>

#include <csignal>

namespace {
namespace starter_signals_test {

using reagent::testing::fd_snapshot;
using reagent::testing::signal_snapshot;

/// Starts this program again, which lists its tests and ends.
std::string first_line_of_a_child()
{
    reagent_app::child_process child({"--gtest_list_tests"});
    return child.read_line(20'000);
}

TEST(StarterSignals, TheHostsStayAsTheyAre)
{
    const fd_snapshot open = fd_snapshot::take();
    const signal_snapshot before = signal_snapshot::take();
    EXPECT_NE(first_line_of_a_child(), "");
    EXPECT_EQ(before.difference(signal_snapshot::take()), "");
    EXPECT_EQ(open.difference(fd_snapshot::take()), "");
}

TEST(StarterSignals, SoDoAHandlerAnIgnoredAndABlockedOne)
{
    struct sigaction handle {}, ignore {}, old_child {}, old_pipe {};
    handle.sa_handler = [](int) {};
    ignore.sa_handler = SIG_IGN;
    ::sigaction(SIGCHLD, &handle, &old_child);
    ::sigaction(SIGPIPE, &ignore, &old_pipe);
    sigset_t blocked, old_mask;
    ::sigemptyset(&blocked);
    ::sigaddset(&blocked, SIGUSR1);
    ::pthread_sigmask(SIG_BLOCK, &blocked, &old_mask);
    const signal_snapshot before = signal_snapshot::take();
    EXPECT_NE(first_line_of_a_child(), "");
    EXPECT_EQ(before.difference(signal_snapshot::take()), "");
    ::pthread_sigmask(SIG_SETMASK, &old_mask, nullptr);
    ::sigaction(SIGPIPE, &old_pipe, nullptr);
    ::sigaction(SIGCHLD, &old_child, nullptr);
}

}  // namespace starter_signals_test
}  // namespace

// The starter of child processes leaves the signals of its host as they are, whatever they are, and gives its child none of them.
#include <reagent/net/child_process.hpp>
#include <reagent/testing/fd_snapshot.hpp>
#include <reagent/testing/run.hpp>
#include <reagent/testing/signal_snapshot.hpp>

#include <boost/asio/io_context.hpp>

#include <gtest/gtest.h>

#include <csignal>

namespace {
namespace starter_signals_test {

using namespace reagent;
namespace rt = reagent::testing;
using reagent::testing::fd_snapshot;
using reagent::testing::signal_snapshot;

awaitable<void> run_to_the_end(child_process* child, std::string* out)
{
    for (;;) {
        const bool more = co_await child->read(*out);
        if (!more) break;
    }
    const exit_status status = co_await child->stop();
    if (!status.success()) *out = status.text();
}

/// Starts this program again, which lists its tests and ends.
std::string output_of_a_child()
{
    asio::io_context io;
    child_process child(io.get_executor(), process_options({"/proc/self/exe", "--gtest_list_tests"}));
    std::string out;
    rt::complete(io, run_to_the_end(&child, &out));
    return out;
}

TEST(StarterSignals, TheHostsStayAsTheyAre)
{
    const fd_snapshot open = fd_snapshot::take();
    const signal_snapshot before = signal_snapshot::take();
    EXPECT_NE(output_of_a_child().find("StarterSignals."), std::string::npos);
    EXPECT_EQ(before.difference(signal_snapshot::take()), "");
    EXPECT_EQ(open.difference(fd_snapshot::take()), "");
}

TEST(StarterSignals, SoDoAHandlerAnIgnoredAndABlockedOne)
{
    struct sigaction handle {
    }, ignore{}, old_child{}, old_pipe{};
    handle.sa_handler = [](int) {};
    ignore.sa_handler = SIG_IGN;
    ::sigaction(SIGCHLD, &handle, &old_child);
    ::sigaction(SIGPIPE, &ignore, &old_pipe);
    sigset_t blocked, old_mask;
    ::sigemptyset(&blocked);
    ::sigaddset(&blocked, SIGUSR1);
    ::pthread_sigmask(SIG_BLOCK, &blocked, &old_mask);
    const signal_snapshot before = signal_snapshot::take();
    EXPECT_NE(output_of_a_child().find("StarterSignals."), std::string::npos);
    EXPECT_EQ(before.difference(signal_snapshot::take()), "");
    ::pthread_sigmask(SIG_SETMASK, &old_mask, nullptr);
    ::sigaction(SIGPIPE, &old_pipe, nullptr);
    ::sigaction(SIGCHLD, &old_child, nullptr);
}

}  // namespace starter_signals_test
}  // namespace

#include <reagent/testing/allocation_counter.hpp>
#include <reagent/testing/fd_snapshot.hpp>
#include <reagent/testing/live_counter.hpp>
#include <reagent/testing/signal_snapshot.hpp>

#include <gtest/gtest.h>

#include <csignal>
#include <fcntl.h>
#include <memory>
#include <optional>
#include <pthread.h>
#include <unistd.h>

namespace {
namespace snapshots_test {

using namespace reagent::testing;

TEST(FdSnapshot, SeesWhatWasOpenedAndClosedAndWhatItIs)
{
    const auto before = fd_snapshot::take();
    EXPECT_EQ(before.difference(fd_snapshot::take()), "");
    const int fd = ::open("/dev/null", O_RDONLY | O_CLOEXEC);
    const auto during = fd_snapshot::take();
    const std::string line = std::to_string(fd) + " -> /dev/null";
    EXPECT_EQ(before.added(during), line);
    EXPECT_EQ(before.difference(during), "open now: " + line + "\n");
    ::close(fd);
    EXPECT_EQ(during.difference(fd_snapshot::take()), "closed now: " + line + "\n");
    EXPECT_EQ(before, fd_snapshot::take());
}

TEST(SignalSnapshot, SeesAHandlerAndABlockedSignal)
{
    const auto before = signal_snapshot::take();
    struct sigaction ignore {
    }, old{};
    ignore.sa_handler = SIG_IGN;
    ::sigaction(SIGUSR2, &ignore, &old);
    EXPECT_NE(before.difference(signal_snapshot::take()).find("SIGUSR2: handled differently"), std::string::npos);
    ::sigaction(SIGUSR2, &old, nullptr);
    EXPECT_TRUE(before == signal_snapshot::take());
    sigset_t set, was;
    ::sigemptyset(&set);
    ::sigaddset(&set, SIGUSR1);
    ::pthread_sigmask(SIG_BLOCK, &set, &was);
    EXPECT_NE(before.difference(signal_snapshot::take()).find("SIGUSR1: blocked differently"), std::string::npos);
    ::pthread_sigmask(SIG_SETMASK, &was, nullptr);
    EXPECT_TRUE(before == signal_snapshot::take());
}

TEST(AllocationCounter, CountsThisThreadsAllocations)
{
    allocation_counter counter;
    EXPECT_EQ(counter.allocations(), 0u);
    auto p = std::make_unique<char[]>(100);
    EXPECT_EQ(counter.allocations(), 1u);
    EXPECT_EQ(counter.bytes(), 100u);
    p.reset();
    EXPECT_EQ(counter.frees(), 1u);
    struct alignas(128) wide {
        char c[128];
    };
    std::optional<std::unique_ptr<wide>> w(std::make_unique<wide>());
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(w->get()) % 128, 0u);
    EXPECT_EQ(counter.allocations(), 2u);
    counter.reset();
    EXPECT_EQ(counter.allocations(), 0u);
}

TEST(LiveCounter, CountsCopies)
{
    const live_counter counter;
    {
        const auto a = counter.make();
        const auto b = a;
        EXPECT_EQ(counter.live(), 2);
    }
    EXPECT_EQ(counter.live(), 0);
    EXPECT_EQ(counter.made(), 2);
}

}  // namespace snapshots_test
}  // namespace

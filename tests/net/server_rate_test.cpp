#include "server_rate.hpp"

#include <gtest/gtest.h>

namespace reagent {
namespace {
namespace server_rate_test {

using net_detail::server_rate;
using std::chrono::milliseconds;

std::uint64_t key(const char* address)
{
    return server_rate::key_of(*ip_address::parse(address));
}

TEST(ServerRate, APeerIsAnIpv4AddressOrASlash64)
{
    EXPECT_EQ(key("10.0.0.1"), key("::ffff:10.0.0.1"));
    EXPECT_NE(key("10.0.0.1"), key("10.0.0.2"));
    EXPECT_EQ(key("2001:db8::1"), key("2001:db8::ffff:2"));
    EXPECT_NE(key("2001:db8::1"), key("2001:db8:0:1::1"));
}

TEST(ServerRate, LetsABurstPassThenTheRate)
{
    server_rate rate(10, 3, 100);
    steady_time now{};
    for (int i = 0; i < 3; ++i) EXPECT_EQ(rate.admit(1, now).count(), 0) << i;
    EXPECT_EQ(rate.admit(1, now), milliseconds(100));
    EXPECT_EQ(rate.admit(2, now).count(), 0) << "each peer for itself";
    now += milliseconds(99);
    EXPECT_GT(rate.admit(1, now).count(), 0);
    now += milliseconds(2);
    EXPECT_EQ(rate.admit(1, now).count(), 0);
    EXPECT_GT(rate.admit(1, now).count(), 0);
    now += std::chrono::hours(1);
    for (int i = 0; i < 3; ++i) EXPECT_EQ(rate.admit(1, now).count(), 0) << "no more than a burst is saved up, " << i;
    EXPECT_GT(rate.admit(1, now).count(), 0);
}

TEST(ServerRate, RemembersABoundedNumberOfPeersTheLastOnes)
{
    server_rate rate(1, 1, 3);
    steady_time now{};
    for (std::uint64_t peer = 1; peer <= 3; ++peer) EXPECT_EQ(rate.admit(peer, now).count(), 0);
    EXPECT_GT(rate.admit(1, now).count(), 0);
    for (std::uint64_t peer = 100; peer < 102; ++peer) EXPECT_EQ(rate.admit(peer, now).count(), 0);
    EXPECT_EQ(rate.peers(), 3u);
    EXPECT_GT(rate.admit(1, now).count(), 0) << "seen of late, so remembered";
}

}  // namespace server_rate_test
}  // namespace
}  // namespace reagent

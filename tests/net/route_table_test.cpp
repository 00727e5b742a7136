#include "pool_index.hpp"
#include "route_table.hpp"

#include <gtest/gtest.h>

namespace reagent {
namespace {
namespace route_table_test {

using net_detail::pool_index;
using net_detail::pool_limits;
using net_detail::route_table;

http_route to(const char* path)
{
    return http_route::unix_socket(path);
}

TEST(RouteTable, ForgetsTheLongestUnusedButNoneThatIsBusy)
{
    pool_index pool{pool_limits()};
    route_table routes;
    EXPECT_TRUE(routes[0].direct());
    EXPECT_EQ(routes.number_of(to("/a"), 2, pool), 1u);
    EXPECT_EQ(routes.number_of(to("/b"), 2, pool), 2u);
    EXPECT_EQ(routes.number_of(to("/a"), 2, pool), 1u) << "known";
    EXPECT_EQ(routes.number_of(to("/c"), 2, pool), 2u) << "in the place of b";
    EXPECT_EQ(routes[2].path(), "/c");
    ASSERT_TRUE(pool.reserve(pool.origin(false, "h", 80, 1)));
    EXPECT_EQ(routes.number_of(to("/d"), 2, pool), 2u) << "a has not been used for longer, but is busy";
    ASSERT_TRUE(pool.reserve(pool.origin(false, "h", 80, 2)));
    EXPECT_EQ(routes.number_of(to("/e"), 2, pool), 3u) << "all are busy";
    EXPECT_EQ(routes.size(), 3u);
    EXPECT_EQ(routes[1].path(), "/a");
    EXPECT_EQ(routes[2].path(), "/d");
    pool.give_back(pool.origin(false, "h", 80, 1), nullptr, steady_time());
    EXPECT_EQ(routes.number_of(to("/f"), 2, pool), 1u);
    EXPECT_EQ(routes.size(), 3u);
}

}  // namespace route_table_test
}  // namespace
}  // namespace reagent

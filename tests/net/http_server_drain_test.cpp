#include "http_server_world.hpp"

#include <gtest/gtest.h>

namespace reagent {
namespace {
namespace http_server_drain_test {

using net_tests::get;
using net_tests::held_answers;
using net_tests::ok;
using net_tests::server_client;
using net_tests::server_world;
using std::chrono::seconds;

TEST(HttpServerDrain, DrainLetsAnswersEndAndServesWhoHasConnected)
{
    server_world w;
    held_answers h;
    w.start().fallback(std::ref(h));
    server_client idle(w), busy(w);
    busy.ask(get("/busy"));
    server_client waiting(w);  // in the backlog, its request in its socket
    waiting.write(get("/waiting"));
    testing::started<bool> drain(w.context, w.server->drain(seconds(30)));
    w.idle();
    EXPECT_FALSE(server_client(w).connected()) << "nobody listens";
    idle.read();
    EXPECT_TRUE(idle.ended);
    ASSERT_EQ(h.answers.size(), 2u);
    h.let_go(0);
    EXPECT_EQ(busy.read(), ok("/busy", true));
    EXPECT_FALSE(drain.done());
    h.let_go(1);
    EXPECT_EQ(waiting.read(), ok("/waiting", true));
    busy.close();
    waiting.close();
    w.idle();
    ASSERT_TRUE(drain.done());
    EXPECT_TRUE(drain.get());
}

TEST(HttpServerDrain, DrainStopsWhatDoesNotEndInTime)
{
    server_world w;
    held_answers h;
    w.start().fallback(std::ref(h));
    server_client busy(w);
    busy.ask(get("/busy"));
    testing::started<bool> drain(w.context, w.server->drain(seconds(30)));
    w.idle();
    w.advance(seconds(29));
    EXPECT_FALSE(drain.done());
    w.advance(seconds(1));
    ASSERT_TRUE(drain.done());
    EXPECT_FALSE(drain.get());
    EXPECT_TRUE(h.answers[0].second.gone());
}

}  // namespace http_server_drain_test
}  // namespace
}  // namespace reagent

#include "http_server_world.hpp"

#include <reagent/base/error.hpp>

#include <boost/asio/post.hpp>
#include <boost/asio/this_coro.hpp>
#include <boost/asio/use_awaitable.hpp>

#include <gtest/gtest.h>

#include <vector>

namespace reagent {
namespace {
namespace http_server_coroutines_test {

using net_tests::get;
using net_tests::server_client;
using net_tests::server_world;

struct coroutine_log {
    std::vector<std::string> lines;
};

awaitable<void> stream_for_ever(coroutine_log& log, http_responder out)
{
    struct at_end {
        coroutine_log& log;
        ~at_end() { log.lines.emplace_back("unwound"); }
    } const unwound{log};
    out.begin(200, "text/plain");
    for (;;) {
        co_await out.write_some(std::string(32 * 1024, 'x'));
        log.lines.emplace_back("wrote");
    }
}

awaitable<void> never(std::shared_ptr<clock> c)
{
    co_await sleep_until(std::move(c), steady_time::max());
}

TEST(HttpServerCoroutines, ACoroutineIsHeldBackByItsReaderAndEndsWithIt)
{
    server_world w;
    coroutine_log log;
    w.start().route_awaitable("GET", "/", [&](server_request, http_responder out) { return stream_for_ever(log, std::move(out)); });
    server_client c(w, 4096);
    c.write(get("/"));
    w.idle();
    const std::size_t before = log.lines.size();
    EXPECT_LT(before, 512u) << "it waits";
    while (log.lines.size() < before + 4) {
        ASSERT_FALSE(c.take().empty() && log.lines.size() > before + 512);
        w.idle();
    }
    c.close();
    w.idle();
    EXPECT_EQ(log.lines.back(), "unwound");
    EXPECT_EQ(w.server->stats().busy, 0u);
}

TEST(HttpServerCoroutines, ACoroutineIsCancelledWithItsClientOrTheServer)
{
    for (const bool by_client : {true, false}) {
        server_world w;
        bool cancelled = false;
        w.start().route_awaitable("GET", "/", [&](server_request, http_responder out) -> awaitable<void> {
            const http_responder kept = std::move(out);
            try {
                co_await never(w.clock);
            } catch (...) {
                cancelled = is_cancellation(std::current_exception());
                throw;
            }
        });
        server_client c(w);
        c.write(get("/"));
        w.idle();
        EXPECT_FALSE(cancelled);
        if (by_client) {
            c.close();
            w.idle();
            EXPECT_TRUE(cancelled);
        } else {
            testing::complete(w.context, w.server->close());
            EXPECT_TRUE(cancelled) << "close waits for it";
        }
    }
}

// Takes its time when it is cancelled.
awaitable<void> tidies_up(std::shared_ptr<clock> c, bool& tidy)
{
    try {
        co_await never(std::move(c));
    } catch (const std::exception&) {}
    co_await asio::this_coro::reset_cancellation_state();
    for (int i = 0; i < 10; ++i) co_await asio::post(asio::use_awaitable);
    tidy = true;
}

TEST(HttpServerCoroutines, CloseWaitsForWhatACancelledCoroutineHasLeftToDo)
{
    server_world w;
    bool tidy = false;
    w.start().route_awaitable("GET", "/", [&](server_request, http_responder) { return tidies_up(w.clock, tidy); });
    server_client c(w);
    c.ask(get("/"));
    testing::complete(w.context, w.server->close());
    EXPECT_TRUE(tidy);
}

awaitable<void> fails(http_responder out)
{
    const http_responder kept = std::move(out);
    throw error(errc::not_found, "the run is not there");
    co_return;
}

TEST(HttpServerCoroutines, ACoroutineThatThrowsBecomesA500AndALogLine)
{
    server_world w;
    std::string logged;
    w.options.log = log_sink([&](log_level, std::string_view line) { logged += line; });
    w.start().route_awaitable("GET", "/", [](server_request, http_responder out) { return fails(std::move(out)); });
    server_client c(w);
    EXPECT_EQ(c.ask(get("/")).substr(0, 12), "HTTP/1.1 500");
    EXPECT_EQ(logged, "[http_server] a handler failed: the run is not there");
}

}  // namespace http_server_coroutines_test
}  // namespace
}  // namespace reagent

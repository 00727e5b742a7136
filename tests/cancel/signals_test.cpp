// The host's signals stay as they are, whatever a run meets. SIGPIPE keeps its default, so that a write that could raise it would end this program.
#include "cancel_world.hpp"

#include <reagent/testing/run.hpp>
#include <reagent/testing/signal_snapshot.hpp>

#include <gtest/gtest.h>

namespace {
namespace signals_test {

using namespace cancel_tests;

/// A run against `w`, to its end.
run_result run_against(asio::io_context& io, provider_world& w)
{
    generate_options g;
    g.stream = false;
    const agent a(io.get_executor(), w.model, agent_options().clock(w.clock).generate(g));
    return rt::complete(io, a.async_run(run_request("hi")));
}

TEST(Signals, NoRunOfOursTouchesThem)
{
    net_tests::certificates::shared();
    const rt::signal_snapshot before = rt::signal_snapshot::take();
    for (const wire w : {wire::plain, wire::tls}) {
        for (const std::string& answer : {rt::http_response(200, rt::openai_answer("abc")), rt::http_response(500, "{}"), std::string("not http")}) {
            asio::io_context io;
            provider_world world(io, w, {answer});
            run_against(io, world);
            world.finish();
            EXPECT_EQ(before.difference(rt::signal_snapshot::take()), "") << answer;
        }
    }
    asio::io_context io;
    http_client http(io.get_executor());
    http_request unknown("GET", url::parse_or_throw("http://nowhere.invalid:1/", "url"));
    unknown.limits.connect = 1ms;
    EXPECT_THROW(rt::complete(io, http.open(std::move(unknown))), error);
    EXPECT_EQ(before.difference(rt::signal_snapshot::take()), "");
}

/// Sends more than a socket takes: of the body, or of the head, behind which the peer's end is not watched for yet.
awaitable<void> upload(http_client http, std::string target, bool long_head = false)
{
    const std::string body(4 * 1024 * 1024, 'x');
    http_request r("POST", url::parse_or_throw(target, "url"));
    const std::string lines = "X-Long: " + body + "\r\n";
    if (long_head) r.header_lines = lines;
    else r.body = body;
    const http_exchange x = co_await http.open(std::move(r));
}

// A write raises SIGPIPE when the peer has both said its end and reset the connection: an upload that goes on behind a FIN.
TEST(Signals, APeerThatHangsUpDuringAnUploadRaisesNone)
{
    struct sigaction now {};
    ASSERT_EQ(::sigaction(SIGPIPE, nullptr, &now), 0);
    ASSERT_EQ(now.sa_handler, SIG_DFL) << "this test needs the default";
    net_tests::certificates::shared();
    const rt::signal_snapshot before = rt::signal_snapshot::take();
    asio::io_context io;
    for (const bool long_head : {true, false}) {
        rt::byte_server server(io.get_executor(), rt::byte_script().stop_reading().gate("go").half_close().reset());
        rt::started<void> op(io, upload(http_client(io.get_executor()), server.origin() + "/", long_head));
        rt::run_until_idle(io);
        ASSERT_FALSE(op.done());
        server.open("go");
        ASSERT_TRUE(rt::run_until(io, [&] { return op.done(); }));
        EXPECT_TRUE(op.failure());
        server.stop();
    }
    {
        net_tests::tls_server server("good", "", net_tests::tls_end::hang_up);
        http_client_options o;
        o.tls.ca_file = net_tests::certificates::shared().pem("root");
        rt::started<void> op(io, upload(http_client(io.get_executor(), o), "https://127.0.0.1:" + std::to_string(server.port()) + "/"));
        ASSERT_TRUE(rt::run_until(io, [&] { return op.done(); }));
        EXPECT_TRUE(op.failure());
    }
    EXPECT_EQ(before.difference(rt::signal_snapshot::take()), "");
}

}  // namespace signals_test
}  // namespace

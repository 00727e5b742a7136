// A child process from start to end, its pipes, its stop, and a call over them, cancelled after every handler.
#include "process_world.hpp"

#include <reagent/net/json_rpc_peer.hpp>
#include <reagent/net/stdio_link.hpp>
#include <reagent/testing/cancel_everywhere.hpp>

#include <gtest/gtest.h>

#include <csignal>

namespace {
namespace process_cancel_test {

using namespace reagent;
using namespace reagent::process_tests;

using step_function = awaitable<void> (*)(asio::io_context&, std::string*);

awaitable<void> start_write_read_wait(asio::io_context& io, std::string* got)
{
    child_process child(io.get_executor(), process_options({"/bin/cat"}));
    const std::string line = "hello\n";
    co_await child.write(line);
    co_await read_until(&child, got, line);
    child.close_input();
    const exit_status status = co_await child.wait();
    *got += status.text();
}

awaitable<void> a_write_that_blocks(asio::io_context& io, std::string* got)
{
    child_process child(io.get_executor(), shell("sleep 0.02; cat >/dev/null; echo done"));
    const std::string much(1'000'000, 'x');
    co_await child.write(much);
    child.close_input();
    co_await read_all(&child, got);
}

awaitable<void> a_stop_up_to_the_last_rung(asio::io_context& io, std::string* got)
{
    process_options o = shell("trap '' TERM; echo ready; while :; do sleep 1000; done");
    o.close_grace = o.term_grace = 5ms;
    child_process child(io.get_executor(), o);
    co_await read_until(&child, got, "ready\n");
    const exit_status status = co_await child.stop();
    *got += status.text();
}

awaitable<void> a_call_and_a_close(asio::io_context& io, std::string* got)
{
    auto link = std::make_unique<stdio_link>(io.get_executor(), shell(R"(read line; echo '{"jsonrpc":"2.0","id":1,"result":"yes"}'; cat >/dev/null)"));
    json_rpc_peer peer(io.get_executor(), std::move(link));
    peer.start();
    rpc_call question("question");
    const rpc_reply reply = co_await peer.call(std::move(question));
    *got = reply.result.dump();
    co_await peer.close();
}

class process_case final : public rt::cancel_case {
public:
    process_case(asio::io_context& io, step_function step, std::string expected) : io_(io), step_(step), expected_(std::move(expected)) {}
    awaitable<void> operation() override { return step_(io_, &got_); }
    std::string verify(const rt::cancel_outcome& o) override
    {
        // Once the operation has ended nothing of it may live, not even dead.
        std::string trouble;
        if (!no_child_left()) trouble += "a child is left; ";
        if (!o.failure && got_ != expected_ && !o.signalled) trouble += "got " + got_ + "; ";
        if (o.failure && !is_cancellation(o.failure)) trouble += "failed: " + message_of(o.failure) + "; ";
        return trouble;
    }

private:
    asio::io_context& io_;
    step_function step_;
    std::string expected_, got_;
};

TEST(CancelProcess, EveryAwaitOfEveryOperation)
{
    struct row {
        step_function step;
        std::string got;
        std::size_t least;  ///< runs that are cancelled in time; how many there are is up to the kernel
    };
    const std::vector<row> rows = {
        {&start_write_read_wait, "hello\nexited (code 0)", 1},
        {&a_write_that_blocks, "done\n", 1},
        {&a_stop_up_to_the_last_rung, "ready\nkilled (SIGKILL)", 1},
        {&a_call_and_a_close, "\"yes\"", 1},
    };
    for (const row& r : rows) {
        for (const std::size_t again : {0u, 25u}) {
            rt::cancel_options options;
            options.again(again);
            const rt::cancel_report report =
                rt::cancel_everywhere([&r](asio::io_context& io) { return std::make_unique<process_case>(io, r.step, r.got); }, options);
            EXPECT_TRUE(report) << r.got << ": " << report;
            EXPECT_GE(report.aborted + report.returned, r.least) << r.got << ": " << report;
        }
    }
}

}  // namespace process_cancel_test
}  // namespace

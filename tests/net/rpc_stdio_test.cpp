// JSON-RPC with real child processes that do what bad servers do.
#include "process_world.hpp"

#include <reagent/net/json_rpc_peer.hpp>
#include <reagent/net/stdio_link.hpp>
#include <reagent/testing/manual_clock.hpp>
#include <reagent/testing/signal_snapshot.hpp>

#include <gtest/gtest.h>

#include <csignal>
#include <deque>

namespace {
namespace rpc_stdio_test {

using namespace reagent;
using namespace reagent::process_tests;

/// Answers `echo` with its params; the other methods are told where they are used. Words on its command line: `banner`, `crlf`.
constexpr const char* server = R"py(
import json, sys
out = sys.stdout.buffer
end = b"\r\n" if "crlf" in sys.argv else b"\n"
def send(m):
    out.write(json.dumps(m, separators=(",", ":")).encode() + end)
    out.flush()
def answer(id, result): send({"jsonrpc": "2.0", "id": id, "result": result})
if "banner" in sys.argv:
    out.write(b"Server v1.2 starting\n\n  \r\n[info] {ready}\n{\"level\":\"info\"}\n\xef\xbb\xbf")
heard, slow = [], None
for line in sys.stdin.buffer:
    m = json.loads(line)
    method, id, p = m.get("method"), m.get("id"), m.get("params") or {}
    if id is None: heard.append(m)
    elif method == "echo": answer(id, p)
    elif method == "complain":
        sys.stderr.write("e" * p["bytes"] + "last words"); sys.stderr.flush()
        answer(id, True)
    elif method == "big": answer(id, "x" * (p["bytes"] - 36 - len(str(id)) - len(end) + 1))
    elif method == "slow": slow = id
    elif method == "report":
        if slow is not None: answer(slow, "late")
        answer(id, heard)
    elif method == "ask":
        send({"jsonrpc": "2.0", "id": p["id"], "method": p["method"]})
        answer(id, json.loads(sys.stdin.buffer.readline()))
    elif method == "deafen":
        for i in range(p["lines"]): send({"jsonrpc": "2.0", "method": "noise", "params": {"text": "n" * 1000}})
        answer(id, True)
)py";

process_options python(std::vector<std::string> words = {})
{
    std::vector<std::string> argv{"python3", "-S", "-c", server};
    argv.insert(argv.end(), words.begin(), words.end());
    return process_options(std::move(argv));
}

awaitable<void> keep_reply(awaitable<rpc_reply> call, rpc_reply* out)
{
    *out = co_await std::move(call);
}

class session {
public:
    explicit session(process_options o, stdio_link_options l = {}, json_rpc_options r = {})
    {
        auto made = std::make_unique<stdio_link>(io.get_executor(), std::move(o), l);
        link = made.get();
        peer = std::make_unique<json_rpc_peer>(io.get_executor(), std::move(made), std::move(r));
        peer->answer("ping", [](const json&) { return json::object(); });
        peer->start();
    }
    ~session()
    {
        const pid_t group = link->process().group();
        rt::complete(io, peer->close());
        EXPECT_TRUE(no_child_left());
        EXPECT_TRUE(dies_out(group));
        io.poll();
        EXPECT_TRUE(io.stopped()) << "work is left";
    }
    rpc_reply call(std::string method, json params = {}, duration timeout = duration::min())
    {
        rpc_call c(std::move(method), std::move(params));
        c.timeout = timeout;
        rpc_reply& reply = replies.emplace_back();
        rt::complete(io, keep_reply(peer->call(std::move(c)), &reply));
        return reply;
    }
    std::string echo(std::string text)
    {
        const rpc_reply reply = call("echo", json::object().set("text", std::move(text)));
        return reply.status == rpc_status::result ? reply.result["text"].dump() : reply.why;
    }
    std::deque<rpc_reply> replies;  // outlive a call that a failed test leaves behind
    asio::io_context io;
    stdio_link* link;
    std::unique_ptr<json_rpc_peer> peer;
};

TEST(RpcStdio, Case_D1_AServerThatWritesToStandardErrorFirst)
{
    session s(python());
    const rpc_reply reply = s.call("complain", json::object().set("bytes", 256 * 1024));
    EXPECT_EQ(reply.result, json(true)) << reply.why;
    EXPECT_TRUE(rt::run_until(s.io, [&] { return s.link->process().error_bytes() == 256 * 1024 + 10; }));
    EXPECT_EQ(s.link->process().error_tail().size(), 64u * 1024);
    EXPECT_TRUE(s.link->process().error_tail().ends_with("last words"));
}

TEST(RpcStdio, Case_D4_AServerThatDiesDuringACall)
{
    // By a clock that stands still: what ends at once waits for no limit.
    process_options o = python();
    json_rpc_options r;
    o.clock = r.clock = std::make_shared<rt::manual_clock>();
    session s(std::move(o), {}, r);
    EXPECT_EQ(s.call("complain", json::object().set("bytes", 2000)).result, json(true));
    rpc_reply one, two;
    rt::started<void> first(s.io, keep_reply(s.peer->call(rpc_call("slow")), &one));
    rt::started<void> second(s.io, keep_reply(s.peer->call(rpc_call("slow")), &two));
    EXPECT_EQ(s.echo("x"), "\"x\"");
    ::kill(s.link->process().id(), SIGKILL);
    ASSERT_TRUE(rt::run_until(s.io, [&] { return first.done() && second.done(); }));
    EXPECT_EQ(one.status, rpc_status::disconnected);
    EXPECT_EQ(one.why, "[rpc] the peer was killed (SIGKILL): " + std::string(490, 'e') + "last words");
    EXPECT_EQ(two.why, one.why);
    EXPECT_EQ(s.call("echo").why, one.why) << "later calls fail at once";
}

TEST(RpcStdio, Case_D5_AServerThatNeverComesUp)
{
    try {
        session s(process_options({"no-such-server-here", "--key", "secret"}));
        ADD_FAILURE() << "it was started";
    } catch (const spawn_error& e) {
        EXPECT_EQ(e.code_name(), "ENOENT");
        EXPECT_STREQ(e.what(), "[process] \"no-such-server-here\" cannot be started: there is no such program");
    }
    EXPECT_TRUE(no_child_left());
    {
        session s(shell("echo no configuration >&2; exit 1"));
        const rpc_reply reply = s.call("initialize");
        EXPECT_EQ(reply.status, rpc_status::disconnected);
        EXPECT_NE(reply.why.find("exited (code 1): no configuration"), std::string::npos) << reply.why;
    }
    {
        // It lives and says nothing: the handshake has a limit of its own.
        session s(process_options({"/bin/sleep", "1000"}));
        const rpc_reply reply = s.call("initialize", {}, 30ms);
        EXPECT_EQ(reply.status, rpc_status::timed_out);
    }
}

TEST(RpcStdio, Case_D6_LinesThatAreNoMessages)
{
    session s(python({"banner", "crlf"}));
    EXPECT_EQ(s.echo("a\nb \xE2\x82\xAC"), "\"a\\nb \xE2\x82\xAC\"");
    EXPECT_EQ(s.echo("again"), "\"again\"");
    EXPECT_EQ(s.peer->stats().not_json, 2u);
    EXPECT_EQ(s.peer->stats().malformed, 1u);
}

TEST(RpcStdio, Case_D7_AnswersOfAnySizeUpToTheLimit)
{
    constexpr std::int64_t kib = 1024, mib = 1024 * kib;
    for (const bool skip : {false, true}) {
        stdio_link_options o;
        o.skip_long_lines = skip;
        session s(python(), o);
        for (const std::int64_t size : {129 * kib, 15 * mib}) {
            const rpc_reply reply = s.call("big", json::object().set("bytes", size));
            ASSERT_EQ(reply.status, rpc_status::result) << reply.why;
            EXPECT_GT(static_cast<std::int64_t>(reply.result.as_string().size()), size - 100);
        }
        const rpc_reply reply = s.call("big", json::object().set("bytes", 17 * mib), skip ? duration(20ms) : duration::min());
        if (skip) {
            EXPECT_EQ(reply.status, rpc_status::timed_out) << "its answer was passed over";
            EXPECT_EQ(s.echo("on"), "\"on\"");
            EXPECT_EQ(s.link->long_lines(), 1u);
        } else {
            EXPECT_EQ(reply.why, "[stdio] a line is longer than 16777216 bytes");
        }
    }
}

TEST(RpcStdio, Case_D8_TheServerHearsThatACallIsGivenUp)
{
    session s(python());
    EXPECT_EQ(s.call("slow", {}, 50ms).status, rpc_status::timed_out);
    const rpc_reply report = s.call("report");
    EXPECT_EQ(report.result.dump(), R"([{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1,"reason":"timed out"}}])");
    EXPECT_EQ(s.peer->stats().late_responses, 1u);
}

TEST(RpcStdio, Case_D9_TheServerAsksWithTheIdOfOurCall)
{
    session s(python());
    EXPECT_EQ(s.call("ask", json::object().set("id", 1).set("method", "ping")).result.dump(), R"({"jsonrpc":"2.0","id":1,"result":{}})");
    EXPECT_EQ(s.call("ask", json::object().set("id", 2).set("method", "roots/list")).result["error"]["code"].dump(), "-32601");
}

TEST(RpcStdio, Case_D12_AServerThatLeavesWithoutReading)
{
    const pipe_signals pipes;
    const rt::signal_snapshot signals = rt::signal_snapshot::take();
    {
        session s(shell("exec 0<&-; exec sleep 1000"));
        rpc_reply reply;
        do reply = s.call("echo", json::object().set("text", std::string(100'000, 'x')), 20ms);
        while (reply.status == rpc_status::timed_out);
        EXPECT_EQ(reply.status, rpc_status::disconnected) << reply.why;
        EXPECT_NE(reply.why.find("no longer reads its input"), std::string::npos) << reply.why;
    }
    EXPECT_EQ(pipes.delivered(), 0);
    EXPECT_EQ(signals.difference(rt::signal_snapshot::take()), "");
}

TEST(RpcStdio, ReadingGoesOnWhileTheServerDoesNotRead)
{
    // It makes more noise than its pipe holds before it reads on; so does our next call.
    session s(python());
    std::uint64_t noise = 0;
    s.peer->on_notification("noise", [&noise](const json&) { ++noise; });
    rpc_reply deaf, big;
    rt::started<void> first(s.io, keep_reply(s.peer->call(rpc_call("deafen", json::object().set("lines", 2000))), &deaf));
    rt::started<void> second(s.io, keep_reply(s.peer->call(rpc_call("echo", json::object().set("text", std::string(1'000'000, 'x')))), &big));
    ASSERT_TRUE(rt::run_until(s.io, [&] { return first.done() && second.done(); }));
    EXPECT_EQ(deaf.result, json(true)) << deaf.why;
    EXPECT_EQ(big.result["text"].as_string().size(), 1'000'000u) << big.why;
    EXPECT_EQ(noise, 2000u);
}

TEST(RpcStdio, AContextThatEndsInTheMiddleOfACall)
{
    rpc_reply reply;
    pid_t group = 0;
    {
        asio::io_context io;
        auto link = std::make_unique<stdio_link>(io.get_executor(), process_options({"/bin/sleep", "1000"}));
        group = link->process().group();
        json_rpc_peer peer(io.get_executor(), std::move(link));
        peer.start();
        rt::started<void> call(io, keep_reply(peer.call(rpc_call("slow")), &reply));
        rt::run_until_idle(io);
        EXPECT_FALSE(call.done());
    }
    EXPECT_TRUE(no_child_left());
    EXPECT_TRUE(dies_out(group));
}

TEST(RpcStdio, AMessageWithALineBreakIsRefused)
{
    session s(process_options({"/bin/cat"}));
    EXPECT_THROW(static_cast<void>(s.link->write("{}\n{}")), validation_error);
}

}  // namespace rpc_stdio_test
}  // namespace

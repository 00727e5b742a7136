// The codec by shape, and the peer over a link in memory.
#include "parking.hpp"

#include <reagent/net/json_rpc_peer.hpp>
#include <reagent/testing/manual_clock.hpp>
#include <reagent/testing/run.hpp>

#include <boost/asio/bind_cancellation_slot.hpp>
#include <boost/asio/cancellation_signal.hpp>
#include <boost/asio/io_context.hpp>

#include <gtest/gtest.h>

#include <deque>

namespace {
namespace json_rpc_test {

using namespace reagent;
using namespace std::chrono_literals;
namespace rt = reagent::testing;

TEST(JsonRpc, AMessageIsToldByItsShape)
{
    struct row {
        const char* text;
        rpc_kind kind;
        const char* id;
        const char* rest;  ///< method, result, error or problem
    };
    using enum rpc_kind;
    const std::vector<row> rows = {
        {R"({"jsonrpc":"2.0","id":1,"method":"ping"})", request, "1", "ping"},
        {R"({"jsonrpc":"2.0","id":"1","method":"ping","params":{"a":1},"x":2})", request, "\"1\"", "ping"},
        {R"({"jsonrpc":"2.0","method":"done"})", notification, "null", "done"},
        {R"({"jsonrpc":"2.0","id":1,"result":null})", response, "1", "null"},
        {R"({"jsonrpc":"2.0","id":"a","result":{"x":1}})", response, "\"a\"", R"({"x":1})"},
        {R"({"jsonrpc":"2.0","id":1,"error":{"code":-32601,"message":"no","data":[1]}})", response, "1", "-32601 no [1]"},
        {R"({"jsonrpc":"2.0","id":1,"error":"broken"})", response, "1", "0 \"broken\" null"},
        {R"({"jsonrpc":"2.0","id":null,"error":{"code":-32700,"message":"parse"}})", response, "null", "-32700 parse null"},
        // A method makes it a request whatever else there is.
        {R"({"jsonrpc":"2.0","id":1,"method":"ping","result":1})", request, "1", "ping"},
        {R"({"jsonrpc":"2.0","id":1,"result":1,"error":{}})", malformed, "null", "\"result\" and \"error\""},
        {R"({"jsonrpc":"2.0","id":1})", malformed, "null", "neither \"result\" nor \"error\""},
        {R"({"jsonrpc":"2.0"})", malformed, "null", "neither \"method\" nor \"id\""},
        {R"({"jsonrpc":"2.0","id":null,"method":"ping"})", malformed, "null", "\"id\" is neither"},
        {R"({"jsonrpc":"2.0","id":null,"result":1})", malformed, "null", "\"id\" is neither"},
        {R"({"jsonrpc":"2.0","id":[1],"result":1})", malformed, "null", "\"id\" is neither"},
        {R"({"jsonrpc":"2.0","id":1,"method":2})", malformed, "null", "\"method\" is not"},
        {R"({"jsonrpc":"2.0","id":1,"method":"a","params":[1]})", malformed, "null", "\"params\" is not"},
        {R"({"jsonrpc":"1.0","id":1,"result":1})", malformed, "null", "\"jsonrpc\" is not"},
        {R"({"id":1,"result":1})", malformed, "null", "\"jsonrpc\" is not"},
        {R"([])", malformed, "null", "it is array"},
        {R"(1)", malformed, "null", "it is number"},
    };
    for (const row& r : rows) {
        const rpc_message m = read_rpc(json::parse_or_throw(r.text, "row"));
        EXPECT_EQ(m.kind, r.kind) << r.text;
        EXPECT_EQ(m.id.dump(), r.id) << r.text;
        std::string rest = m.method;
        if (m.kind == response) rest = m.failed ? std::to_string(m.error.code) + " " + m.error.message + " " + m.error.data.dump() : m.result.dump();
        if (m.kind == malformed) EXPECT_NE(m.problem.find(r.rest), std::string::npos) << r.text << ": " << m.problem;
        else EXPECT_EQ(rest, r.rest) << r.text;
    }
}

TEST(JsonRpc, WhatIsWrittenReadsBackAndIsOneLine)
{
    const json params = json::object().set("text", "a\nb\r\xE2\x80\xA8");
    EXPECT_EQ(rpc_request_text(7, "tools/\"call", json()), R"({"jsonrpc":"2.0","id":7,"method":"tools/\"call"})");
    EXPECT_EQ(rpc_notification_text("done", json::object()), R"({"jsonrpc":"2.0","method":"done","params":{}})");
    EXPECT_EQ(rpc_result_text("x", json()), R"({"jsonrpc":"2.0","id":"x","result":null})");
    EXPECT_EQ(rpc_error_text(1, rpc_error(-1, "no", 2)), R"({"jsonrpc":"2.0","id":1,"error":{"code":-1,"message":"no","data":2}})");
    const std::string text = rpc_request_text(1, "a", params);
    EXPECT_EQ(text.find('\n'), std::string::npos);
    EXPECT_EQ(read_rpc(json::parse_or_throw(text, "text")).params, params);
}

/// What the other side says is what the test says.
class memory_link final : public message_link {
public:
    explicit memory_link(any_io_executor ex) : ex_(std::move(ex)) {}
    void say(std::string text)
    {
        said.push_back(std::move(text));
        wake(reader_);
    }
    void hang_up(std::string words)
    {
        last_words = std::move(words);
        ended = true;
        wake(reader_);
        wake(writer_);
    }
    void stall(bool on)
    {
        stalled = on;
        if (!on) wake(writer_);
    }
    awaitable<bool> read(message_batch& to) override
    {
        to.clear();
        while (said.empty() && !ended) co_await park(&reader_);
        for (const std::string& s : said) to.add(s);
        said.clear();
        co_return !to.empty();
    }
    awaitable<void> write(std::string_view message) override
    {
        while (stalled && !ended) co_await park(&writer_);
        if (ended) throw error(errc::transport_failed, "the link is down");
        if (!refused.empty() && message.find(refused) != std::string_view::npos) throw error(errc::transport_failed, "this one is refused");
        written.emplace_back(message);
    }
    bool alive() const noexcept override { return !ended; }
    awaitable<void> close() override
    {
        hang_up("was closed");
        co_return;
    }
    awaitable<std::string> obituary() override { co_return last_words; }
    void abandon() noexcept override { hang_up("was abandoned"); }

    std::deque<std::string> said;
    std::vector<std::string> written;
    std::string last_words, refused;
    bool stalled = false, ended = false;

private:
    awaitable<void> park(net_detail::parking** at)
    {
        net_detail::parking here(ex_);
        *at = &here;
        co_await here.wait();
        *at = nullptr;
        const auto state = co_await asio::this_coro::cancellation_state;
        if (state.cancelled() != asio::cancellation_type::none) throw boost::system::system_error(asio::error::operation_aborted);
    }
    static void wake(net_detail::parking* p)
    {
        if (p) p->wake();
    }
    any_io_executor ex_;
    net_detail::parking *reader_ = nullptr, *writer_ = nullptr;
};

awaitable<void> keep(awaitable<rpc_reply> call, rpc_reply* out)
{
    *out = co_await std::move(call);
}

class desk {
public:
    explicit desk(json_rpc_options o = {})
    {
        o.clock = clock;
        o.log = log_sink([this](log_level, std::string_view line) { log += std::string(line) + "\n"; });
        auto l = std::make_unique<memory_link>(io.get_executor());
        link = l.get();
        peer = std::make_unique<json_rpc_peer>(io.get_executor(), std::move(l), std::move(o));
        peer->answer("ping", [](const json&) { return json::object(); });
        peer->answer("fail", [](const json&) -> json { throw std::runtime_error("a secret of the host"); });
        peer->answer("refuse", [](const json&) -> json { throw rpc_fault(rpc_error(-1, "declined")); });
    }
    ~desk() { close(); }
    void close()
    {
        if (peer) rt::complete(io, peer->close());
    }
    /// One call, its outcome told in a word when it has ended.
    class asked {
    public:
        asked(desk& d, rpc_call c)
            : reply(&d.replies.emplace_back()),
              stop(&d.stops.emplace_back()),
              op_(d.io, asio::co_spawn(d.io, keep(d.peer->call(std::move(c)), reply), asio::bind_cancellation_slot(stop->slot(), asio::use_awaitable)))
        {}
        bool done() const { return op_.done(); }
        std::string outcome() const
        {
            if (!op_.done()) return "pending";
            if (op_.failure()) return is_cancellation(op_.failure()) ? "cancelled" : message_of(op_.failure());
            const std::string sent = reply->written ? " written" : " not written";
            switch (reply->status) {
            case rpc_status::result: return reply->result.dump();
            case rpc_status::error: return std::to_string(reply->error.code) + " " + reply->error.message;
            case rpc_status::timed_out: return "timed out," + sent;
            case rpc_status::disconnected: return "disconnected," + sent + ": " + reply->why;
            case rpc_status::not_sent: return "not sent: " + reply->why;
            }
            return "?";
        }
        rpc_reply* reply;
        asio::cancellation_signal* stop;

    private:
        rt::started<void> op_;
    };
    void settle() { rt::run_until_idle(io, 0us); }

    std::deque<rpc_reply> replies;  // these outlive the calls that the end of the desk ends
    std::deque<asio::cancellation_signal> stops;
    asio::io_context io;
    std::shared_ptr<rt::manual_clock> clock = std::make_shared<rt::manual_clock>();
    std::string log;
    memory_link* link;
    std::unique_ptr<json_rpc_peer> peer;
};

rpc_call slow(duration timeout = 1s)
{
    rpc_call c("slow", json::object());
    c.timeout = timeout;
    return c;
}

TEST(JsonRpcPeer, Case_D9_TheIdsOfTheTwoSidesNeverMix)
{
    desk d;
    d.peer->start();
    desk::asked call(d, rpc_call("work"));
    d.settle();
    ASSERT_EQ(d.link->written, std::vector<std::string>{R"({"jsonrpc":"2.0","id":1,"method":"work"})"});
    struct row {
        const char* said;
        const char* answer;
        std::uint64_t json_rpc_stats::*counter;
    };
    const std::string deep = R"({"jsonrpc":"2.0","id":1,"result":)" + std::string(100'000, '[');
    const std::vector<row> rows = {
        // The id of our pending call, from the other side: a request of its own.
        {R"({"jsonrpc":"2.0","id":1,"method":"ping"})", R"({"jsonrpc":"2.0","id":1,"result":{}})", &json_rpc_stats::requests},
        {R"({"jsonrpc":"2.0","id":1,"method":"roots/list"})", R"({"jsonrpc":"2.0","id":1,"error":{"code":-32601,"message":"no such method: roots/list"}})",
         &json_rpc_stats::requests},
        {R"({"jsonrpc":"2.0","id":"1","method":"fail"})", R"({"jsonrpc":"2.0","id":"1","error":{"code":-32603,"message":"internal error"}})",
         &json_rpc_stats::requests},
        {R"({"jsonrpc":"2.0","id":1,"method":"refuse"})", R"({"jsonrpc":"2.0","id":1,"error":{"code":-1,"message":"declined"}})", &json_rpc_stats::requests},
        {R"({"jsonrpc":"2.0","method":"ping"})", "", &json_rpc_stats::notifications},
        {R"({"jsonrpc":"2.0","id":"1","result":"text"})", "", &json_rpc_stats::unknown_responses},
        {R"({"jsonrpc":"2.0","id":2,"result":"never asked"})", "", &json_rpc_stats::unknown_responses},
        {R"({"jsonrpc":"2.0","id":1.5,"result":"half"})", "", &json_rpc_stats::unknown_responses},
        {R"({"jsonrpc":"2.0","id":1,"result":1,"error":{"code":1,"message":""}})", "", &json_rpc_stats::malformed},
        {R"([{"jsonrpc":"2.0","id":1,"result":"batch"}])", "", &json_rpc_stats::malformed},
        {R"({"jsonrpc":"2.0","id":1,)", "", &json_rpc_stats::not_json},
        {"Server v1.2", "", &json_rpc_stats::not_json},
        {deep.c_str(), "", &json_rpc_stats::not_json},
        {"{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":\"\xff\"}\xff", "", &json_rpc_stats::not_json},
        {R"({"jsonrpc":"2.0","id":true,"result":1})", "", &json_rpc_stats::malformed},
        {R"({"jsonrpc":"2.0","id":{},"method":"ping"})", "", &json_rpc_stats::malformed},
        {R"({"jsonrpc":"2.0","id":18446744073709551617,"result":1})", "", &json_rpc_stats::unknown_responses},
        {R"({"jsonrpc":"2.0","id":0,"result":1})", "", &json_rpc_stats::unknown_responses},
        {R"({"jsonrpc":"2.0","id":-1,"result":1})", "", &json_rpc_stats::unknown_responses},
    };
    for (const row& r : rows) {
        d.link->written.clear();
        const json_rpc_stats before = d.peer->stats();
        d.link->say(r.said);
        d.settle();
        EXPECT_EQ(d.peer->stats().*r.counter, before.*r.counter + 1) << r.said;
        EXPECT_EQ(d.link->written, *r.answer ? std::vector<std::string>{r.answer} : std::vector<std::string>()) << r.said;
        EXPECT_EQ(call.outcome(), "pending") << r.said;
    }
    d.link->say(R"({"jsonrpc":"2.0","id":1,"result":"mine"})");
    d.link->say(R"({"jsonrpc":"2.0","id":1,"result":"again"})");
    d.settle();
    EXPECT_EQ(call.outcome(), "\"mine\"");
    EXPECT_EQ(d.peer->stats().late_responses, 1u);
    EXPECT_NE(d.log.find("secret"), std::string::npos) << "the host hears what its handler threw";
}

TEST(JsonRpcPeer, BatchesWhereTheyAreTaken)
{
    json_rpc_options o;
    o.batches = true;
    desk d(o);
    d.peer->start();
    desk::asked one(d, rpc_call("a")), two(d, rpc_call("b"));
    d.settle();
    d.link->say(R"([{"jsonrpc":"2.0","id":2,"result":2},7,{"jsonrpc":"2.0","id":1,"error":{"code":5,"message":"no"}}])");
    d.settle();
    EXPECT_EQ(one.outcome(), "5 no");
    EXPECT_EQ(two.outcome(), "2");
    EXPECT_EQ(d.peer->stats().malformed, 1u);
}

TEST(JsonRpcPeer, Case_D8_GivingUpIsTold)
{
    desk d;
    d.peer->start();
    desk::asked late(d, slow()), stopped(d, slow(duration::zero()));
    rpc_call first("initialize");
    first.timeout = 1s;
    first.cancellable = false;
    desk::asked untold(d, first);
    d.settle();
    ASSERT_EQ(d.link->written.size(), 3u);
    d.clock->advance(999ms);
    d.settle();
    EXPECT_EQ(late.outcome(), "pending");
    d.clock->advance(1ms);
    stopped.stop->emit(asio::cancellation_type::terminal);
    d.settle();
    EXPECT_EQ(late.outcome(), "timed out, written");
    EXPECT_NE(late.reply->why.find("\"slow\" timed out after 1000ms"), std::string::npos) << late.reply->why;
    EXPECT_THROW(std::move(*late.reply).take(), timeout_error);
    EXPECT_EQ(untold.outcome(), "timed out, written");
    EXPECT_EQ(stopped.outcome(), "cancelled");
    std::vector<std::string> notices(d.link->written.begin() + 3, d.link->written.end());
    std::sort(notices.begin(), notices.end());
    EXPECT_EQ(notices,
              (std::vector<std::string>{
                  R"({"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1,"reason":"timed out"}})",
                  R"({"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":2,"reason":"cancelled"}})",
              }));
    for (int id = 1; id <= 3; ++id) d.link->say(rpc_result_text(id, "late"));
    d.settle();
    EXPECT_EQ(d.peer->stats().late_responses, 3u);
    EXPECT_EQ(d.peer->stats().cancel_notices, 2u);
    EXPECT_EQ(d.peer->stats().pending, 0u);
    EXPECT_EQ(d.clock->armed(), 0u);
}

TEST(JsonRpcPeer, WhatWasNotWrittenIsTakenBackAndALineIsNeverCut)
{
    desk d;
    d.link->stall(true);
    d.peer->start();
    desk::asked inside(d, slow()), behind(d, slow()), after(d, slow(10s));
    d.settle();
    d.clock->advance(1s);
    d.settle();
    EXPECT_EQ(inside.outcome(), "timed out, written");
    EXPECT_EQ(behind.outcome(), "timed out, not written");
    d.link->stall(false);
    d.settle();
    EXPECT_EQ(d.link->written,
              (std::vector<std::string>{
                  R"({"jsonrpc":"2.0","id":1,"method":"slow","params":{}})",
                  R"({"jsonrpc":"2.0","id":3,"method":"slow","params":{}})",
                  R"({"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1,"reason":"timed out"}})",
              }));
    EXPECT_EQ(d.peer->stats().queued_bytes, 0u);
}

TEST(JsonRpcPeer, ProgressStretchesALimitUpToItsTotal)
{
    desk d;
    d.peer->start();
    rpc_call c = slow(1s);
    c.id = d.peer->new_id();
    c.max_total = 2500ms;
    desk::asked call(d, c);
    d.settle();
    for (int i = 0; i < 3; ++i) {
        d.clock->advance(800ms);
        d.settle();
        EXPECT_EQ(call.outcome(), "pending") << i;
        EXPECT_TRUE(d.peer->extend(c.id));
    }
    d.clock->advance(100ms);
    d.settle();
    EXPECT_EQ(call.outcome(), "timed out, written");
    EXPECT_FALSE(d.peer->extend(c.id));
}

TEST(JsonRpcPeer, AnIdIsUsedOnceAndALimitMayBeAsLongAsTime)
{
    desk d;
    d.peer->start();
    rpc_call c = slow(duration::max());
    c.id = 7;
    desk::asked invented(d, c);
    c.id = d.peer->new_id();
    desk::asked first(d, c), second(d, c);
    d.settle();
    EXPECT_EQ(invented.outcome(), "[rpc] the id of a call comes from new_id and is used once");
    EXPECT_EQ(second.outcome(), invented.outcome());
    d.clock->advance(std::chrono::hours(24 * 365));
    d.settle();
    EXPECT_TRUE(d.peer->extend(c.id));
    EXPECT_EQ(first.outcome(), "pending");
    d.link->say(rpc_result_text(c.id, true));
    d.settle();
    EXPECT_EQ(first.outcome(), "true");
    EXPECT_EQ(d.link->written.size(), 1u);
}

TEST(JsonRpcPeer, TheEndIsEverybodysEndAtOnce)
{
    desk d;
    std::string heard;
    d.peer->on_end([&](const std::string& why) { heard += why; });
    d.peer->start();
    desk::asked one(d, slow()), two(d, slow());
    d.settle();
    d.link->hang_up("exited (code 7): out of cheese");
    d.settle();
    EXPECT_EQ(one.outcome(), "disconnected, written: [rpc] the peer exited (code 7): out of cheese");
    EXPECT_EQ(two.outcome(), one.outcome());
    EXPECT_EQ(heard, "[rpc] the peer exited (code 7): out of cheese");
    EXPECT_FALSE(d.peer->open());
    desk::asked after(d, slow());
    d.settle();
    EXPECT_EQ(after.outcome(), "disconnected, not written: " + heard);
    EXPECT_THROW(std::move(*after.reply).take(), error);
    EXPECT_THROW(d.peer->notify("x"), error);
    EXPECT_EQ(d.clock->armed(), 0u);
}

TEST(JsonRpcPeer, AMessageThatFailsAlone)
{
    desk d;
    d.link->refused = "\"bad\"";
    d.peer->start();
    desk::asked bad(d, rpc_call("bad")), good(d, rpc_call("good"));
    d.settle();
    EXPECT_EQ(bad.outcome(), "not sent: this one is refused");
    d.link->say(rpc_result_text(2, true));
    d.settle();
    EXPECT_EQ(good.outcome(), "true");
}

TEST(JsonRpcPeer, QueuesAreBoundedByName)
{
    json_rpc_options o;
    o.max_queued = 1000;
    {
        desk d(o);
        d.link->stall(true);
        d.peer->start();
        desk::asked writing(d, rpc_call("a")), waiting(d, rpc_call(std::string(800, 'm'))), above(d, rpc_call(std::string(200, 'n')));
        d.settle();
        EXPECT_EQ(above.outcome(), "[rpc] more than 1000 bytes are waiting to be written");
        EXPECT_EQ(waiting.outcome(), "pending");
        EXPECT_THROW(d.peer->notify(std::string(300, 'n')), error);
        d.link->stall(false);
        d.settle();
        EXPECT_EQ(d.link->written.size(), 2u);
    }
    {
        // Asked without end by one that reads nothing.
        desk d(o);
        std::string heard;
        d.peer->on_end([&](const std::string& why) { heard = why; });
        d.link->stall(true);
        d.peer->start();
        for (int i = 0; i < 100; ++i) d.link->say(R"({"jsonrpc":"2.0","id":1,"method":"ping"})");
        d.settle();
        EXPECT_NE(heard.find("does not read its answers: more than 1000 bytes"), std::string::npos) << heard;
        EXPECT_FALSE(d.peer->open());
    }
}

awaitable<json> wait_long(std::shared_ptr<rt::manual_clock> clock, json params)
{
    co_await sleep_until(clock, clock->now() + 1s);
    co_return params;
}

TEST(JsonRpcPeer, HandlersThatAwaitAreLimitedAndCanBeAborted)
{
    json_rpc_options o;
    o.max_handlers = 2;
    desk d(o);
    d.peer->on_request("wait", [clock = d.clock](json params) { return wait_long(clock, std::move(params)); });
    d.peer->start();
    for (const char* id : {"1", "\"1\"", "1", "3"}) d.link->say(std::string(R"({"jsonrpc":"2.0","id":)") + id + R"(,"method":"wait","params":{"a":1}})");
    d.settle();
    EXPECT_EQ(d.peer->stats().handlers, 2u);
    EXPECT_EQ(d.peer->stats().duplicate_requests, 1u);
    EXPECT_EQ(d.link->written, std::vector<std::string>{R"({"jsonrpc":"2.0","id":3,"error":{"code":-32000,"message":"too many requests at once"}})"});
    EXPECT_FALSE(d.peer->abort_inbound(2));
    EXPECT_TRUE(d.peer->abort_inbound(1));
    d.settle();
    EXPECT_EQ(d.peer->stats().handlers, 1u);
    d.clock->advance(1s);
    d.settle();
    ASSERT_EQ(d.link->written.size(), 2u) << "an aborted one is not answered";
    EXPECT_EQ(d.link->written[1], R"({"jsonrpc":"2.0","id":"1","result":{"a":1}})");
    EXPECT_EQ(d.peer->stats().handlers, 0u);
}

TEST(JsonRpcPeer, ClosingAndDroppingLeaveNothing)
{
    for (const bool drop : {false, true}) {
        desk d;
        d.peer->on_request("wait", [clock = d.clock](json params) { return wait_long(clock, std::move(params)); });
        d.peer->start();
        d.link->say(R"({"jsonrpc":"2.0","id":1,"method":"wait"})");
        desk::asked call(d, slow());
        d.settle();
        if (drop) {
            d.peer.reset();
            d.settle();
        } else {
            d.close();
            d.close();
        }
        EXPECT_EQ(call.outcome(), std::string("disconnected, written: [rpc] the connection was ") + (drop ? "dropped here" : "closed here"));
        d.io.restart();
        d.io.poll();
        EXPECT_TRUE(d.io.stopped()) << "work is left";
        EXPECT_EQ(d.clock->armed(), 0u);
    }
}

}  // namespace json_rpc_test
}  // namespace

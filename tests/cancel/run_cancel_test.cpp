// Whole runs, cancelled after every handler: parallel tools, one that waits for a timer and a serial one, under a gate, a budget and an audit log.
#include "cancel_world.hpp"

#include <boost/asio/bind_cancellation_slot.hpp>

#include <gtest/gtest.h>

#include <algorithm>

namespace {
namespace run_cancel_test {

using namespace cancel_tests;

/// Counts who is inside a tool, and notes when a serial one was not alone.
struct tool_room {
    int inside = 0, entered = 0;
    bool crowded = false;
};

class room_place {
public:
    room_place(tool_room& r, bool alone) : r_(r)
    {
        ++r_.entered;
        if (++r_.inside > 1 && alone) r_.crowded = true;
    }
    room_place(const room_place&) = delete;
    room_place& operator=(const room_place&) = delete;
    ~room_place() { --r_.inside; }

private:
    tool_room& r_;
};

awaitable<json> hop_tool(tool_room* room, bool alone)
{
    const room_place here(*room, alone);
    co_await hops(2);
    co_return json("hopped");
}

awaitable<json> sleep_tool(tool_room* room, clock_ptr clock, duration time)
{
    const room_place here(*room, false);
    co_await sleep_until(clock, clock->now() + time);
    co_return json("slept");
}

enum class how { whole, read, send, handler, close };

class run_case final : public rt::cancel_case {
public:
    run_case(asio::io_context& io, how h, wire w)
        : world_(io, w, answers(h)),
          how_(h),
          audit_(audit_log::in_memory(world_.clock)),
          agent_(io.get_executor(), world_.model, options()),
          chat_(agent_.chat({message::user("before"), message::assistant("yes")}))
    {}
    awaitable<void> operation() override
    {
        if (how_ == how::whole) {
            run_result r = co_await agent_.async_run(request());
            result_ = std::move(r);
        } else if (how_ == how::send) {
            run_result r = co_await chat_.async_send(request());
            result_ = std::move(r);
        } else {
            run r = agent_.start(request());
            event_batch batch;
            for (;;) {
                const bool more = co_await r.read(batch);
                for (const event& e : batch) streamed_ += e.text();
                if (!more || (how_ == how::close && streamed_ == "working")) break;
            }
            if (how_ == how::close) co_await r.close();
            result_ = r.result();
        }
    }
    void start(asio::io_context& io, asio::cancellation_slot stop, std::function<void(std::exception_ptr)> done) override
    {
        if (how_ != how::handler) return cancel_case::start(io, stop, std::move(done));
        agent_.async_run(request(), asio::bind_cancellation_slot(stop, [this, done = std::move(done)](error_code ec, run_result r) {
                             if (!ec) result_ = std::move(r);
                             done(ec ? std::make_exception_ptr(boost::system::system_error(ec)) : std::exception_ptr());
                         }));
    }
    void finish() override
    {
        if (agent_.live_runs() != 0) world_.trouble += "a run is still alive; ";
        world_.finish();
    }
    std::shared_ptr<rt::manual_clock> clock() override { return world_.manual; }
    std::string verify(const rt::cancel_outcome& o) override
    {
        std::string out = world_.trouble + complaints_of(o) + complaints_of(ticket_);
        if (room_.inside != 0) out += "a tool is still running; ";
        if (room_.crowded) out += "the serial tool was not alone; ";
        const budget_amount spent = team_.state().spent;
        if (o.failure) {
            if (result_) out += "failed and left a result; ";
            // A reader that was cut has its result, but this one went on to `close`, which a cancelled coroutine cannot await.
            if (how_ == how::close) return out;
            if (spent.tokens != 0) out += "nothing started and tokens were spent; ";
            if (how_ == how::send && chat_.history().size() != 2) out += "nothing started and the history changed; ";
            return out;
        }
        if (!result_) return out + "ended without a result; ";
        const run_result& r = *result_;
        out += rt::transcript_complaints(r.messages());
        if (r.outcome() == run_outcome::cancelled) {
            if (!o.signalled && how_ != how::close) out += "cancelled by nobody; ";
            if (r.error() != "cancelled") out += "error is " + r.error().value_or("null") + "; ";
        } else if (r.outcome() == run_outcome::completed) {
            if (r.text() != "abc" || room_.entered != 4) out += "completed with \"" + r.text() + "\" and " + std::to_string(room_.entered) + " tool calls; ";
            if (spent.tokens != 30) out += "spent " + std::to_string(spent.tokens) + " tokens; ";
        } else {
            out += "outcome " + std::string(to_string(r.outcome())) + "; ";
        }
        if (r.cost() != spent.cost) out += "the result says $" + r.cost().to_string() + ", the budget $" + spent.cost.to_string() + "; ";
        if (how_ == how::send) {
            if (chat_.pending() != 0) out += "the turn is still queued; ";
            if (chat_.history() != r.messages()) out += "the history is not the transcript; ";
        }
        return out + audit_complaints(r);
    }

private:
    static std::vector<std::string> answers(how h)
    {
        const std::vector<std::string> calls = {"hop", "sleep", "hop", "write"};
        if (h == how::read || h == how::close) return {calls_stream(calls), rt::sse_response(rt::openai_events({"a", "b", "c"}))};
        return {calls_answer(calls), rt::http_response(200, rt::openai_answer("abc"))};
    }
    agent_options options()
    {
        class body {
        public:
            explicit body(std::function<awaitable<json>()> f) : f_(std::move(f)) {}
            awaitable<json> operator()(json, tool_context&) const { return f_(); }

        private:
            std::function<awaitable<json>()> f_;
        };
        const json schema = json::object().set("type", "object");
        const clock_ptr clock = world_.clock;
        generate_options g;
        g.stream = how_ == how::read || how_ == how::close;
        return agent_options()
            .generate(g)
            .clock(clock)
            .rates(rates(1000, 2000))
            .gate(gate_policy().allow_tools({"hop", "sleep", "write"}).max_turns(20), audit_)
            .tool(tool::from_schema("hop", "Hops.", schema, body([this] { return hop_tool(&room_, false); })))
            .tool(tool::from_schema("sleep", "Sleeps.", schema,
                                    body([this, clock] { return sleep_tool(&room_, clock, world_.manual ? duration(1s) : duration(1ms)); })))
            .tool(tool::from_schema("write", "Writes.", schema, body([this] { return hop_tool(&room_, true); })).serial());
    }
    run_request request() const { return run_request("hi").budget(ticket_).max_tokens(50).deadline(60s); }
    /// Each finished call of the transcript has its record, and each line is whole.
    std::string audit_complaints(const run_result& r) const
    {
        std::size_t torn = 0, records = 0, answered = 0;
        for (const json& line : audit_.read(&torn)) records += line["phase"].as_string() == "record" && line["action"]["type"].as_string() != "llm" ? 1 : 0;
        for (const message_ptr& m : r.messages())
            if (m->who == role::tool && (m->text() == "hopped" || m->text() == "slept")) ++answered;
        if (torn != 0) return "torn audit lines; ";
        return records == answered ? "" : std::to_string(records) + " records of " + std::to_string(answered) + " finished calls; ";
    }

    provider_world world_;
    how how_;
    audit_log audit_;
    budget team_ = budget("team", budget_caps(usd("10"), 1'000'000));
    budget ticket_ = team_.child("ticket", usd("5"));
    tool_room room_;
    agent agent_;
    conversation chat_;
    std::optional<run_result> result_;
    std::string streamed_;
};

void holds(how h, wire w, bool repeatedly = false)
{
    net_tests::certificates::shared();  // made before descriptors are counted
    rt::cancel_options options;
    options.quiet(3ms);
    if (repeatedly) options.again(impatience);
    const rt::cancel_report r = rt::cancel_everywhere([&](asio::io_context& io) { return std::make_unique<run_case>(io, h, w); }, options);
    EXPECT_TRUE(r) << r;
    EXPECT_GT(r.returned, 20u) << r;
}

/// A turn that waits for the one before it.
class turn_case final : public rt::cancel_case {
public:
    explicit turn_case(asio::io_context& io)
        : io_(io),
          world_(io, wire::plain, {rt::http_response(200, rt::openai_answer("abc"))}),
          agent_(io.get_executor(), world_.model, agent_options().clock(world_.clock)),
          chat_(agent_.chat())
    {}
    awaitable<void> operation() override
    {
        chat_.async_send(asking("first"), [this](error_code ec, const run_result& r) { first_ = !ec && r.completed(); });
        run_result r = co_await chat_.async_send(asking("second"));
        result_ = std::move(r);
    }
    void finish() override
    {
        rt::run_until(io_, [this] { return agent_.live_runs() == 0; });
        world_.finish();
    }
    std::shared_ptr<rt::manual_clock> clock() override { return world_.manual; }
    std::string verify(const rt::cancel_outcome& o) override
    {
        std::string out = world_.trouble + complaints_of(o) + rt::transcript_complaints(chat_.history());
        if (!first_) out += "the turn before did not complete; ";
        if (chat_.pending() != 0) out += "a turn is still queued; ";
        const std::size_t wanted = !result_ ? 2 : result_->completed() ? 4 : 3;
        if (chat_.history().size() != wanted) out += std::to_string(chat_.history().size()) + " messages of history; ";
        return out;
    }

private:
    static run_request asking(std::string text)
    {
        generate_options g;
        g.stream = false;
        return run_request(std::move(text)).options(g);
    }
    asio::io_context& io_;
    provider_world world_;
    agent agent_;
    conversation chat_;
    bool first_ = false;
    std::optional<run_result> result_;
};

TEST(CancelRun, ATurnBehindAnother)
{
    const rt::cancel_report r = rt::cancel_everywhere([](asio::io_context& io) { return std::make_unique<turn_case>(io); });
    EXPECT_TRUE(r) << r;
    EXPECT_GT(r.aborted, 5u) << r;
    EXPECT_GT(r.returned, 5u) << r;
}

TEST(CancelRun, AWholeRunOverTcp)
{
    holds(how::whole, wire::plain);
}
TEST(CancelRun, AWholeRunOverTls)
{
    holds(how::whole, wire::tls);
}
TEST(CancelRun, ByAnImpatientHost)
{
    holds(how::whole, wire::plain, true);
}
TEST(CancelRun, ReadBatchByBatchOverTcp)
{
    holds(how::read, wire::plain);
}
TEST(CancelRun, ReadBatchByBatchOverTls)
{
    holds(how::read, wire::tls);
}
TEST(CancelRun, ReadBatchByBatchByAnImpatientHost)
{
    holds(how::read, wire::plain, true);
}
TEST(CancelRun, ClosedByItsReader)
{
    const rt::cancel_report r = rt::cancel_everywhere([](asio::io_context& io) { return std::make_unique<run_case>(io, how::close, wire::plain); });
    EXPECT_TRUE(r) << r;
    EXPECT_GT(r.aborted + r.returned, 10u) << r;
}
TEST(CancelRun, ThroughAHandlersSlot)
{
    holds(how::handler, wire::plain);
}
TEST(CancelRun, ATurnOfAConversation)
{
    holds(how::send, wire::plain);
}

}  // namespace run_cancel_test
}  // namespace

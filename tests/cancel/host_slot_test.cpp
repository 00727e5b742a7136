// What hosts do with our operations: bind a slot, erase the handler's type, race them in a group, and go on in the same coroutine afterwards.
#include "cancel_world.hpp"

#include <reagent/base/gather.hpp>
#include <reagent/base/with_deadline.hpp>
#include <reagent/model/scripted_provider.hpp>
#include <reagent/testing/run.hpp>
#include <reagent/testing/signal_snapshot.hpp>

#include <boost/asio/any_completion_handler.hpp>
#include <boost/asio/bind_cancellation_slot.hpp>
#include <boost/asio/bind_executor.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/deferred.hpp>
#include <boost/asio/experimental/parallel_group.hpp>
#include <boost/asio/strand.hpp>

#include <gtest/gtest.h>

namespace {
namespace host_slot_test {

using namespace cancel_tests;

/// Where an operation waits when it is cancelled.
enum class place { model, money, person, tool, turn };
/// What is waited for.
enum class call { run, send, generate };

struct ended {
    bool done = false;
    error_code ec;
    std::optional<run_outcome> outcome;
};

awaitable<void> for_ever(int* waiting)
{
    ++*waiting;
    asio::steady_timer never(co_await asio::this_coro::executor, asio::steady_timer::time_point::max());
    error_code ec;
    co_await never.async_wait(asio::redirect_error(asio::use_awaitable, ec));
    --*waiting;
    if (ec) throw boost::system::system_error(ec);
}

awaitable<human_answer> ask_for_ever(int* waiting, human_event)
{
    co_await for_ever(waiting);
    co_return human_answer();
}

awaitable<json> tool_for_ever(int* waiting)
{
    co_await for_ever(waiting);
    co_return json();
}

/// An agent whose next operation waits at a place of choice.
class desk {
public:
    explicit desk(place p) : at_(p)
    {
        scripted_round round("answer");
        if (p == place::tool) round.call("c", "wait");
        if (p == place::model || p == place::turn) round.delay([this] { return for_ever(&waiting_); });
        model_ = scripted_provider::make({round.times(0)});
        agent_options o;
        o.rates(rates(1000, 1000)).budget(team_);
        if (p == place::person) o.human([this](human_event e) { return ask_for_ever(&waiting_, std::move(e)); });
        o.tool(tool::from_schema("wait", "Waits.", json::object().set("type", "object"), [this](json, tool_context&) { return tool_for_ever(&waiting_); }));
        agent_ = agent(io.get_executor(), model_, std::move(o));
        chat_ = agent_.chat();
        if (p == place::money) holder_ = team_.force(budget_amount(usd("1"), 900));
        if (p == place::person) team_.raise_cap(budget_dimension::tokens, 1);
        if (p == place::turn) chat_.async_send(request(), [](error_code, const run_result&) {});
    }
    /// Runs until the operation waits where it should.
    bool waits()
    {
        rt::run_until_idle(io);
        switch (at_) {
        case place::money: return team_.state().waiting == 1;
        case place::turn: return chat_.pending() == 2;
        default: return waiting_ == 1;
        }
    }
    /// What is wrong once the operation has ended.
    std::string left()
    {
        rt::run_until_idle(io);
        std::string out;
        if (waiting_ != (at_ == place::turn ? 1 : 0)) out += "something still waits; ";
        if (agent_.live_runs() != (at_ == place::turn ? 1u : 0u)) out += "a run is alive; ";
        holder_.release();
        if (at_ == place::turn) return out;
        return out + complaints_of(team_);
    }
    template <class Token>
    auto start(call c, Token&& token)
    {
        return c == call::send ? chat_.async_send(request(), std::forward<Token>(token)) : agent_.async_run(request(), std::forward<Token>(token));
    }
    run_request request() const { return run_request("hi").max_tokens(50); }

    asio::io_context io;
    agent agent_;
    conversation chat_;
    std::shared_ptr<scripted_provider> model_;

private:
    place at_;
    budget team_ = budget("team", budget_caps(std::nullopt, 1000));
    reservation holder_;
    int waiting_ = 0;
};

void expect_cancelled(const ended& e, place p, std::string left)
{
    EXPECT_TRUE(e.done);
    EXPECT_EQ(left, "");
    if (p == place::turn) {
        EXPECT_EQ(e.ec, asio::error::operation_aborted);  // nothing started
    } else {
        EXPECT_FALSE(e.ec) << e.ec.message();
        EXPECT_EQ(e.outcome, run_outcome::cancelled);
    }
}

const std::pair<place, call> waits[] = {{place::model, call::run},  {place::money, call::run},  {place::person, call::run}, {place::tool, call::run},
                                        {place::model, call::send}, {place::money, call::send}, {place::tool, call::send},  {place::turn, call::send}};

auto noting(ended& e)
{
    return [&e](error_code ec, const run_result& r) {
        e.done = true;
        e.ec = ec;
        if (!ec) e.outcome = r.outcome();
    };
}

TEST(HostSlot, ACallbackWithABoundSlot)
{
    for (const auto& [at, what] : waits) {
        SCOPED_TRACE(::testing::Message() << "place " << static_cast<int>(at) << " call " << static_cast<int>(what));
        desk d(at);
        ended e;
        asio::cancellation_signal stop;
        d.start(what, asio::bind_cancellation_slot(stop.slot(), noting(e)));
        ASSERT_TRUE(d.waits());
        ASSERT_FALSE(e.done);
        stop.emit(asio::cancellation_type::terminal);
        expect_cancelled(e, at, d.left());
        stop.emit(asio::cancellation_type::terminal);  // a late one finds nobody
        d.chat_ = conversation();
    }
}

TEST(HostSlot, AnErasedHandlerOnAStrand)
{
    for (const auto& [at, what] : waits) {
        SCOPED_TRACE(::testing::Message() << "place " << static_cast<int>(at) << " call " << static_cast<int>(what));
        desk d(at);
        ended e;
        asio::cancellation_signal stop;
        auto bound = asio::bind_executor(asio::make_strand(d.io), asio::bind_cancellation_slot(stop.slot(), noting(e)));
        asio::any_completion_handler<void(error_code, run_result)> erased(std::move(bound));
        d.start(what, std::move(erased));
        ASSERT_TRUE(d.waits());
        stop.emit(asio::cancellation_type::all);
        expect_cancelled(e, at, d.left());
    }
}

TEST(HostSlot, ARaceInAGroup)
{
    for (const auto& [at, what] : waits) {
        SCOPED_TRACE(::testing::Message() << "place " << static_cast<int>(at) << " call " << static_cast<int>(what));
        desk d(at);
        ended e;
        asio::steady_timer limit(d.io, asio::steady_timer::time_point::max());
        const auto race = [&](auto operation) {
            asio::experimental::make_parallel_group(std::move(operation), limit.async_wait(asio::deferred))
                .async_wait(asio::experimental::wait_for_one(), [&e](std::array<std::size_t, 2> order, error_code ec, const run_result& r, error_code) {
                    noting(e)(ec, r);
                    EXPECT_EQ(order[0], 1u);
                });
        };
        if (what == call::send) race(d.chat_.async_send(d.request(), asio::deferred));
        else race(d.agent_.async_run(d.request(), asio::deferred));
        ASSERT_TRUE(d.waits());
        limit.cancel();  // its end is the first
        expect_cancelled(e, at, d.left());
    }
}

awaitable<void> run_in_coroutine(desk* d, call c, ended* e)
{
    run_result r;
    if (c == call::send) r = co_await d->chat_.async_send(d->request());
    else r = co_await d->agent_.async_run(d->request());
    noting (*e)(error_code(), r);
}

TEST(HostSlot, ACoroutineInAGroup)
{
    for (const auto& [at, what] : waits) {
        SCOPED_TRACE(::testing::Message() << "place " << static_cast<int>(at) << " call " << static_cast<int>(what));
        desk d(at);
        ended e;
        asio::steady_timer limit(d.io, asio::steady_timer::time_point::max());
        asio::experimental::make_parallel_group(asio::co_spawn(d.io, run_in_coroutine(&d, what, &e), asio::deferred), limit.async_wait(asio::deferred))
            .async_wait(asio::experimental::wait_for_one(), [&e](std::array<std::size_t, 2>, std::exception_ptr failure, error_code) {
                e.done = true;
                if (failure) e.ec = code_of(failure);
            });
        ASSERT_TRUE(d.waits());
        limit.cancel();
        expect_cancelled(e, at, d.left());
    }
}

/// The plain waits of the lower packages, raced the same way.
TEST(HostSlot, PlainWaitsInAGroup)
{
    const auto clock = std::make_shared<rt::manual_clock>();
    asio::io_context io;
    rt::byte_server server(io.get_executor(), rt::byte_script().request().stall());
    http_client_options options;
    options.clock = clock;
    options.max_open_per_origin = 1;
    http_client http(io.get_executor(), options);
    const budget money("b", usd("1"));
    const reservation held = money.force(budget_amount(usd("1")));
    const http_request request("GET", url::parse_or_throw(server.origin() + "/", "url"));

    const auto reserves = [&]() -> awaitable<void> { static_cast<void>(co_await money.reserve(budget_amount(usd("1")))); };
    const auto opens = [&]() -> awaitable<void> { static_cast<void>(co_await http.open(request)); };
    const auto sleeps = [&]() -> awaitable<void> { co_await sleep_until(clock, clock->now() + 1h); };
    const auto group = [&]() -> awaitable<void> {
        std::vector<awaitable<void>> all;
        all.push_back(reserves());
        all.push_back(sleeps());
        static_cast<void>(co_await gather<void>(std::move(all)));
    };
    const auto deadline = [&]() -> awaitable<void> {
        std::string what = "it";
        co_await with_deadline(clock, clock->now() + 2h, reserves(), std::move(what));
    };
    const auto opens_behind = [&]() -> awaitable<void> {  // one on the wire, one in the pool's line
        std::vector<awaitable<void>> all;
        all.push_back(opens());
        all.push_back(opens());
        static_cast<void>(co_await gather<void>(std::move(all)));
    };
    const std::function<awaitable<void>()> all[] = {reserves, opens, sleeps, group, deadline, opens_behind};
    for (const auto& operation : all) {
        SCOPED_TRACE(&operation - all);
        asio::steady_timer limit(io, asio::steady_timer::time_point::max());
        bool done = false;
        error_code ec;
        asio::experimental::make_parallel_group(asio::co_spawn(io, operation(), asio::deferred), limit.async_wait(asio::deferred))
            .async_wait(asio::experimental::wait_for_one(), [&](std::array<std::size_t, 2>, std::exception_ptr failure, error_code) {
                done = true;
                if (failure) ec = code_of(failure);
            });
        rt::run_until_idle(io);
        ASSERT_FALSE(done);
        limit.cancel();
        rt::run_until_idle(io);
        EXPECT_TRUE(done);
        EXPECT_EQ(ec, asio::error::operation_aborted);
        EXPECT_EQ(money.state().waiting, 0u);
        EXPECT_EQ(http.stats().open, 0u);
        EXPECT_EQ(http.stats().waiting, 0u);
        EXPECT_EQ(clock->armed(), 0u);
    }
    server.stop();
}

// ---- after a call of ours has returned, the host's coroutine is its own again

class host_work {
public:
    explicit host_work(asio::io_context& io)
        : world(io, wire::plain, {rt::http_response(200, rt::openai_answer("abc"))}), desk(io.get_executor(), world.model, agent_options().clock(world.clock))
    {}
    generate_request asking(bool stream) const
    {
        generate_request r(transcript{message::user("hi")});
        r.options.stream = stream;
        return r;
    }
    run_request running() const
    {
        generate_options g;
        g.stream = false;
        return run_request("hi").options(g);
    }
    provider_world world;
    agent desk;
    budget money = budget("b", usd("1"));
};

awaitable<void> does_generate(host_work* w)
{
    const generate_result r = co_await w->world.model->generate(w->asking(false));
    EXPECT_EQ(r.text, "abc");
}
awaitable<void> does_async_generate(host_work* w)
{
    const any_io_executor ex = co_await asio::this_coro::executor;
    const generate_result r = co_await w->world.model->async_generate(ex, w->asking(false));
    EXPECT_EQ(r.text, "abc");
}
awaitable<void> does_run(host_work* w)
{
    const run_result r = co_await w->desk.async_run(w->running());
    EXPECT_EQ(r.text(), "abc");
}
awaitable<void> does_read(host_work* w)
{
    run r = w->desk.start(w->running());
    event_batch batch;
    for (;;) {
        const bool more = co_await r.read(batch);
        if (!more) break;
    }
    EXPECT_EQ(r.result().text(), "abc");
}
awaitable<void> does_close(host_work* w)
{
    run r = w->desk.start(w->running());
    event_batch batch;
    co_await r.read(batch);
    co_await r.close();
    EXPECT_TRUE(r.finished());
}
awaitable<void> does_chat(host_work* w)
{
    conversation c = w->desk.chat();
    const run_result r = co_await c.async_send(w->running());
    EXPECT_EQ(r.text(), "abc");
}
awaitable<void> does_validate(host_work* w)
{
    const validation_report r = co_await w->desk.validate();
    static_cast<void>(r);
}
awaitable<void> does_gather(host_work*)
{
    std::vector<awaitable<void>> all;
    all.push_back(hops(1));
    all.push_back(hops(3));
    const std::vector<branch_outcome<void>> outcomes = co_await gather<void>(std::move(all));
    EXPECT_EQ(outcomes.size(), 2u);
}
awaitable<void> does_deadline(host_work* w)
{
    std::string what = "hops";
    co_await with_deadline(w->world.clock, w->world.clock->now() + 1h, hops(2), std::move(what));
}
awaitable<void> lets_go_later(reservation r)
{
    co_await hops(3);
    r.release();
}
awaitable<void> does_reserve(host_work* w)
{
    reservation held = w->money.force(budget_amount(usd("1")));
    const any_io_executor ex = co_await asio::this_coro::executor;
    asio::co_spawn(ex, lets_go_later(std::move(held)), [](std::exception_ptr) {});
    admission a = co_await w->money.reserve(budget_amount(usd("1")));
    EXPECT_TRUE(a.granted());
}
awaitable<void> answers_no(human_answer* out)
{
    co_await hops(1);
    *out = human_answer(human_verdict::deny);
}
awaitable<human_answer> says_no(human_event)
{
    human_answer a;
    co_await answers_no(&a);
    co_return a;
}
awaitable<void> does_gate(host_work* w)
{
    gate_options o;
    o.clock = w->world.clock;
    o.channel = says_no;
    o.channel_timeout = 1h;
    run_gate gate(gate_policy(), w->money.child("run", usd("0")), std::move(o));
    bool halted = false;
    try {
        action subject = action::llm("m");
        const reservation r = co_await gate.admit(std::move(subject), budget_amount(usd("1")));
    } catch (const halt_error&) {
        halted = true;
    }
    EXPECT_TRUE(halted);
}
awaitable<void> does_open(host_work* w)
{
    http_request r("POST", url::parse_or_throw(w->world.server.base_url(), "url"));
    http_exchange x = co_await w->world.http.open(std::move(r));
    for (;;) {
        const std::span<const char> bytes = co_await x.read_some();
        if (bytes.empty()) break;
    }
}

awaitable<void> host(host_work* w, awaitable<void> (*first)(host_work*), bool* returned)
{
    co_await first(w);
    const asio::cancellation_state state = co_await asio::this_coro::cancellation_state;
    EXPECT_EQ(state.cancelled(), asio::cancellation_type::none);
    *returned = true;
    asio::steady_timer never(co_await asio::this_coro::executor, asio::steady_timer::time_point::max());
    co_await never.async_wait(asio::use_awaitable);
}

TEST(HostSlot, TheHostIsCancellableAfterEachCallOfOurs)
{
    const std::pair<const char*, awaitable<void> (*)(host_work*)> calls[] = {{"generate", does_generate},
                                                                             {"async_generate", does_async_generate},
                                                                             {"async_run", does_run},
                                                                             {"read", does_read},
                                                                             {"close", does_close},
                                                                             {"async_send", does_chat},
                                                                             {"validate", does_validate},
                                                                             {"gather", does_gather},
                                                                             {"with_deadline", does_deadline},
                                                                             {"reserve", does_reserve},
                                                                             {"admit", does_gate},
                                                                             {"open", does_open}};
    for (const auto& [name, first] : calls) {
        SCOPED_TRACE(name);
        asio::io_context io;
        host_work w(io);
        asio::cancellation_signal stop;
        bool returned = false, done = false, aborted = false;
        asio::co_spawn(io, host(&w, first, &returned), asio::bind_cancellation_slot(stop.slot(), [&](std::exception_ptr e) {
                           done = true;
                           aborted = e && is_cancellation(e);
                       }));
        ASSERT_TRUE(rt::run_until(io, [&] { return returned; }));
        rt::run_until_idle(io);
        ASSERT_FALSE(done);
        stop.emit(asio::cancellation_type::terminal);
        w.world.finish();
        io.restart();
        io.run();
        EXPECT_TRUE(aborted);
        EXPECT_EQ(w.world.trouble, "");
    }
}

}  // namespace host_slot_test
}  // namespace

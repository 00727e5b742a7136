// A context that is destroyed takes along whatever of ours waits on it, wherever the waiting handler rests; handles that outlive it touch nothing.
#include "cancel_world.hpp"

#include <reagent/governance/gate.hpp>
#include <reagent/model/scripted_provider.hpp>
#include <reagent/testing/live_counter.hpp>
#include <reagent/testing/run.hpp>

#include <boost/asio/co_spawn.hpp>

#include <gtest/gtest.h>

namespace {
namespace context_end_test {

using namespace cancel_tests;

awaitable<void> reserves(budget b, rt::live_counter::token)
{
    admission a = co_await b.reserve(budget_amount(usd("6")));
    a.held.settle(budget_amount(usd("1")));
}

TEST(ContextEnd, WaitersInALineOfABudget)
{
    const rt::live_counter frames;
    const budget team("team", usd("10"));
    reservation holder = team.force(budget_amount(usd("8")));
    asio::io_context other;
    bool served = false;
    {
        asio::io_context io;
        for (const budget& b : {team, team.child("ticket"), team}) asio::co_spawn(io, reserves(b, frames.make()), [](std::exception_ptr) {});
        rt::run_until_idle(io);
        asio::co_spawn(other, reserves(team, frames.make()), [&](std::exception_ptr e) { served = !e; });
        rt::run_until_idle(other);
        EXPECT_EQ(team.state().waiting, 4u);
    }
    EXPECT_EQ(team.state().waiting, 1u) << "the one on the other context";
    EXPECT_EQ(frames.live(), 1);
    holder.release();
    rt::run_until_idle(other);
    EXPECT_TRUE(served);
    EXPECT_EQ(frames.live(), 0);
    EXPECT_EQ(complaints_of(team), "");
}

TEST(ContextEnd, TheHeadOfTheLineMakesRoomForThoseBehind)
{
    const rt::live_counter frames;
    const budget team("team", usd("10"));
    reservation holder = team.force(budget_amount(usd("5")));
    asio::io_context other;
    bool served = false;
    {
        asio::io_context io;
        asio::co_spawn(io, reserves(team, frames.make()), [](std::exception_ptr) {});
        rt::run_until_idle(io);
        asio::co_spawn(
            other, [](budget b) -> awaitable<void> { static_cast<void>(co_await b.reserve(budget_amount(usd("5")))); }(team),
            [&](std::exception_ptr e) { served = !e; });
        rt::run_until_idle(other);
        EXPECT_FALSE(served) << "nobody overtakes";
    }
    rt::run_until_idle(other);
    EXPECT_TRUE(served);
    EXPECT_EQ(frames.live(), 0);
}

enum class place { model, money, person, tool, turn, reader };

awaitable<void> for_ever()
{
    asio::steady_timer never(co_await asio::this_coro::executor, asio::steady_timer::time_point::max());
    co_await never.async_wait(asio::use_awaitable);
}
awaitable<human_answer> asks_for_ever(human_event)
{
    co_await for_ever();
    co_return human_answer();
}
awaitable<json> tool_for_ever(json, tool_context&)
{
    co_await for_ever();
    co_return json();
}

/// Counts the frames of the run by what its options capture: they live as long as the run does.
awaitable<void> reads(run* r, bool* ended, rt::live_counter::token)
{
    event_batch batch;
    for (;;) {
        const bool more = co_await r->read(batch);
        if (!more) break;
    }
    *ended = true;
}
awaitable<void> reads_once(run* r, rt::live_counter::token)
{
    event_batch batch;
    co_await r->read(batch);
}

TEST(ContextEnd, ARunWhereverItWaits)
{
    for (const place at : {place::model, place::money, place::person, place::tool, place::turn, place::reader})
        for (const bool handles_first : {false, true}) {
            SCOPED_TRACE(::testing::Message() << "place " << static_cast<int>(at) << (handles_first ? ", handles die first" : ", handles die last"));
            const rt::live_counter alive;
            bool ended = false;
            {
                auto io = std::make_unique<asio::io_context>();
                const budget team("team", budget_caps(std::nullopt, at == place::person ? 1 : 1000));
                reservation holder;
                if (at == place::money) holder = team.force(budget_amount(usd(), 900));
                scripted_round round("answer");
                round.deltas(3).times(0);
                if (at == place::tool) round.call("c", "wait");
                if (at == place::model || at == place::turn) round.delay(for_ever);
                agent_options o;
                o.budget(team)
                    .rates(rates(1, 1))
                    .human(asks_for_ever)
                    .tool(tool::from_schema("wait", "Waits.", json::object().set("type", "object"), tool_for_ever));
                run_hooks hooks;
                hooks.on_text = [token = alive.make()](const std::string&) {};
                o.hooks(std::move(hooks));
                auto a = std::make_unique<agent>(io->get_executor(), scripted_provider::make({round}), std::move(o));
                o = agent_options();
                auto chat = std::make_unique<conversation>(a->chat());
                const run_request question = run_request("hi").max_tokens(50);
                if (at == place::turn) chat->async_send(question, [token = alive.make()](error_code, const run_result&) {});
                auto r = std::make_unique<run>(at == place::turn ? chat->start(question) : a->start(question));
                if (at == place::reader) asio::co_spawn(*io, reads_once(r.get(), alive.make()), [](std::exception_ptr) {});
                else asio::co_spawn(*io, reads(r.get(), &ended, alive.make()), [](std::exception_ptr) {});
                rt::run_until_idle(*io);
                EXPECT_FALSE(ended);
                if (!handles_first) io.reset();
                r.reset();
                chat.reset();
                a.reset();
                io.reset();
                holder.release();
                EXPECT_EQ(complaints_of(team), "");
            }
            EXPECT_FALSE(ended);
            EXPECT_EQ(alive.live(), 0);
        }
}

}  // namespace context_end_test
}  // namespace

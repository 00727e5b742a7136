// Waiting for money, cancelled after every handler: in a line, in a child's line, and on a person who may raise the cap.
#include "cancel_world.hpp"

#include <reagent/governance/gate.hpp>

#include <boost/asio/co_spawn.hpp>

#include <gtest/gtest.h>

namespace {
namespace budget_cancel_test {

using namespace cancel_tests;

budget_amount dollars(const char* text)
{
    return budget_amount(usd(text));
}

/// Someone else: comes after some steps, takes what it needs, uses half of it, lets go after some more.
awaitable<void> neighbour(budget b, const char* worst, const char* used, int comes, int stays, int* served)
{
    co_await hops(comes);
    admission a = co_await b.reserve(dollars(worst));
    if (a.refused) co_return;
    ++*served;
    co_await hops(stays);
    a.held.settle(dollars(used));
}

enum class tree { one, siblings, deep };

/// The one that is cancelled stands in line between a holder and two that come later, one of which would fit beside the holder.
class line_case final : public rt::cancel_case {
public:
    line_case(asio::io_context& io, tree t) : io_(io)
    {
        if (t == tree::one) return;
        mine_ = team_.child("mine", usd("8"));
        if (t == tree::deep) mine_ = mine_.child("deeper", usd("7")).child("deepest");
        others_ = team_.child("others", usd("10"));
    }
    awaitable<void> operation() override
    {
        spawn(holds(this));
        spawn(neighbour(others_, "2", "0.5", 1, 3, &small_));
        spawn(neighbour(others_, "5", "1", 2, 3, &served_));
        const leaving at_exit{this};
        admission a = co_await mine_.reserve(dollars("6"));
        granted_ = true;
        if (a.refused) throw halt_error("budget.maxCostUsd");
        // What is held when the signal comes goes back with the frame.
        co_await hops(3);
        a.held.settle(dollars("1"));
        settled_ = true;
    }
    std::string verify(const rt::cancel_outcome& o) override
    {
        std::string out = complaints_of(o) + complaints_of(mine_) + complaints_of(others_);
        if (small_ + served_ != 3) out += std::to_string(small_ + served_) + " of 3 neighbours were served; ";
        if (late_) out += "who fits was not served when the one before left the line; ";
        const usd spent = team_.state().spent.cost;
        if (spent != usd(settled_ ? "4.5" : "3.5")) out += "spent $" + spent.to_string() + "; ";
        if (!o.failure && !settled_) out += "neither failed nor settled; ";
        return out;
    }

private:
    struct leaving {
        line_case* of;
        ~leaving() { of->left_ = true; }
    };
    static awaitable<void> holds(line_case* self)
    {
        admission a = co_await self->others_.reserve(dollars("8"));
        ++self->served_;
        co_await hops(4);
        if (self->left_ && !self->granted_) {
            co_await hops(6);
            self->late_ = self->small_ == 0;
        }
        a.held.settle(dollars("2"));
    }
    void spawn(awaitable<void> work)
    {
        asio::co_spawn(io_, std::move(work), [](std::exception_ptr e) {
            if (e) std::rethrow_exception(e);
        });
    }
    asio::io_context& io_;
    budget team_ = budget("team", usd("10"));
    budget mine_ = team_, others_ = team_;
    int served_ = 0, small_ = 0;
    bool left_ = false, granted_ = false, late_ = false, settled_ = false;
};

void line_holds(tree t, rt::cancel_options options = {})
{
    const rt::cancel_report r = rt::cancel_everywhere([t](asio::io_context& io) { return std::make_unique<line_case>(io, t); }, options);
    EXPECT_TRUE(r) << r;
    EXPECT_GT(r.aborted, 5u) << r;
}

TEST(CancelBudget, AWaiterBetweenAHolderAndALaterOne)
{
    line_holds(tree::one);
}
TEST(CancelBudget, AWaiterOfAnImpatientHost)
{
    line_holds(tree::one, rt::cancel_options().again(impatience));
}
TEST(CancelBudget, AChildThatWaitsForItsParent)
{
    line_holds(tree::siblings);
}
TEST(CancelBudget, AGrandchildThatWaitsForTheRoot)
{
    line_holds(tree::deep);
}

/// The budget's waiter itself honours `total` as well: nothing has happened yet.
class total_case final : public rt::cancel_case {
public:
    explicit total_case(asio::io_context& io) : io_(io) {}
    awaitable<void> operation() override
    {
        co_await asio::this_coro::reset_cancellation_state(asio::enable_total_cancellation());
        asio::co_spawn(io_, neighbour(money_, "8", "2", 0, 4, &served_), [](std::exception_ptr) {});
        admission a = co_await money_.reserve(dollars("6"));
        a.held.settle(dollars("1"));
    }
    std::string verify(const rt::cancel_outcome& o) override { return complaints_of(o) + complaints_of(money_); }

private:
    asio::io_context& io_;
    budget money_ = budget("b", usd("10"));
    int served_ = 0;
};

TEST(CancelBudget, AWaiterEndsByATotalSignalToo)
{
    const rt::cancel_report r =
        rt::cancel_everywhere([](asio::io_context& io) { return std::make_unique<total_case>(io); }, rt::cancel_options().type(asio::cancellation_type::total));
    EXPECT_TRUE(r) << r;
    EXPECT_GT(r.aborted, 3u) << r;
}

enum class person { tops_up, allows, denies, silent };

/// A model attempt that passes the cap: a person is asked, and may take a while.
class person_case final : public rt::cancel_case {
public:
    person_case(asio::io_context&, person p) : who_(p), gate_(gate_policy(), run_, options()) {}
    awaitable<void> operation() override
    {
        action subject = action::llm("m");
        reservation held = co_await gate_.admit(std::move(subject), dollars("6"));
        co_await hops(2);
        held.settle(dollars("1"));
        settled_ = true;
    }
    std::shared_ptr<rt::manual_clock> clock() override { return clock_; }
    std::string verify(const rt::cancel_outcome& o) override
    {
        std::string out = complaints_of(run_);
        const bool refused = who_ == person::denies || who_ == person::silent;
        if (!refused || (o.failure && is_cancellation(o.failure))) out += complaints_of(o);
        if (!o.failure && (refused || !settled_)) out += "ended as if paid for; ";
        if (run_.state().spent.cost != (settled_ ? usd("1") : usd())) out += "spent $" + run_.state().spent.cost.to_string() + "; ";
        if (asking_ != 0) out += "the person is still being asked; ";
        if (clock_->armed() != 0) out += "a timer is left; ";
        return out;
    }

private:
    class asked {
    public:
        explicit asked(int& n) : n_(n) { ++n_; }
        asked(const asked&) = delete;
        asked& operator=(const asked&) = delete;
        ~asked() { --n_; }

    private:
        int& n_;
    };
    static awaitable<human_answer> ask(person_case* self, human_event)
    {
        const asked here(self->asking_);
        co_await hops(2);
        if (self->who_ == person::silent) co_await sleep_until(self->clock_, steady_time::max());
        co_await sleep_until(self->clock_, self->clock_->now() + 1min);
        human_answer a(self->who_ == person::tops_up ? human_verdict::topup : self->who_ == person::allows ? human_verdict::allow : human_verdict::deny);
        if (self->who_ == person::tops_up) a.new_cap = 20;
        co_return a;
    }
    gate_options options()
    {
        gate_options o;
        o.clock = clock_;
        o.audit = audit_log::in_memory(clock_);
        o.channel = [this](human_event e) { return ask(this, std::move(e)); };
        o.channel_timeout = 1h;
        return o;
    }
    person who_;
    std::shared_ptr<rt::manual_clock> clock_ = std::make_shared<rt::manual_clock>();
    budget run_ = budget("team", usd("100")).child("run", usd("5"));
    run_gate gate_;
    int asking_ = 0;
    bool settled_ = false;
};

TEST(CancelBudget, APersonWhoIsAskedForMore)
{
    for (const person p : {person::tops_up, person::allows, person::denies, person::silent}) {
        SCOPED_TRACE(static_cast<int>(p));
        rt::cancel_options options;
        options.quiet(0ms);
        if (p == person::denies || p == person::silent) options.may_fail();
        const rt::cancel_report r = rt::cancel_everywhere([p](asio::io_context& io) { return std::make_unique<person_case>(io, p); }, options);
        EXPECT_TRUE(r) << r;
        EXPECT_GT(r.aborted, 3u) << r;
    }
}

/// Two runs on a budget for one attempt at a time, over real sockets; the second is cancelled.
class shared_case final : public rt::cancel_case {
public:
    explicit shared_case(asio::io_context& io)
        : world_(io, wire::plain, {rt::http_response(200, rt::openai_answer("abc"))}),
          agent_(io.get_executor(), world_.model, agent_options().clock(world_.clock).generate(one_piece())),
          io_(io)
    {}
    awaitable<void> operation() override
    {
        agent_.async_run(request(), [this](error_code ec, run_result r) { first_ = !ec && r.completed(); });
        run_result r = co_await agent_.async_run(request());
        result_ = std::move(r);
    }
    void finish() override
    {
        // The neighbour goes on by itself; only then is the world at rest.
        rt::run_until(io_, [this] { return agent_.live_runs() == 0; });
        world_.finish();
    }
    std::shared_ptr<rt::manual_clock> clock() override { return world_.manual; }
    std::string verify(const rt::cancel_outcome& o) override
    {
        std::string out = world_.trouble + complaints_of(o) + complaints_of(team_);
        if (!first_) out += "the other run did not complete; ";
        if (result_) out += rt::transcript_complaints(result_->messages());
        if (result_ && result_->outcome() != run_outcome::completed && result_->outcome() != run_outcome::cancelled)
            out += std::string(to_string(result_->outcome()));
        return out;
    }

private:
    static generate_options one_piece()
    {
        generate_options g;
        g.stream = false;
        return g;
    }
    run_request request() const { return run_request("hi").budget(team_.child("run")).max_tokens(50); }
    provider_world world_;
    budget team_ = budget("team", budget_caps(std::nullopt, 200));  // the body is about 80 bytes, the answer at most 50 tokens
    agent agent_;
    asio::io_context& io_;
    bool first_ = false;
    std::optional<run_result> result_;
};

TEST(CancelBudget, ARunThatWaitsForAnotherRunsMoney)
{
    const rt::cancel_report r = rt::cancel_everywhere([](asio::io_context& io) { return std::make_unique<shared_case>(io); });
    EXPECT_TRUE(r) << r;
    EXPECT_GT(r.returned, 10u) << r;
}

}  // namespace budget_cancel_test
}  // namespace

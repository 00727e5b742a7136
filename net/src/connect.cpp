#include "connect.hpp"

#include "dial_race.hpp"

#include <boost/asio/this_coro.hpp>

namespace reagent::inline v0::net_detail {
namespace {

constexpr duration backlog_pause = std::chrono::milliseconds(10);

/// What handlers share with the coroutine that waits for them; they may come when it is gone.
class race_state final : public deadline_entry {
public:
    explicit race_state(any_io_executor ex) : bell(std::move(ex)) {}
    struct attempt {
        attempt(const ip_address* where, std::unique_ptr<socket_link> l) : to(where), link(std::move(l)) {}
        const ip_address* to;
        std::unique_ptr<socket_link> link;  // null when it has failed
        bool answered = false;
    };
    parking bell;
    std::vector<attempt> attempts;

protected:
    steady_time on_deadline(steady_time) override
    {
        bell.wake();
        return steady_time::max();
    }
};

/// Closes what lost, however the coroutine ends.
class race_end {
public:
    race_end(race_state& s, deadline_queue& q) : state_(s), times_(q) {}
    race_end(const race_end&) = delete;
    race_end& operator=(const race_end&) = delete;
    ~race_end()
    {
        times_.unlink(state_);
        state_.attempts.clear();
    }

private:
    race_state& state_;
    deadline_queue& times_;
};

void note(connect_outcome& out, const std::string& whom, const error_code& why)
{
    if (out.trouble.empty()) out.cause = why;
    else out.trouble += "; ";
    out.trouble += whom + ": " + why.message();
}

void fail(race_state::attempt& a, dial_race& race, connect_outcome& out, const error_code& why)
{
    a.link.reset();
    a.answered = false;
    race.failed();
    note(out, a.to->to_string(), why);
}

// Starts those whose turn it is; true when one of them is connected at once.
bool start_due(const std::shared_ptr<race_state>& state, const socket_home& home, deadline_queue& times, dial_race& race, std::uint16_t port,
               connect_outcome& out)
{
    while (const ip_address* to = race.next(times.now())) {
        const std::size_t index = state->attempts.size();
        race_state::attempt& a = state->attempts.emplace_back(to, std::make_unique<socket_link>(home.executor, home.hub));
        const error_code ec = a.link->begin_connect(*to, port);
        if (!ec) {
            out.link = std::move(a.link);
            return true;
        }
        if (ec == asio::error::in_progress) {
            a.link->when_ready(direction::write, [state, index](const error_code&) {
                if (index < state->attempts.size()) state->attempts[index].answered = true;
                state->bell.wake();
            });
        } else {
            fail(a, race, out, ec);
        }
    }
    return false;
}

// The first of those that have answered, in the order they started; true when one is connected.
bool take_answers(race_state& state, dial_race& race, connect_outcome& out)
{
    for (race_state::attempt& a : state.attempts) {
        if (!a.answered || !a.link) continue;
        const error_code ec = a.link->connect_result();
        if (!ec) {
            out.link = std::move(a.link);
            return true;
        }
        fail(a, race, out, ec);
    }
    return false;
}

}  // namespace

awaitable<connect_outcome> connect_first(socket_home home, deadline_queue& times, std::vector<ip_address> candidates, std::uint16_t port, dial_stop& stop)
{
    connect_outcome out;
    dial_race race(candidates);
    const auto state = std::make_shared<race_state>(home.executor);
    const race_end at_exit(*state, times);
    state->attempts.reserve(race.order().size());
    for (;;) {
        if (start_due(state, home, times, race, port, out) || race.lost()) break;
        state->bell.again();
        if (race.due() != steady_time::max()) times.link(*state, race.due());
        {
            const dial_wait mark(stop, state->bell);
            co_await state->bell.wait();
        }
        const auto cancel_state = co_await asio::this_coro::cancellation_state;
        stop.check(cancel_state.cancelled());
        if (take_answers(*state, race, out)) break;
    }
    co_return out;
}

awaitable<connect_outcome> connect_unix(socket_home home, deadline_queue& times, std::string path, dial_stop& stop)
{
    connect_outcome out;
    const auto state = std::make_shared<race_state>(home.executor);
    const race_end at_exit(*state, times);
    for (;;) {
        out.link = std::make_unique<socket_link>(home.executor, home.hub);
        const error_code ec = out.link->begin_connect_unix(path);
        if (!ec) break;
        out.link.reset();
        if (ec != asio::error::try_again) {
            note(out, path, ec);
            break;
        }
        state->bell.again();
        times.link(*state, times.now() + backlog_pause);
        {
            const dial_wait mark(stop, state->bell);
            co_await state->bell.wait();
        }
        const auto cancel_state = co_await asio::this_coro::cancellation_state;
        stop.check(cancel_state.cancelled());
    }
    co_return out;
}

}  // namespace reagent::inline v0::net_detail

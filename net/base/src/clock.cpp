#include <reagent/base/clock.hpp>

#include <boost/asio/redirect_error.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/this_coro.hpp>

namespace reagent::inline v0 {
namespace {

class system_timer final : public clock_timer {
public:
    system_timer(any_io_executor ex, std::function<void()> fire) : state_(std::make_shared<state>(std::move(ex), std::move(fire))) {}
    ~system_timer() override
    {
        disarm();
        // A timer may be destroyed from inside its own function, which then must outlive this line.
        if (!state_->running) state_->fire = nullptr;
    }
    void arm(steady_time when) override
    {
        const std::uint64_t turn = ++state_->turn;
        state_->timer.expires_at(when);
        // The turn decides, not the code: a timer due in the same tick is past cancelling and still reports success.
        state_->timer.async_wait([state = state_, turn](const error_code&) { on_wake(state, turn); });
    }
    void disarm() noexcept override
    {
        ++state_->turn;
        try {
            state_->timer.cancel();
        } catch (...) {
            // cancel of a steady timer does not fail; the turn has already silenced it
        }
    }

private:
    struct state {
        state(any_io_executor ex, std::function<void()> f) : timer(std::move(ex)), fire(std::move(f)) {}
        asio::steady_timer timer;
        std::function<void()> fire;
        std::uint64_t turn = 0;
        bool running = false;
    };
    static void on_wake(const std::shared_ptr<state>& state, std::uint64_t turn)
    {
        if (state->turn != turn) return;
        ++state->turn;
        state->running = true;
        state->fire();
        state->running = false;
    }
    std::shared_ptr<state> state_;
};

class system_clock final : public clock {
public:
    steady_time now() const noexcept override { return std::chrono::steady_clock::now(); }
    system_time wall() const noexcept override { return std::chrono::system_clock::now(); }
    std::unique_ptr<clock_timer> make_timer(any_io_executor ex, std::function<void()> fire) override
    {
        return std::make_unique<system_timer>(std::move(ex), std::move(fire));
    }
};

}  // namespace

const std::shared_ptr<clock>& clock::system()
{
    static const std::shared_ptr<clock> instance = std::make_shared<system_clock>();
    return instance;
}

// The suspended handler rests in a timer of the context and never in an object of ours: a context destroyed early frees it.
awaitable<void> sleep_until(clock_ptr clock, steady_time when)
{
    const any_io_executor ex = co_await asio::this_coro::executor;
    asio::steady_timer due_cv(ex, steady_time::max());
    bool due = false;
    const std::unique_ptr<clock_timer> timer = clock->make_timer(ex, [&due, &due_cv] {
        due = true;
        due_cv.cancel();
    });
    timer->arm(when);
    error_code ec;
    co_await due_cv.async_wait(asio::redirect_error(asio::use_awaitable, ec));
    if (!due) throw boost::system::system_error(asio::error::operation_aborted);
}

}  // namespace reagent::inline v0

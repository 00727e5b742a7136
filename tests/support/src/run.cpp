#include <reagent/testing/run.hpp>

#include <boost/asio/co_spawn.hpp>

namespace reagent::inline v0::testing {

started<void>::started(asio::io_context& context, awaitable<void> operation)
{
    asio::co_spawn(context, std::move(operation), [s = state_](std::exception_ptr e) {
        s->failure = std::move(e);
        s->done = true;
    });
}

void started<void>::get()
{
    if (!state_->done) throw std::logic_error("the operation has not ended");
    if (state_->failure) std::rethrow_exception(state_->failure);
}

namespace {

constexpr int polls_that_find_nothing = 4;

}  // namespace

std::size_t run_until_idle(asio::io_context& context, std::chrono::microseconds quiet)
{
    std::size_t handlers = 0;
    for (;;) {
        for (int nothing = 0; nothing < polls_that_find_nothing;) {
            if (context.stopped()) context.restart();
            const std::size_t ran = context.poll();
            handlers += ran;
            nothing = ran == 0 ? nothing + 1 : 0;
        }
        if (context.stopped()) {  // out of work
            context.restart();
            return handlers;
        }
        const std::size_t late = context.run_one_for(quiet);
        handlers += late;
        if (late == 0) {
            if (context.stopped()) context.restart();
            return handlers;
        }
    }
}

bool run_until(asio::io_context& context, const std::function<bool()>& done, std::chrono::milliseconds limit)
{
    const auto end = std::chrono::steady_clock::now() + limit;
    while (!done()) {
        if (context.stopped()) context.restart();
        const std::size_t ran = context.run_one_until(end);
        if (ran == 0) {
            if (context.stopped()) context.restart();
            return done();
        }
    }
    return true;
}

bool run_until(asio::io_context& context, manual_clock& clock, const std::function<bool()>& done, std::chrono::milliseconds limit)
{
    // Longer than the plain wait: moving the clock before the kernel has delivered would fire a timer that was never due.
    constexpr auto quiet = std::chrono::milliseconds(10);
    const auto end = std::chrono::steady_clock::now() + limit;
    while (!done()) {
        if (std::chrono::steady_clock::now() >= end) return false;
        if (context.stopped()) context.restart();
        if (context.poll_one() != 0) continue;
        if (context.stopped()) {
            context.restart();
            if (!clock.advance_to_next()) return done();
            continue;
        }
        if (context.run_one_for(quiet) != 0) continue;
        if (context.stopped()) context.restart();
        clock.advance_to_next();
    }
    return true;
}

}  // namespace reagent::inline v0::testing

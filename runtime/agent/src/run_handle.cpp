#include "run_state.hpp"

#include <reagent/agent/agent.hpp>
#include <reagent/agent/run.hpp>
#include <reagent/base/spawn.hpp>

#include <stdexcept>

namespace reagent::inline v0 {

run& run::operator=(run&& other) noexcept
{
    if (this != &other) {
        if (state_) state_->abandon();
        state_ = std::move(other.state_);
    }
    return *this;
}

run::~run()
{
    if (state_) state_->abandon();
}

awaitable<bool> run::read(event_batch& batch)
{
    if (!state_) throw validation_error("[Run] read of an empty run handle");
    return agent_detail::run_state::read(state_, &batch);
}

const run_result& run::result() const
{
    if (!state_ || !state_->finished()) throw validation_error("[Run] the result is there when read has answered false or close has returned");
    return state_->result;
}

bool run::finished() const noexcept
{
    return state_ && state_->finished();
}

void run::stop() noexcept
{
    if (state_) state_->stop();
}

void run::cancel() noexcept
{
    if (state_) state_->cancel();
}

namespace agent_detail {
namespace {

awaitable<void> close_run(std::shared_ptr<run_state> state)
{
    if (!state) co_return;
    state->abandon();
    if (state->started()) co_await run_state::join(state);
    else state->end_unstarted();
}

}  // namespace

awaitable<run_result> run_to_end(std::shared_ptr<const agent_core> core, any_io_executor ex, run_request request)
{
    const std::shared_ptr<run_state> state = run_state::make(std::move(core), std::move(ex), std::move(request));
    co_await run_state::to_end(state);
    co_return std::move(state->result);
}

awaitable<run_result> log_failure(log_sink log, awaitable<run_result> work)
{
    try {
        run_result result = co_await std::move(work);
        co_return result;
    } catch (...) {
        if (!is_cancellation(std::current_exception())) log(log_level::error, message_of(std::current_exception()));
        throw;
    }
}

void start_run(std::shared_ptr<const agent_core> core, any_io_executor ex, run_request request, run_handler handler)
{
    const log_sink log = core->options.log;
    start_for_handler(ex, log_failure(log, run_to_end(std::move(core), ex, std::move(request))), std::move(handler));
}

}  // namespace agent_detail

awaitable<void> run::close()
{
    return agent_detail::close_run(state_);
}

}  // namespace reagent::inline v0

#include "run_driver.hpp"

#include "chat_state.hpp"
#include "run_result_builder.hpp"

#include <reagent/base/with_deadline.hpp>

#include <boost/asio/cancellation_state.hpp>
#include <boost/asio/this_coro.hpp>

#include <chrono>

namespace reagent::inline v0::agent_detail {
namespace {

/// How long the last commit may take once a run was cancelled.
constexpr std::chrono::seconds last_commit_limit{5};

std::vector<tool> first_tools(const agent_core& core, const run_request& request)
{
    const tool_thunk& thunk = request.thunk() ? request.thunk() : core.options.thunk;
    std::vector<tool> tools = request.tools() ? *request.tools() : thunk ? thunk() : core.options.tools;
    const std::vector<std::string> faults = tool_faults(tools);
    if (!faults.empty()) throw validation_error("[Loop] " + faults.front());
    return tools;
}

gate_options gate_settings(const run_state& state)
{
    const agent_options::values& o = state.core->options;
    gate_options g;
    g.audit = o.audit;
    g.channel = o.channel;
    g.channel_timeout = o.channel_timeout;
    g.clock = o.time;
    g.random = o.random;
    g.log = o.log;
    g.run_id = state.run_id;
    return g;
}

const std::string& system_of(const run_state& state)
{
    return state.request.system() ? *state.request.system() : state.core->options.system;
}

transcript opening(const run_state& state)
{
    transcript messages = state.request.messages();
    const std::string& system = system_of(state);
    if (!system.empty()) messages.insert(messages.begin(), message::system(system));
    return messages;
}

}  // namespace

run_driver::run_driver(run_state& state)
    : state_(state),
      core_(*state.core),
      options_(core_.options),
      hooks_(options_.hooks),
      clock_(options_.time),
      began_(clock_->now()),
      machine_(options_.limits, opening(state)),
      gate_(options_.policy, run_budget(core_, state.request, state.run_id), gate_settings(state)),
      admission_(gate_, options_.prices, std::string(core_.model->model()), [this] { return state_.stop_requested(); }),
      call_options_(merged(options_.generate, state.request.options())),
      tools_(first_tools(core_, state.request)),
      thunk_(state.request.thunk()       ? state.request.thunk()
                 : state.request.tools() ? tool_thunk()
                                         : options_.thunk),
      system_prepended_(!system_of(state).empty())
{
    check_budget(core_, gate_.money(), call_options_);
    if (state.request.deadline() > duration::zero()) deadline_ = began_ + state.request.deadline();
    if (deadline_ < call_options_.deadline) call_options_.deadline = deadline_;
}

awaitable<void> run_driver::run()
{
    std::exception_ptr failure;
    try {
        if (deadline_ == steady_time::max()) {
            co_await rounds();
        } else {
            std::string what = "the run";
            co_await with_deadline(clock_, deadline_, rounds(), std::move(what));
        }
    } catch (...) {
        failure = std::current_exception();
    }
    // From here on nothing is cancelled any more: the result is built and handed over whatever happened. The coroutine is our own.
    co_await asio::this_coro::reset_cancellation_state(asio::disable_cancellation());
    if (failure) settle_failure(failure);
    co_await conclude();
}

bool run_driver::check_flags()
{
    if (state_.stop_requested()) machine_.stop();
    if (!state_.cancelled()) return true;
    machine_.end_cancelled();
    return false;
}

awaitable<void> run_driver::rounds()
{
    const json opened = json::object().set("messageCount", machine_.messages().size());
    emit(event_kind::run_start, {}, opened);
    for (;;) {
        const bool going = check_flags() && machine_.begin_round();
        if (!going) break;
        if (machine_.round() > 0) refresh_tools();
        co_await seams();
        const steady_time called = clock_->now();
        generate_result result = co_await call_model();
        if (machine_.ended()) break;
        machine_.note(result);
        co_await meter(result, clock_->now() - called);
        const bool bad = result.malformed.has_value();
        const round_step step = machine_.accept(std::move(result));
        metrics_.dropped_calls += machine_.dropped();
        if (bad) answer_malformed();
        if (step == round_step::run_batch) co_await run_batch();
        if (step == round_step::resume) {
            json resumed = round_extra();
            resumed.set("stopReason", machine_.stop_reason());
            emit(event_kind::resume, {}, std::move(resumed));
        }
        if (machine_.ended()) break;
        co_await commit(false);
    }
    if (machine_.ended()) co_await leave();
}

/// What a decided end still owes: the final text, the seams' flush.
awaitable<void> run_driver::leave()
{
    const ending& end = machine_.end();
    machine_.seal();
    if (end.outcome == run_outcome::incomplete && machine_.stop_reason() == "max_tokens") {
        json data = round_extra();
        data.set("stopReason", machine_.stop_reason()).set("droppedToolCalls", end.done["droppedToolCalls"]);
        data.set("outputTokens", machine_.last_usage().output);
        emit(event_kind::truncated, {}, std::move(data));
        if (!core_.warned_truncation.exchange(true))
            options_.log(log_level::warn, "[Loop] an answer was cut at its output limit (max_tokens); its tool calls were not run");
    }
    if (end.final_text) {
        emit(event_kind::final_text, machine_.text());
        if (hooks_.on_text) {
            try {
                hooks_.on_text(machine_.text());
            } catch (...) {
                absorb(std::current_exception(), "callback:onText", json::object());
            }
        }
    }
    if (!end.flush || !hooks_.flush) co_return;
    const bool stopped = end.outcome == run_outcome::stopped;
    std::exception_ptr failure;
    try {
        transcript messages = machine_.messages();
        co_await hooks_.flush(std::move(messages));
    } catch (...) {
        failure = std::current_exception();
    }
    if (!failure) co_return;
    const asio::cancellation_state now = co_await asio::this_coro::cancellation_state;
    absorb(failure, "trim-flush", stopped ? json::object().set("phase", "stop") : round_extra(), now);
}

void run_driver::settle_failure(const std::exception_ptr& failure)
{
    try {
        std::rethrow_exception(failure);
    } catch (const halt_error& e) {
        machine_.end_halted(e.rule(), e.message());
        return;
    } catch (...) {}
    // A run that had already ended keeps its end: what broke afterwards was its farewell.
    if (machine_.ended()) return;
    const error_code code = code_of(failure);
    if (deadline_ != steady_time::max() && code == errc::deadline && clock_->now() >= deadline_) machine_.end_deadline();
    else if (is_cancellation(failure) && state_.cancelled()) machine_.end_cancelled();
    else machine_.end_failed(message_of(failure), "run");
}

awaitable<void> run_driver::commit(bool last)
{
    if (!hooks_.on_commit) co_return;
    commit_point point;
    point.run_id = state_.run_id;
    point.round = machine_.round();
    point.messages = machine_.messages();
    point.last = last;
    point.stop_reason = machine_.stop_reason();
    std::exception_ptr failure;
    try {
        if (last) {
            std::string what = "the last commit of a run";
            co_await with_deadline(clock_, clock_->now() + last_commit_limit, hooks_.on_commit(std::move(point)), std::move(what));
        } else {
            co_await hooks_.on_commit(std::move(point));
        }
    } catch (...) {
        failure = std::current_exception();
    }
    if (!failure) co_return;
    const asio::cancellation_state now = co_await asio::this_coro::cancellation_state;
    if (last) report("onCommit", failure, round_extra());
    else absorb(failure, "onCommit", round_extra(), now);
}

awaitable<void> run_driver::conclude()
{
    machine_.seal();
    co_await commit(true);
    const ending& end = machine_.end();
    if (!end.source.empty()) report(end.source, end.reason, end.extra);
    metrics_.duration = clock_->now() - began_;
    metrics_.attempts = std::max<std::uint64_t>(metrics_.attempts, admission_.ledger().admitted);
    metrics_.estimated_rounds += admission_.ledger().estimated;
    if (admission_.ledger().extra_cost != usd()) metrics_.cost = metrics_.cost.value_or(usd()) + admission_.ledger().extra_cost;
    json data = json::object().set("text", machine_.text()).set("cost", metrics_.cost.value_or(usd()).to_double());
    for (const auto& [key, value] : end.done.as_object()) data.set(key, value);
    emit(event_kind::done, {}, std::move(data));
    fill_result();
}

void run_driver::fill_result()
{
    run_result_builder::fill(state_.result, machine_, metrics_, partial_text_, state_.run_id);
}

void fill_unstarted(run_state& state)
{
    turn_machine machine(state.core->options.limits, opening(state));
    machine.end_cancelled();
    run_result_builder::fill(state.result, machine, run_metrics(), std::nullopt, state.run_id);
}

awaitable<void> drive(std::shared_ptr<run_state> state)
{
    turn_guard turn(state->chat);
    if (state->chat) {
        co_await turn.acquire();
        state->request.prepend(state->chat->history);
    }
    run_driver driver(*state);
    co_await driver.run();
    if (state->chat) {
        const bool system = !system_of(*state).empty();
        state->chat->keep(state->result.messages(), system);
    }
}

}  // namespace reagent::inline v0::agent_detail

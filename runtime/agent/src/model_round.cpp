#include "run_driver.hpp"

#include <reagent/base/untrusted_text.hpp>
#include <reagent/model/attempt_bound.hpp>
#include <reagent/model/provider_error.hpp>

#include <algorithm>

namespace reagent::inline v0::agent_detail {
namespace {

/// Fills in what a failed call leaves behind.
void note_failure(const std::exception_ptr& failure, attempt_outcome& outcome, std::string& partial)
{
    try {
        std::rethrow_exception(failure);
    } catch (const provider_error& e) {
        outcome.status = e.status;
        outcome.complete = e.status >= 400 && outcome.received_bytes == 0;
        if (e.partial && partial.empty()) partial = e.partial->text;
    } catch (...) {}
}

bool same_schemas(const std::vector<tool_schema>& a, const std::vector<tool>& b)
{
    return std::ranges::equal(
        a, b, [](const tool_schema& s, const tool& t) { return s.name == t.name() && s.description == t.description() && s.parameters == t.parameters(); });
}

tool_list schemas_of(const std::vector<tool>& tools)
{
    if (tools.empty()) return {};
    std::vector<tool_schema> out;
    out.reserve(tools.size());
    for (const tool& t : tools) out.push_back(t.schema());
    return std::make_shared<const std::vector<tool_schema>>(std::move(out));
}

std::size_t tokens_of(const transcript& messages)
{
    std::size_t bytes = 0;
    for (const message_ptr& m : messages) bytes += m->to_json().dump().size();
    return bytes / 4;
}

}  // namespace

void run_driver::refresh_tools()
{
    if (!thunk_) return;
    try {
        std::vector<tool> fresh = thunk_();
        const std::vector<std::string> faults = tool_faults(fresh);
        if (!faults.empty()) throw validation_error("[Loop] " + faults.front());
        tools_ = std::move(fresh);
    } catch (...) {
        absorb(std::current_exception(), "tools", round_extra());
    }
}

awaitable<void> run_driver::trim()
{
    std::exception_ptr failure;
    transcript kept;
    try {
        transcript messages = machine_.messages();
        kept = co_await hooks_.trim(std::move(messages));
    } catch (...) {
        failure = std::current_exception();
    }
    if (failure) {
        const asio::cancellation_state now = co_await asio::this_coro::cancellation_state;
        absorb(failure, "trim", round_extra(), now);
        co_return;
    }
    const transcript& before = machine_.messages();
    if (kept == before) co_return;
    const std::size_t n = before.size();
    if (kept.size() != n) {
        const std::size_t had = tokens_of(before), has = tokens_of(kept), trimmed = had > has ? had - has : 0;
        ++metrics_.compactions;
        metrics_.tokens_trimmed += trimmed;
        json data = round_extra();
        data.set("before", n).set("after", kept.size()).set("tokensTrimmed", trimmed);
        emit(event_kind::trim, {}, std::move(data));
    }
    machine_.replace_messages(std::move(kept));
}

awaitable<void> run_driver::seams()
{
    if (hooks_.trim) co_await trim();
    view_ = machine_.messages();
    if (!hooks_.assemble) co_return;
    std::exception_ptr failure;
    try {
        transcript messages = machine_.messages();
        view_ = co_await hooks_.assemble(std::move(messages));
    } catch (...) {
        failure = std::current_exception();
    }
    if (failure) {
        view_ = machine_.messages();
        const asio::cancellation_state now = co_await asio::this_coro::cancellation_state;
        absorb(failure, "assemble", round_extra(), now);
        co_return;
    }
    json data = round_extra();
    data.set("before", machine_.messages().size()).set("after", view_.size());
    emit(event_kind::assemble, {}, std::move(data));
}

awaitable<permit> run_driver::admit_once(const generate_request& request)
{
    if (core_.model->admits_attempts() || admission_.open()) co_return permit();
    attempt_info info;
    info.model = std::string(core_.model->model());
    info.input_bound = input_bound(request.messages, request.tools, info.model);
    info.output_bound = own_output_bound(request.options, *core_.model);
    permit right = co_await admission_.admit(std::move(info));
    co_return right;
}

awaitable<void> run_driver::read_call(model_call& call, permit& right, attempt_outcome& outcome)
{
    for (;;) {
        event_batch* batch = co_await state_.model_batch();
        outcome.request_left = true;
        right.mark_sent();
        const bool more = co_await call.read(*batch);
        batch->stamp(machine_.round(), clock_->wall());
        bool within = true;
        for (const event& e : *batch) {
            if (e.kind == event_kind::text || e.kind == event_kind::tool_args) {
                outcome.received_bytes += e.payload.size();
            } else if (e.kind == event_kind::usage && e.data != nullptr) {
                outcome.usage = usage::from_json(*e.data);
                within = within && right.observe(*outcome.usage);
            }
        }
        // The answer's last events may pass the cap as well: then it is whole, and the budget stops what comes next.
        if (!within && more) throw halt_error(right.halt_rule(), "the running answer passed the budget");
        if (!more) co_return;
        state_.deliver();
    }
}

awaitable<void> run_driver::before_model()
{
    std::exception_ptr failure;
    try {
        co_await hooks_.before_model(view_);
    } catch (...) {
        failure = std::current_exception();
    }
    if (!failure) co_return;
    const asio::cancellation_state now = co_await asio::this_coro::cancellation_state;
    absorb(failure, "beforeModel", round_extra(), now);
}

/// Whether the run was stopped before this model call began; then it has ended.
bool run_driver::stopped_before_call()
{
    if (!state_.stop_requested()) return false;
    machine_.stop();
    machine_.end_stopped();
    return true;
}

awaitable<generate_result> run_driver::call_model()
{
    if (!offered_ || !same_schemas(*offered_, tools_)) offered_ = schemas_of(tools_);
    generate_request request(view_, offered_);
    request.options = call_options_;
    request.prefix = &prefix_;
    if (!admission_.open()) request.gate = &admission_;
    if (hooks_.before_model) co_await before_model();
    // A slow reader is waited for before anything is reserved, not while others go without it.
    co_await state_.model_batch();
    generate_result result;
    if (stopped_before_call()) co_return result;
    std::exception_ptr failure;
    attempt_outcome outcome;
    std::string partial;
    bool begun = false;
    permit right;
    model_call_ptr call;
    try {
        right = co_await admit_once(request);
        begun = true;
        call = core_.model->start(std::move(request));
        co_await read_call(*call, right, outcome);
        result = call->take_result();
    } catch (...) {
        failure = std::current_exception();
    }
    if (failure) {
        if (call) partial = call->partial_text();
        note_failure(failure, outcome, partial);
    } else {
        outcome.complete = true;
        outcome.status = 200;
        outcome.usage = result.usage;
        outcome.cost = result.cost;
        outcome.model = result.model;
        outcome.received_bytes = std::max<std::uint64_t>(outcome.received_bytes, result.text.size());
    }
    call.reset();
    right.settle(outcome);
    if (!failure) co_return result;
    // Nobody counted at the admission when there is nothing to admit; a cut or refused answer was asked for all the same.
    if (admission_.open() && (outcome.status != 0 || outcome.received_bytes != 0)) ++metrics_.attempts;
    if (!partial.empty()) partial_text_ = std::move(partial);
    if (admission_.refused_by_stop() && stopped_before_call()) co_return result;
    const asio::cancellation_state now = co_await asio::this_coro::cancellation_state;
    bool ours = is_cancellation(failure) && told_to_end(now);
    try {
        std::rethrow_exception(failure);
    } catch (const halt_error&) {
        ours = true;
    } catch (...) {}
    const bool late = deadline_ != steady_time::max() && code_of(failure) == errc::deadline && clock_->now() >= deadline_;
    if (ours || late || !begun) std::rethrow_exception(failure);
    machine_.end_failed(message_of(failure), {});
    report("provider", failure, round_extra());
    co_return result;
}

awaitable<void> run_driver::meter(const generate_result& result, duration took)
{
    const std::string model = result.model.empty() ? std::string(core_.model->model()) : result.model;
    const priced_usage price = price_usage(result.usage, result.cost, model, options_.prices);
    ++metrics_.turns;
    metrics_.attempts += result.attempts;
    if (result.usage) {
        metrics_.input_tokens += result.usage->input;
        metrics_.output_tokens += result.usage->output;
        metrics_.cache_creation_tokens += result.usage->cache_creation.value_or(0);
        metrics_.cache_read_tokens += result.usage->cache_read.value_or(0);
    }
    if (price.cost) metrics_.cost = metrics_.cost.value_or(usd()) + *price.cost;
    else ++metrics_.unpriced_rounds;
    if (price.cost && is_guess(price.source)) {
        ++metrics_.estimated_rounds;
        if (!core_.warned_price.exchange(true)) {
            const std::string line = "[Loop] no price is known for model \"" + untrusted_text(model, 80) + "\"; costs are a guess, give `rates` to set them";
            options_.log(log_level::warn, line);
        }
    }
    if (!gate_.open()) {
        json record = json::object();
        if (price.cost) record.set("costUsd", price.cost->to_double()).set("pricing", "priced");
        else record.set("costUsd", json()).set("pricing", "unpriced");
        record.set("tokens", result.usage ? result.usage->total() : std::uint64_t(0));
        record.set("durationMs", std::chrono::duration_cast<std::chrono::milliseconds>(took).count());
        gate_.record(action::llm(model), record, {});
    }
    if (!hooks_.on_llm_result) co_return;
    llm_report r;
    r.run_id = state_.run_id;
    r.model = model;
    r.provider = std::string(core_.model->name());
    r.round = machine_.round();
    r.usage = result.usage;
    r.cost = price.cost;
    r.priced = price.cost.has_value();
    r.rate_source = std::string(to_string(price.source));
    r.stop_reason = result.stop_reason;
    r.duration = took;
    std::exception_ptr failure;
    try {
        co_await hooks_.on_llm_result(std::move(r));
    } catch (...) {
        failure = std::current_exception();
    }
    if (!failure) co_return;
    const asio::cancellation_state now = co_await asio::this_coro::cancellation_state;
    absorb(failure, "onLlmResult", round_extra(), now);
}

}  // namespace reagent::inline v0::agent_detail

#include "recorded_provider.hpp"

#include "failure_view.hpp"

#include <reagent/base/error.hpp>
#include <reagent/model/attempt_bound.hpp>
#include <reagent/model/provider_error.hpp>

namespace reagent::inline v0::providers_detail {

namespace {

/// The caller's permit, and the record that its attempt has in the log.
class recorded_permit final : public permit::state {
public:
    recorded_permit(permit outer, std::shared_ptr<attempt_log> log, std::size_t place) : outer_(std::move(outer)), log_(std::move(log)), place_(place) {}
    void settle(const attempt_outcome& outcome) noexcept override
    {
        log_->settle(place_, outcome.status);
        outer_.settle(outcome);
    }
    bool observe(const usage& so_far) noexcept override { return outer_.observe(so_far); }
    std::string halt_rule() const override { return outer_.halt_rule(); }

private:
    permit outer_;
    std::shared_ptr<attempt_log> log_;
    std::size_t place_;
};

}  // namespace

recording_gate::recording_gate(attempt_gate* outer, std::shared_ptr<attempt_log> log, std::string provider, std::string model)
    : outer_(outer), log_(std::move(log)), provider_(std::move(provider)), model_(std::move(model))
{}

awaitable<permit> recording_gate::admit(attempt_info attempt)
{
    // Of the logical call, not of this part of it.
    attempt.number = log_->attempts() + 1;
    std::string model = attempt.model.empty() ? model_ : attempt.model;
    permit outer;
    if (outer_ != nullptr && !outer_->open()) {
        permit granted = co_await outer_->admit(std::move(attempt));
        outer = std::move(granted);
    }
    ended(attempt_end::resent);
    last_ = log_->open(provider_, std::move(model));
    co_return permit(std::make_unique<recorded_permit>(std::move(outer), log_, *last_));
}

void recording_gate::ended(attempt_end end, error_code error) noexcept
{
    if (last_) log_->close(*last_, end, error);
    last_.reset();
}

model_call_ptr recorded_provider::start(generate_request request)
{
    return std::make_unique<recorded_call>(inner_, std::move(request));
}

recorded_call::recorded_call(provider_ptr inner, generate_request request)
    : inner_(std::move(inner)),
      request_(std::move(request)),
      gate_(request_.gate, std::move(request_.log), std::string(inner_->name()), std::string(inner_->model())),
      admits_(!inner_->admits_attempts())
{
    request_.log = nullptr;
    request_.gate = admits_ ? nullptr : &gate_;
    call_ = inner_->start(request_);
}

recorded_call::~recorded_call()
{
    call_.reset();
    permit_.settle(outcome_);
    gate_.ended(attempt_end::cancelled);
}

attempt_info recorded_call::describe() const
{
    attempt_info info;
    info.model = inner_->model();
    info.input_bound = input_bound(request_.messages, request_.tools, info.model);
    info.output_bound = request_.options.max_tokens.value_or(0) != 0 ? request_.options.max_tokens : inner_->max_output();
    return info;
}

awaitable<bool> recorded_call::step(event_batch& batch)
{
    if (admits_ && !begun_) {
        begun_ = true;
        permit granted = co_await gate_.admit(describe());
        permit_ = std::move(granted);
        permit_.mark_sent();
        outcome_.request_left = true;
    }
    const bool more = co_await call_->read(batch);
    if (admits_) watch(batch, more);
    co_return more;
}

/// The admission of a provider that has none, as an agent would hold it.
void recorded_call::watch(const event_batch& batch, bool more)
{
    bool within = true;
    for (const event& e : batch) {
        if (e.kind == event_kind::text || e.kind == event_kind::tool_args) {
            outcome_.received_bytes += e.payload.size();
        } else if (e.kind == event_kind::usage && e.data != nullptr) {
            outcome_.usage = usage::from_json(*e.data);
            within = within && permit_.observe(*outcome_.usage);
        }
    }
    if (!within && more) throw halt_error(permit_.halt_rule(), "the running answer passed the budget");
}

awaitable<bool> recorded_call::read(event_batch& batch)
{
    batch.clear();
    bool more = false;
    std::exception_ptr failure;
    try {
        more = co_await step(batch);
    } catch (...) {
        failure = std::current_exception();
    }
    if (failure) {
        fail(failure);
        std::rethrow_exception(failure);
    }
    if (more) co_return true;
    result_ = call_->take_result();
    call_.reset();
    outcome_.complete = true;
    outcome_.status = 200;
    outcome_.usage = result_.usage;
    outcome_.cost = result_.cost;
    outcome_.model = result_.model;
    permit_.settle(outcome_);
    gate_.ended(attempt_end::answered);
    co_return false;
}

void recorded_call::fail(const std::exception_ptr& failure) noexcept
{
    const failure_view seen(failure);
    try {
        if (call_) partial_ = call_->partial_text();
    } catch (...) {
        // without memory there is no partial text
    }
    call_.reset();
    outcome_.status = seen.status;
    outcome_.complete = seen.status >= 400 && outcome_.received_bytes == 0;
    permit_.settle(outcome_);
    gate_.ended(seen.kind == failure_kind::cancelled ? attempt_end::cancelled : attempt_end::failed, seen.code);
}

}  // namespace reagent::inline v0::providers_detail

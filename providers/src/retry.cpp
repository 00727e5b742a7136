#include "retry_schedule.hpp"
#include "wrapping_provider.hpp"

#include <reagent/base/error.hpp>
#include <reagent/base/untrusted_text.hpp>
#include <reagent/base/with_deadline.hpp>

#include <algorithm>

namespace reagent::inline v0 {

namespace providers_detail {

namespace {

class retry_provider final : public wrapping_provider {
public:
    retry_provider(provider_ptr inner, retry_options options)
        : wrapping_provider(std::move(inner), options.clock(), "Retry"), options_(std::move(options)), schedule_(options_)
    {
        if (options_.attempts() == 0) throw validation_error("[Retry] attempts must be at least 1");
    }
    const retry_options& options() const noexcept { return options_; }
    const retry_schedule& schedule() const noexcept { return schedule_; }

protected:
    model_call_ptr begin(generate_request request) override;

private:
    retry_options options_;
    retry_schedule schedule_;
};

class retry_call final : public wrapping_call {
public:
    retry_call(std::shared_ptr<retry_provider> owner, generate_request request)
        : wrapping_call(std::move(request)), owner_(std::move(owner)), most_(this->request().retried ? 1 : owner_->options().attempts())
    {
        this->request().retried = true;
        set_call(owner_->inner()->start(this->request()));
    }
    awaitable<bool> read(event_batch& batch) override;

private:
    awaitable<bool> step(event_batch& batch);
    steady_time attempt_deadline() const;
    /// Plans the next attempt, or throws what there is no attempt after.
    void after(const std::exception_ptr& failure);

    std::shared_ptr<retry_provider> owner_;
    const unsigned most_;
    unsigned made_ = 1;
    std::optional<steady_time> due_;               // of the next attempt, while none is under way
    std::optional<steady_time> attempt_deadline_;  // of the one under way
    bool delivered_ = false;
};

model_call_ptr retry_provider::begin(generate_request request)
{
    return std::make_unique<retry_call>(std::static_pointer_cast<retry_provider>(shared_from_this()), std::move(request));
}

awaitable<bool> retry_call::step(event_batch& batch)
{
    const std::chrono::milliseconds limit = owner_->options().attempt_limit();
    if (limit.count() <= 0) {
        const bool more = co_await call().read(batch);
        co_return more;
    }
    const clock_ptr& time = owner_->time();
    if (!attempt_deadline_) attempt_deadline_ = time->now() + limit;
    std::exception_ptr failure;
    try {
        awaitable<bool> bounded = with_deadline<bool>(time, *attempt_deadline_, call().read(batch), "[Retry] the attempt");
        const bool more = co_await std::move(bounded);
        co_return more;
    } catch (...) {
        failure = std::current_exception();
    }
    const steady_time now = time->now();
    // The call's own deadline is final, and wins where both have passed.
    if (code_of(failure) == errc::deadline && now >= *attempt_deadline_ && now < request().options.deadline)
        throw timeout_error(errc::attempt_timeout, "[Retry] Timeout");
    std::rethrow_exception(failure);
}

awaitable<bool> retry_call::read(event_batch& batch)
{
    batch.clear();
    for (;;) {
        if (due_) {
            co_await sleep_until(owner_->time(), *due_);
            due_.reset();
            ++made_;
            attempt_deadline_.reset();
            set_call(owner_->inner()->start(request()));
        }
        bool more = false;
        std::exception_ptr failure;
        try {
            more = co_await step(batch);
        } catch (...) {
            failure = std::current_exception();
        }
        if (failure) {
            const bool seen = delivered_;
            after(failure);
            if (!seen) continue;
            delivered_ = false;
            batch.clear();
            batch.push(event_kind::reset, message_of(failure)).index = made_ + 1;
            co_return true;
        }
        if (!more) {
            finish();
            co_return false;
        }
        delivered_ = delivered_ || has_delta(batch);
        co_return true;
    }
}

void retry_call::after(const std::exception_ptr& failure)
{
    drop_call();
    const failure_view seen(failure);
    const retry_options& o = owner_->options();
    const steady_time now = owner_->time()->now();
    std::optional<steady_time> due;
    if (made_ < most_ && (!delivered_ || request().options.accept_resets) && owner_->schedule().retryable(seen, failure))
        due = owner_->schedule().next(made_, seen, now, request().options.deadline, random_unit(o.random()));
    if (!due) throw_stamped(failure);
    due_ = due;
    if (!o.log()) return;
    const auto wait = std::chrono::duration_cast<std::chrono::milliseconds>(*due - now);
    o.log()(log_level::info,
            "[Retry] attempt " + std::to_string(made_ + 1) + " of " + std::to_string(most_) + " in " + std::to_string(wait.count()) +
                " ms: " + untrusted_text(message_of(failure)));
}

}  // namespace

}  // namespace providers_detail

provider_ptr with_retry(provider_ptr inner, retry_options options)
{
    return std::make_shared<providers_detail::retry_provider>(std::move(inner), std::move(options));
}

}  // namespace reagent::inline v0

#include "wrapping_provider.hpp"

#include "recorded_provider.hpp"

#include <reagent/base/error.hpp>
#include <reagent/base/untrusted_text.hpp>

#include <algorithm>

namespace reagent::inline v0::providers_detail {

namespace {

/// The tighter of the deadline and the span, as one point in time.
void fix_deadline(generate_options& o, steady_time now)
{
    if (o.total.inherits()) return;
    const std::chrono::nanoseconds span = o.total.span();
    if (span.count() < 0) o.deadline = std::min(o.deadline, now);
    else if (span.count() > 0 && now < steady_time::max() - span) o.deadline = std::min(o.deadline, now + span);
    o.total = time_limit::off();
}

awaitable<generate_result> result_of(model_call_ptr call)
{
    event_batch batch;
    for (;;) {
        const bool more = co_await call->read(batch);
        if (!more) break;
    }
    co_return call->take_result();
}

}  // namespace

provider_ptr with_records(provider_ptr inner, std::string_view component)
{
    if (!inner) throw validation_error("[" + std::string(component) + "] requires a provider");
    if (dynamic_cast<wrapping_provider*>(inner.get()) != nullptr) return inner;
    return std::make_shared<recorded_provider>(std::move(inner));
}

wrapping_provider::wrapping_provider(provider_ptr inner, clock_ptr clock, std::string_view component)
    : inner_(with_records(std::move(inner), component)), clock_(clock ? std::move(clock) : clock::system())
{}

model_call_ptr wrapping_provider::start(generate_request request)
{
    fix_deadline(request.options, clock_->now());
    if (!request.log) request.log = std::make_shared<attempt_log>(clock_);
    return begin(std::move(request));
}

awaitable<generate_result> wrapping_provider::generate(generate_request request)
{
    request.options.stream = false;
    request.options.accept_resets = true;
    return result_of(start(std::move(request)));
}

void wrapping_call::drop_call()
{
    if (!call_) return;
    partial_ = call_->partial_text();
    call_.reset();
}

void wrapping_call::finish()
{
    generate_result r = call_->take_result();
    drop_call();
    finish(std::move(r));
}

void wrapping_call::finish(generate_result result)
{
    result_ = std::move(result);
    result_.attempts = request_.log->attempts();
    result_.records = request_.log->records();
}

void wrapping_call::throw_stamped(const std::exception_ptr& failure)
{
    stamp(failure, *request_.log);
    std::rethrow_exception(failure);
}

}  // namespace reagent::inline v0::providers_detail

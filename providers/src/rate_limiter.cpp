#include "rate_window.hpp"
#include "wait_line.hpp"
#include "wrapping_provider.hpp"

#include <reagent/base/error.hpp>
#include <reagent/model/attempt_bound.hpp>
#include <reagent/model/provider_error.hpp>
#include <reagent/providers/backoff.hpp>
#include <reagent/providers/rate_limiter.hpp>

#include <boost/asio/this_coro.hpp>

#include <functional>
#include <map>
#include <mutex>

namespace reagent::inline v0 {

struct rate_limiter::impl final : providers_detail::wait_line {
    explicit impl(rate_options o)
        : options(std::move(o)),
          clock(options.clock() ? options.clock() : clock::system()),
          window(options.requests_per_minute(), options.tokens_per_minute(), options.spread())
    {}
    const rate_options options;
    const clock_ptr clock;
    providers_detail::rate_window window;  // under the mutex
};

rate_limiter::rate_limiter(rate_options options) : impl_(std::make_shared<impl>(std::move(options))) {}

std::size_t rate_limiter::waiting() const
{
    const std::lock_guard lock(impl_->mutex);
    return impl_->length();
}

struct rate_limiters::impl {
    explicit impl(rate_options o) : options(std::move(o)) {}
    const rate_options options;
    std::mutex mutex;
    std::map<std::pair<std::string, std::size_t>, rate_limiter> limiters;
};

rate_limiters::rate_limiters(rate_options each) : impl_(std::make_shared<impl>(std::move(each))) {}

rate_limiter rate_limiters::of(std::string_view service, const secret& key)
{
    const std::lock_guard lock(impl_->mutex);
    std::pair<std::string, std::size_t> name(std::string(service), std::hash<std::string_view>()(key.reveal()));
    return impl_->limiters.try_emplace(std::move(name), impl_->options).first->second;
}

namespace providers_detail {

namespace {

using limiter_ptr = std::shared_ptr<rate_limiter::impl>;

/// The ticket of the request that may leave now, else 0 and when to look again.
std::uint64_t take_if_due(rate_limiter::impl& s, const rate_amounts& amounts, std::size_t waiting, double unit, steady_time& due)
{
    const steady_time now = s.clock->now();
    due = s.window.earliest(now, amounts, waiting, unit);
    return due <= now ? s.window.take(now, amounts) : 0;
}

std::uint64_t take_at_once(rate_limiter::impl& s, const rate_amounts& amounts)
{
    const std::lock_guard lock(s.mutex);
    if (s.length() >= s.options.max_waiting()) throw error(errc::limit_exceeded, "[RateLimit] " + std::to_string(s.length()) + " calls wait already", true);
    steady_time due;
    return s.length() == 0 ? take_if_due(s, amounts, 1, random_unit(s.options.random()), due) : 0;
}

/// As `take_if_due`, for the first in line alone; the others look again when they are woken.
std::uint64_t take_in_turn(rate_limiter::impl& s, const line_place& place, const rate_amounts& amounts, std::optional<double>& unit, steady_time& due)
{
    const std::lock_guard lock(s.mutex);
    due = steady_time::max();
    if (!place.first()) {
        // Nobody leaves before, so who has less time need not stay.
        due = s.window.held_until();
        return 0;
    }
    if (!unit) unit = random_unit(s.options.random());
    return take_if_due(s, amounts, s.length(), *unit, due);
}

awaitable<std::uint64_t> wait_for_turn(limiter_ptr s, rate_amounts amounts, steady_time deadline)
{
    const any_io_executor ex = co_await asio::this_coro::executor;
    line_place place(ex, s);
    std::optional<double> unit;
    for (;;) {
        steady_time due;
        const std::uint64_t ticket = take_in_turn(*s, place, amounts, unit, due);
        if (ticket != 0) co_return ticket;
        const steady_time now = s->clock->now();
        if (now >= deadline || (due > deadline && deadline != steady_time::max()))
            throw timeout_error(errc::deadline, "[RateLimit] the service takes no request before the call's deadline");
        co_await place.wait(s->clock, unit ? std::min(due, deadline) : deadline);
    }
}

class paced_provider final : public wrapping_provider {
public:
    paced_provider(provider_ptr inner, const rate_limiter& limiter)
        : wrapping_provider(std::move(inner), limiter.shared()->clock, "RateLimit"), limiter_(limiter.shared())
    {}

protected:
    model_call_ptr begin(generate_request request) override;

private:
    limiter_ptr limiter_;
};

class paced_call final : public wrapping_call {
public:
    paced_call(std::shared_ptr<wrapping_provider> owner, limiter_ptr limiter, generate_request request)
        : wrapping_call(std::move(request)), owner_(std::move(owner)), limiter_(std::move(limiter))
    {
        set_call(owner_->inner()->start(this->request()));
    }
    awaitable<bool> read(event_batch& batch) override;

private:
    rate_amounts estimate() const;
    void answered(const generate_result& result);
    void failed(const std::exception_ptr& failure);

    std::shared_ptr<wrapping_provider> owner_;
    limiter_ptr limiter_;
    std::uint64_t ticket_ = 0;
};

model_call_ptr paced_provider::begin(generate_request request)
{
    return std::make_unique<paced_call>(std::static_pointer_cast<paced_provider>(shared_from_this()), limiter_, std::move(request));
}

rate_amounts paced_call::estimate() const
{
    {
        const std::lock_guard lock(limiter_->mutex);
        if (!limiter_->window.counts_tokens()) return {};
    }
    const generate_request& r = request();
    const std::uint64_t bytes = input_bound(r.messages, r.tools, owner_->model());
    const auto most = r.options.max_tokens.value_or(0) != 0 ? r.options.max_tokens : owner_->max_output();
    return {bytes / 4, most.value_or(0)};
}

void paced_call::answered(const generate_result& result)
{
    const steady_time now = limiter_->clock->now();
    const std::lock_guard lock(limiter_->mutex);
    if (result.usage) limiter_->window.correct(ticket_, rate_amounts(result.usage->total_input(), result.usage->output));
    if (!result.rate_limit || !limiter_->options.learns()) return;
    limiter_->window.learn(now, limiter_->clock->wall(), ticket_, *result.rate_limit);
    limiter_->wake_first();
}

void paced_call::failed(const std::exception_ptr& failure)
{
    const failure_view seen(failure);
    const bool slow_down = seen.kind == failure_kind::transient && (seen.status == 429 || seen.retry_after);
    std::optional<rate_limit_info> told;
    try {
        std::rethrow_exception(failure);
    } catch (const provider_error& e) {
        told = e.rate_limit;
    } catch (...) {}
    const steady_time now = limiter_->clock->now();
    const std::lock_guard lock(limiter_->mutex);
    if (slow_down) limiter_->window.refused(now, seen.retry_after.value_or(limiter_->options.default_wait()));
    if (told && limiter_->options.learns()) limiter_->window.learn(now, limiter_->clock->wall(), ticket_, *told);
    limiter_->wake_first();
}

awaitable<bool> paced_call::read(event_batch& batch)
{
    batch.clear();
    if (ticket_ == 0) {
        const rate_amounts amounts = estimate();
        ticket_ = take_at_once(*limiter_, amounts);
        if (ticket_ == 0) {
            const std::uint64_t ticket = co_await wait_for_turn(limiter_, amounts, request().options.deadline);
            ticket_ = ticket;
        }
    }
    bool more = false;
    std::exception_ptr failure;
    try {
        more = co_await call().read(batch);
    } catch (...) {
        failure = std::current_exception();
    }
    if (failure) {
        drop_call();
        failed(failure);
        throw_stamped(failure);
    }
    if (more) co_return true;
    generate_result result = call().take_result();
    drop_call();
    answered(result);
    finish(std::move(result));
    co_return false;
}

}  // namespace

}  // namespace providers_detail

provider_ptr with_rate_limit(provider_ptr inner, rate_limiter limiter)
{
    return std::make_shared<providers_detail::paced_provider>(std::move(inner), limiter);
}

}  // namespace reagent::inline v0

#include "wait_line.hpp"
#include "wrapping_provider.hpp"

#include <reagent/base/error.hpp>
#include <reagent/providers/concurrency_limit.hpp>

#include <boost/asio/this_coro.hpp>

namespace reagent::inline v0 {

struct concurrency_limit::impl final : providers_detail::wait_line {
    explicit impl(concurrency_options o) : options(std::move(o)), clock(options.clock() ? options.clock() : clock::system()) {}
    const concurrency_options options;
    const clock_ptr clock;
    std::size_t active = 0;  // under the mutex
};

concurrency_limit::concurrency_limit(concurrency_options options) : impl_(std::make_shared<impl>(std::move(options)))
{
    if (impl_->options.most() == 0) throw validation_error("[ConcurrencyLimit] at least one call must be allowed");
}

std::size_t concurrency_limit::active() const
{
    const std::lock_guard lock(impl_->mutex);
    return impl_->active;
}

std::size_t concurrency_limit::waiting() const
{
    const std::lock_guard lock(impl_->mutex);
    return impl_->length();
}

namespace providers_detail {

namespace {

using limit_ptr = std::shared_ptr<concurrency_limit::impl>;

/// One of the calls that may run.
class running_slot {
public:
    running_slot() noexcept = default;
    explicit running_slot(limit_ptr of) noexcept : of_(std::move(of)) {}
    running_slot(running_slot&&) noexcept = default;
    running_slot& operator=(running_slot&& other) noexcept
    {
        std::swap(of_, other.of_);
        return *this;
    }
    ~running_slot() { release(); }
    explicit operator bool() const noexcept { return of_ != nullptr; }
    void release() noexcept
    {
        const limit_ptr of = std::move(of_);
        if (!of) return;
        const std::lock_guard lock(of->mutex);
        --of->active;
        of->wake_first();
    }

private:
    limit_ptr of_;
};

bool take_if_free(concurrency_limit::impl& s)
{
    if (s.active >= s.options.most()) return false;
    ++s.active;
    return true;
}

bool take_at_once(concurrency_limit::impl& s)
{
    const std::lock_guard lock(s.mutex);
    if (s.length() >= s.options.max_waiting() && s.active >= s.options.most())
        throw error(errc::limit_exceeded, "[ConcurrencyLimit] " + std::to_string(s.length()) + " calls wait already", true);
    return s.length() == 0 && take_if_free(s);
}

bool take_in_turn(concurrency_limit::impl& s, const line_place& place)
{
    const std::lock_guard lock(s.mutex);
    return place.first() && take_if_free(s);
}

awaitable<running_slot> wait_for_slot(limit_ptr s, steady_time deadline)
{
    const any_io_executor ex = co_await asio::this_coro::executor;
    line_place place(ex, s);
    while (!take_in_turn(*s, place)) {
        if (s->clock->now() >= deadline) throw timeout_error(errc::deadline, "[ConcurrencyLimit] no call ended before this one's deadline");
        co_await place.wait(s->clock, deadline);
    }
    co_return running_slot(std::move(s));
}

class limited_provider final : public wrapping_provider {
public:
    limited_provider(provider_ptr inner, const concurrency_limit& limit)
        : wrapping_provider(std::move(inner), limit.shared()->clock, "ConcurrencyLimit"), limit_(limit.shared())
    {}

protected:
    model_call_ptr begin(generate_request request) override;

private:
    limit_ptr limit_;
};

class limited_call final : public wrapping_call {
public:
    limited_call(std::shared_ptr<wrapping_provider> owner, limit_ptr limit, generate_request request)
        : wrapping_call(std::move(request)), owner_(std::move(owner)), limit_(std::move(limit))
    {
        set_call(owner_->inner()->start(this->request()));
    }
    ~limited_call() override { drop_call(); }  // before the place is free for another
    limited_call(const limited_call&) = delete;
    limited_call& operator=(const limited_call&) = delete;

    awaitable<bool> read(event_batch& batch) override
    {
        batch.clear();
        if (!slot_) {
            const bool at_once = take_at_once(*limit_);
            if (at_once) {
                slot_ = running_slot(limit_);
            } else {
                running_slot granted = co_await wait_for_slot(limit_, request().options.deadline);
                slot_ = std::move(granted);
            }
        }
        bool more = false;
        std::exception_ptr failure;
        try {
            more = co_await call().read(batch);
        } catch (...) {
            failure = std::current_exception();
        }
        if (!failure && more) co_return true;
        if (!failure) finish();
        drop_call();
        slot_.release();
        if (failure) throw_stamped(failure);
        co_return false;
    }

private:
    std::shared_ptr<wrapping_provider> owner_;
    limit_ptr limit_;
    running_slot slot_;
};

model_call_ptr limited_provider::begin(generate_request request)
{
    return std::make_unique<limited_call>(std::static_pointer_cast<limited_provider>(shared_from_this()), limit_, std::move(request));
}

}  // namespace

}  // namespace providers_detail

provider_ptr with_concurrency_limit(provider_ptr inner, concurrency_limit limit)
{
    return std::make_shared<providers_detail::limited_provider>(std::move(inner), limit);
}

}  // namespace reagent::inline v0

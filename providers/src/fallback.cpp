#include "wrapping_provider.hpp"

#include <reagent/base/untrusted_text.hpp>
#include <reagent/providers/fallback.hpp>

#include <algorithm>

namespace reagent::inline v0 {

namespace {

bool any_retryable(const std::vector<std::exception_ptr>& errors)
{
    using providers_detail::failure_kind;
    return std::ranges::any_of(errors, [](const std::exception_ptr& e) {
        const failure_kind kind = providers_detail::failure_view(e).kind;
        return kind == failure_kind::circuit || kind == failure_kind::transient;
    });
}

std::string told_together(const std::vector<std::exception_ptr>& errors)
{
    std::string out = "[FallbackProvider] all providers failed";
    for (std::size_t i = 0; i < errors.size(); ++i) out += (i == 0 ? ": " : "; ") + untrusted_text(message_of(errors[i]));
    return out;
}

}  // namespace

all_failed_error::all_failed_error(std::vector<std::exception_ptr> errors)
    : error(errc::provider_failed, told_together(errors), any_retryable(errors)), errors_(std::move(errors))
{
    for (const std::exception_ptr& e : errors_) {
        const providers_detail::failure_view seen(e);
        if (seen.kind != providers_detail::failure_kind::transient) continue;
        const auto after = seen.retry_after.value_or(std::chrono::milliseconds(0));
        retry_after_ = std::min(retry_after_.value_or(after), after);
    }
}

namespace providers_detail {

namespace {

class fallback_provider final : public wrapping_provider {
public:
    fallback_provider(std::vector<provider_ptr> members, fallback_options options)
        : wrapping_provider(first_of(members), options.clock(), "FallbackProvider"), options_(std::move(options))
    {
        for (provider_ptr& p : members) members_.push_back(members_.empty() ? inner() : with_records(std::move(p), "FallbackProvider"));
    }
    std::string_view name() const noexcept override { return "fallback"; }
    std::optional<std::uint64_t> max_output() const noexcept override
    {
        std::uint64_t most = 0;
        for (const provider_ptr& p : members_) {
            const std::optional<std::uint64_t> one = p->max_output();
            if (!one) return std::nullopt;
            most = std::max(most, *one);
        }
        return most;
    }
    const std::vector<provider_ptr>& members() const noexcept { return members_; }
    const fallback_options& options() const noexcept { return options_; }

protected:
    model_call_ptr begin(generate_request request) override;

private:
    static provider_ptr first_of(const std::vector<provider_ptr>& members)
    {
        if (members.empty()) throw validation_error("[FallbackProvider] requires at least one provider");
        return members.front();
    }
    std::vector<provider_ptr> members_;
    fallback_options options_;
};

class fallback_call final : public wrapping_call {
public:
    fallback_call(std::shared_ptr<fallback_provider> owner, generate_request request) : wrapping_call(std::move(request)), owner_(std::move(owner))
    {
        set_call(owner_->inner()->start(this->request()));
    }
    awaitable<bool> read(event_batch& batch) override;

private:
    bool leads_on(const std::exception_ptr& failure) const;
    /// Goes on to the next provider, or throws.
    void after(const std::exception_ptr& failure);

    std::shared_ptr<fallback_provider> owner_;
    std::size_t at_ = 0;
    std::vector<std::exception_ptr> failures_;
    bool delivered_ = false;
};

model_call_ptr fallback_provider::begin(generate_request request)
{
    return std::make_unique<fallback_call>(std::static_pointer_cast<fallback_provider>(shared_from_this()), std::move(request));
}

awaitable<bool> fallback_call::read(event_batch& batch)
{
    batch.clear();
    for (;;) {
        bool more = false;
        std::exception_ptr failure;
        try {
            if (!has_call()) {
                generate_request again = request();
                again.prefix = nullptr;  // it belongs to the first provider
                set_call(owner_->members()[at_]->start(std::move(again)));
            }
            more = co_await call().read(batch);
        } catch (...) {
            failure = std::current_exception();
        }
        if (failure) {
            after(failure);
            if (!delivered_) continue;
            delivered_ = false;
            batch.clear();
            batch.push(event_kind::reset, message_of(failure)).index = request().log->attempts() + 1;
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

bool fallback_call::leads_on(const std::exception_ptr& failure) const
{
    const failure_view seen(failure);
    const fallback_options& o = owner_->options();
    if (seen.passes()) return false;
    // Nobody has time left.
    if (owner_->time()->now() >= request().options.deadline) return false;
    if (delivered_ && !request().options.accept_resets) return false;
    if (o.retryable_only() && seen.kind == failure_kind::final) return false;
    return !o.when() || o.when()(failure, at_);
}

void fallback_call::after(const std::exception_ptr& failure)
{
    drop_call();
    const bool last = at_ + 1 == owner_->members().size();
    if (owner_->members().size() == 1 || failure_view(failure).passes()) throw_stamped(failure);
    if (last) {
        if (delivered_ && !request().options.accept_resets) throw_stamped(failure);
        failures_.push_back(failure);
        throw all_failed_error(std::move(failures_));
    }
    if (!leads_on(failure)) throw_stamped(failure);
    failures_.push_back(failure);
    if (owner_->options().on_fallback()) owner_->options().on_fallback()(failure, at_, at_ + 1);
    ++at_;
}

}  // namespace

}  // namespace providers_detail

provider_ptr with_fallback(std::vector<provider_ptr> providers, fallback_options options)
{
    return std::make_shared<providers_detail::fallback_provider>(std::move(providers), std::move(options));
}

}  // namespace reagent::inline v0

#include "circuit_state.hpp"
#include "wrapping_provider.hpp"

#include <map>
#include <mutex>

namespace reagent::inline v0 {

using providers_detail::circuit_pass;
using providers_detail::circuit_state;

std::string_view to_string(circuit_phase p) noexcept
{
    switch (p) {
    case circuit_phase::closed: return "closed";
    case circuit_phase::open: return "open";
    case circuit_phase::half_open: return "half-open";
    }
    return {};
}

struct circuit_breaker::impl {
    explicit impl(circuit_options o) : options(std::move(o)), clock(options.clock() ? options.clock() : clock::system()) {}
    circuit_state& at(std::string_view key)
    {
        const auto found = circuits.find(key);
        if (found != circuits.end()) return found->second;
        return circuits.emplace(std::string(key), circuit_state(options.threshold(), options.reset_after())).first->second;
    }
    /// Does it under the lock, and tells of a change without.
    template <class F>
    auto change(std::string_view key, F f)
    {
        circuit_phase from, to;
        std::unique_lock lock(mutex);
        circuit_state& s = at(key);
        from = s.phase();
        auto out = f(s);
        to = s.phase();
        lock.unlock();
        if (from != to && options.on_change()) options.on_change()(key, from, to);
        return out;
    }

    const circuit_options options;
    const clock_ptr clock;
    std::mutex mutex;
    std::map<std::string, circuit_state, std::less<>> circuits;
};

circuit_breaker::circuit_breaker(circuit_options options) : impl_(std::make_shared<impl>(std::move(options))) {}

circuit_phase circuit_breaker::phase(std::string_view key) const
{
    const std::lock_guard lock(impl_->mutex);
    return impl_->at(key).phase();
}

void circuit_breaker::reset(std::string_view key)
{
    impl_->change(key, [](circuit_state& s) {
        s.reset();
        return true;
    });
}

namespace providers_detail {

namespace {

using breaker_ptr = std::shared_ptr<circuit_breaker::impl>;

class breaker_provider final : public wrapping_provider {
public:
    breaker_provider(provider_ptr inner, circuit_breaker breaker, std::string key)
        : wrapping_provider(std::move(inner), breaker.shared()->clock, "CircuitBreaker"), breaker_(breaker.shared()), key_(std::move(key))
    {}

protected:
    model_call_ptr begin(generate_request request) override;

private:
    breaker_ptr breaker_;
    std::string key_;
};

class breaker_call final : public wrapping_call {
public:
    breaker_call(std::shared_ptr<wrapping_provider> owner, breaker_ptr breaker, std::string key, generate_request request)
        : wrapping_call(std::move(request)), owner_(std::move(owner)), breaker_(std::move(breaker)), key_(std::move(key))
    {
        set_call(owner_->inner()->start(this->request()));
    }
    ~breaker_call() override
    {
        drop_call();
        tell([](circuit_state& s, circuit_pass p) { s.abandoned(p); });
    }
    breaker_call(const breaker_call&) = delete;
    breaker_call& operator=(const breaker_call&) = delete;
    awaitable<bool> read(event_batch& batch) override;

private:
    void enter();
    void judge(const std::exception_ptr& failure);
    template <class F>
    void tell(F f)
    {
        if (!pass_) return;
        const circuit_pass p = *pass_;
        pass_.reset();
        breaker_->change(key_, [&](circuit_state& s) {
            f(s, p);
            return true;
        });
    }

    std::shared_ptr<wrapping_provider> owner_;
    breaker_ptr breaker_;
    std::string key_;
    std::optional<circuit_pass> pass_;
    bool entered_ = false;
};

model_call_ptr breaker_provider::begin(generate_request request)
{
    return std::make_unique<breaker_call>(std::static_pointer_cast<breaker_provider>(shared_from_this()), breaker_, key_, std::move(request));
}

void breaker_call::enter()
{
    entered_ = true;
    const steady_time now = breaker_->clock->now();
    pass_ = breaker_->change(key_, [now](circuit_state& s) { return s.admit(now); });
    if (pass_) return;
    request().log->note(std::string(owner_->name()), std::string(owner_->model()), attempt_end::refused, make_error_code(errc::circuit_open));
    throw circuit_open_error(key_);
}

void breaker_call::judge(const std::exception_ptr& failure)
{
    const failure_view seen(failure);
    const steady_time now = breaker_->clock->now();
    if (seen.passes() || seen.kind == failure_kind::circuit) tell([](circuit_state& s, circuit_pass p) { s.abandoned(p); });
    else if (seen.kind == failure_kind::transient || seen.code == condition::timeout || seen.code == condition::unavailable)
        tell([now](circuit_state& s, circuit_pass p) { s.failed(p, now); });
    else tell([](circuit_state& s, circuit_pass p) { s.answered(p); });
}

awaitable<bool> breaker_call::read(event_batch& batch)
{
    batch.clear();
    if (!entered_) enter();
    bool more = false;
    std::exception_ptr failure;
    try {
        more = co_await call().read(batch);
    } catch (...) {
        failure = std::current_exception();
    }
    if (failure) {
        drop_call();
        judge(failure);
        throw_stamped(failure);
    }
    if (more) co_return true;
    finish();
    tell([](circuit_state& s, circuit_pass p) { s.succeeded(p); });
    co_return false;
}

}  // namespace

}  // namespace providers_detail

provider_ptr with_circuit_breaker(provider_ptr inner, circuit_breaker breaker, std::string key)
{
    return std::make_shared<providers_detail::breaker_provider>(std::move(inner), std::move(breaker), std::move(key));
}

}  // namespace reagent::inline v0

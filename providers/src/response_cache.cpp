#include "answer_store.hpp"
#include "wait_line.hpp"
#include "wrapping_provider.hpp"

#include <reagent/base/error.hpp>
#include <reagent/model/provider_error.hpp>
#include <reagent/model/result_events.hpp>
#include <reagent/providers/response_cache.hpp>

#include <boost/asio/this_coro.hpp>

#include <atomic>
#include <map>

namespace reagent::inline v0 {

namespace providers_detail {

/// One request that several calls wait for. Its line is of followers; the leader stands outside.
struct flight final : wait_line {
    enum class state : std::uint8_t { open, answered, failed, abandoned };
    // Under the mutex:
    state now = state::open;
    answer_ptr answer;
    std::exception_ptr failure;
};
using flight_ptr = std::shared_ptr<flight>;

}  // namespace providers_detail

struct response_cache::impl {
    explicit impl(cache_options o)
        : options(std::move(o)), clock(options.clock() ? options.clock() : clock::system()), store(options.max_entries(), options.max_bytes(), options.ttl())
    {}
    const cache_options options;
    const clock_ptr clock;
    std::mutex mutex;
    // Under it:
    providers_detail::answer_store store;
    std::map<std::string, providers_detail::flight_ptr, std::less<>> flights;
    cache_stats counts;
};

response_cache::response_cache(cache_options options) : impl_(std::make_shared<impl>(std::move(options))) {}

cache_stats response_cache::stats() const
{
    const std::lock_guard lock(impl_->mutex);
    cache_stats out = impl_->counts;
    out.entries = impl_->store.entries();
    out.bytes = impl_->store.bytes();
    out.in_flight = impl_->flights.size();
    return out;
}

void response_cache::clear()
{
    const std::lock_guard lock(impl_->mutex);
    impl_->store.clear();
}

namespace providers_detail {

namespace {

using cache_ptr = std::shared_ptr<response_cache::impl>;

bool shareable(const cache_options& o, const generate_request& r)
{
    if (o.when()) return o.when()(r);
    return r.options.temperature == 0.0 && (!r.tools || r.tools->empty());
}

bool worth_keeping(const generate_result& r)
{
    return !r.malformed && (r.stop_reason == "end_turn" || r.stop_reason == "stop_sequence" || r.stop_reason == "tool_use");
}

/// An error that others may be given, too: each gets one of its own to write its attempts into.
std::exception_ptr copy_of(const std::exception_ptr& failure)
{
    try {
        std::rethrow_exception(failure);
    } catch (const provider_error& e) {
        return std::make_exception_ptr(e);
    } catch (...) {
        return failure;
    }
}

/// Whether the failure is the leader's own affair.
bool concerns_one(const std::exception_ptr& failure)
{
    const failure_view seen(failure);
    return seen.passes() || seen.code == errc::deadline;
}

class cache_provider final : public wrapping_provider {
public:
    cache_provider(provider_ptr inner, const response_cache& cache, std::string scope)
        : wrapping_provider(std::move(inner), cache.shared()->clock, "ResponseCache"),
          cache_(cache.shared()),
          scope_(scope.empty() ? "#" + std::to_string(next_scope++) : std::move(scope))
    {}
    const cache_ptr& cache() const noexcept { return cache_; }
    std::string key_of(const generate_request& r) const { return request_key(scope_, name(), model(), r); }

protected:
    model_call_ptr begin(generate_request request) override;

private:
    static inline std::atomic<std::uint64_t> next_scope = 1;
    cache_ptr cache_;
    std::string scope_;
};

class cached_call final : public wrapping_call {
public:
    cached_call(std::shared_ptr<cache_provider> owner, generate_request request)
        : wrapping_call(std::move(request)), owner_(std::move(owner)), cache_(*owner_->cache()), shareable_(shareable(cache_.options, this->request()))
    {
        if (!shareable_) open();
    }
    ~cached_call() override
    {
        drop_call();
        land(flight::state::abandoned, nullptr, nullptr);
    }
    cached_call(const cached_call&) = delete;
    cached_call& operator=(const cached_call&) = delete;
    awaitable<bool> read(event_batch& batch) override;

private:
    void open() { set_call(owner_->inner()->start(request())); }
    /// From the cache, or from who leads the flight; null when this call is to ask itself.
    awaitable<answer_ptr> find();
    /// The answer kept, or the flight to join; neither: this call asks.
    answer_ptr look(flight_ptr& to_join);
    awaitable<bool> ask(event_batch& batch);
    void keep(const generate_result& result);
    /// Ends the flight that this call leads, if it does.
    void land(flight::state how, answer_ptr answer, std::exception_ptr failure);
    void note(attempt_end end);

    std::shared_ptr<cache_provider> owner_;
    response_cache::impl& cache_;
    const bool shareable_;
    bool looked_ = false;
    std::string key_;
    flight_ptr leads_;
};

model_call_ptr cache_provider::begin(generate_request request)
{
    return std::make_unique<cached_call>(std::static_pointer_cast<cache_provider>(shared_from_this()), std::move(request));
}

answer_ptr cached_call::look(flight_ptr& to_join)
{
    const steady_time now = cache_.clock->now();
    const std::lock_guard lock(cache_.mutex);
    if (answer_ptr kept = cache_.store.find(key_, now)) {
        ++cache_.counts.hits;
        return kept;
    }
    const bool together = cache_.options.single_flight() && !request().options.stream;
    const auto found = together ? cache_.flights.find(key_) : cache_.flights.end();
    if (found != cache_.flights.end()) {
        to_join = found->second;
        return nullptr;
    }
    ++cache_.counts.misses;
    if (together) {
        leads_ = std::make_shared<flight>();
        cache_.flights.emplace(key_, leads_);
    }
    return nullptr;
}

void cached_call::note(attempt_end end)
{
    request().log->note(std::string(owner_->name()), std::string(owner_->model()), end);
}

awaitable<answer_ptr> cached_call::find()
{
    const any_io_executor ex = co_await asio::this_coro::executor;
    for (;;) {
        flight_ptr other;
        answer_ptr kept = look(other);
        if (kept) note(attempt_end::cached);
        if (kept || !other) co_return kept;
        line_place place(ex, other);
        const steady_time deadline = request().options.deadline;
        for (;;) {
            flight::state now;
            {
                const std::lock_guard lock(other->mutex);
                now = other->now;
            }
            if (now == flight::state::abandoned) break;
            if (now == flight::state::failed) std::rethrow_exception(copy_of(other->failure));
            if (now == flight::state::answered) {
                note(attempt_end::shared);
                const std::lock_guard lock(cache_.mutex);
                ++cache_.counts.shared;
                co_return other->answer;
            }
            if (cache_.clock->now() >= deadline) throw timeout_error(errc::deadline, "[ResponseCache] no answer came before the call's deadline");
            co_await place.wait(cache_.clock, deadline);
        }
    }
}

void cached_call::keep(const generate_result& result)
{
    answer_ptr answer;
    std::size_t bytes = 0;
    if (worth_keeping(result) || leads_) {
        generate_result copy = result;
        copy.usage.emplace();
        copy.cost = usd();
        copy.records.clear();
        copy.timings = call_timings();
        copy.rate_limit.reset();
        bytes = copy.to_json().dump().size();
        answer = std::make_shared<const generate_result>(std::move(copy));
    }
    if (worth_keeping(result)) {
        const steady_time now = cache_.clock->now();
        const std::lock_guard lock(cache_.mutex);
        cache_.store.put(key_, answer, bytes, now);
    }
    land(flight::state::answered, std::move(answer), nullptr);
}

void cached_call::land(flight::state how, answer_ptr answer, std::exception_ptr failure)
{
    const flight_ptr f = std::move(leads_);
    if (!f) return;
    {
        const std::lock_guard lock(cache_.mutex);
        cache_.flights.erase(key_);
    }
    const std::lock_guard lock(f->mutex);
    f->now = how;
    f->answer = std::move(answer);
    f->failure = std::move(failure);
    f->wake_all();
}

/// Asks the provider. A leader reads to the end at once, since others wait for it.
awaitable<bool> cached_call::ask(event_batch& batch)
{
    for (;;) {
        const bool more = co_await call().read(batch);
        if (more && leads_) continue;
        co_return more;
    }
}

awaitable<bool> cached_call::read(event_batch& batch)
{
    batch.clear();
    std::exception_ptr failure;
    answer_ptr answer;
    bool more = false;
    try {
        if (shareable_ && !looked_) {
            looked_ = true;
            key_ = owner_->key_of(request());
            answer = co_await find();
            if (!answer) open();
        }
        if (!answer) more = co_await ask(batch);
    } catch (...) {
        failure = std::current_exception();
    }
    if (failure) {
        drop_call();
        if (leads_ && concerns_one(failure)) land(flight::state::abandoned, nullptr, nullptr);
        else if (leads_) land(flight::state::failed, nullptr, copy_of(failure));
        throw_stamped(failure);
    }
    if (answer) {
        append_result_events(batch, *answer);
        finish(generate_result(*answer));
        co_return false;
    }
    if (more) co_return true;
    generate_result result = call().take_result();
    drop_call();
    if (leads_) {
        // Its events went by while it was read to the end.
        batch.clear();
        append_result_events(batch, result);
    }
    if (shareable_) keep(result);
    finish(std::move(result));
    co_return false;
}

}  // namespace

}  // namespace providers_detail

provider_ptr with_response_cache(provider_ptr inner, response_cache cache, std::string scope)
{
    return std::make_shared<providers_detail::cache_provider>(std::move(inner), cache, std::move(scope));
}

}  // namespace reagent::inline v0

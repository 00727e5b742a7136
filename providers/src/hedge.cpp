#include "latency_window.hpp"
#include "wrapping_provider.hpp"

#include <reagent/base/error.hpp>
#include <reagent/base/gather.hpp>
#include <reagent/model/attempt_gate.hpp>
#include <reagent/providers/hedge.hpp>

#include <algorithm>
#include <array>
#include <deque>

namespace reagent::inline v0 {

hedge_options& hedge_options::percentile(double share)
{
    if (!(share >= 0 && share <= 1)) throw validation_error("[Hedge] percentile must be a share from 0 to 1");
    percentile_ = share;
    return *this;
}

namespace providers_detail {

namespace {

class hedge_provider final : public wrapping_provider {
public:
    hedge_provider(provider_ptr inner, hedge_options options)
        : wrapping_provider(std::move(inner), options.clock(), "Hedge"),
          options_(std::move(options)),
          latencies_{latency_window(options_.max_samples()), latency_window(options_.max_samples())}
    {}
    latency_window& latencies(bool stream) noexcept { return latencies_[stream ? 1 : 0]; }
    /// After how long a call gets a second attempt; nothing when too little is known.
    std::optional<duration> patience(bool stream)
    {
        if (options_.delay()) return *options_.delay();
        const latency_window& seen = latencies(stream);
        if (seen.size() < options_.min_samples()) return std::nullopt;
        return std::max<duration>(seen.percentile(options_.percentile()), options_.min_delay());
    }

protected:
    model_call_ptr begin(generate_request request) override;

private:
    hedge_options options_;
    std::array<latency_window, 2> latencies_;  ///< in one piece, and as a stream
};

/// Lets the second attempt pass only while the race is open: the first one's end may be what the money for the second comes from.
class second_gate final : public attempt_gate {
public:
    second_gate(attempt_gate* outer, const bool& decided) noexcept : outer_(outer), decided_(decided) {}
    awaitable<permit> admit(attempt_info attempt) override
    {
        permit granted = co_await outer_->admit(std::move(attempt));
        if (decided_) throw boost::system::system_error(asio::error::operation_aborted);
        co_return granted;
    }
    bool open() const noexcept override { return outer_->open(); }

private:
    attempt_gate* outer_;
    const bool& decided_;
};

class hedge_call final : public wrapping_call {
public:
    hedge_call(std::shared_ptr<hedge_provider> owner, generate_request request) : wrapping_call(std::move(request)), owner_(std::move(owner))
    {
        runners_[0].call = owner_->inner()->start(this->request());
    }
    hedge_call(const hedge_call&) = delete;
    hedge_call& operator=(const hedge_call&) = delete;
    awaitable<bool> read(event_batch& batch) override;
    std::string partial_text() const override { return runners_[0].call ? runners_[0].call->partial_text() : wrapping_call::partial_text(); }

private:
    /// One of the two attempts, until one has won.
    struct runner {
        model_call_ptr call;
        std::deque<event_batch> batches;
        steady_time began{};
        bool more = true;
    };
    awaitable<void> race();
    awaitable<void> run(std::size_t i);
    awaitable<void> start_second();
    void win(std::size_t i);
    /// Whether the race ends with this outcome.
    bool over(std::size_t i, const branch_outcome<void>& outcome);

    std::shared_ptr<hedge_provider> owner_;
    bool decided_ = false;  // one of them has something to show
    second_gate second_gate_{request().gate, decided_};
    std::array<runner, 2> runners_;
    std::optional<duration> patience_;
    std::optional<std::size_t> first_;  // to deliver
    std::deque<event_batch> pending_;   // of the winner, not yet read
    bool raced_ = false, more_ = true;
};

model_call_ptr hedge_provider::begin(generate_request request)
{
    return std::make_unique<hedge_call>(std::static_pointer_cast<hedge_provider>(shared_from_this()), std::move(request));
}

/// Reads until there is something to show.
awaitable<void> hedge_call::run(std::size_t i)
{
    if (i == 1) co_await start_second();
    runner& r = runners_[i];
    r.began = owner_->time()->now();
    for (;;) {
        event_batch batch;
        r.more = co_await r.call->read(batch);
        const bool shows = !r.more || has_delta(batch);
        r.batches.push_back(std::move(batch));
        if (!shows) continue;
        decided_ = true;
        co_return;
    }
}

awaitable<void> hedge_call::start_second()
{
    const clock_ptr& time = owner_->time();
    // Who still waits for money or a rate window is not helped by another who waits.
    do {
        const steady_time due = time->now() + *patience_;
        co_await sleep_until(time, due);
    } while (request().log->attempts() == 0);
    generate_request again = request();
    again.prefix = nullptr;  // the first attempt sends from it
    if (again.gate != nullptr) again.gate = &second_gate_;
    runners_[1].call = owner_->inner()->start(std::move(again));
}

bool hedge_call::over(std::size_t i, const branch_outcome<void>& outcome)
{
    if (outcome.has_value()) {
        if (!first_) first_ = i;
        return true;
    }
    if (i == 1) return false;  // the first may still succeed
    return !runners_[1].call || failure_view(outcome.failure()).passes();
}

void hedge_call::win(std::size_t i)
{
    const steady_time now = owner_->time()->now();
    latency_window& seen = owner_->latencies(request().options.stream);
    seen.add(now - runners_[i].began);
    // It took at least this long; left out, the latencies would look better than they are.
    if (i == 1) seen.add(now - runners_[0].began);
    runners_[1 - i].call.reset();
    set_call(std::move(runners_[i].call));
    pending_ = std::move(runners_[i].batches);
    more_ = runners_[i].more;
}

awaitable<void> hedge_call::race()
{
    patience_ = owner_->patience(request().options.stream);
    const steady_time now = owner_->time()->now();
    const steady_time deadline = request().options.deadline;
    if (!patience_ || (deadline != steady_time::max() && now + *patience_ >= deadline)) {
        co_await run(0);
        win(0);
        co_return;
    }
    std::vector<awaitable<void>> attempts;
    attempts.push_back(run(0));
    attempts.push_back(run(1));
    stop_predicate<void> stop = [this](std::size_t i, const branch_outcome<void>& o) { return over(i, o); };
    gather_options how;
    std::vector<branch_outcome<void>> outcomes = co_await gather<void>(std::move(attempts), how, std::move(stop));
    if (first_) {
        win(*first_);
        co_return;
    }
    const bool halted = outcomes[1].status() == branch_status::failed && failure_view(outcomes[1].failure()).passes();
    std::rethrow_exception(halted ? outcomes[1].failure() : outcomes[0].failure());
}

awaitable<bool> hedge_call::read(event_batch& batch)
{
    batch.clear();
    std::exception_ptr failure;
    try {
        if (!raced_) {
            raced_ = true;
            co_await race();
        }
        if (pending_.empty()) more_ = co_await call().read(batch);
    } catch (...) {
        failure = std::current_exception();
    }
    if (failure) {
        if (!has_call()) set_call(std::move(runners_[0].call));
        drop_call();
        runners_[1].call.reset();
        throw_stamped(failure);
    }
    if (!pending_.empty()) {
        batch = std::move(pending_.front());
        pending_.pop_front();
    }
    if (more_ || !pending_.empty()) co_return true;
    finish();
    co_return false;
}

}  // namespace

}  // namespace providers_detail

provider_ptr with_hedge(provider_ptr inner, hedge_options options)
{
    return std::make_shared<providers_detail::hedge_provider>(std::move(inner), std::move(options));
}

}  // namespace reagent::inline v0

// Calls through each wrapper, cancelled after every handler: alone, and several at once where they wait for one another.
#include "cancel_world.hpp"
#include "paying_gate.hpp"

#include <reagent/base/gather.hpp>
#include <reagent/providers/circuit_breaker.hpp>
#include <reagent/providers/concurrency_limit.hpp>
#include <reagent/providers/fallback.hpp>
#include <reagent/providers/hedge.hpp>
#include <reagent/providers/rate_limiter.hpp>
#include <reagent/providers/response_cache.hpp>
#include <reagent/providers/retry.hpp>

#include <gtest/gtest.h>

namespace {
namespace wrapper_cancel_test {

using namespace cancel_tests;
using paying_gate_detail::paying_gate;

std::string ok()
{
    return rt::http_response(200, rt::openai_answer("abc"));
}

std::string busy()
{
    return rt::http_response(429, R"({"error":{"message":"slow down"}})", {{"Retry-After", "1"}});
}

/// What the calls of a case share.
class shared_parts {
public:
    explicit shared_parts(const clock_ptr& clock)
        : breaker(circuit_options().clock(clock)),
          limit(concurrency_options(1).clock(clock)),
          limiter(rate_options().requests_per_minute(1).clock(clock)),
          cache(cache_options().clock(clock)),
          retry(retry_options().clock(clock)),
          timed(retry_options().clock(clock).attempt_limit(5s)),
          fallback(fallback_options().clock(clock)),
          hedge(hedge_options().clock(clock).delay(0ms))
    {}
    circuit_breaker breaker;
    concurrency_limit limit;
    rate_limiter limiter;
    response_cache cache;
    retry_options retry, timed;
    fallback_options fallback;
    hedge_options hedge;
};

struct row {
    const char* name;
    std::vector<std::string> answers;
    int calls;
    std::function<provider_ptr(provider_ptr, shared_parts&)> wrap;
};

const std::vector<row>& rows()
{
    static const std::vector<row> all = {
        {"retry", {busy(), ok()}, 1, [](provider_ptr p, shared_parts& s) { return with_retry(p, s.retry); }},
        {"retry with a limit for each attempt", {busy(), ok()}, 1, [](provider_ptr p, shared_parts& s) { return with_retry(p, s.timed); }},
        {"fallback",
         {busy(), ok()},
         1,
         [](provider_ptr p, shared_parts& s) {
             return with_fallback({p, p}, s.fallback);
         }},
        {"circuit breaker", {ok()}, 1, [](provider_ptr p, shared_parts& s) { return with_circuit_breaker(p, s.breaker); }},
        {"concurrency limit", {ok()}, 3, [](provider_ptr p, shared_parts& s) { return with_concurrency_limit(p, s.limit); }},
        {"rate limit", {ok()}, 2, [](provider_ptr p, shared_parts& s) { return with_rate_limit(p, s.limiter); }},
        {"hedge", {ok()}, 1, [](provider_ptr p, shared_parts& s) { return with_hedge(p, s.hedge); }},
        {"cache and single flight", {ok()}, 3, [](provider_ptr p, shared_parts& s) { return with_response_cache(p, s.cache); }},
        {"all of them",
         {busy(), ok()},
         2,
         [](provider_ptr p, shared_parts& s) {
             p = with_concurrency_limit(with_circuit_breaker(p, s.breaker), s.limit);
             return with_response_cache(with_retry(with_hedge(with_fallback({p, p}, s.fallback), s.hedge), s.timed), s.cache);
         }},
    };
    return all;
}

class wrapper_case final : public rt::cancel_case {
public:
    wrapper_case(asio::io_context& io, const row& r)
        : world_(io, wire::plain, r.answers), parts_(world_.clock), calls_(r.calls), model_(r.wrap(world_.model, parts_)), gate_(money_)
    {}
    awaitable<void> operation() override
    {
        std::vector<awaitable<void>> calls;
        for (int i = 0; i < calls_; ++i) calls.push_back(one());
        gather_options how;
        std::vector<branch_outcome<void>> outcomes = co_await gather<void>(std::move(calls), how);
        for (const branch_outcome<void>& o : outcomes)
            if (!o) std::rethrow_exception(o.failure());
    }
    void finish() override { world_.finish(); }
    std::shared_ptr<rt::manual_clock> clock() override { return world_.manual; }
    std::string verify(const rt::cancel_outcome& o) override
    {
        std::string out = world_.trouble + complaints_of(o) + complaints_of(money_);
        if (parts_.limit.active() != 0 || parts_.limit.waiting() != 0) out += "the concurrency limit is still held; ";
        if (parts_.limiter.waiting() != 0) out += "somebody still waits for a rate window; ";
        if (parts_.cache.stats().in_flight != 0) out += "a flight never landed; ";
        if (!o.failure && answered_ != calls_) out += std::to_string(answered_) + " calls were answered; ";
        return out;
    }

private:
    awaitable<void> one()
    {
        generate_request request(transcript{message::user("hi")});
        request.options.temperature = 0;
        request.options.max_tokens = 50;
        request.gate = &gate_;
        generate_result r = co_await model_->generate(std::move(request));
        if (r.text == "abc") ++answered_;
    }

    provider_world world_;
    shared_parts parts_;
    int calls_, answered_ = 0;
    provider_ptr model_;
    budget money_ = budget("team", budget_caps(std::nullopt, 100'000)).child("call");
    paying_gate gate_;
};

TEST(CancelWrappers, NothingOfThemStays)
{
    for (const row& r : rows()) {
        const rt::cancel_report report = rt::cancel_everywhere([&](asio::io_context& io) { return std::make_unique<wrapper_case>(io, r); });
        EXPECT_TRUE(report) << r.name << ": " << report;
        EXPECT_GT(report.aborted, 2U) << r.name << ": " << report;
    }
}

TEST(CancelWrappers, NothingStaysAfterAnImpatientHost)
{
    for (const row& r : rows()) {
        rt::cancel_options options;
        options.again(impatience);
        const rt::cancel_report report = rt::cancel_everywhere([&](asio::io_context& io) { return std::make_unique<wrapper_case>(io, r); }, options);
        EXPECT_TRUE(report) << r.name << ": " << report;
    }
}

}  // namespace wrapper_cancel_test
}  // namespace

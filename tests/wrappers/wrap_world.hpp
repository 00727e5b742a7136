/// What the tests of the wrappers share: a context under manual time, and providers that fail as told.
#pragma once
#include "live_world.hpp"

#include <reagent/model/scripted_provider.hpp>
#include <reagent/testing/mock_server.hpp>

#include <algorithm>
#include <chrono>
#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace wrap_world_detail {

using namespace reagent;
using namespace std::chrono_literals;
using reagent::live_world_detail::asking;
using reagent::live_world_detail::observe;
using reagent::live_world_detail::observed_call;
using reagent::live_world_detail::recording_gate;
namespace rt = reagent::testing;
using std::chrono::milliseconds;

inline provider_error refusal(int status, bool retryable = true, std::optional<milliseconds> retry_after = std::nullopt)
{
    provider_error e(status == 429 ? errc::rate_limited : errc::provider_failed, "[Test] HTTP " + std::to_string(status), retryable);
    e.status = status;
    e.retry_after = retry_after;
    return e;
}

inline scripted_round failing(provider_error e, std::size_t times = 1)
{
    scripted_round r;
    r.error(std::move(e)).times(times);
    return r;
}

/// A round that fails after `n` deltas of one character.
inline scripted_round failing_after(std::size_t n, provider_error e)
{
    scripted_round r(std::string(n, 'x'));
    r.deltas(n).error(std::move(e));
    return r;
}

/// Draws the same number, as a share of one, for ever.
inline random_source always(double unit)
{
    const auto bits = static_cast<std::uint64_t>(unit * 0x1p53) << 11U;
    return [bits] { return bits; };
}

/// Draws from a series that starts anew with each test.
inline random_source seeded(std::uint64_t state = 1)
{
    return [state]() mutable {
        state += 0x9e3779b97f4a7c15U;
        std::uint64_t z = state;
        z = (z ^ (z >> 30U)) * 0xbf58476d1ce4e5b9U;
        z = (z ^ (z >> 27U)) * 0x94d049bb133111ebU;
        return z ^ (z >> 31U);
    };
}

inline awaitable<void> pause(clock_ptr clock, duration d)
{
    return sleep_until(clock, clock->now() + d);
}

class world {
public:
    observed_call call(provider_ptr p, generate_request request)
    {
        io.restart();
        return rt::complete(io, *clock, observe(std::move(p), std::move(request)));
    }
    generate_result generate(provider_ptr p, generate_request request)
    {
        io.restart();
        return rt::complete(io, *clock, p->generate(std::move(request)));
    }
    /// The failure of `generate`, or null.
    std::exception_ptr failure(provider_ptr p, generate_request request = asking("hi"))
    {
        try {
            static_cast<void>(generate(std::move(p), std::move(request)));
        } catch (...) {
            return std::current_exception();
        }
        return nullptr;
    }
    /// A delay of a scripted round, in manual time.
    std::function<awaitable<void>()> slow(duration d)
    {
        return [c = clock, d] { return pause(c, d); };
    }
    milliseconds elapsed() const { return std::chrono::duration_cast<milliseconds>(clock->now() - began_); }

    std::shared_ptr<rt::manual_clock> clock = std::make_shared<rt::manual_clock>();
    asio::io_context io{1};

private:
    steady_time began_ = clock->now();
};

inline std::vector<std::int64_t> waits_of(const std::vector<attempt_record>& records)
{
    std::vector<std::int64_t> out;
    for (const attempt_record& r : records) out.push_back(std::chrono::duration_cast<milliseconds>(r.waited).count());
    return out;
}

/// `answered:scripted`, `failed:openai`, … in order.
inline std::vector<std::string> ends_of(const std::vector<attempt_record>& records)
{
    std::vector<std::string> out;
    for (const attempt_record& r : records) out.push_back(std::string(to_string(r.end)) + ":" + r.provider);
    return out;
}

}  // namespace wrap_world_detail

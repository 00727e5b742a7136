#pragma once
#include <reagent/model/provider.hpp>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>

namespace reagent::inline v0 {

/// Setters chain.
class cache_options {
public:
    cache_options() = default;
    /// Answers kept; the longest unused goes first. 0 keeps none and only lets calls of the same moment share one answer. Default 1000.
    cache_options& max_entries(std::size_t n) { return max_entries_ = n, *this; }
    /// Bytes of keys and answers kept, reckoned by their JSON. Default 64 MiB.
    cache_options& max_bytes(std::size_t n) { return max_bytes_ = n, *this; }
    /// How long an answer is good. Default an hour.
    cache_options& ttl(std::chrono::milliseconds t) { return ttl_ = t, *this; }
    /// Whether equal calls of the same moment share one answer. Default true.
    cache_options& single_flight(bool on) { return single_flight_ = on, *this; }
    /// Which requests may get the answer of another. Default: those that say `temperature` 0 and offer no tools.
    cache_options& when(std::function<bool(const generate_request&)> shareable) { return when_ = std::move(shareable), *this; }
    cache_options& clock(clock_ptr c) { return clock_ = std::move(c), *this; }

    std::size_t max_entries() const noexcept { return max_entries_; }
    std::size_t max_bytes() const noexcept { return max_bytes_; }
    std::chrono::milliseconds ttl() const noexcept { return ttl_; }
    bool single_flight() const noexcept { return single_flight_; }
    const std::function<bool(const generate_request&)>& when() const noexcept { return when_; }
    const clock_ptr& clock() const noexcept { return clock_; }

private:
    std::size_t max_entries_ = 1000, max_bytes_ = std::size_t{64} << 20U;
    std::chrono::milliseconds ttl_ = std::chrono::hours(1);
    bool single_flight_ = true;
    std::function<bool(const generate_request&)> when_;
    clock_ptr clock_;
};

class cache_stats {
public:
    std::size_t entries = 0, bytes = 0, in_flight = 0;
    std::uint64_t hits = 0, shared = 0, misses = 0;
};

/// Answers of earlier calls, and calls that wait for an answer together. A handle on shared state; thread safe.
class response_cache {
public:
    explicit response_cache(cache_options options = cache_options());
    cache_stats stats() const;
    /// Drops every answer kept.
    void clear();

    struct impl;
    const std::shared_ptr<impl>& shared() const noexcept { return impl_; }

private:
    std::shared_ptr<impl> impl_;
};

/// What makes two requests one: messages, tools and options as canonical JSON, in which the order of members and the spelling of numbers do not count. How the
/// answer travels (streaming, time limits) is no part of it.
std::string request_key(std::string_view scope, std::string_view provider, std::string_view model, const generate_request& request);

/// Answers shareable requests from `cache` where it can. Such an answer costs nothing: no attempt, no usage, `cost` 0, and it comes without thinking events.
/// Kept are answers that ended by themselves (`end_turn`, `stop_sequence`, `tool_use`), never failures. Calls in one piece (`options.stream` false, as `generate` asks)
/// that meet share one request: when its caller is cancelled, halted or out of time, another of them sends it; an error of the service reaches all. Streams do not,
/// since all would wait for the reader of one. `scope` joins the caches of several providers that answer alike; empty, this one's answers are its own.
provider_ptr with_response_cache(provider_ptr inner, response_cache cache, std::string scope = {});

}  // namespace reagent::inline v0

#pragma once
#include <reagent/base/asio.hpp>
#include <reagent/base/usd.hpp>
#include <reagent/model/generate.hpp>

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

namespace reagent::inline v0 {

/// What is about to leave.
class attempt_info {
public:
    attempt_info() = default;
    std::string model;
    std::uint64_t input_bound = 0;              ///< tokens: bytes of the body (a token is at least one byte), images by table
    std::optional<std::uint64_t> output_bound;  ///< the call's `max_tokens`; empty when none was set
    unsigned number = 1;                        ///< attempt of this logical call, from 1
};

/// How an attempt ended (design §4).
class attempt_outcome {
public:
    attempt_outcome() = default;
    bool request_left = false;            ///< any byte of the request was handed to the kernel
    bool complete = false;                ///< a whole answer was read
    int status = 0;                       ///< HTTP status, 0 when no head came
    std::optional<reagent::usage> usage;  ///< as reported
    std::uint64_t received_bytes = 0;     ///< decoded text and argument bytes received
    std::optional<usd> cost;              ///< authoritative price
    std::string model;                    ///< id of the response, empty when none
};

/// Right to one attempt. Settle it once; a permit that dies unsettled settles as "left, not complete" when `mark_sent` was called, else releases.
class permit {
public:
    class state {
    public:
        virtual ~state() = default;
        virtual void settle(const attempt_outcome& outcome) noexcept = 0;
        /// Cumulative usage reported by a running stream. False: the budget is passed, cut the stream with `halt_rule()`.
        virtual bool observe(const reagent::usage& so_far) noexcept = 0;
        virtual std::string halt_rule() const = 0;
    };
    permit() noexcept = default;
    explicit permit(std::unique_ptr<state> s) noexcept : state_(std::move(s)) {}
    permit(permit&& other) noexcept = default;
    permit& operator=(permit&& other) noexcept;
    ~permit();
    void mark_sent() noexcept { sent_ = true; }
    void settle(const attempt_outcome& outcome) noexcept;
    bool observe(const reagent::usage& so_far) noexcept { return !state_ || state_->observe(so_far); }
    std::string halt_rule() const { return state_ ? state_->halt_rule() : std::string(); }

private:
    std::unique_ptr<state> state_;
    bool sent_ = false;
};

/// Asked before every model attempt that leaves, so retries and hedges pass the gate without knowing it. May wait for a person, a rate window or
/// for money. Throws `halt_error` when the run is over. Cancellation: terminal and total; then nothing was reserved.
class attempt_gate {
public:
    virtual ~attempt_gate() = default;
    virtual awaitable<permit> admit(attempt_info attempt) = 0;
    /// True when `admit` never suspends and never refuses, so that a caller may skip it (no budget, no limits, no audit).
    virtual bool open() const noexcept { return false; }
};

}  // namespace reagent::inline v0

/// What the wrappers have in common.
#pragma once
#include "failure_view.hpp"

#include <reagent/model/provider.hpp>

#include <memory>

namespace reagent::inline v0::providers_detail {

/// `inner` below a layer that records its attempts, unless it is a wrapper, which has one.
provider_ptr with_records(provider_ptr inner, std::string_view component);

/// A provider made of others. It answers for the first of them, and every attempt below it passes the gate.
class wrapping_provider : public provider {
public:
    /// Throws `validation_error` for a null provider.
    wrapping_provider(provider_ptr inner, clock_ptr clock, std::string_view component);
    std::string_view name() const noexcept override { return inner_->name(); }
    std::string_view model() const noexcept override { return inner_->model(); }
    std::optional<std::uint64_t> max_output() const noexcept override { return inner_->max_output(); }
    bool admits_attempts() const noexcept override { return true; }
    /// Gives the request a log and fixes the call's deadline, so that all attempts share it.
    model_call_ptr start(generate_request request) final;
    /// In one piece; who sees no deltas minds no resets.
    awaitable<generate_result> generate(generate_request request) final;
    const provider_ptr& inner() const noexcept { return inner_; }
    const clock_ptr& time() const noexcept { return clock_; }

protected:
    virtual model_call_ptr begin(generate_request request) = 0;

private:
    provider_ptr inner_;
    clock_ptr clock_;
};

/// A call that has others below it, one at a time.
class wrapping_call : public model_call {
public:
    explicit wrapping_call(generate_request request) : request_(std::move(request)) {}
    generate_result take_result() override { return std::move(result_); }
    std::string partial_text() const override { return call_ ? call_->partial_text() : partial_; }

protected:
    const generate_request& request() const noexcept { return request_; }
    generate_request& request() noexcept { return request_; }
    model_call& call() noexcept { return *call_; }
    bool has_call() const noexcept { return call_ != nullptr; }
    void set_call(model_call_ptr c) noexcept { call_ = std::move(c); }
    /// Closes the call below and keeps its text.
    void drop_call();
    /// The call below has ended with a result.
    void finish();
    void finish(generate_result result);
    /// Writes the attempts into what is about to be thrown.
    void throw_stamped(const std::exception_ptr& failure);

private:
    generate_request request_;
    model_call_ptr call_;
    generate_result result_;
    std::string partial_;
};

}  // namespace reagent::inline v0::providers_detail

/// The innermost layer below every wrapper: it writes down each attempt of the provider it stands for, and admits those of a provider that does not.
#pragma once
#include <reagent/model/attempt_gate.hpp>
#include <reagent/model/attempt_log.hpp>
#include <reagent/model/provider.hpp>

#include <memory>
#include <optional>
#include <string>

namespace reagent::inline v0::providers_detail {

/// Stands between a provider and the caller's gate, and so sees every request that leaves.
class recording_gate final : public attempt_gate {
public:
    recording_gate(attempt_gate* outer, std::shared_ptr<attempt_log> log, std::string provider, std::string model);
    awaitable<permit> admit(attempt_info attempt) override;
    /// How the provider's call ended, which says how its last attempt did. Idempotent.
    void ended(attempt_end end, error_code error = {}) noexcept;

private:
    attempt_gate* outer_;
    std::shared_ptr<attempt_log> log_;
    std::string provider_, model_;
    std::optional<std::size_t> last_;
};

class recorded_provider final : public provider {
public:
    explicit recorded_provider(provider_ptr inner) : inner_(std::move(inner)) {}
    std::string_view name() const noexcept override { return inner_->name(); }
    std::string_view model() const noexcept override { return inner_->model(); }
    std::optional<std::uint64_t> max_output() const noexcept override { return inner_->max_output(); }
    bool admits_attempts() const noexcept override { return true; }
    model_call_ptr start(generate_request request) override;

private:
    provider_ptr inner_;
};

class recorded_call final : public model_call {
public:
    /// `request.log` is set.
    recorded_call(provider_ptr inner, generate_request request);
    ~recorded_call() override;
    recorded_call(const recorded_call&) = delete;
    recorded_call& operator=(const recorded_call&) = delete;
    awaitable<bool> read(event_batch& batch) override;
    generate_result take_result() override { return std::move(result_); }
    std::string partial_text() const override { return call_ ? call_->partial_text() : partial_; }

private:
    awaitable<bool> step(event_batch& batch);
    attempt_info describe() const;
    void watch(const event_batch& batch, bool more);
    void fail(const std::exception_ptr& failure) noexcept;

    provider_ptr inner_;
    generate_request request_;
    recording_gate gate_;  // outlives the call that it admits
    model_call_ptr call_;
    bool admits_;  // for the provider, which does not itself
    bool begun_ = false;
    permit permit_;
    attempt_outcome outcome_;
    generate_result result_;
    std::string partial_;
};

}  // namespace reagent::inline v0::providers_detail

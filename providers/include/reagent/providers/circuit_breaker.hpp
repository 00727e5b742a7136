#pragma once
#include <reagent/base/error.hpp>
#include <reagent/model/provider.hpp>

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>

namespace reagent::inline v0 {

enum class circuit_phase : std::uint8_t {
    closed,     ///< calls pass
    open,       ///< no call passes until `reset_after` is over
    half_open,  ///< one call probes
};
std::string_view to_string(circuit_phase p) noexcept;

/// No call was made because too many failed of late (CircuitOpenError). Retryable.
class circuit_open_error : public error {
public:
    explicit circuit_open_error(const std::string& key) : error(errc::circuit_open, "Circuit \"" + key + "\" is open", true) {}
};

/// Setters chain.
class circuit_options {
public:
    circuit_options() = default;
    /// Consecutive failures that open the circuit. Default 5; 0 takes the default.
    circuit_options& threshold(unsigned n) { return threshold_ = n == 0 ? 5 : n, *this; }
    /// How long it stays open. Default 60 s; 0 takes the default.
    circuit_options& reset_after(std::chrono::milliseconds t)
    {
        reset_after_ = t.count() <= 0 ? std::chrono::milliseconds(60'000) : t;
        return *this;
    }
    /// Told of each change, in order within a thread; may use the breaker.
    circuit_options& on_change(std::function<void(std::string_view key, circuit_phase from, circuit_phase to)> f) { return told_ = std::move(f), *this; }
    circuit_options& clock(clock_ptr c) { return clock_ = std::move(c), *this; }

    unsigned threshold() const noexcept { return threshold_; }
    std::chrono::milliseconds reset_after() const noexcept { return reset_after_; }
    const std::function<void(std::string_view, circuit_phase, circuit_phase)>& on_change() const noexcept { return told_; }
    const clock_ptr& clock() const noexcept { return clock_; }

private:
    unsigned threshold_ = 5;
    std::chrono::milliseconds reset_after_ = std::chrono::seconds(60);
    std::function<void(std::string_view, circuit_phase, circuit_phase)> told_;
    clock_ptr clock_;
};

/// Circuits by key (spec/loop-and-providers.md §11.2). A handle on shared state; thread safe.
/// What counts as a failure: an error that is retryable, a broken transport, a timeout. Other errors of the service prove that it answers: they close a half-open
/// circuit and change nothing else. A cancellation, a halt, a validation or configuration error says nothing.
class circuit_breaker {
public:
    explicit circuit_breaker(circuit_options options = circuit_options());
    circuit_phase phase(std::string_view key = "default") const;
    /// Closes the circuit and forgets its failures.
    void reset(std::string_view key = "default");

    struct impl;
    const std::shared_ptr<impl>& shared() const noexcept { return impl_; }

private:
    std::shared_ptr<impl> impl_;
};

/// Calls of `inner` pass while the circuit `key` lets them; else `circuit_open_error`, and nothing leaves.
provider_ptr with_circuit_breaker(provider_ptr inner, circuit_breaker breaker, std::string key = "default");

}  // namespace reagent::inline v0

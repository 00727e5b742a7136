/// One circuit. Without I/O, clock or lock.
#pragma once
#include <reagent/base/clock.hpp>
#include <reagent/providers/circuit_breaker.hpp>

#include <cstdint>
#include <optional>

namespace reagent::inline v0::providers_detail {

/// Right to one call; its outcome is told with it. One of an earlier generation says nothing any more.
using circuit_pass = std::uint64_t;

class circuit_state {
public:
    circuit_state(unsigned threshold, duration reset_after) noexcept : threshold_(threshold), reset_after_(reset_after) {}
    circuit_phase phase() const noexcept { return phase_; }
    /// Nothing: no call may be made.
    std::optional<circuit_pass> admit(steady_time now) noexcept;
    void succeeded(circuit_pass pass) noexcept;
    /// The service answered, though with an error that is not its fault.
    void answered(circuit_pass pass) noexcept;
    void failed(circuit_pass pass, steady_time now) noexcept;
    /// The call ended without telling anything of the service.
    void abandoned(circuit_pass pass) noexcept;
    void reset() noexcept;

private:
    void close() noexcept;
    void open(steady_time now) noexcept;

    unsigned threshold_;
    duration reset_after_;
    circuit_phase phase_ = circuit_phase::closed;
    unsigned failures_ = 0;
    steady_time opened_{};
    circuit_pass generation_ = 0;
    bool probing_ = false;
};

}  // namespace reagent::inline v0::providers_detail

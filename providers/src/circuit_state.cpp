#include "circuit_state.hpp"

namespace reagent::inline v0::providers_detail {

std::optional<circuit_pass> circuit_state::admit(steady_time now) noexcept
{
    if (phase_ == circuit_phase::closed) return generation_;
    if (phase_ == circuit_phase::open) {
        if (now - opened_ < reset_after_) return std::nullopt;
        phase_ = circuit_phase::half_open;
        ++generation_;
    }
    if (probing_) return std::nullopt;
    probing_ = true;
    return generation_;
}

void circuit_state::succeeded(circuit_pass pass) noexcept
{
    if (pass == generation_) close();
}

void circuit_state::answered(circuit_pass pass) noexcept
{
    if (pass == generation_ && phase_ == circuit_phase::half_open) close();
}

void circuit_state::failed(circuit_pass pass, steady_time now) noexcept
{
    if (pass != generation_ || phase_ == circuit_phase::open) return;
    if (phase_ == circuit_phase::half_open || ++failures_ >= threshold_) open(now);
}

void circuit_state::abandoned(circuit_pass pass) noexcept
{
    if (pass == generation_) probing_ = false;
}

void circuit_state::reset() noexcept
{
    ++generation_;
    close();
}

void circuit_state::close() noexcept
{
    phase_ = circuit_phase::closed;
    failures_ = 0;
    probing_ = false;
}

void circuit_state::open(steady_time now) noexcept
{
    phase_ = circuit_phase::open;
    opened_ = now;
    failures_ = 0;
    probing_ = false;
}

}  // namespace reagent::inline v0::providers_detail

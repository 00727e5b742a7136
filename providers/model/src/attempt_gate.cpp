#include <reagent/model/attempt_gate.hpp>

namespace reagent::inline v0 {

permit& permit::operator=(permit&& other) noexcept
{
    if (this != &other) {
        attempt_outcome unsettled;
        unsettled.request_left = sent_;
        settle(unsettled);
        state_ = std::move(other.state_);
        sent_ = other.sent_;
        other.sent_ = false;
    }
    return *this;
}

permit::~permit()
{
    attempt_outcome unsettled;
    unsettled.request_left = sent_;
    settle(unsettled);
}

void permit::settle(const attempt_outcome& outcome) noexcept
{
    if (!state_) return;
    const std::unique_ptr<state> once = std::move(state_);
    once->settle(outcome);
}

}  // namespace reagent::inline v0

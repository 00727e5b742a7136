/// A gate that pays for each attempt from a budget.
#pragma once
#include <reagent/base/error.hpp>
#include <reagent/governance/budget.hpp>
#include <reagent/model/attempt_gate.hpp>

#include <algorithm>
#include <memory>
#include <utility>

namespace paying_gate_detail {

using namespace reagent;

/// Reserves the worst case of an attempt in tokens, settles what was used, and notes the most that was ever promised.
class paying_gate final : public attempt_gate {
public:
    explicit paying_gate(budget b) : money(std::move(b)) {}
    awaitable<permit> admit(attempt_info attempt) override
    {
        ++asked;
        const budget_amount worst(usd(), attempt.input_bound + attempt.output_bound.value_or(0));
        admission a = co_await money.reserve(worst);
        if (a.refused) throw halt_error("budget.maxTokens");
        const budget_state s = money.state();
        most = std::max(most, s.reserved.tokens + s.spent.tokens);
        co_return permit(std::make_unique<holder>(std::move(a.held)));
    }
    budget money;
    std::uint64_t most = 0;
    unsigned asked = 0;

private:
    class holder final : public permit::state {
    public:
        explicit holder(reservation r) : held_(std::move(r)) {}
        void settle(const attempt_outcome& o) noexcept override
        {
            if (o.usage) held_.settle(budget_amount(usd(), o.usage->total()));
            else if (!o.request_left) held_.release();
            else held_.settle(held_.held());
        }
        bool observe(const usage&) noexcept override { return true; }
        std::string halt_rule() const override { return "budget.maxTokens"; }

    private:
        reservation held_;
    };
};

}  // namespace paying_gate_detail

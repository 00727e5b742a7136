/// The gate the measured calls pass: a real reservation on a shared budget before each attempt, settled afterwards, as a governed run does it.
#pragma once
#include <reagent/governance/budget.hpp>
#include <reagent/model/attempt_bound.hpp>
#include <reagent/model/attempt_gate.hpp>
#include <reagent/model/pricing.hpp>

#include <memory>
#include <string>
#include <utility>

namespace bench {

class budget_gate final : public reagent::attempt_gate {
public:
    explicit budget_gate(reagent::budget money) : money_(std::move(money)) {}

    reagent::awaitable<reagent::permit> admit(reagent::attempt_info attempt) override
    {
        const std::uint64_t output = reagent::output_bound(attempt.output_bound, attempt.model).value_or(0);
        const auto worst = reagent::worst_cost(attempt.input_bound, output, attempt.model, {});
        reagent::admission held = co_await money_.reserve(reagent::budget_amount(worst.value_or(reagent::usd()), attempt.input_bound + output));
        co_return reagent::permit(std::make_unique<held_attempt>(std::move(held.held), std::move(attempt.model)));
    }

    /// A cap no measurement reaches.
    static reagent::budget ample() { return reagent::budget("bench", reagent::budget_caps(reagent::usd("1000000000"))); }

private:
    class held_attempt final : public reagent::permit::state {
    public:
        held_attempt(reagent::reservation held, std::string model) : held_(std::move(held)), model_(std::move(model)) {}
        void settle(const reagent::attempt_outcome& outcome) noexcept override
        {
            const auto price = reagent::price_usage(outcome.usage, outcome.cost, model_, {});
            const std::uint64_t tokens = outcome.usage ? outcome.usage->total() : held_.held().tokens;
            held_.settle(reagent::budget_amount(price.cost.value_or(held_.held().cost), tokens));
        }
        bool observe(const reagent::usage&) noexcept override { return true; }
        std::string halt_rule() const override { return {}; }

    private:
        reagent::reservation held_;
        std::string model_;
    };

    reagent::budget money_;
};

}  // namespace bench

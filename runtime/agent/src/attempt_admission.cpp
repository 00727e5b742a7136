#include "attempt_admission.hpp"

#include <reagent/base/error.hpp>
#include <reagent/base/untrusted_text.hpp>
#include <reagent/model/attempt_bound.hpp>

#include <algorithm>

namespace reagent::inline v0::agent_detail {
namespace {

std::uint64_t sum(std::uint64_t a, std::uint64_t b) noexcept
{
    return a > UINT64_MAX - b ? UINT64_MAX : a + b;
}

/// One admitted attempt.
class held_attempt final : public permit::state {
public:
    held_attempt(reservation held, std::shared_ptr<attempt_ledger> ledger, std::optional<reagent::rates> prices, std::string model, std::uint64_t input_bound)
        : held_(std::move(held)), ledger_(std::move(ledger)), prices_(std::move(prices)), model_(std::move(model)), input_bound_(input_bound)
    {}

    void settle(const attempt_outcome& outcome) noexcept override
    {
        if (!held_) return;
        if (outcome.usage || outcome.cost) return settle_reported(outcome);
        if (!outcome.request_left) return held_.release();
        if (outcome.complete && outcome.status >= 400) return held_.settle(budget_amount());
        const budget_amount guess = estimate(outcome);
        ++ledger_->estimated;
        ledger_->extra_cost += guess.cost;
        held_.settle(guess);
    }

    bool observe(const usage& so_far) noexcept override
    {
        if (!held_) return true;
        const priced_usage price = price_usage(so_far, std::nullopt, model_, prices_);
        const std::optional<budget_dimension> passed = held_.passes(budget_amount(price.cost.value_or(usd()), so_far.total()));
        if (passed) rule_ = std::string(budget_rule(*passed));
        return !passed;
    }

    std::string halt_rule() const override { return rule_; }

private:
    void settle_reported(const attempt_outcome& outcome) noexcept
    {
        const std::string& model = outcome.model.empty() ? model_ : outcome.model;
        const priced_usage price = price_usage(outcome.usage, outcome.cost, model, prices_);
        const std::uint64_t tokens = outcome.usage ? outcome.usage->total() : estimate(outcome).tokens;
        if (!outcome.complete || outcome.status >= 400) ledger_->extra_cost += price.cost.value_or(usd());
        held_.settle(budget_amount(price.cost.value_or(usd()), tokens));
    }

    /// The input bound plus what was received, at most the reservation.
    budget_amount estimate(const attempt_outcome& outcome) const noexcept
    {
        const budget_amount& most = held_.held();
        const std::optional<usd> cost = worst_cost(input_bound_, outcome.received_bytes, model_, prices_);
        return budget_amount(std::min(cost.value_or(most.cost), most.cost), std::min(sum(input_bound_, outcome.received_bytes), most.tokens));
    }

    reservation held_;
    std::shared_ptr<attempt_ledger> ledger_;
    std::optional<reagent::rates> prices_;
    std::string model_, rule_;
    std::uint64_t input_bound_;
};

std::string shown(std::string_view model)
{
    return model.empty() ? "a provider without a model id" : "model " + untrusted_text(model, 80);
}

[[noreturn]] void no_price(std::string_view model)
{
    throw config_error("budget.maxCostUsd: no price is known for " + shown(model) + "; give `rates`, or cap tokens instead");
}

[[noreturn]] void unbounded(std::string_view model)
{
    throw config_error("budget.unbounded: no output bound is known for " + shown(model) + "; set max_tokens, so that the worst case of a call can be reserved");
}

}  // namespace

run_admission::run_admission(run_gate& gate, std::optional<reagent::rates> prices, std::string model, std::function<bool()> stopped)
    : gate_(gate), prices_(std::move(prices)), model_(std::move(model)), stopped_(std::move(stopped))
{}

budget_amount run_admission::worst_case(const attempt_info& attempt, const std::string& model) const
{
    const budget& money = gate_.money();
    if (!money) return budget_amount();
    const bool capped = money.caps_cost() || money.caps_tokens();
    const std::optional<std::uint64_t> output = output_bound(attempt.output_bound, model);
    if (!output && capped) unbounded(model);
    const std::optional<usd> cost = worst_cost(attempt.input_bound, output.value_or(0), model, prices_);
    if (!cost && money.caps_cost()) no_price(model);
    return budget_amount(cost.value_or(usd()), sum(attempt.input_bound, output.value_or(0)));
}

void run_admission::refuse_when_stopped(const attempt_info& attempt)
{
    if (attempt.number > 1 || !stopped_ || !stopped_()) return;
    refused_by_stop_ = true;
    // As a halt it passes through whatever retries or hedges.
    throw halt_error("stopped", "the run was stopped before the call was sent");
}

awaitable<permit> run_admission::admit(attempt_info attempt)
{
    refuse_when_stopped(attempt);
    std::string model = attempt.model.empty() ? model_ : attempt.model;
    const budget_amount worst = worst_case(attempt, model);
    action subject = action::llm(model);
    reservation held = co_await gate_.admit(std::move(subject), worst);
    refuse_when_stopped(attempt);
    ++ledger_->admitted;
    auto state = std::make_unique<held_attempt>(std::move(held), ledger_, prices_, std::move(model), attempt.input_bound);
    co_return permit(std::move(state));
}

void check_caps(bool cost, bool tokens, std::string_view model, const std::optional<reagent::rates>& prices, std::optional<std::uint64_t> max_tokens)
{
    if (cost && !has_known_price(model, prices)) no_price(model);
    if ((cost || tokens) && !output_bound(max_tokens, model)) unbounded(model);
}

}  // namespace reagent::inline v0::agent_detail

#pragma once
#include <reagent/governance/gate.hpp>
#include <reagent/model/attempt_gate.hpp>
#include <reagent/model/pricing.hpp>

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>

namespace reagent::inline v0::agent_detail {

/// What the attempts of a run came to, beside the rounds that completed with reported usage.
class attempt_ledger {
public:
    std::uint64_t admitted = 0;
    std::uint64_t estimated = 0;  ///< attempts settled without reported usage after they had left
    usd extra_cost;               ///< of attempts that no completed round reports
};

/// The one place where usage becomes price, action and reservation (design §4): the gate's rules, then the budget with the worst case of the
/// attempt. One per run.
class run_admission final : public attempt_gate {
public:
    /// `stopped`: whether the run begins nothing more. A call's first attempt is then refused; a call that has begun goes on.
    run_admission(run_gate& gate, std::optional<reagent::rates> prices, std::string model, std::function<bool()> stopped = {});
    awaitable<permit> admit(attempt_info attempt) override;
    bool open() const noexcept override { return gate_.open() && !gate_.money(); }
    const attempt_ledger& ledger() const noexcept { return *ledger_; }
    bool refused_by_stop() const noexcept { return refused_by_stop_; }

private:
    budget_amount worst_case(const attempt_info& attempt, const std::string& model) const;

    void refuse_when_stopped(const attempt_info& attempt);

    run_gate& gate_;
    const std::optional<reagent::rates> prices_;
    const std::string model_;
    const std::function<bool()> stopped_;
    bool refused_by_stop_ = false;
    std::shared_ptr<attempt_ledger> ledger_ = std::make_shared<attempt_ledger>();
};

/// Throws `config_error` when caps could not hold: no known price under a cap in dollars, no bound on the output under any cap.
void check_caps(bool cost, bool tokens, std::string_view model, const std::optional<reagent::rates>& prices, std::optional<std::uint64_t> max_tokens);

}  // namespace reagent::inline v0::agent_detail

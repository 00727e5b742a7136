#pragma once
#include <reagent/base/clock.hpp>
#include <reagent/base/log_sink.hpp>
#include <reagent/base/random.hpp>
#include <reagent/governance/action.hpp>
#include <reagent/governance/audit_log.hpp>
#include <reagent/governance/budget.hpp>
#include <reagent/governance/human_channel.hpp>

#include <memory>
#include <span>
#include <string>
#include <vector>

namespace reagent::inline v0 {

/// The compiled rules (spec/governance.md §1.5, §4.1, §5.2). Immutable and shared; thread safe. A section known to the spec and not evaluated
/// by this version is a `config_error`, never ignored.
class gate_policy {
public:
    gate_policy();  ///< no rule: everything is allowed
    /// Throws `config_error` naming `section.key[index]`; unknown keys name the nearest known one.
    static gate_policy from_json(const json& config);
    budget_caps budget() const;
    bool has_rules() const noexcept;
    struct impl;
    const impl& get() const noexcept { return *impl_; }

private:
    std::shared_ptr<const impl> impl_;
};

class gate_options {
public:
    audit_log audit;
    human_channel channel;
    std::chrono::nanoseconds channel_timeout{0};  ///< humanChannelTimeoutMs; zero waits for ever
    clock_ptr clock;
    random_source random;
    log_sink log;
    std::string run_id, parent_run_id;
    int spawn_depth = 0;
};

/// One run's counters over a policy. Made in under a microsecond. Lives on the run's executor.
class run_gate {
public:
    run_gate(gate_policy policy, class budget money, gate_options options);
    ~run_gate();
    run_gate(run_gate&&) noexcept;
    /// Whether nothing is ever asked, refused, counted or written.
    bool open() const noexcept;

    /// Full evaluation, audit, and the human channel: a terminal allow or deny (spec/governance.md §2, §3). An allow is returned after its line is written.
    awaitable<decision> check(action a);
    /// Judges a round's calls whole, in order, before any starts; limits count the calls already admitted in the batch. One decision per action; after
    /// the first halt the rest are not evaluated and answer that halt. One `writev` for all lines.
    awaitable<std::vector<decision>> check_batch(std::vector<action> batch);
    /// Ticks turns and tool rounds, writes the record line (spec/governance.md §1.2). Spend of model attempts comes through reservations.
    void record(const action& a, const json& result, std::string_view aid);
    /// Checks the `llm` action, then reserves `worst_case`, asking for a top-up when it cannot fit (design §4). Throws `halt_error`.
    awaitable<reservation> admit(action a, budget_amount worst_case);
    /// The pure predicate of spec/governance.md §1.2: false on any halt condition or deny.
    bool allows(const action& a) const;
    const class budget& money() const noexcept;
    json halt_context() const;
    const std::string& run_id() const noexcept;

private:
    struct impl;
    std::unique_ptr<impl> impl_;
};

}  // namespace reagent::inline v0

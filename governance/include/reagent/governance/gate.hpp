#pragma once
#include <reagent/base/clock.hpp>
#include <reagent/base/log_sink.hpp>
#include <reagent/base/random.hpp>
#include <reagent/governance/action.hpp>
#include <reagent/governance/audit_log.hpp>
#include <reagent/governance/budget.hpp>
#include <reagent/governance/gate_policy.hpp>
#include <reagent/governance/human_channel.hpp>

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace reagent::inline v0 {

/// What a gate works with besides its policy; what is empty here falls back to the policy's value.
class gate_options {
public:
    gate_options() = default;
    audit_log audit;
    human_channel channel;
    std::chrono::nanoseconds channel_timeout{0};  ///< humanChannelTimeoutMs; zero takes the policy's, and there zero waits for ever
    clock_ptr clock;
    random_source random;
    log_sink log;
    std::string run_id, parent_run_id;
    int spawn_depth = 0;
};

/// One action that was carried out, for `record`.
class record_entry {
public:
    record_entry(action a, json r, std::string id) : subject(std::move(a)), result(std::move(r)), aid(std::move(id)) {}
    action subject;
    json result;
    std::string aid;
};

/// One run's counters over a policy. Made in under a microsecond. Lives on the run's executor and must outlive its checks.
/// A waiting check holds nothing of another run up: it holds no reservation, no lock and no line in the log.
class run_gate {
public:
    /// When the policy caps money or tokens, the gate draws from a child of `money` with those caps; `money()` is that child.
    run_gate(gate_policy policy, class budget money, gate_options options);
    ~run_gate();
    run_gate(run_gate&&) noexcept;
    /// Whether nothing is ever asked, refused, counted or written.
    bool open() const noexcept;

    /// Full evaluation, audit, and the human channel: a terminal allow or deny (spec/governance.md §2, §3). An allow is returned after its
    /// line is written. Errors: `audit_failed`. Cancellation: terminal while a person is asked; no verdict is written then.
    awaitable<decision> check(action a);
    /// Judges a round's calls whole, in order, before any starts; limits count the calls already admitted in the batch. One decision per
    /// action. After the first halt the rest are not evaluated, and all but the earlier denials answer that halt, so that no call starts.
    /// One `writev` for all lines, unless a person is asked in between.
    awaitable<std::vector<decision>> check_batch(std::vector<action> batch);
    /// Ticks turns and tool rounds, writes the record line (spec/governance.md §1.2), then `unpriced` and `budget_warn` lines when due. Spend of
    /// model attempts comes through reservations; `costUsd` and `tokens` of other actions are charged here.
    void record(const action& a, const json& result, std::string_view aid);
    /// The same for several, with one `writev`.
    void record(const std::vector<record_entry>& entries);
    /// Judges a model attempt by the rules that are not about tools, then reserves `worst_case`, waiting while others hold what is missing and
    /// asking for a top-up when it cannot fit (design §4). A person's plain `allow` admits this one attempt beyond the cap. The allow line is
    /// written after the reservation is made. Throws `halt_error` when refused. Cancellation: terminal; nothing is held then.
    awaitable<reservation> admit(action a, budget_amount worst_case);
    /// The pure predicate of spec/governance.md §1.2: false on any halt condition or deny, true on allow and ask.
    bool allows(const action& a) const;
    /// By name only: halt conditions, denylist, allowlist.
    bool allows_tool(std::string_view name) const;
    /// `dimension` is `costUsd` or `tokens`. Sets that cap of the nearest budget that has one, else of the run's own. Throws `validation_error`.
    void raise_cap(std::string_view dimension, double new_cap);
    /// Ends the run for good: every later check is denied by `gate.terminated`. False when it was terminated before.
    bool terminate(std::string_view reason);
    bool terminated() const noexcept;

    const class budget& money() const noexcept;
    json halt_context() const;
    const std::string& run_id() const;

    struct impl;

private:
    std::unique_ptr<impl> impl_;
};

}  // namespace reagent::inline v0

#pragma once
#include "agent_core.hpp"
#include "attempt_admission.hpp"
#include "run_state.hpp"

#include <reagent/agent/hooks.hpp>
#include <reagent/agent/turn_machine.hpp>
#include <reagent/base/clock.hpp>
#include <reagent/governance/gate.hpp>
#include <reagent/model/encoded_prefix.hpp>
#include <reagent/model/event.hpp>
#include <reagent/model/provider.hpp>

#include <boost/asio/cancellation_state.hpp>

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace reagent::inline v0::agent_detail {

/// Every fault of a tool list, in the words of spec/loop-and-providers.md §12.6.
std::vector<std::string> tool_faults(const std::vector<tool>& tools);
/// The options of a run's model calls: the request's members win over the agent's.
generate_options merged(const generate_options& own, const generate_options& request);
/// The bound that the call or its provider sets on an answer; empty leaves it to the model table.
std::optional<std::uint64_t> own_output_bound(const generate_options& options, const provider& model);
/// The budget of a run: the request's, else a child of the agent's. The gate adds the caps of its policy.
budget run_budget(const agent_core& core, const run_request& request, const std::string& run_id);
/// Throws `config_error` when the caps of the budget or of the policy could not hold.
void check_budget(const agent_core& core, const budget& money, const generate_options& options);
/// A run that its owner reads has no sink beside: throws `validation_error`.
void check_read_request(const run_request& request);
/// What can be known to be wrong before a run starts. Throws `config_error` or `validation_error`.
void check_request(const agent_core& core, const run_request& request);

/// Whether the coroutine has been told to give up: its run was cancelled or ran out of time.
bool told_to_end(const asio::cancellation_state& now) noexcept;

/// One run: carries out what `turn_machine` decides. Lives in the driver coroutine's frame.
class run_driver {
public:
    explicit run_driver(run_state& state);
    run_driver(const run_driver&) = delete;
    run_driver& operator=(const run_driver&) = delete;

    /// From the first event to the result, which never throws once it began.
    awaitable<void> run();

private:
    /// One call of the batch that may run.
    class running {
    public:
        std::string aid;
        std::optional<tool_result> result;
    };

    // run_driver.cpp
    awaitable<void> rounds();
    awaitable<void> leave();
    awaitable<void> conclude();
    awaitable<void> commit(bool last);
    void settle_failure(const std::exception_ptr& failure);
    void fill_result();
    bool check_flags();

    // model_round.cpp
    awaitable<void> seams();
    awaitable<void> trim();
    awaitable<generate_result> call_model();
    awaitable<void> before_model();
    bool stopped_before_call();
    awaitable<void> read_call(model_call& call, permit& right, attempt_outcome& outcome);
    awaitable<permit> admit_once(const generate_request& request);
    awaitable<void> meter(const generate_result& result, duration took);
    void refresh_tools();

    // tool_batch.cpp
    awaitable<void> run_batch();
    awaitable<void> judge();
    awaitable<void> ask_policy(std::size_t i);
    awaitable<void> execute();
    awaitable<std::exception_ptr> run_group(const std::vector<std::size_t>& group);
    awaitable<void> run_one(std::size_t i);
    void tell_denied();
    void keep_books(std::vector<std::size_t>& reported);
    record_entry audit_entry(std::size_t i, const running& slot) const;
    void answer_malformed();
    const tool* find_tool(std::string_view name) const noexcept;

    // run_events.cpp
    void emit(event_kind kind, std::string_view payload, json data = {});
    void emit_tool(event_kind kind, const tool_call& call, json data);
    void report(std::string source, std::string message, json extra, std::exception_ptr cause = nullptr);
    void report(std::string source, const std::exception_ptr& failure, json extra);
    /// Rethrows a halt, and an abort that the run's own cancellation or deadline caused; reports anything else. `now`: the state of the
    /// coroutine that waited; what cannot wait needs none.
    void absorb(const std::exception_ptr& failure, std::string source, json extra, const asio::cancellation_state& now = {});
    json round_extra() const;

    run_state& state_;
    const agent_core& core_;
    const agent_options::values& options_;
    const run_hooks& hooks_;
    clock_ptr clock_;
    steady_time began_;
    steady_time deadline_ = steady_time::max();
    turn_machine machine_;
    run_gate gate_;
    run_admission admission_;
    encoded_prefix prefix_;
    generate_options call_options_;
    run_metrics metrics_;

    std::vector<tool> tools_;
    tool_thunk thunk_;
    tool_list offered_;
    transcript view_;  ///< of the current request

    std::map<std::size_t, running> running_;
    std::optional<std::string> partial_text_;
    bool system_prepended_ = false;
};

}  // namespace reagent::inline v0::agent_detail

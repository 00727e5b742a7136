#pragma once
#include <reagent/agent/hooks.hpp>
#include <reagent/agent/tool.hpp>
#include <reagent/base/clock.hpp>
#include <reagent/base/log_sink.hpp>
#include <reagent/base/random.hpp>
#include <reagent/governance/audit_log.hpp>
#include <reagent/governance/gate.hpp>
#include <reagent/governance/human_channel.hpp>
#include <reagent/model/generate.hpp>

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace reagent::inline v0 {

class rates;

/// A tool list made anew for each round; throwing keeps the set of the round before.
using tool_thunk = std::function<std::vector<tool>()>;

/// What the identical-call guard does when it fires.
enum class repeat_policy : std::uint8_t { warn, stop };

/// How an agent behaves. Setters chain; every number has a name and a default.
class agent_options {
public:
    agent_options();
    ~agent_options();
    agent_options(const agent_options&);
    agent_options(agent_options&&) noexcept;
    agent_options& operator=(const agent_options&);
    agent_options& operator=(agent_options&&) noexcept;

    /// System prompt, prepended as message 0 when not empty.
    agent_options& system(std::string text) &;
    agent_options&& system(std::string text) && { return std::move(system(std::move(text))); }
    /// Offers one more tool. An empty handle or a name already there is refused when a run starts.
    agent_options& tool(reagent::tool t) &;
    agent_options&& tool(reagent::tool t) && { return std::move(tool(std::move(t))); }
    /// Replaces the tools by a function asked once per round.
    agent_options& tools(tool_thunk each_round) &;
    agent_options&& tools(tool_thunk each_round) && { return std::move(tools(std::move(each_round))); }
    /// Rules every model attempt and tool call is judged by, and where decisions are written: to `audit`, else to the log that the rules name.
    agent_options& gate(gate_policy rules, audit_log audit = {}) &;
    agent_options&& gate(gate_policy rules, audit_log audit = {}) && { return std::move(gate(std::move(rules), std::move(audit))); }
    /// Whom the gate asks, and how long it waits; zero takes the policy's `channel_timeout`, and there zero waits for ever.
    agent_options& human(human_channel channel, std::chrono::nanoseconds timeout = {}) &;
    agent_options&& human(human_channel channel, std::chrono::nanoseconds timeout = {}) && { return std::move(human(std::move(channel), timeout)); }
    /// A budget of the agent; each run draws from a child of it, unless its request brings one.
    agent_options& budget(reagent::budget b) &;
    agent_options&& budget(reagent::budget b) && { return std::move(budget(std::move(b))); }
    /// Prices that win over the model table. Throws `validation_error` for one that is negative or not finite.
    agent_options& rates(const reagent::rates& r) &;
    agent_options&& rates(const reagent::rates& r) && { return std::move(rates(r)); }
    agent_options& hooks(run_hooks h) &;
    agent_options&& hooks(run_hooks h) && { return std::move(hooks(std::move(h))); }
    /// Defaults of every model call; a request's own win member by member.
    agent_options& generate(generate_options o) &;
    agent_options&& generate(generate_options o) && { return std::move(generate(std::move(o))); }
    /// Denials in a row that end a run as `denied:<tool>`. Default 3, 0 is off.
    agent_options& max_consecutive_denials(unsigned n) &;
    agent_options&& max_consecutive_denials(unsigned n) && { return std::move(max_consecutive_denials(n)); }
    /// Equal failures of one call in a row that end a run as `stuck:<tool>`. Default 3, 0 is off.
    agent_options& max_identical_tool_errors(unsigned n) &;
    agent_options&& max_identical_tool_errors(unsigned n) && { return std::move(max_identical_tool_errors(n)); }
    /// Identical calls (name and canonical arguments, successes included) in an unbroken row of rounds. Default 10, 0 is off. `stop` ends the
    /// run as `stuck:<tool>`.
    agent_options& max_identical_calls(unsigned n, repeat_policy on_reached = repeat_policy::warn) &;
    agent_options&& max_identical_calls(unsigned n, repeat_policy on_reached = repeat_policy::warn) && { return std::move(max_identical_calls(n, on_reached)); }
    /// Calls of one round that are kept; later ones are dropped and the last kept result says so. Default 128, 0 is no limit.
    agent_options& max_calls_per_round(unsigned n) &;
    agent_options&& max_calls_per_round(unsigned n) && { return std::move(max_calls_per_round(n)); }
    /// Tool calls of one round that run at once. Default 16; `serial` tools are barriers in call order.
    agent_options& tool_concurrency(unsigned n) &;
    agent_options&& tool_concurrency(unsigned n) && { return std::move(tool_concurrency(n)); }
    /// Tools whose completed call ends the run with their `answer` argument as text. Default `finish`; an empty list turns it off.
    agent_options& stop_on(std::vector<std::string> names) &;
    agent_options&& stop_on(std::vector<std::string> names) && { return std::move(stop_on(std::move(names))); }
    agent_options& clock(clock_ptr c) &;
    agent_options&& clock(clock_ptr c) && { return std::move(clock(std::move(c))); }
    agent_options& random(random_source r) &;
    agent_options&& random(random_source r) && { return std::move(random(std::move(r))); }
    agent_options& log(log_sink sink) &;
    agent_options&& log(log_sink sink) && { return std::move(log(std::move(sink))); }

    struct values;
    const values& get() const noexcept { return *values_; }

private:
    values& edit();
    std::shared_ptr<values> values_;
};

}  // namespace reagent::inline v0

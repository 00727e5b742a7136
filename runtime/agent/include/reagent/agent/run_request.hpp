#pragma once
#include <reagent/agent/agent_options.hpp>
#include <reagent/agent/tool.hpp>
#include <reagent/base/clock.hpp>
#include <reagent/governance/budget.hpp>
#include <reagent/model/event.hpp>
#include <reagent/model/generate.hpp>
#include <reagent/model/message.hpp>

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace reagent::inline v0 {

/// What one run is asked. Setters chain.
class run_request {
public:
    run_request() = default;
    explicit run_request(std::string question) { messages_.push_back(message::user(std::move(question))); }
    explicit run_request(const char* question) : run_request(std::string(question)) {}
    explicit run_request(transcript messages) : messages_(std::move(messages)) {}

    /// Money and tokens this run may use, usually a child of a team's budget.
    run_request& budget(reagent::budget b) &;
    run_request&& budget(reagent::budget b) && { return std::move(budget(std::move(b))); }
    /// Time from the first step to the end; then the run ends as `deadline`. Waiting for its turn in a conversation does not count. Zero is none.
    run_request& deadline(duration from_start) &;
    run_request&& deadline(duration from_start) && { return std::move(deadline(from_start)); }
    /// Bounds the output of one model call (not of the run).
    run_request& max_tokens(std::uint64_t n) &;
    run_request&& max_tokens(std::uint64_t n) && { return std::move(max_tokens(n)); }
    /// Options of the model calls; set members win over the agent's.
    run_request& options(generate_options o) &;
    run_request&& options(generate_options o) && { return std::move(options(std::move(o))); }
    /// Tools of this run instead of the agent's.
    run_request& tools(std::vector<tool> list) &;
    run_request&& tools(std::vector<tool> list) && { return std::move(tools(std::move(list))); }
    run_request& tools(tool_thunk each_round) &;
    run_request&& tools(tool_thunk each_round) && { return std::move(tools(std::move(each_round))); }
    /// System prompt of this run instead of the agent's; empty is none.
    run_request& system(std::string text) &;
    run_request&& system(std::string text) && { return std::move(system(std::move(text))); }
    /// Identity of the run in audit lines and reports; when not set, that of the gate's rules, else random.
    run_request& id(std::string run_id) &;
    run_request&& id(std::string run_id) && { return std::move(id(std::move(run_id))); }

    /// Gets the events of a whole run (`agent::run`, `conversation::send` and their `async_` forms), batch by batch as `run::read` would; the views
    /// live for the call. Called on the run's executor; what it throws is only logged.
    run_request& on_events(std::function<void(const event_batch&)> sink) &;
    run_request&& on_events(std::function<void(const event_batch&)> sink) && { return std::move(on_events(std::move(sink))); }

    const transcript& messages() const noexcept { return messages_; }
    const reagent::budget& budget() const noexcept { return budget_; }
    duration deadline() const noexcept { return deadline_; }
    const generate_options& options() const noexcept { return options_; }
    const std::optional<std::vector<tool>>& tools() const noexcept { return tools_; }
    const tool_thunk& thunk() const noexcept { return thunk_; }
    const std::optional<std::string>& system() const noexcept { return system_; }
    const std::string& id() const noexcept { return id_; }
    const std::function<void(const event_batch&)>& on_events() const noexcept { return on_events_; }
    /// Puts `history` before the messages.
    void prepend(const transcript& history) { messages_.insert(messages_.begin(), history.begin(), history.end()); }

private:
    transcript messages_;
    reagent::budget budget_;
    duration deadline_{0};
    generate_options options_;
    std::optional<std::vector<tool>> tools_;
    tool_thunk thunk_;
    std::optional<std::string> system_;
    std::string id_;
    std::function<void(const event_batch&)> on_events_;
};

}  // namespace reagent::inline v0

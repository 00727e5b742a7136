#pragma once
#include <reagent/agent/agent_options.hpp>
#include <reagent/agent/turn_machine.hpp>
#include <reagent/model/pricing.hpp>
#include <reagent/model/provider.hpp>

#include <atomic>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace reagent::inline v0 {

struct agent_options::values {
    std::string system;
    std::vector<reagent::tool> tools;
    tool_thunk thunk;
    gate_policy policy;
    audit_log audit;
    human_channel channel;
    std::chrono::nanoseconds channel_timeout{0};
    reagent::budget money;
    std::optional<reagent::rates> prices;
    run_hooks hooks;
    generate_options generate;
    turn_limits limits;
    unsigned tool_concurrency = 16;
    clock_ptr time = clock::system();
    random_source random;
    log_sink log;
};

namespace agent_detail {

/// What all runs of an agent share: immutable but for counters.
class agent_core {
public:
    agent_core(provider_ptr p, agent_options::values v) : model(std::move(p)), options(std::move(v)) {}
    const provider_ptr model;
    const agent_options::values options;
    mutable std::atomic<std::size_t> live_runs{0};
    mutable std::atomic<bool> warned_price{false}, warned_truncation{false};
};

}  // namespace agent_detail
}  // namespace reagent::inline v0

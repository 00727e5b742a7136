#include "agent_core.hpp"

#include <cmath>

namespace reagent::inline v0 {

agent_options::agent_options() : values_(std::make_shared<values>()) {}
agent_options::~agent_options() = default;
agent_options::agent_options(const agent_options&) = default;
agent_options::agent_options(agent_options&&) noexcept = default;
agent_options& agent_options::operator=(const agent_options&) = default;
agent_options& agent_options::operator=(agent_options&&) noexcept = default;

agent_options::values& agent_options::edit()
{
    if (!values_) values_ = std::make_shared<values>();
    else if (values_.use_count() > 1) values_ = std::make_shared<values>(*values_);
    return *values_;
}

agent_options& agent_options::system(std::string text) &
{
    edit().system = std::move(text);
    return *this;
}

agent_options& agent_options::tool(reagent::tool t) &
{
    edit().tools.push_back(std::move(t));
    return *this;
}

agent_options& agent_options::tools(tool_thunk each_round) &
{
    edit().thunk = std::move(each_round);
    return *this;
}

agent_options& agent_options::gate(gate_policy rules, audit_log audit) &
{
    edit().policy = std::move(rules);
    edit().audit = std::move(audit);
    return *this;
}

agent_options& agent_options::human(human_channel channel, std::chrono::nanoseconds timeout) &
{
    edit().channel = std::move(channel);
    edit().channel_timeout = timeout;
    return *this;
}

agent_options& agent_options::budget(reagent::budget b) &
{
    edit().money = std::move(b);
    return *this;
}

agent_options& agent_options::rates(const reagent::rates& r) &
{
    for (const double n : {r.input, r.output, r.cache_read_mult, r.cache_write_mult})
        if (!std::isfinite(n) || n < 0) throw validation_error("[Loop] rates must be finite and not negative");
    edit().prices = r;
    return *this;
}

agent_options& agent_options::hooks(run_hooks h) &
{
    edit().hooks = std::move(h);
    return *this;
}

agent_options& agent_options::generate(generate_options o) &
{
    edit().generate = std::move(o);
    return *this;
}

agent_options& agent_options::max_consecutive_denials(unsigned n) &
{
    edit().limits.max_consecutive_denials = n;
    return *this;
}

agent_options& agent_options::max_identical_tool_errors(unsigned n) &
{
    edit().limits.max_identical_tool_errors = n;
    return *this;
}

agent_options& agent_options::max_identical_calls(unsigned n, repeat_policy on_reached) &
{
    edit().limits.max_identical_calls = n;
    edit().limits.on_repeat = on_reached;
    return *this;
}

agent_options& agent_options::max_calls_per_round(unsigned n) &
{
    edit().limits.max_calls_per_round = n;
    return *this;
}

agent_options& agent_options::tool_concurrency(unsigned n) &
{
    edit().tool_concurrency = n;
    return *this;
}

agent_options& agent_options::stop_on(std::vector<std::string> names) &
{
    edit().limits.stop_on = std::move(names);
    return *this;
}

agent_options& agent_options::clock(clock_ptr c) &
{
    edit().time = c ? std::move(c) : reagent::clock::system();
    return *this;
}

agent_options& agent_options::random(random_source r) &
{
    edit().random = std::move(r);
    return *this;
}

agent_options& agent_options::log(log_sink sink) &
{
    edit().log = std::move(sink);
    return *this;
}

}  // namespace reagent::inline v0

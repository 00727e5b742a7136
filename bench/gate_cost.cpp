// What governing a run costs before anything is asked: making a run's gate must stay under a microsecond; a reservation and its settlement ride along.
#include <reagent/governance/budget.hpp>
#include <reagent/governance/gate.hpp>

#include <benchmark/benchmark.h>

namespace {

reagent::gate_policy some_policy()
{
    return reagent::gate_policy::from_json(reagent::json::parse_or_throw(
        R"({"tools": {"allow": ["search", "read", "write"], "deny": ["shell"]}, "limits": {"maxTurns": 50, "maxToolRounds": 20}})", "policy"));
}

void make_run_gate(benchmark::State& state)
{
    const reagent::gate_policy policy = some_policy();
    const reagent::gate_options options;
    for (auto _ : state) {
        reagent::run_gate gate(policy, reagent::budget(), options);
        benchmark::DoNotOptimize(gate);
    }
}
BENCHMARK(make_run_gate);

void reserve_and_settle(benchmark::State& state)
{
    reagent::budget team("team", reagent::budget_caps(reagent::usd("1000000000")));
    reagent::budget run = team.child("run");
    const reagent::budget_amount worst(reagent::usd("0.01"), 5000), actual(reagent::usd("0.001"), 500);
    for (auto _ : state) {
        std::optional<reagent::admission> admitted = run.try_reserve(worst);
        admitted->held.settle(actual);
    }
}
BENCHMARK(reserve_and_settle);

}  // namespace

BENCHMARK_MAIN();

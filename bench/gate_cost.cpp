// What governing a run costs before anything is asked: making a run's gate must stay under a microsecond; a reservation and its settlement ride along.
#include <reagent/governance/budget.hpp>
#include <reagent/governance/gate.hpp>

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/io_context.hpp>

#include <benchmark/benchmark.h>

namespace {

reagent::gate_policy some_policy()
{
    return reagent::gate_policy::from_json(reagent::json::parse_or_throw(
        R"({"tools": {"allowlist": ["search", "read", "write"], "denylist": ["shell"]}, "limits": {"maxTurns": 50, "maxToolRounds": 20}})", "policy"));
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

void reserve_without_caps(benchmark::State& state)
{
    const reagent::budget run("run", reagent::budget_caps());
    const reagent::budget_amount worst(reagent::usd("0.01"), 5000), actual(reagent::usd("0.001"), 500);
    for (auto _ : state) {
        std::optional<reagent::admission> admitted = run.try_reserve(worst);
        admitted->held.settle(actual);
    }
}
BENCHMARK(reserve_without_caps);

// One decision: judged, and with an audit log written before it is returned (/dev/null takes the file system out of it).
reagent::awaitable<void> check_over_and_over(reagent::run_gate& gate, benchmark::State& state)
{
    const reagent::action call = reagent::action::tool("search", reagent::json::object().set("query", "what a gate costs"));
    for (auto _ : state) {
        reagent::action a = call;
        const reagent::decision d = co_await gate.check(std::move(a));
        benchmark::DoNotOptimize(d.rule.data());
    }
}

void run_checks(benchmark::State& state, reagent::audit_log audit)
{
    boost::asio::io_context io(1);
    reagent::gate_options options;
    options.audit = std::move(audit);
    reagent::run_gate gate(some_policy(), reagent::budget(), std::move(options));
    boost::asio::co_spawn(io, check_over_and_over(gate, state), [](std::exception_ptr failure) {
        if (failure) std::rethrow_exception(failure);
    });
    io.run();
}
void check_without_audit(benchmark::State& state)
{
    run_checks(state, {});
}
BENCHMARK(check_without_audit);
void check_with_audit(benchmark::State& state)
{
    run_checks(state, reagent::audit_log::file("/dev/null"));
}
BENCHMARK(check_with_audit);

}  // namespace

BENCHMARK_MAIN();

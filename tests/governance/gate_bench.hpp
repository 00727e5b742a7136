/// What the gate tests share: a context, a scripted person, and the audit lines of one gate.
#pragma once
#include <reagent/base/error.hpp>
#include <reagent/governance/gate.hpp>
#include <reagent/testing/manual_clock.hpp>

#include "policy_impl.hpp"

#include <boost/asio/bind_cancellation_slot.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/this_coro.hpp>
#include <boost/asio/use_awaitable.hpp>

#include <gtest/gtest.h>

#include <deque>
#include <optional>
#include <string>
#include <vector>

namespace gate_bench {

using namespace reagent;

/// A rule that asks about actions of one type: the sections that ask come with later versions.
class asking_step final : public governance_detail::rule_step {
public:
    std::optional<governance_detail::finding> judge(const governance_detail::rule_subject& s) const override
    {
        if (s.type != "ask") return {};
        return governance_detail::finding{governance_detail::finding_kind::ask, "content.askPatterns", "looks dangerous"};
    }
};

inline gate_policy with_asking(const gate_policy& from)
{
    auto copy = std::make_shared<gate_policy::impl>(from.get());
    copy->middle_steps.push_back(std::make_shared<asking_step>());
    return gate_policy(std::shared_ptr<const gate_policy::impl>(std::move(copy)));
}

inline action kind(const char* type)
{
    return action(json::object().set("type", type));
}
inline json costs(double dollars)
{
    return json::object().set("costUsd", dollars);
}
inline human_answer top_up(double cap)
{
    human_answer a(human_verdict::topup);
    a.new_cap = cap;
    return a;
}

/// A person with prepared answers, the last one repeated; counts what was asked.
struct person {
    std::vector<human_answer> answers;
    std::vector<human_event> asked;
    std::string throws;
    duration delay{0};
    clock_ptr clock;
};

inline awaitable<human_answer> ask_person(person* p, human_event e)
{
    p->asked.push_back(std::move(e));
    if (p->delay.count() > 0) co_await sleep_until(p->clock, p->clock->now() + p->delay);
    if (!p->throws.empty()) throw std::runtime_error(p->throws);
    const std::size_t i = std::min(p->asked.size(), p->answers.size());
    co_return p->answers.at(i - 1);
}

template <class T>
struct pending {
    asio::cancellation_signal stop;
    bool done = false, cancelled = false;
    std::exception_ptr failure;
    T value;
};

class bench {
public:
    asio::io_context io;
    std::shared_ptr<reagent::testing::manual_clock> time = std::make_shared<reagent::testing::manual_clock>();
    audit_log log = audit_log::in_memory(time);
    person human;
    std::vector<std::string> warnings;

    gate_options options(bool with_person)
    {
        gate_options o;
        o.audit = log;
        o.clock = time;
        o.run_id = "run-1";
        o.log = log_sink([this](log_level, std::string_view line) { warnings.emplace_back(line); });
        human.clock = time;
        if (with_person) o.channel = [this](human_event e) { return ask_person(&human, std::move(e)); };
        return o;
    }
    void run()
    {
        io.restart();
        io.poll();
    }
    template <class T>
    void start(pending<T>& p, awaitable<T> work)
    {
        asio::co_spawn(io, std::move(work), asio::bind_cancellation_slot(p.stop.slot(), [&p](std::exception_ptr e, T v) {
                           p.done = true;
                           p.failure = e;
                           p.cancelled = e && is_cancellation(e);
                           p.value = std::move(v);
                       }));
        run();
    }
    template <class T>
    T get(awaitable<T> work)
    {
        pending<T> p;
        start(p, std::move(work));
        if (!p.done) throw std::logic_error("still waiting");
        if (p.failure) std::rethrow_exception(p.failure);
        return std::move(p.value);
    }
    decision check(run_gate& gate, action a) { return get(gate.check(std::move(a))); }
    /// Phases of the lines since the last call.
    std::vector<std::string> phases()
    {
        std::vector<std::string> out;
        const std::vector<json> all = log.read();
        for (; seen_ < all.size(); ++seen_) out.push_back(all[seen_]["phase"].as_string());
        return out;
    }

private:
    std::size_t seen_ = 0;
};

using names = std::vector<std::string>;

}  // namespace gate_bench

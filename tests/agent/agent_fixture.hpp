/// What the tests of the agent share: a context, a scripted model, runs read to their end.
#pragma once
#include <reagent/agent/agent.hpp>
#include <reagent/agent/make_tool.hpp>
#include <reagent/model/encoded_prefix.hpp>
#include <reagent/model/pricing.hpp>
#include <reagent/model/provider_error.hpp>
#include <reagent/model/scripted_provider.hpp>
#include <reagent/testing/manual_clock.hpp>
#include <reagent/testing/run.hpp>

#include <boost/asio/io_context.hpp>
#include <boost/asio/redirect_error.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/this_coro.hpp>
#include <boost/asio/use_awaitable.hpp>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <list>
#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace rt = reagent::testing;  // `testing` alone is GoogleTest's

namespace agent_test {

namespace asio = boost::asio;
using namespace std::chrono_literals;

/// Events copied out of their batches.
class seen_events {
public:
    std::vector<reagent::json> all;
    std::string text;
    std::size_t batches = 0;
    /// Types of the run's own events, `loop:` dropped, deltas left out.
    std::vector<std::string> types() const;
    const reagent::json& last(std::string_view type) const;
    std::size_t count(std::string_view type) const;
};

void take(seen_events& seen, const reagent::event_batch& batch);

reagent::awaitable<reagent::run_result> read_all(reagent::run* r, seen_events* seen);

class fixture : public ::testing::Test {
protected:
    fixture();
    ~fixture() override;
    void TearDown() override;

    std::shared_ptr<reagent::scripted_provider> script(std::vector<reagent::scripted_round> rounds, std::string model = "scripted-model");
    /// A run that lives as long as the test, so that a failed assertion does not take it from its reader.
    reagent::run& keep(reagent::run r);
    reagent::agent make(reagent::agent_options options = {});

    /// One run, read to its end; events go to `seen`.
    reagent::run_result go(const reagent::agent& a, reagent::run_request request = reagent::run_request("hi"));
    reagent::run_result go(reagent::run& r);

    /// Role and text of each message, calls in brackets.
    static std::vector<std::string> shape(const reagent::transcript& messages);

    asio::io_context context;
    std::shared_ptr<reagent::scripted_provider> model_;
    seen_events seen;

private:
    std::list<reagent::run> kept_;
};

/// A tool without arguments of its own that answers `value`, or throws when it is a function that does.
reagent::tool any_tool(std::string name, std::function<reagent::json(const reagent::json&)> f);

/// Calls that wait until the test lets them go, and what ran when.
class bench_of_tools {
public:
    explicit bench_of_tools(asio::io_context& c) : context(c) {}
    reagent::tool tool(std::string name);
    void release_all();
    asio::io_context& context;
    std::vector<std::shared_ptr<asio::steady_timer>> waiting;
    std::vector<std::string> log;
    int running = 0, most = 0, finished = 0, cancelled = 0;
};

}  // namespace agent_test

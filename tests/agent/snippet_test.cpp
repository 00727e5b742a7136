#include "agent_fixture.hpp"

#include <reagent/governance/audit_log.hpp>

#include <boost/asio/bind_cancellation_slot.hpp>
#include <boost/asio/cancellation_signal.hpp>
#include <boost/asio/co_spawn.hpp>

// The program of the documentation, with a scripted model in place of a live one.
namespace snippet {
namespace asio = boost::asio;
using namespace std::chrono_literals;

struct refund_args {
    std::string order_id;
    double amount = 0;
    std::optional<std::string> note;
};
BOOST_DESCRIBE_STRUCT(refund_args, (), (order_id, amount, note))

struct receipt {
    std::string id;
};
asio::awaitable<receipt> ledger_refund(std::string order_id, double)
{
    co_return receipt{"r-" + order_id};
}

asio::awaitable<reagent::json> refund(refund_args a, reagent::tool_context&)
{
    const receipt r = co_await ledger_refund(a.order_id, a.amount);
    co_return reagent::json::object().set("receipt", r.id);
}

struct support_desk {
    reagent::provider_ptr model;
    reagent::agent agent;
    support_desk(asio::any_io_executor ex, reagent::provider_ptr m, const reagent::gate_policy& rules, reagent::audit_log& audit)
        : model(std::move(m)),
          agent(ex, model,
                reagent::agent_options()
                    .system("You are a support agent.")
                    .tool(reagent::make_tool("refund", "Refund an order.", &refund).effect(reagent::effect::destructive))
                    .rates(reagent::rates(150, 600))
                    .gate(rules, audit))
    {}
};

struct chat_socket {
    std::string text, footer_text;
    void append(std::string_view t) { text += t; }
    asio::awaitable<void> flush() { co_return; }
    void footer(reagent::run_outcome o, reagent::usd cost) { footer_text = std::string(to_string(o)) + " " + cost.to_string(); }
};

asio::awaitable<void> answer(support_desk& desk, reagent::budget& team, chat_socket& ui, std::string question)
{
    reagent::run_request request(std::move(question));
    request.budget(team.child("ticket", reagent::usd("0.05"))).deadline(60s).max_tokens(2000);
    reagent::run run = desk.agent.start(std::move(request));
    reagent::event_batch events;
    for (;;) {
        const bool more = co_await run.read(events);
        if (!more) break;
        for (const reagent::event& e : events) ui.append(e.text());
        co_await ui.flush();
    }
    ui.footer(run.result().outcome(), run.result().cost());
}
}  // namespace snippet

namespace {
namespace snippet_test {

using namespace reagent;
using Snippet = agent_test::fixture;

TEST_F(Snippet, TheProgramOfTheDocumentationWorks)
{
    script({scripted_round("One moment. ").usage(100, 10).call("1", "refund", json::object().set("order_id", "17").set("amount", 5)),
            scripted_round("Refunded.").usage(200, 20).times(0)});
    const gate_policy rules;
    audit_log audit = audit_log::in_memory();
    snippet::support_desk desk(context.get_executor(), model_, rules, audit);
    budget team("team", usd("1"));
    snippet::chat_socket ui;
    rt::complete(context, snippet::answer(desk, team, ui, "Refund order 17"));
    EXPECT_EQ(ui.text, "One moment. Refunded.");
    // 300 tokens in at 150 nano-dollars, 30 out at 600.
    EXPECT_EQ(ui.footer_text, "completed 0.000063");
    EXPECT_EQ(model_->requests()[1].messages.back()->text(), R"({"receipt":"r-17"})");
    EXPECT_EQ(team.state().spent.cost, usd("0.000063"));
    EXPECT_FALSE(audit.read().empty());

    asio::cancellation_signal stop;
    std::string text;
    desk.agent.async_run(run_request("Refund order 18"), asio::bind_cancellation_slot(stop.slot(), [&](error_code, run_result r) { text = r.text(); }));
    context.restart();
    context.run();
    EXPECT_EQ(text, "Refunded.");
}

}  // namespace snippet_test
}  // namespace

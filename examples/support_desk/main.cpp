// The taste of the API that README.md shows, as a program: a support desk with a tool, rules, an audit log and a budget per ticket. The model
// service is a loopback server of reagent::testing that asks for one refund and then answers.
#include <reagent/reagent.hpp>
#include <reagent/testing/byte_server.hpp>
#include <reagent/testing/http_text.hpp>

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/io_context.hpp>

#include <iostream>

namespace asio = boost::asio;
using namespace std::chrono_literals;

namespace {

// What a host brings along.
struct receipt {
    std::string id;
};
reagent::awaitable<receipt> ledger_refund(std::string order_id, double)
{
    receipt r;
    r.id = "refund-of-" + order_id;
    co_return r;
}
class chat_socket {
public:
    void append(std::string_view text) { shown_ += text; }
    reagent::awaitable<void> flush() { co_return; }
    void footer(reagent::run_outcome outcome, reagent::usd cost) { shown_.append("\n").append(to_string(outcome)).append(", $").append(cost.to_string()); }
    const std::string& shown() const { return shown_; }

private:
    std::string shown_;
};

// [readme]
struct refund_args {
    std::string order_id;
    double amount = 0;
    std::optional<std::string> note;
};
BOOST_DESCRIBE_STRUCT(refund_args, (), (order_id, amount, note))

asio::awaitable<reagent::json> refund(refund_args args, reagent::tool_context&)  // a tool is a coroutine
{
    const receipt r = co_await ledger_refund(args.order_id, args.amount);  // cancelled with the run
    co_return reagent::json::object().set("receipt", r.id);
}

struct support_desk {  // the host owns and wires everything
    reagent::http_client http;
    reagent::provider_ptr model;
    reagent::agent agent;  // immutable: any number of runs at once

    support_desk(asio::any_io_executor ex, std::string base_url, const reagent::gate_policy& rules, reagent::audit_log audit)
        : http(ex),
          model(reagent::openai_chat(http, reagent::openai_options("gpt-4o-mini").base_url(base_url).key(reagent::secret::from_env("OPENAI_API_KEY")))),
          agent(ex, model,
                reagent::agent_options()
                    .system("You are a support agent.")
                    .tool(reagent::make_tool("refund", "Refund an order.", &refund).effect(reagent::effect::destructive))
                    .tool(reagent::calculate())
                    .rates(reagent::rates(150, 600))  // nano-dollars a token in and out; without them the table of models holds
                    .gate(rules, audit))
    {}
};

asio::awaitable<void> answer(support_desk& desk, reagent::budget& team, chat_socket& ui, std::string question)
{
    reagent::run_request request(std::move(question));
    request.budget(team.child("ticket", reagent::usd("0.05"))).deadline(60s).max_tokens(2000);
    reagent::run run = desk.agent.start(std::move(request));  // starts at the first read; its destructor cancels
    reagent::event_batch events;
    for (;;) {
        const bool more = co_await run.read(events);  // one await per wake-up, many events
        for (const reagent::event& e : events) ui.append(e.text());
        if (!more) break;
        co_await ui.flush();
    }
    ui.footer(run.result().outcome(), run.result().cost());
}
// [/readme]

void rethrow(std::exception_ptr failure)
{
    if (failure) std::rethrow_exception(failure);
}

}  // namespace

int main()
{
    using reagent::testing::byte_script;
    const std::string asks_for_a_refund = reagent::testing::sse_response({
        R"({"id":"c1","model":"gpt-4o-mini","choices":[{"index":0,"delta":{"tool_calls":[{"index":0,"id":"call_1","type":"function",)"
        R"("function":{"name":"refund","arguments":"{\"order_id\":\"17\",\"amount\":12.5}"}}]},"finish_reason":null}]})",
        R"({"id":"c1","model":"gpt-4o-mini","choices":[{"index":0,"delta":{},"finish_reason":"tool_calls"}]})",
        R"({"id":"c1","model":"gpt-4o-mini","choices":[],"usage":{"prompt_tokens":40,"completion_tokens":12,"total_tokens":52}})",
        "[DONE]",
    });
    const std::string answers = reagent::testing::sse_response(reagent::testing::openai_events({"Order 17 ", "is refunded."}));
    reagent::testing::byte_server service(byte_script().request().send(asks_for_a_refund).request().send(answers).repeat());

    asio::io_context context;
    const auto rules = reagent::gate_policy::from_json(
        reagent::json::parse_or_throw(R"({"tools": {"allowlist": ["refund", "calculate"]}, "limits": {"maxToolRounds": 5}})", "rules"));
    const reagent::audit_log audit = reagent::audit_log::in_memory();
    support_desk desk(context.get_executor(), service.origin() + "/v1", rules, audit);
    reagent::budget team("support", reagent::budget_caps(reagent::usd("1")));
    chat_socket ui;
    asio::co_spawn(context, answer(desk, team, ui, "Please refund order 17."), &rethrow);
    context.run();

    std::cout << ui.shown() << '\n';
    for (const reagent::json& line : audit.read()) std::cout << line.dump() << '\n';
    const bool held = ui.shown().starts_with("Order 17 is refunded.\ncompleted, $") && audit.read().size() >= 2 && team.state().reserved.cost == reagent::usd();
    return held ? 0 : 1;
}

#include "demo_script.hpp"

#include <reagent/agent/make_tool.hpp>
#include <reagent/builtins/calculate.hpp>

#include <boost/describe.hpp>

#include <array>
#include <chrono>

namespace reagent_app {

/// Named here and not in an unnamed namespace: Boost.Describe wants linkage.
struct stock_args {
    std::string item;
};
BOOST_DESCRIBE_STRUCT(stock_args, (), (item))

namespace {

using reagent::json;

/// Dollars per 1000 tokens, and what each round is told to have used.
constexpr double input_rate = 0.00015, output_rate = 0.0006;
class round_usage {
public:
    std::uint64_t input, output;
};
constexpr std::array<round_usage, 3> rounds{{{260, 54}, {340, 46}, {410, 38}}};
/// How much of the third rounds the cap pays for.
constexpr double paid_third_rounds = 0.6;

double round_cost(std::size_t i)
{
    return (static_cast<double>(rounds[i].input) * input_rate + static_cast<double>(rounds[i].output) * output_rate) / 1000;
}

boost::asio::awaitable<json> check_stock(stock_args args, reagent::tool_context& context)
{
    // A warehouse takes a moment to answer.
    const reagent::clock_ptr clock = context.clock ? context.clock : reagent::clock::system();
    const auto when = clock->now() + std::chrono::milliseconds(2);
    co_await reagent::sleep_until(clock, when);
    co_return json::object().set("item", std::move(args.item)).set("in_stock", true);
}

json call(const char* name, json arguments)
{
    return json::object().set("name", name).set("arguments", std::move(arguments));
}
json two_calls(const char* item, const char* expression)
{
    json calls = json::array();
    calls.push_back(call("check_stock", json::object().set("item", item)));
    calls.push_back(call("calculate", json::object().set("expression", expression)));
    return calls;
}

json fixture(json match, json response, std::size_t round)
{
    match.set("turnIndex", round);
    return json::object()
        .set("match", std::move(match))
        .set("response", std::move(response))
        .set("usage", json::object().set("prompt_tokens", rounds[round].input).set("completion_tokens", rounds[round].output))
        .set("latency_ms", 60)
        .set("gap_ms", 2);
}
json with_fault(json f, json fault)
{
    return std::move(f.set("fault", std::move(fault)));
}

json first_answer()
{
    return json::object().set("content", "Let me look at the books and add them up. ").set("toolCalls", two_calls("book", "3*12.50"));
}
json second_answer()
{
    return json::object().set("content", "The books are there. Now the pens and the discount. ").set("toolCalls", two_calls("pen", "(3*12.50+2*1.20)*0.9"));
}
json third_answer()
{
    return json::object().set("content", "Three books and two pens come to 35.91 with the discount, and all of it is in stock.");
}
json about(const char* words)
{
    return json::object().set("userMessage", words);
}

}  // namespace

json demo_fixtures()
{
    json all = json::array();
    all.push_back(with_fault(fixture(about("by sea"), first_answer(), 0), json::object().set("kind", "status").set("status", 500)));
    all.push_back(with_fault(fixture(about("by rail"), second_answer(), 1), json::object().set("kind", "reset").set("after_bytes", 700)));
    all.push_back(with_fault(fixture(about("by air"), second_answer(), 1), json::object().set("kind", "malformed_json")));
    all.push_back(fixture(json::object(), first_answer(), 0));
    all.push_back(fixture(json::object(), second_answer(), 1));
    all.push_back(fixture(json::object(), third_answer(), 2));
    return json::object().set("fixtures", std::move(all));
}

std::string demo_question(std::size_t n)
{
    const char* how = "";
    if (n % 25 == 7) how = " by sea";
    else if (n % 100 == 13) how = " by rail";
    else if (n % 100 == 19) how = " by air";
    return "Customer " + std::to_string(n) + ": what do 3 books and 2 pens sent" + how + " cost me, and do you have them?";
}

std::string demo_system_prompt()
{
    return "You serve the customers of a stationer. A book is 12.50, a pen 1.20, the discount 10 %.";
}

std::vector<reagent::tool> demo_tools()
{
    std::vector<reagent::tool> tools;
    tools.push_back(reagent::make_tool("check_stock", "Whether an item is in stock.", &check_stock).effect(reagent::effect::readonly));
    tools.push_back(reagent::calculate());
    return tools;
}

json demo_gate()
{
    json allowed = json::array();
    allowed.push_back("check_stock");
    allowed.push_back("calculate");
    return json::object()
        .set("tools", json::object().set("allowlist", std::move(allowed)))
        .set("limits", json::object().set("maxTurns", 12).set("maxToolRounds", 8));
}

reagent::rates demo_rates()
{
    return reagent::rates(input_rate * 1e6, output_rate * 1e6);
}

reagent::usd demo_cap(std::size_t agents)
{
    const double each = round_cost(0) + round_cost(1) + paid_third_rounds * round_cost(2);
    return reagent::usd::from_double(each * static_cast<double>(agents));
}

}  // namespace reagent_app

// Bring your own provider: override `generate`, and events, tools, limits and transcripts come with it.
#include <reagent/reagent.hpp>

#include <boost/asio/io_context.hpp>
#include <boost/asio/use_future.hpp>

#include <iostream>

/// Calls the first tool it is offered with the user's words, then repeats what the tool answered.
class parrot : public reagent::provider {
public:
    std::string_view name() const noexcept override { return "parrot"; }
    std::string_view model() const noexcept override { return "parrot-1"; }
    reagent::awaitable<reagent::generate_result> generate(reagent::generate_request request) override
    {
        const reagent::message& last = *request.messages.back();
        reagent::generate_result answer;
        answer.model = "parrot-1";
        if (last.who == reagent::role::user && request.tools && !request.tools->empty()) {
            reagent::json arguments = reagent::json::object().set("text", last.text());
            answer.tool_calls.emplace_back("call-1", request.tools->front().name, std::move(arguments));
            answer.stop_reason = "tool_use";
        } else {
            answer.text = "Squawk! " + last.text();
            answer.stop_reason = "end_turn";
        }
        co_return answer;
    }
};

struct shout_args {
    std::string text;
};
BOOST_DESCRIBE_STRUCT(shout_args, (), (text))

std::string shout(shout_args args)
{
    for (char& c : args.text) c = static_cast<char>(std::toupper(static_cast<unsigned char>(c)));
    return args.text;
}

int main()
{
    boost::asio::io_context context;
    const reagent::agent agent(context.get_executor(), std::make_shared<parrot>(),
                               reagent::agent_options().tool(reagent::make_tool("shout", "Says it louder.", &shout)));
    auto pending = agent.async_run(reagent::run_request("hello"), boost::asio::use_future);
    context.run();
    const reagent::run_result result = pending.get();
    std::cout << result.text() << '\n';
    return result.text() == "Squawk! HELLO" ? 0 : 1;
}

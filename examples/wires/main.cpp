// Two services with their own options. Without a key in the environment there is nobody to ask, and the program says so.
#include <reagent/net/http_client.hpp>
#include <reagent/providers/anthropic.hpp>
#include <reagent/providers/openai_responses.hpp>

#include <boost/asio/io_context.hpp>

#include <cstdlib>
#include <iostream>

reagent::provider_ptr reasoner(reagent::http_client http)
{
    auto model = reagent::openai_responses(http,
                                           reagent::openai_responses_options("gpt-5-mini")
                                               .key(reagent::secret::from_env("OPENAI_API_KEY"))
                                               .thinking(reagent::json::object().set("effort", "low").set("summary", "auto")));
    return model;
}

reagent::provider_ptr with_prompt_cache(reagent::http_client http)
{
    auto model = reagent::anthropic(
        http, reagent::anthropic_options("claude-haiku-4-5").key(reagent::secret::from_env("ANTHROPIC_API_KEY")).cache_system(true).cache_messages(true));
    return model;
}

int main()
{
    boost::asio::io_context context;
    reagent::http_client http(context.get_executor());
    const auto told = [](const char* variable, auto make) {
        if (std::getenv(variable) == nullptr) {
            std::cout << variable << " is not set\n";
            return;
        }
        const reagent::provider_ptr model = make();
        std::cout << model->name() << ": " << model->model() << '\n';
    };
    told("OPENAI_API_KEY", [&] { return reasoner(http); });
    told("ANTHROPIC_API_KEY", [&] { return with_prompt_cache(http); });
}

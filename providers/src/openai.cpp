#include "openai_call.hpp"

#include <reagent/base/error.hpp>

namespace reagent::inline v0 {

namespace providers_detail {

openai_provider::openai_provider(http_client http, openai_options options) : http_(std::move(http)), options_(std::move(options)), codec_(options_.codec())
{
    if (codec_.key_in_clear()) warn("the API key travels in the clear to " + codec_.endpoint().authority() + "; use https");
}

model_call_ptr openai_provider::start(generate_request request)
{
    return std::make_unique<openai_call>(self(), std::move(request));
}

awaitable<generate_result> openai_provider::generate(generate_request request)
{
    request.options.stream = false;
    openai_call call(self(), std::move(request));
    while (call.unfinished()) co_await call.step(nullptr);
    call.check();
    co_return call.take_result();
}

void openai_provider::warn(std::string_view what) const
{
    options_.log()(log_level::warn, prefixed("OpenAIProvider", what));
}

void openai_provider::warn_once(bool& said, std::string_view what)
{
    if (said) return;
    said = true;
    warn(what);
}

}  // namespace providers_detail

provider_ptr openai_chat(http_client http, openai_options options)
{
    return std::make_shared<providers_detail::openai_provider>(std::move(http), std::move(options));
}

}  // namespace reagent::inline v0

#include "options_reader.hpp"

#include <reagent/providers/http_provider.hpp>
#include <reagent/providers/openai_responses.hpp>

namespace reagent::inline v0 {

openai_responses_options openai_responses_options::from_json(const json& j)
{
    const providers_detail::options_reader reader(j, openai_responses_component, {"store"});
    openai_responses_options out;
    reader.read_shared(out.codec_, out.call_);
    reader.read("store", out.codec_.store);
    return out;
}

provider_ptr openai_responses(http_client http, openai_responses_options options)
{
    return make_http_provider(std::move(http), std::make_unique<openai_responses_codec>(options.codec()), options.call());
}

}  // namespace reagent::inline v0

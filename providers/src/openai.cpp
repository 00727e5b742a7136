#include "options_reader.hpp"

#include <reagent/providers/http_provider.hpp>
#include <reagent/providers/openai.hpp>

namespace reagent::inline v0 {

openai_options openai_options::from_json(const json& j)
{
    const providers_detail::options_reader reader(j, openai_component, {"legacyMaxTokens", "streamUsage", "systemRole"});
    openai_options out;
    reader.read_shared(out.codec_, out.call_);
    reader.read("legacyMaxTokens", out.codec_.legacy_max_tokens);
    reader.read("streamUsage", out.codec_.stream_usage);
    reader.read("systemRole", out.codec_.system_role);
    return out;
}

provider_ptr openai_chat(http_client http, openai_options options)
{
    return make_http_provider(std::move(http), std::make_unique<openai_codec>(options.codec()), options.call());
}

}  // namespace reagent::inline v0

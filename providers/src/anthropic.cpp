#include "options_reader.hpp"

#include <reagent/providers/anthropic.hpp>
#include <reagent/providers/http_provider.hpp>

namespace reagent::inline v0 {

anthropic_options anthropic_options::from_json(const json& j)
{
    const providers_detail::options_reader reader(j, anthropic_component, {"cacheSystem", "cacheMessages", "cacheTtl"});
    anthropic_options out;
    reader.read_shared(out.codec_, out.call_);
    reader.read("cacheSystem", out.codec_.cache_system);
    reader.read("cacheMessages", out.codec_.cache_messages);
    reader.read("cacheTtl", out.codec_.cache_ttl);
    return out;
}

provider_ptr anthropic(http_client http, anthropic_options options)
{
    return make_http_provider(std::move(http), std::make_unique<anthropic_codec>(options.codec()), options.call());
}

}  // namespace reagent::inline v0

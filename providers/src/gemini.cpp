#include "options_reader.hpp"

#include <reagent/providers/gemini.hpp>
#include <reagent/providers/http_provider.hpp>

namespace reagent::inline v0 {

gemini_options gemini_options::from_json(const json& j)
{
    const providers_detail::options_reader reader(j, gemini_component, {});
    gemini_options out;
    reader.read_shared(out.codec_, out.call_);
    return out;
}

provider_ptr gemini(http_client http, gemini_options options)
{
    return make_http_provider(std::move(http), std::make_unique<gemini_codec>(options.codec()), options.call());
}

}  // namespace reagent::inline v0

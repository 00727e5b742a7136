#include "options_reader.hpp"

#include <reagent/providers/http_provider.hpp>
#include <reagent/providers/ollama.hpp>

namespace reagent::inline v0 {

ollama_options ollama_options::from_json(const json& j)
{
    const providers_detail::options_reader reader(j, ollama_component, {}, "url");
    ollama_options out;
    reader.read_shared(out.codec_, out.call_);
    return out;
}

provider_ptr ollama(http_client http, ollama_options options)
{
    return make_http_provider(std::move(http), std::make_unique<ollama_codec>(options.codec()), options.call());
}

}  // namespace reagent::inline v0

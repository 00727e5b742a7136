// Any answer on the wire of Ollama.
#include "wire_fuzz.hpp"

#include <reagent/model/ollama_codec.hpp>

namespace {

reagent::ollama_codec_options options()
{
    reagent::ollama_codec_options o;
    o.model = "m";
    o.key = reagent::secret("sk-fuzz");
    o.max_arguments = 1024;
    o.expose_malformed_args = o.expose_error_body = true;
    o.random = [] { return std::uint64_t{7}; };
    return o;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* bytes, std::size_t size)
{
    static const reagent::ollama_codec codec(options());
    static const reagent::tool_list tools = wire_fuzz::some_tools();
    wire_fuzz::run(codec, tools, std::string_view(reinterpret_cast<const char*>(bytes), size));
    return 0;
}

// Any answer on the wire of Anthropic's Messages.
#include "wire_fuzz.hpp"

#include <reagent/model/anthropic_codec.hpp>

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* bytes, std::size_t size)
{
    static const reagent::anthropic_codec codec(wire_fuzz::options<reagent::anthropic_codec_options>());
    static const reagent::tool_list tools = wire_fuzz::some_tools();
    wire_fuzz::run(codec, tools, std::string_view(reinterpret_cast<const char*>(bytes), size));
    return 0;
}

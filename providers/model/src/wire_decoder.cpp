#include <reagent/model/wire_decoder.hpp>

namespace reagent::inline v0 {

wire_decoder::~wire_decoder() = default;

decode_state wire_decoder::on_end(bool clean, event_batch* out)
{
    if (complete()) return finish(out);
    return answer_.fail_truncated(clean);
}

thinking_signal wire_decoder::thinking_seen() const noexcept
{
    const std::optional<usage>& used = reported_usage();
    const bool counted = used && used->reasoning;
    if (!answer_.thinking().empty() || (counted && *used->reasoning > 0)) return thinking_signal::seen;
    return counted ? thinking_signal::none : thinking_signal::unreadable;
}

}  // namespace reagent::inline v0

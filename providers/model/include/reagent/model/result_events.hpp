#pragma once
#include <reagent/model/event.hpp>

namespace reagent::inline v0 {

/// The events of a call that came in one piece: start, text, the tool calls, usage, stop. For providers and tests that do not stream. `opened`: the
/// start event is already out.
void append_result_events(event_batch& batch, const generate_result& result, bool opened = false);

}  // namespace reagent::inline v0

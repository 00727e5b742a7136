#pragma once
#include <memory>

namespace reagent::inline v0::model_detail {

class wire_scratch;
/// Apart from `wire_json.hpp`, which only decoders include.
std::shared_ptr<wire_scratch> make_wire_scratch();

}  // namespace reagent::inline v0::model_detail

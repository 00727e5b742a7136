#include <reagent/base/spawn.hpp>

namespace reagent::inline v0 {

template awaitable<void> isolated(awaitable<void>);

}  // namespace reagent::inline v0

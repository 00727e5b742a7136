#pragma once
#include <cstdint>
#include <functional>
#include <string>

namespace reagent::inline v0 {

/// A source of 64 random bits; tests hand in a counter. An empty one stands for `random_bits`, which reads a per-thread generator seeded from the kernel.
using random_source = std::function<std::uint64_t()>;
std::uint64_t random_bits();
/// `n` lower-case hex digits from `source` (n at most 64).
std::string random_hex(const random_source& source, unsigned n);
/// A version 4 UUID.
std::string random_uuid(const random_source& source);

}  // namespace reagent::inline v0

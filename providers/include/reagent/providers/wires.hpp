#pragma once
#include <reagent/base/json.hpp>
#include <reagent/model/wire_codec.hpp>
#include <reagent/providers/http_call_options.hpp>

#include <memory>
#include <span>
#include <string>
#include <string_view>

namespace reagent::inline v0 {

/// A wire with its options read, for `make_http_provider` or for use without a network.
class configured_wire {
public:
    std::unique_ptr<const wire_codec> codec;
    http_call_options call;
};

/// A wire by name.
class wire_entry {
public:
    std::string_view name;  ///< `openai`
    /// Reads the provider's JSON options; throws `validation_error` naming the key.
    configured_wire (*configure)(const json& options) = nullptr;
};

/// All wires of this library.
std::span<const wire_entry> wire_table() noexcept;
/// Null when there is none of this name.
const wire_entry* find_wire(std::string_view name) noexcept;
/// `openai, anthropic`, for messages.
std::string wire_names();

}  // namespace reagent::inline v0

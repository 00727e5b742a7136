#pragma once
#include <reagent/base/json.hpp>
#include <reagent/base/secret.hpp>
#include <reagent/model/wire_codec.hpp>
#include <reagent/providers/http_call_options.hpp>

#include <array>
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
    std::string_view base_url_key = "baseUrl";           ///< the option of the base URL
    std::array<std::string_view, 2> key_variables = {};  ///< environment variables where a program looks for the key, the first that is set; empty: none
    std::string_view key_host = {};                      ///< the host that answers nobody without a key; empty: there is none
    bool needs_key = false;                              ///< no server of this wire does without
};

/// All wires of this library.
std::span<const wire_entry> wire_table() noexcept;
/// Null when there is none of this name.
const wire_entry* find_wire(std::string_view name) noexcept;
/// `openai, anthropic`, for messages.
std::string wire_names();
/// The key that the environment holds for a wire, empty when it holds none.
secret key_from_environment(const wire_entry& wire);

}  // namespace reagent::inline v0

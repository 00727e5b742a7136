#pragma once
#include <reagent/model/generate.hpp>

#include <cstdint>
#include <optional>
#include <string_view>

namespace reagent::inline v0 {

/// What one image is reckoned at when the model table does not know the model.
inline constexpr std::uint64_t unknown_image_tokens = 50'000;

/// Most prompt tokens a request body can stand for: a token is at least one byte; an image counts as the table says instead of by its bytes.
/// `messages` are those that `body` holds.
std::uint64_t input_bound(std::uint64_t body_bytes, std::span<const message_ptr> messages, std::string_view model) noexcept;
/// The same without a body: the bytes an OpenAI-shaped body of this transcript and these tools would have. For providers that do not admit
/// their attempts themselves.
std::uint64_t input_bound(std::span<const message_ptr> messages, const tool_list& tools, std::string_view model);
/// Most answer tokens: `max_tokens` (0 counts as unset), else the model table's maximum; empty when neither is known.
std::optional<std::uint64_t> output_bound(std::optional<std::uint64_t> max_tokens, std::string_view model) noexcept;

}  // namespace reagent::inline v0

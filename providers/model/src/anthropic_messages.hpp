/// How the wire of Anthropic's Messages writes a transcript.
#pragma once
#include <reagent/model/anthropic_codec.hpp>
#include <reagent/model/encoded_prefix.hpp>

#include <cstddef>
#include <span>
#include <string>
#include <string_view>

namespace reagent::inline v0::model_detail {

/// The item of `so_far[at]` and what follows it: a message, or the results of a round as one. Nothing for what is no message here. `mark`, when not empty, is a
/// member that goes into the last block, if that can take one.
void append_anthropic_item(const anthropic_codec& codec, std::span<const message_ptr> so_far, std::size_t at, std::string& out, std::string_view mark);
/// The items of a codec's messages, without marks.
message_items anthropic_items() noexcept;
/// The system prompt as `,"system":…`, nothing when there is none: the call's own, else the system messages, strings joined by a blank line. `mark` goes into a
/// prompt of text alone.
void append_anthropic_system(std::string& out, const generate_request& request, std::string_view mark);

}  // namespace reagent::inline v0::model_detail

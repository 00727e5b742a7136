/// What the encoders of all wires share.
#pragma once
#include <reagent/model/encoded_prefix.hpp>
#include <reagent/model/wire_codec.hpp>

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

namespace reagent::inline v0::model_detail {

/// As JavaScript sees it: what counts as set.
bool truthy(const json& j) noexcept;
void append_unsigned(std::string& out, std::uint64_t n);
/// `,"temperature":` and the like, then the number in its shortest form.
void append_number(std::string& out, std::string_view before, double value);
/// Bytes that the messages will roughly take.
std::size_t estimated_size(const generate_request& r) noexcept;
/// An image's bytes as `data:<type>;base64,<data>`, quoted.
void append_data_url(std::string& out, const image_part& image);
/// Whether a native part is `{"type":"text","text":…}`.
bool is_text(const native_part& n) noexcept;
/// The text of a tool result, for wires that carry nothing else there. Throws `validation_error` for another part.
std::string tool_result_text(const message& m, std::string_view component);
/// The arguments of a call as an object, for wires that want one: stored text that is none becomes `{}`.
void append_arguments(std::string& out, const json& arguments);
/// One tool as the chat wires of OpenAI and Ollama write it.
void append_chat_tool(const tool_schema& tool, std::string& out);

/// Where a tool result belongs.
struct answered_call {
    const message* by = nullptr;      ///< the assistant message
    const tool_call* call = nullptr;  ///< null when no message has a call of this id
    std::size_t index = 0;            ///< of the call among those of its message
};
/// The last call of this id.
answered_call call_answered(std::span<const message_ptr> before, std::string_view id) noexcept;

/// The native blocks of a message that were made by this provider, a non-empty array; else null.
const provider_blocks* own_blocks(const message& m, std::string_view provider_name) noexcept;

/// `Content-Type`, the header of the key (`name: scheme key`) when there is one, then the user's own. Throws `validation_error` for what cannot stand in a header.
/// The values are never shown: they may hold a key.
std::string header_lines(std::string_view component, const codec_options& options, std::string_view key_header, std::string_view key_scheme);
/// `,"top_p":0.5`: the user's members of every body; those that we set ourselves (`ours`), and what would multiply the answer past its bound, are refused.
std::string encoded_members(std::string_view component, const json& members, std::span<const std::string_view> ours);

/// Takes a member out of the user's own, to be merged with ours; null when there is none.
json taken_member(json& members, std::string_view name);

/// The body up to and with the messages: in the request's prefix when it has one, else in `storage`, where `more` bytes for what follows are made room for.
std::string& begin_body(const generate_request& request, std::string& storage, const wire_codec* codec, const message_items& items, std::string_view head,
                        std::size_t more);
/// The same with `messages`, the first ones of the request's.
std::string& begin_body(const generate_request& request, std::span<const message_ptr> messages, std::string& storage, const wire_codec* codec,
                        const message_items& items, std::string_view head, std::size_t more);

}  // namespace reagent::inline v0::model_detail

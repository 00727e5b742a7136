#pragma once
#include <reagent/base/json.hpp>

#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

namespace reagent::inline v0 {

enum class role : std::uint8_t { system, user, assistant, tool, other };

/// Parts of a message, in order. All have constructors: none is an aggregate (GCC 12 destroys aggregate temporaries beside `co_await` twice).
class text_part {
public:
    text_part() = default;
    explicit text_part(std::string t) : text(std::move(t)) {}
    std::string text;
    friend bool operator==(const text_part&, const text_part&) = default;
};
/// Reasoning text of a model, replayed only to the provider that made it.
class thinking_part {
public:
    thinking_part() = default;
    explicit thinking_part(std::string t, std::string s = {}) : text(std::move(t)), signature(std::move(s)) {}
    std::string text, signature;
    friend bool operator==(const thinking_part&, const thinking_part&) = default;
};
/// Native blocks of one provider, kept byte for byte (`providerBlocks`, spec/loop-and-providers.md §1.1 and §7.5).
class provider_blocks {
public:
    provider_blocks() = default;
    provider_blocks(std::string p, std::string m, json b) : provider(std::move(p)), model(std::move(m)), blocks(std::move(b)) {}
    std::string provider, model;
    json blocks = json::array();
    json layout;  ///< null when absent
    json to_json() const;
    static std::optional<provider_blocks> from_json(const json& j);
    friend bool operator==(const provider_blocks&, const provider_blocks&) = default;
};
/// An image by data or by URL (spec/loop-and-providers.md §1.2).
class image_part {
public:
    image_part() = default;
    std::string media_type, data_base64, url, detail;  ///< either `data_base64` (with `media_type`) or `url`
    friend bool operator==(const image_part&, const image_part&) = default;
};
/// A part object we do not know: sent as it is where the wire allows it.
class native_part {
public:
    native_part() = default;
    explicit native_part(json v) : value(std::move(v)) {}
    json value;
    friend bool operator==(const native_part&, const native_part&) = default;
};
/// A tool call of an assistant message; `arguments` is parsed, numbers keep their text.
class tool_call {
public:
    tool_call() = default;
    tool_call(std::string i, std::string n, json a) : id(std::move(i)), name(std::move(n)), arguments(std::move(a)) {}
    std::string id, name;
    json arguments = json::object();
    friend bool operator==(const tool_call&, const tool_call&) = default;
};

using part = std::variant<text_part, thinking_part, provider_blocks, image_part, native_part, tool_call>;

class message;
/// Messages are immutable once in a transcript and shared by pointer: an `encoded_prefix` compares pointers.
using message_ptr = std::shared_ptr<const message>;
using transcript = std::vector<message_ptr>;

/// One element of a transcript. A tool message is role `tool`, `tool_call_id` and its content parts.
class message {
public:
    message() = default;
    message(role r, std::string text);
    static message_ptr system(std::string text);
    static message_ptr user(std::string text);
    /// Null content when `text` is blank and there are calls.
    static message_ptr assistant(std::string text, std::vector<tool_call> calls = {}, std::optional<provider_blocks> blocks = {});
    static message_ptr tool_result(std::string call_id, std::string text);

    role who = role::user;
    std::string role_name;     ///< only for role::other: the text as received
    std::string tool_call_id;  ///< role::tool only
    std::vector<part> parts;
    bool content_null = false;   ///< `content` was null (or absent) rather than an empty string
    bool content_parts = false;  ///< `content` was an array of parts and is written back as one
    json extra;                  ///< unknown keys, kept in the transcript, never sent on a wire; null when none

    /// Concatenated text parts (text of array content joined by LF, spec/loop-and-providers.md §1.2).
    std::string text() const;
    std::vector<const tool_call*> calls() const;
    const provider_blocks* blocks() const noexcept;

    /// The OpenAI-shaped projection of spec/loop-and-providers.md §1.1. `from_json` throws `validation_error` naming `where`.
    json to_json() const;
    static message_ptr from_json(const json& j, std::string_view where = "message");
    friend bool operator==(const message&, const message&) = default;
};

std::string_view to_string(role r) noexcept;
json transcript_to_json(std::span<const message_ptr> messages);
transcript transcript_from_json(const json& array);

/// Every violation of: each tool call has exactly one result before the next user or assistant message, no orphan result, ids unique per
/// round. Empty means valid.
std::vector<std::string> check_transcript(std::span<const message_ptr> messages);

}  // namespace reagent::inline v0

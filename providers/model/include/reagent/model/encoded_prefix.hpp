#pragma once
#include <reagent/model/generate.hpp>
#include <reagent/model/message.hpp>

#include <cstddef>
#include <span>
#include <string>
#include <vector>

namespace reagent::inline v0 {

/// Encoded messages kept from round to round: bytes plus the immutable messages they came from. A round compares pointers, keeps the common
/// prefix and encodes the rest, so a round costs what it adds. One per run and provider, for one call at a time; not thread safe.
///
///     std::string& body = prefix.begin_body(codec, encode_one, head, messages);   // head, then the messages, comma-joined
///     body += tail;                                                               // cut off again by the next call
class encoded_prefix {
public:
    /// Appends one encoded message (without separators) to `out`. Must depend on nothing but the message and the codec's fixed options.
    using encode_one = void (*)(const void* codec, const message& m, std::string& out);

    /// The body under construction: `head` and the comma-joined encodings of `messages`. The caller appends what follows; the bytes stay valid until
    /// the next call. `codec` keys the cache: another codec or another head starts anew. When `one` throws, nothing is kept.
    std::string& begin_body(const void* codec, encode_one one, std::string_view head, std::span<const message_ptr> messages);
    /// The comma-joined encodings of `messages` alone.
    std::string_view encode(const void* codec, encode_one one, std::span<const message_ptr> messages);
    /// Messages whose bytes were reused by the last call.
    std::size_t reused() const noexcept { return reused_; }
    void clear() noexcept;

private:
    const void* codec_ = nullptr;
    std::vector<message_ptr> messages_;
    std::vector<std::size_t> ends_;  ///< end offset of each message's bytes
    std::string bytes_;
    std::size_t head_ = 0;  ///< bytes of the head
    std::size_t reused_ = 0;
};

}  // namespace reagent::inline v0

#pragma once
#include <reagent/model/generate.hpp>
#include <reagent/model/message.hpp>

#include <cstddef>
#include <span>
#include <string>
#include <vector>

namespace reagent::inline v0 {

/// How a wire writes the messages of a transcript: as comma-joined items, each made of one message or of neighbours that belong together (the results of one
/// round). Functions of static storage.
class message_items {
public:
    /// Whether `next` belongs to the item of `before`, the message in front of it. Null: each message is an item of its own.
    using joins = bool (*)(const message& before, const message& next);
    /// Appends the item of `so_far[first]` to the last one of `so_far`, without separators; nothing for messages that go elsewhere. Must depend on nothing but
    /// `so_far` and the codec's fixed options.
    using append = void (*)(const void* codec, std::span<const message_ptr> so_far, std::size_t first, std::string& out);
    explicit message_items(append one, joins same = nullptr) noexcept : one_(one), same_(same) {}

    /// Whether the message at `i` begins an item.
    bool begins(std::span<const message_ptr> all, std::size_t i) const { return i == 0 || same_ == nullptr || !same_(*all[i - 1], *all[i]); }
    /// Appends the item that begins at `first`, behind a comma if `comma`; answers where the next one begins.
    std::size_t append_one(std::string& out, const void* codec, std::span<const message_ptr> all, std::size_t first, bool comma) const;
    /// Appends them all.
    void append_to(std::string& out, const void* codec, std::span<const message_ptr> all) const;

private:
    append one_;
    joins same_;
};

/// Encoded messages kept from round to round: bytes plus the immutable messages they came from. A round compares pointers, keeps the common
/// prefix and encodes the rest, so a round costs what it adds. One per run and provider, for one call at a time; not thread safe.
///
///     std::string& body = prefix.begin_body(codec, items, head, messages);   // head, then the messages' items, comma-joined
///     body += tail;                                                          // cut off again by the next call
class encoded_prefix {
public:
    /// The body under construction: `head` and the comma-joined items of `messages`. The caller appends what follows; the bytes stay valid until
    /// the next call. `codec` keys the cache: another codec or another head starts anew. When an item throws, nothing is kept.
    std::string& begin_body(const void* codec, const message_items& items, std::string_view head, std::span<const message_ptr> messages);
    /// The comma-joined items of `messages` alone.
    std::string_view encode(const void* codec, const message_items& items, std::span<const message_ptr> messages);
    /// Messages whose bytes were reused by the last call.
    std::size_t reused() const noexcept { return reused_; }
    void clear() noexcept;

private:
    const void* codec_ = nullptr;
    std::vector<message_ptr> messages_;
    std::vector<std::size_t> ends_;  ///< where the bytes of each message's item end
    std::string bytes_;
    std::size_t head_ = 0;  ///< bytes of the head
    std::size_t reused_ = 0;
};

}  // namespace reagent::inline v0

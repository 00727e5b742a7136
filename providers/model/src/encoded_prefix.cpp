#include <reagent/model/encoded_prefix.hpp>

#include <algorithm>

namespace reagent::inline v0 {

std::size_t message_items::append_one(std::string& out, const void* codec, std::span<const message_ptr> all, std::size_t first, bool comma) const
{
    std::size_t end = first + 1;
    while (end < all.size() && !begins(all, end)) ++end;
    const std::size_t before = out.size();
    if (comma) out += ',';
    const std::size_t empty = out.size();
    one_(codec, all.first(end), first, out);
    if (out.size() == empty) out.resize(before);
    return end;
}

void message_items::append_to(std::string& out, const void* codec, std::span<const message_ptr> all) const
{
    const std::size_t start = out.size();
    for (std::size_t i = 0; i < all.size();) i = append_one(out, codec, all, i, out.size() != start);
}

std::string& encoded_prefix::begin_body(const void* codec, const message_items& items, std::string_view head, std::span<const message_ptr> messages)
{
    if (codec != codec_ || std::string_view(bytes_).substr(0, head_) != head) {
        clear();
        codec_ = codec;
        bytes_ = head;
        head_ = head.size();
    }
    const auto [mine, theirs] = std::mismatch(messages_.begin(), messages_.end(), messages.begin(), messages.end());
    reused_ = static_cast<std::size_t>(mine - messages_.begin());
    // The last item may have grown, or lost its end.
    const auto whole = [&](std::size_t n) {
        return n == 0 || ((n == messages.size() || items.begins(messages, n)) && (n == messages_.size() || items.begins(messages_, n)));
    };
    while (!whole(reused_)) --reused_;
    messages_.resize(reused_);
    ends_.resize(reused_);
    bytes_.resize(reused_ == 0 ? head_ : ends_.back());
    try {
        for (std::size_t i = reused_; i < messages.size();) {
            const std::size_t end = items.append_one(bytes_, codec, messages, i, bytes_.size() > head_);
            for (; i < end; ++i) {
                messages_.push_back(messages[i]);
                ends_.push_back(bytes_.size());
            }
        }
    } catch (...) {
        clear();
        throw;
    }
    return bytes_;
}

std::string_view encoded_prefix::encode(const void* codec, const message_items& items, std::span<const message_ptr> messages)
{
    return begin_body(codec, items, {}, messages);
}

void encoded_prefix::clear() noexcept
{
    codec_ = nullptr;
    messages_.clear();
    ends_.clear();
    bytes_.clear();
    head_ = 0;
    reused_ = 0;
}

}  // namespace reagent::inline v0

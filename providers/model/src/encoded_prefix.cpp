#include <reagent/model/encoded_prefix.hpp>

#include <algorithm>

namespace reagent::inline v0 {

std::string& encoded_prefix::begin_body(const void* codec, encode_one one, std::string_view head, std::span<const message_ptr> messages)
{
    if (codec != codec_ || std::string_view(bytes_).substr(0, head_) != head) {
        clear();
        codec_ = codec;
        bytes_ = head;
        head_ = head.size();
    }
    const auto [mine, theirs] = std::mismatch(messages_.begin(), messages_.end(), messages.begin(), messages.end());
    reused_ = static_cast<std::size_t>(mine - messages_.begin());
    messages_.resize(reused_);
    ends_.resize(reused_);
    bytes_.resize(reused_ == 0 ? head_ : ends_.back());
    try {
        for (const message_ptr& m : messages.subspan(reused_)) {
            if (!messages_.empty()) bytes_ += ',';
            one(codec, *m, bytes_);
            messages_.push_back(m);
            ends_.push_back(bytes_.size());
        }
    } catch (...) {
        clear();
        throw;
    }
    return bytes_;
}

std::string_view encoded_prefix::encode(const void* codec, encode_one one, std::span<const message_ptr> messages)
{
    return begin_body(codec, one, {}, messages);
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

#include "answer_store.hpp"

namespace reagent::inline v0::providers_detail {

answer_ptr answer_store::find(std::string_view key, steady_time now)
{
    const auto found = by_key_.find(key);
    if (found == by_key_.end()) return nullptr;
    const place at = found->second;
    if (now >= at->good_until) {
        drop(at);
        return nullptr;
    }
    by_use_.splice(by_use_.begin(), by_use_, at);
    return at->answer;
}

void answer_store::put(std::string key, answer_ptr answer, std::size_t bytes, steady_time now)
{
    const std::size_t all = bytes + key.size();
    if (const auto old = by_key_.find(key); old != by_key_.end()) drop(old->second);
    if (max_entries_ == 0 || all > max_bytes_) return;
    while (by_use_.size() >= max_entries_ || bytes_ > max_bytes_ - all) drop(std::prev(by_use_.end()));
    by_use_.push_front({std::move(key), std::move(answer), all, now + ttl_});
    by_key_.emplace(by_use_.front().key, by_use_.begin());
    bytes_ += all;
}

void answer_store::clear() noexcept
{
    by_key_.clear();
    by_use_.clear();
    bytes_ = 0;
}

void answer_store::drop(place at) noexcept
{
    bytes_ -= at->bytes;
    by_key_.erase(at->key);
    by_use_.erase(at);
}

}  // namespace reagent::inline v0::providers_detail

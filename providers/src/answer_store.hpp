/// Answers by key, bounded in number, bytes and age; the longest unused goes first. Without clock or lock.
#pragma once
#include <reagent/base/clock.hpp>
#include <reagent/model/generate.hpp>

#include <cstddef>
#include <list>
#include <memory>
#include <string>
#include <string_view>
#include <unordered_map>

namespace reagent::inline v0::providers_detail {

using answer_ptr = std::shared_ptr<const generate_result>;

class answer_store {
public:
    answer_store(std::size_t max_entries, std::size_t max_bytes, duration ttl) noexcept : max_entries_(max_entries), max_bytes_(max_bytes), ttl_(ttl) {}
    /// Null when there is none that is still good.
    answer_ptr find(std::string_view key, steady_time now);
    /// `bytes` is the answer's size; one larger than everything allowed is not kept.
    void put(std::string key, answer_ptr answer, std::size_t bytes, steady_time now);
    void clear() noexcept;
    std::size_t entries() const noexcept { return by_use_.size(); }
    std::size_t bytes() const noexcept { return bytes_; }

private:
    struct entry {
        std::string key;
        answer_ptr answer;
        std::size_t bytes;
        steady_time good_until;
    };
    using place = std::list<entry>::iterator;
    void drop(place at) noexcept;

    std::size_t max_entries_, max_bytes_, bytes_ = 0;
    duration ttl_;
    std::list<entry> by_use_;                             // the latest first
    std::unordered_map<std::string_view, place> by_key_;  // keys live in the entries
};

}  // namespace reagent::inline v0::providers_detail

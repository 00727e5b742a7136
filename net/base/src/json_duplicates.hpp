/// Of duplicate keys the last value wins at the first position.
#pragma once
#include <reagent/base/json.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <numeric>
#include <string>
#include <utility>
#include <vector>

namespace reagent::inline v0::base_detail {

inline constexpr std::size_t few_members = 16;  ///< up to here comparing all pairs beats sorting

template <class Compare>
void drop_duplicates_few(json::object_type& members, Compare& compare)
{
    for (std::size_t i = 1; i < members.size();) {
        std::size_t j = 0;
        while (j < i && compare(members[j].first, members[i].first) != 0) ++j;
        if (j < i) {
            members[j].second = std::move(members[i].second);
            members.erase(members.begin() + static_cast<std::ptrdiff_t>(i));
        } else ++i;
    }
}

// By sorting: n log n whatever the keys, and no hash that a peer could attack.
template <class Compare>
void drop_duplicates_many(json::object_type& members, Compare& compare)
{
    std::vector<std::uint32_t> order(members.size());
    std::iota(order.begin(), order.end(), 0u);
    std::sort(order.begin(), order.end(), [&](std::uint32_t a, std::uint32_t b) {
        const int c = compare(members[a].first, members[b].first);
        return c != 0 ? c < 0 : a < b;
    });
    std::vector<std::uint32_t> surplus;
    for (std::size_t i = 1, first = 0; i < order.size(); ++i) {
        if (compare(members[order[i]].first, members[order[first]].first) != 0) first = i;
        else {
            members[order[first]].second = std::move(members[order[i]].second);
            surplus.push_back(order[i]);
        }
    }
    if (surplus.empty()) return;
    std::sort(surplus.begin(), surplus.end());
    std::size_t kept = surplus.front();
    for (std::size_t i = surplus.front(), next = 0; i < members.size(); ++i) {
        if (next < surplus.size() && surplus[next] == i) ++next;
        else members[kept++] = std::move(members[i]);
    }
    members.erase(members.begin() + static_cast<std::ptrdiff_t>(kept), members.end());
}

/// Done once, when an object closes. `compare` orders two keys as `std::string::compare` does; a test counts how often it is asked.
template <class Compare>
void drop_duplicates(json::object_type& members, Compare compare)
{
    if (members.size() <= few_members) drop_duplicates_few(members, compare);
    else drop_duplicates_many(members, compare);
}

}  // namespace reagent::inline v0::base_detail

#pragma once
#include <reagent/base/ascii.hpp>

#include <algorithm>
#include <cstddef>
#include <optional>
#include <ranges>
#include <string>
#include <string_view>
#include <vector>

namespace reagent::inline v0 {

/// Insertions, deletions, replacements and swaps of neighbours that turn `a` into `b`; ASCII case is ignored.
inline std::size_t edit_distance(std::string_view a, std::string_view b)
{
    std::vector<std::size_t> before(b.size() + 1), last(b.size() + 1), row(b.size() + 1);
    for (std::size_t j = 0; j <= b.size(); ++j) last[j] = j;
    for (std::size_t i = 1; i <= a.size(); ++i) {
        row[0] = i;
        for (std::size_t j = 1; j <= b.size(); ++j) {
            const bool same = to_lower(a[i - 1]) == to_lower(b[j - 1]);
            row[j] = std::min({last[j] + 1, row[j - 1] + 1, last[j - 1] + (same ? 0 : 1)});
            if (i > 1 && j > 1 && to_lower(a[i - 1]) == to_lower(b[j - 2]) && to_lower(a[i - 2]) == to_lower(b[j - 1]))
                row[j] = std::min(row[j], before[j - 2] + 1);
        }
        std::swap(before, last);
        std::swap(last, row);
    }
    return last[b.size()];
}

/// The name closest to `word` among `names`, for "did you mean": at most `limit` edits away, by default a third of the longer word and at least 2.
template <std::ranges::input_range Names>
std::optional<std::string> nearest_name(std::string_view word, const Names& names, std::optional<std::size_t> limit = {})
{
    std::optional<std::string> best;
    std::size_t best_distance = 0;
    if (word.size() > 64) return best;
    for (const auto& entry : names) {
        const std::string_view name(entry);
        const std::size_t most = limit.value_or(std::max<std::size_t>(2, std::max(word.size(), name.size()) / 3));
        const std::size_t distance = edit_distance(word, name);
        if (distance <= most && (!best || distance < best_distance)) {
            best = std::string(name);
            best_distance = distance;
        }
    }
    return best;
}

}  // namespace reagent::inline v0

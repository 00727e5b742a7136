#pragma once
#include <array>
#include <string_view>

namespace reagent::inline v0 {

/// Empty after trimming by the set of spec/tools.md §0 (ECMAScript white space and line terminators, here in UTF-8).
inline bool is_blank(std::string_view text) noexcept
{
    static constexpr std::array<std::string_view, 20> wide{"\u00A0", "\u1680", "\u2000", "\u2001", "\u2002", "\u2003", "\u2004", "\u2005", "\u2006", "\u2007",
                                                           "\u2008", "\u2009", "\u200A", "\u2028", "\u2029", "\u202F", "\u205F", "\u3000", "\uFEFF", " "};
    while (!text.empty()) {
        if (text[0] >= '\t' && text[0] <= '\r') {
            text.remove_prefix(1);
            continue;
        }
        bool space = false;
        for (const std::string_view w : wide) {
            if (!text.starts_with(w)) continue;
            text.remove_prefix(w.size());
            space = true;
            break;
        }
        if (!space) return false;
    }
    return true;
}

}  // namespace reagent::inline v0

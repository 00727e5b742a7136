#pragma once
#include <reagent/base/json.hpp>

#include <string>
#include <string_view>
#include <vector>

namespace reagent::inline v0 {

/// Takes secrets out of JSON on its way into a sink (spec/governance.md §6). Immutable once made, thread safe.
/// Values under the key names `apiKey`, `api_key`, `authorization` (case-insensitive) become `[REDACTED:key=<key>]`; in every string and key
/// `Bearer <token>` and `sk-…` become `[REDACTED:pattern=<first 4 characters>...]`, user info of a URL becomes `[REDACTED:userinfo]`;
/// what nests deeper than `max_depth` becomes `[REDACTED:depth]`.
class redactor {
public:
    static constexpr int max_depth = 100;

    redactor();
    /// Adds key names, exact or `*suffix`.
    redactor& keys(std::vector<std::string> names);
    json operator()(json value) const;
    void apply(json& value) const { walk(value, 0); }
    /// The text with its secrets replaced.
    std::string text(std::string_view s) const;

private:
    void walk(json& value, int depth) const;
    bool secret_key(std::string_view key) const noexcept;
    std::vector<std::string> exact_, suffixes_;  // lower case
};

}  // namespace reagent::inline v0

#pragma once
#include <reagent/base/json.hpp>
#include <reagent/base/usd.hpp>
#include <reagent/model/generate.hpp>

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace reagent::inline v0 {

class model_info;

/// Where a price came from, surest first (spec/loop-and-providers.md §13.2, with the model table after the caller's rates).
enum class rate_source : std::uint8_t { none, provider, caller, table, tier, fallback };
/// `provider`, `caller`, `table`, `tier`, `default`; empty for none.
std::string_view to_string(rate_source s) noexcept;
/// A guess (`tier`, `default`) shows a cost but never enforces a cap in dollars.
constexpr bool is_guess(rate_source s) noexcept
{
    return s == rate_source::tier || s == rate_source::fallback;
}

/// Prices a caller sets. Nano-dollars per token, fractions allowed (1 USD per 1000 tokens = 1,000,000).
class rates {
public:
    rates() = default;
    rates(double input_nanos, double output_nanos) : input(input_nanos), output(output_nanos) {}
    double input = 0, output = 0;
    double cache_read_mult = 0.1, cache_write_mult = 1.25;  ///< of the input price
    /// `{"in","out","cacheReadMult"?,"cacheWriteMult"?}` in USD per 1000 tokens, all finite and not negative; null is none. Throws `validation_error`
    /// naming `where`.
    static std::optional<rates> from_json(const json& j, std::string_view where);
};

class priced_usage {
public:
    std::optional<usd> cost;  ///< empty when unpriced
    rate_source source = rate_source::none;
};

/// The cost of one call. An authoritative `reported` price wins, 0 included; then without usage there is none; then the caller's rates, the model
/// table, the `haiku` and `sonnet` guesses, the default guess. The exact cost is rounded half up to a nano-dollar.
priced_usage price_usage(const std::optional<usage>& used, const std::optional<usd>& reported, std::string_view model, const std::optional<rates>& caller);

/// Whether a cap in dollars can hold for this model: caller's rates or a table entry.
bool has_known_price(std::string_view model, const std::optional<rates>& caller) noexcept;
/// The most a call of that many prompt and answer tokens can cost: the dearest tier and the dearer of plain and cached input, rounded up. Empty without a
/// known price.
std::optional<usd> worst_cost(std::uint64_t input_tokens, std::uint64_t output_tokens, std::string_view model, const std::optional<rates>& caller) noexcept;

}  // namespace reagent::inline v0

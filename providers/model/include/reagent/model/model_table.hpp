#pragma once
#include <cstdint>
#include <span>
#include <string_view>

namespace reagent::inline v0 {

/// Prices of one prompt-length tier, in nano-dollars per token (1 USD per million tokens = 1000 nano-dollars).
class price_tier {
public:
    std::uint64_t above = 0;  ///< holds for prompts of more than this many tokens
    std::int64_t input = 0, cached_input = 0, output = 0;
};

/// What is known of one model family. Facts, dated: see `model_table_date` and `model_table_source`.
class model_info {
public:
    std::string_view id;                          ///< matches itself and its dated snapshots (`<id>-2024-08-06`)
    std::string_view vendor;                      ///< `openai`
    std::span<const price_tier> prices;           ///< rising `above`, never empty
    std::uint64_t context = 0;                    ///< tokens of prompt and answer together
    std::uint64_t max_output = 0;                 ///< most tokens of one answer
    bool reasons = false;                         ///< bills reasoning tokens
    std::uint32_t image_low = 0, image_high = 0;  ///< most prompt tokens one image can cost at detail low, at any other; 0 takes no images

    /// The tier a prompt of `tokens` falls into.
    const price_tier& tier(std::uint64_t tokens) const noexcept;
    /// The highest price of each kind over all tiers: what a reservation takes.
    price_tier dearest() const noexcept;
};

/// The day the table was last compared with its source.
std::string_view model_table_date() noexcept;
std::string_view model_table_source() noexcept;
std::span<const model_info> model_table() noexcept;
/// The entry of a model id: the id itself or a snapshot of it (`-YYYY-MM-DD`, `-MMDD` or `-latest`). Null when unknown. Matching ignores nothing else:
/// `gpt-4o-mini-search` is not `gpt-4o-mini`.
const model_info* find_model(std::string_view id) noexcept;

}  // namespace reagent::inline v0

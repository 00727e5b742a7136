// Prices and limits of OpenAI chat models. Compared with the source on the date below; prices are standard processing, USD per million tokens times 1000.
#include <reagent/model/model_table.hpp>

#include <algorithm>
#include <array>

namespace reagent::inline v0 {

namespace {

using one_tier = std::array<price_tier, 1>;
using two_tiers = std::array<price_tier, 2>;

consteval price_tier price(std::int64_t input, std::int64_t cached, std::int64_t output)
{
    price_tier t;
    t.input = input;
    t.cached_input = cached;
    t.output = output;
    return t;
}
/// Prompts over 272,000 tokens: twice the input price, one and a half times the output price.
consteval two_tiers long_context(std::int64_t input, std::int64_t cached, std::int64_t output)
{
    price_tier beyond = price(input * 2, cached * 2, output * 3 / 2);
    beyond.above = 272'000;
    return {price(input, cached, output), beyond};
}

constexpr one_tier gpt_35 = {price(500, 500, 1'500)};
constexpr one_tier gpt_4 = {price(30'000, 30'000, 60'000)};
constexpr one_tier gpt_4_turbo = {price(10'000, 10'000, 30'000)};
constexpr one_tier gpt_4o = {price(2'500, 1'250, 10'000)};
constexpr one_tier gpt_4o_may = {price(5'000, 5'000, 15'000)};
constexpr one_tier gpt_4o_mini = {price(150, 75, 600)};
constexpr one_tier gpt_41 = {price(2'000, 500, 8'000)};
constexpr one_tier gpt_41_mini = {price(400, 100, 1'600)};
constexpr one_tier gpt_41_nano = {price(100, 25, 400)};
constexpr one_tier o1 = {price(15'000, 7'500, 60'000)};
constexpr one_tier o3 = {price(2'000, 500, 8'000)};
constexpr one_tier o3_mini = {price(1'100, 550, 4'400)};
constexpr one_tier o4_mini = {price(1'100, 275, 4'400)};
constexpr one_tier gpt_5 = {price(1'250, 125, 10'000)};
constexpr one_tier gpt_5_mini = {price(250, 25, 2'000)};
constexpr one_tier gpt_5_nano = {price(50, 5, 400)};
constexpr one_tier gpt_52 = {price(1'750, 175, 14'000)};
constexpr two_tiers gpt_54 = long_context(2'500, 250, 15'000);
constexpr one_tier gpt_54_mini = {price(750, 75, 4'500)};
constexpr one_tier gpt_54_nano = {price(200, 20, 1'250)};
constexpr two_tiers gpt_55 = long_context(5'000, 500, 30'000);

constexpr model_info entry(std::string_view id, std::span<const price_tier> prices, std::uint64_t context, std::uint64_t output, bool reasons,
                           std::uint32_t image_low, std::uint32_t image_high)
{
    model_info m;
    m.id = id;
    m.vendor = "openai";
    m.prices = prices;
    m.context = context;
    m.max_output = output;
    m.reasons = reasons;
    m.image_low = image_low;
    m.image_high = image_high;
    return m;
}

// Images: tile models pay a base and up to eight 512-pixel tiles; patch models at most 1,536 patches times a factor, the newest 10,000 patches.
constexpr std::array models = {
    entry("gpt-3.5-turbo", gpt_35, 16'385, 4'096, false, 0, 0),
    entry("gpt-4", gpt_4, 8'192, 8'192, false, 0, 0),
    entry("gpt-4-turbo", gpt_4_turbo, 128'000, 4'096, false, 85, 1'445),
    entry("gpt-4o", gpt_4o, 128'000, 16'384, false, 85, 1'445),
    entry("gpt-4o-2024-05-13", gpt_4o_may, 128'000, 4'096, false, 85, 1'445),
    entry("gpt-4o-mini", gpt_4o_mini, 128'000, 16'384, false, 2'833, 48'169),
    entry("gpt-4.1", gpt_41, 1'047'576, 32'768, false, 85, 1'445),
    entry("gpt-4.1-mini", gpt_41_mini, 1'047'576, 32'768, false, 2'489, 2'489),
    entry("gpt-4.1-nano", gpt_41_nano, 1'047'576, 32'768, false, 3'779, 3'779),
    entry("o1", o1, 200'000, 100'000, true, 75, 1'275),
    entry("o3", o3, 200'000, 100'000, true, 75, 1'275),
    entry("o3-mini", o3_mini, 200'000, 100'000, true, 0, 0),
    entry("o4-mini", o4_mini, 200'000, 100'000, true, 2'642, 2'642),
    entry("gpt-5", gpt_5, 400'000, 128'000, true, 70, 1'190),
    entry("gpt-5-mini", gpt_5_mini, 400'000, 128'000, true, 2'489, 2'489),
    entry("gpt-5-nano", gpt_5_nano, 400'000, 128'000, true, 3'779, 3'779),
    entry("gpt-5.1", gpt_5, 400'000, 128'000, true, 70, 1'536),
    entry("gpt-5.2", gpt_52, 400'000, 128'000, true, 70, 1'536),
    entry("gpt-5.4", gpt_54, 1'050'000, 128'000, true, 10'000, 10'000),
    entry("gpt-5.4-mini", gpt_54_mini, 400'000, 128'000, true, 2'489, 2'489),
    entry("gpt-5.4-nano", gpt_54_nano, 400'000, 128'000, true, 3'779, 3'779),
    entry("gpt-5.5", gpt_55, 1'050'000, 128'000, true, 10'000, 10'000),
};

bool digits(std::string_view text) noexcept
{
    return !text.empty() && std::all_of(text.begin(), text.end(), [](char c) { return c >= '0' && c <= '9'; });
}

bool snapshot_suffix(std::string_view s) noexcept
{
    if (s == "-latest") return true;
    if (s.size() == 5 && s[0] == '-') return digits(s.substr(1));
    return s.size() == 11 && s[0] == '-' && s[5] == '-' && s[8] == '-' && digits(s.substr(1, 4)) && digits(s.substr(6, 2)) && digits(s.substr(9, 2));
}

}  // namespace

const price_tier& model_info::tier(std::uint64_t tokens) const noexcept
{
    const price_tier* found = &prices.front();
    for (const price_tier& t : prices)
        if (tokens > t.above) found = &t;
    return *found;
}

price_tier model_info::dearest() const noexcept
{
    price_tier most;
    for (const price_tier& t : prices) {
        most.input = std::max(most.input, t.input);
        most.cached_input = std::max(most.cached_input, t.cached_input);
        most.output = std::max(most.output, t.output);
    }
    return most;
}

std::string_view model_table_date() noexcept
{
    return "2026-06-22";
}

std::string_view model_table_source() noexcept
{
    return "https://openai.com/api/pricing, https://platform.openai.com/docs/models";
}

std::span<const model_info> model_table() noexcept
{
    return models;
}

const model_info* find_model(std::string_view id) noexcept
{
    // A call asks three times, and mostly for the model of the call before.
    thread_local const model_info* last = nullptr;
    if (last != nullptr && id == last->id) return last;
    const model_info* found = nullptr;
    for (const model_info& m : models) {
        if (id == m.id) return last = &m;
        if (id.starts_with(m.id) && snapshot_suffix(id.substr(m.id.size()))) found = &m;
    }
    return found;
}

}  // namespace reagent::inline v0

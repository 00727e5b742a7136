#include <reagent/base/error.hpp>
#include <reagent/model/attempt_bound.hpp>
#include <reagent/model/model_table.hpp>
#include <reagent/model/pricing.hpp>

#include <gtest/gtest.h>

namespace {
namespace pricing_test {

using namespace reagent;

usage tokens(std::uint64_t in, std::uint64_t out, std::uint64_t read = 0, std::uint64_t write = 0)
{
    usage u;
    u.input = in;
    u.output = out;
    u.cache_read = read;
    u.cache_creation = write;
    return u;
}

rates caller_rates(const char* text)
{
    return *rates::from_json(json::parse_or_throw(text, "test"), "rates");
}

TEST(Pricing, TakesTheSurestSource)
{
    const rates own = caller_rates(R"({"in":0.001,"out":0.002,"cacheReadMult":0.5})");
    const auto price = [](std::string_view model, usage u) { return price_usage(u, {}, model, {}); };
    EXPECT_EQ(price_usage(tokens(9, 9), usd("0.5"), "gpt-4o", own).source, rate_source::provider);
    EXPECT_EQ(price_usage(tokens(9, 9), usd(), "gpt-4o", own).cost, usd());
    EXPECT_EQ(price_usage({}, {}, "gpt-4o", own).source, rate_source::none);
    const priced_usage mine = price_usage(tokens(1000, 1000, 1000, 1000), {}, "gpt-4o", own);
    EXPECT_EQ(mine.source, rate_source::caller);
    EXPECT_EQ(mine.cost, usd("0.00475"));
    const priced_usage table = price("gpt-4o-mini", tokens(1000, 500, 2000));
    EXPECT_EQ(table.source, rate_source::table);
    EXPECT_EQ(table.cost, usd("0.0006"));
    const priced_usage haiku = price("claude-HAIKU-4-5", tokens(1000, 1000, 10000, 2000));
    EXPECT_EQ(to_string(haiku.source), "tier");
    EXPECT_EQ(haiku.cost, usd("0.0095"));
    const priced_usage unknown = price("gpt-x", tokens(1000, 500));
    EXPECT_EQ(to_string(unknown.source), "default");
    EXPECT_EQ(unknown.cost, usd("0.0105"));
    EXPECT_TRUE(is_guess(unknown.source));
    EXPECT_TRUE(is_guess(haiku.source));
    EXPECT_FALSE(is_guess(table.source));
}

TEST(Pricing, AGuessNeverCarriesACap)
{
    EXPECT_TRUE(has_known_price("gpt-4o-mini-2024-07-18", {}));
    EXPECT_FALSE(has_known_price("claude-haiku-4-5", {}));
    EXPECT_FALSE(has_known_price("", {}));
    EXPECT_TRUE(has_known_price("anything", rates(1, 1)));
    EXPECT_FALSE(worst_cost(1, 1, "claude-haiku-4-5", {}).has_value());
}

TEST(Pricing, TiersByPromptLength)
{
    EXPECT_EQ(price_usage(tokens(272'000, 1000), {}, "gpt-5.4", {}).cost, usd("0.695"));
    EXPECT_EQ(price_usage(tokens(272'001, 1000), {}, "gpt-5.4", {}).cost, usd("1.382505"));
    EXPECT_EQ(price_usage(tokens(1, 1000, 272'000), {}, "gpt-5.4", {}).cost, usd("0.158505"));
    EXPECT_EQ(worst_cost(1000, 1000, "gpt-5.4", {}), usd("0.0275"));
}

TEST(Pricing, WorstCostRoundsUp)
{
    EXPECT_EQ(worst_cost(1, 0, "m", rates(0.2, 0))->nanos(), 1);
    EXPECT_EQ(worst_cost(10, 0, "claude-haiku-4-5", rates(1, 0))->nanos(), 13);  // its prompt may be written to a cache at 1.25 times the price
    EXPECT_EQ(worst_cost(10, 0, "m", rates(1, 0))->nanos(), 10);                 // no other model bills that
    EXPECT_EQ(worst_cost(UINT64_MAX, UINT64_MAX, "gpt-5.5", {}), usd::max());
}

TEST(Pricing, RefusesUnusableRates)
{
    EXPECT_FALSE(rates::from_json(json(), "rates").has_value());
    for (const char* bad : {R"({"in":1})", R"({"in":-1,"out":1})", R"({"in":"1","out":1})", R"({"in":1e999,"out":1})", R"({"in":1,"out":1,"inn":2})", "7"})
        EXPECT_THROW(static_cast<void>(rates::from_json(json::parse_or_throw(bad, "test"), "rates")), validation_error) << bad;
}

TEST(ModelTable, MatchesIdsAndSnapshotsOnly)
{
    EXPECT_EQ(find_model("gpt-4o")->max_output, 16'384U);
    EXPECT_EQ(find_model("gpt-4o-2024-08-06")->id, "gpt-4o");
    EXPECT_EQ(find_model("gpt-4o-2024-05-13")->prices[0].input, 5'000);
    EXPECT_EQ(find_model("gpt-4-0613")->id, "gpt-4");
    EXPECT_EQ(find_model("gpt-4o-search-preview"), nullptr);
    EXPECT_EQ(find_model("gpt-4o-mini-2024-07-18x"), nullptr);
    EXPECT_EQ(find_model("m"), nullptr);
    EXPECT_EQ(find_model(""), nullptr);
}

TEST(ModelTable, EveryEntryIsUsable)
{
    EXPECT_EQ(model_table_date().size(), 10U);
    EXPECT_FALSE(model_table_source().empty());
    for (const model_info& m : model_table()) {
        EXPECT_EQ(m.prices.front().above, 0U) << m.id;
        EXPECT_GT(m.context, m.max_output - 1) << m.id;
        for (const price_tier& t : m.prices) {
            EXPECT_GT(t.input, 0) << m.id;
            EXPECT_LE(t.cached_input, t.input) << m.id;
            EXPECT_GE(t.output, t.input) << m.id;
        }
        EXPECT_EQ(find_model(m.id), &m);
    }
}

TEST(AttemptBound, CountsBytesAndImagesByTable)
{
    auto m = std::make_shared<message>();
    m->content_parts = true;
    image_part inline_image;
    inline_image.media_type = "image/png";
    inline_image.data_base64 = std::string(100'000, 'a');
    m->parts.emplace_back(inline_image);
    image_part small;
    small.url = "https://x/y.png";
    small.detail = "low";
    m->parts.emplace_back(small);
    const transcript messages = {m};
    EXPECT_EQ(input_bound(100'200, messages, "gpt-4o"), 200U + 1'445U + 85U);
    EXPECT_EQ(input_bound(100'200, messages, "m"), 200U + 2 * unknown_image_tokens);
    const transcript plain = {message::user("hi")};
    EXPECT_EQ(input_bound(77, plain, "gpt-4o"), 77U);
    // Parts in the service's own words count as images, too, unless all they hold is in the body.
    const auto native = [](const char* p) {
        const transcript one = {message::from_json(json::parse_or_throw(std::string(R"({"role":"user","content":[)") + p + "]}", "test"))};
        return input_bound(1000, one, "gpt-4o");
    };
    EXPECT_EQ(native(R"({"type":"image_url","image_url":{"url":"https://x/y.png"},"cache":1})"), 1000U + 1'445U);
    EXPECT_EQ(native(R"({"type":"image_url","image_url":{"url":"https://x/y.png","detail":"low","x":1}})"), 1000U + 85U);
    EXPECT_EQ(native(R"({"type":"image","source":{"kind":"file","id":"f"}})"), 1000U + 1'445U);
    EXPECT_EQ(native(R"({"type":"file","file":{"file_id":"f"}})"), 1000U + 1'445U);
    EXPECT_EQ(native(R"({"type":"text","text":"hi","cache_control":{}})"), 1000U);
    EXPECT_EQ(native(R"({"type":"input_audio","input_audio":{"data":"AA==","format":"wav"}})"), 1000U);
    EXPECT_GT(input_bound(plain, {}, "gpt-4o"), std::string(R"({"role":"user","content":"hi"})").size());
    EXPECT_EQ(output_bound(5, "gpt-4o"), 5U);
    EXPECT_EQ(output_bound({}, "gpt-4o"), 16'384U);
    EXPECT_FALSE(output_bound({}, "m").has_value());
}

}  // namespace pricing_test
}  // namespace

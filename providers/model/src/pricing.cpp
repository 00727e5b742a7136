#include <reagent/base/ascii.hpp>
#include <reagent/base/error.hpp>
#include <reagent/base/untrusted_text.hpp>
#include <reagent/model/model_table.hpp>
#include <reagent/model/pricing.hpp>

#include <algorithm>
#include <cmath>

namespace reagent::inline v0 {

namespace {

/// 0.003 and 0.015 USD per 1000 tokens, and the cheaper guess for small models.
constexpr double guess_input = 3'000, guess_output = 15'000, haiku_input = 1'000, haiku_output = 5'000;

bool contains_ignoring_case(std::string_view text, std::string_view word) noexcept
{
    return std::search(text.begin(), text.end(), word.begin(), word.end(), [](char a, char b) { return to_lower(a) == b; }) != text.end();
}

std::optional<usd> money(long double nanos, bool up) noexcept
{
    if (!std::isfinite(nanos)) return std::nullopt;
    if (nanos >= 9.2e18L) return usd::max();
    return usd::from_nanos(static_cast<std::int64_t>(up ? std::ceil(nanos) : std::floor(nanos + 0.5L)));
}

std::optional<usd> cost_at(const usage& u, long double input, long double output, long double read, long double write) noexcept
{
    return money(static_cast<long double>(u.input) * input + static_cast<long double>(u.output) * output +
                     static_cast<long double>(u.cache_read.value_or(0)) * read + static_cast<long double>(u.cache_creation.value_or(0)) * write,
                 false);
}

}  // namespace

std::string_view to_string(rate_source s) noexcept
{
    switch (s) {
    case rate_source::none: return {};
    case rate_source::provider: return "provider";
    case rate_source::caller: return "caller";
    case rate_source::table: return "table";
    case rate_source::tier: return "tier";
    case rate_source::fallback: return "default";
    }
    return {};
}

std::optional<rates> rates::from_json(const json& j, std::string_view where)
{
    if (j.is_null()) return std::nullopt;
    const auto number = [&](std::string_view key, std::optional<double> absent) {
        const json& v = j[key];
        if (v.is_null() && absent) return *absent;
        const auto d = v.get_double();
        if (!d || !std::isfinite(*d * 1e6) || *d < 0)
            throw validation_error(std::string(where) + "." + std::string(key) + " must be a number that is finite and not negative; got " +
                                   untrusted_text(v.dump(), 40));
        return *d;
    };
    if (!j.is_object()) throw validation_error(std::string(where) + " must be an object with `in` and `out`");
    for (const auto& [key, value] : j.as_object())
        if (key != "in" && key != "out" && key != "cacheReadMult" && key != "cacheWriteMult")
            throw validation_error(std::string(where) + "." + key + ": unknown key; known are in, out, cacheReadMult, cacheWriteMult");
    rates out(number("in", {}) * 1e6, number("out", {}) * 1e6);
    out.cache_read_mult = number("cacheReadMult", out.cache_read_mult);
    out.cache_write_mult = number("cacheWriteMult", out.cache_write_mult);
    return out;
}

priced_usage price_usage(const std::optional<usage>& used, const std::optional<usd>& reported, std::string_view model, const std::optional<rates>& caller)
{
    priced_usage out;
    const auto with = [&](rate_source source, std::optional<usd> cost) {
        out.cost = cost;
        out.source = cost ? source : rate_source::none;
        return out;
    };
    if (reported) return with(rate_source::provider, reported);
    if (!used) return out;
    if (caller)
        return with(rate_source::caller,
                    cost_at(*used, caller->input, caller->output, caller->input * caller->cache_read_mult, caller->input * caller->cache_write_mult));
    if (const model_info* known = find_model(model)) {
        const price_tier& t = known->tier(used->total_input());
        return with(rate_source::table,
                    cost_at(*used, static_cast<long double>(t.input), static_cast<long double>(t.output), static_cast<long double>(t.cached_input),
                            static_cast<long double>(t.input)));
    }
    if (contains_ignoring_case(model, "haiku"))
        return with(rate_source::tier, cost_at(*used, haiku_input, haiku_output, haiku_input * 0.1L, haiku_input * 1.25L));
    const bool sonnet = contains_ignoring_case(model, "sonnet");
    return with(sonnet ? rate_source::tier : rate_source::fallback, cost_at(*used, guess_input, guess_output, guess_input * 0.1L, guess_input * 1.25L));
}

bool has_known_price(std::string_view model, const std::optional<rates>& caller) noexcept
{
    return caller.has_value() || find_model(model) != nullptr;
}

// Only Claude models are billed for writing a prompt to the cache; on every other wire that tier never comes, and reserving for it would
// hold money that cannot be spent. A provider of one's own that reports it all the same is an overrun, recorded and reported.
static bool bills_cache_writes(std::string_view model) noexcept
{
    for (const std::string_view family : {"claude", "haiku", "sonnet", "opus"})
        if (contains_ignoring_case(model, family)) return true;
    return false;
}

std::optional<usd> worst_cost(std::uint64_t input_tokens, std::uint64_t output_tokens, std::string_view model, const std::optional<rates>& caller) noexcept
{
    long double input = 0, output = 0;
    if (caller) {
        const double write = bills_cache_writes(model) ? caller->cache_write_mult : 1.0;
        input = static_cast<long double>(caller->input) * std::max({1.0, caller->cache_read_mult, write});
        output = caller->output;
    } else if (const model_info* known = find_model(model)) {
        const price_tier most = known->dearest();
        input = static_cast<long double>(std::max(most.input, most.cached_input));
        output = static_cast<long double>(most.output);
    } else {
        return std::nullopt;
    }
    return money(static_cast<long double>(input_tokens) * input + static_cast<long double>(output_tokens) * output, true);
}

}  // namespace reagent::inline v0

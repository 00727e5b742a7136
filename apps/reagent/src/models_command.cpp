#include "commands.hpp"
#include "terminal.hpp"

#include <reagent/base/json.hpp>
#include <reagent/base/usd.hpp>
#include <reagent/model/model_table.hpp>

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include <memory>

namespace reagent_app {
namespace {

using reagent::json;

/// Nano-dollars per token as dollars per million tokens.
std::string per_million(std::int64_t nanos)
{
    return reagent::usd::from_nanos(nanos * 1'000'000).to_string();
}
json price(std::int64_t nanos)
{
    return json::number::from_text(per_million(nanos));
}

json to_json(const reagent::model_info& m)
{
    json prices = json::array();
    for (const reagent::price_tier& t : m.prices)
        prices.push_back(json::object()
                             .set("above_tokens", t.above)
                             .set("input_usd_per_million", price(t.input))
                             .set("cached_input_usd_per_million", price(t.cached_input))
                             .set("output_usd_per_million", price(t.output)));
    return json::object()
        .set("id", m.id)
        .set("vendor", m.vendor)
        .set("context_tokens", m.context)
        .set("max_output_tokens", m.max_output)
        .set("reasons", m.reasons)
        .set("takes_images", m.image_high != 0)
        .set("prices", std::move(prices));
}

int list_models(bool as_json)
{
    terminal out;
    if (as_json) {
        json models = json::array();
        for (const reagent::model_info& m : reagent::model_table()) models.push_back(to_json(m));
        out.data(json::object().set("date", reagent::model_table_date()).set("source", reagent::model_table_source()).set("models", std::move(models)).dump());
        return exit_ok;
    }
    out.data(fmt::format("{:<24} {:>10} {:>10} {:>9} {:>9} {:>9}", "model", "context", "output", "in $/M", "cached", "out $/M"));
    for (const reagent::model_info& m : reagent::model_table()) {
        bool first = true;
        for (const reagent::price_tier& t : m.prices) {
            const std::string name = first ? std::string(m.id) : fmt::format("  above {}", grouped(t.above));
            out.data(fmt::format("{:<24} {:>10} {:>10} {:>9} {:>9} {:>9}", name, first ? grouped(m.context) : "", first ? grouped(m.max_output) : "",
                                 per_million(t.input), per_million(t.cached_input), per_million(t.output)));
            first = false;
        }
    }
    out.data(fmt::format("Prices of {}, {}. Dated snapshots of a model count as the model.", reagent::model_table_date(), reagent::model_table_source()));
    return exit_ok;
}

}  // namespace

void add_models_command(CLI::App& root, int& status)
{
    CLI::App* sub = root.add_subcommand("models", "List the models whose prices and limits are known");
    sub->footer("Prices are in USD per million tokens, which `reagent run --rates` takes as 0.15/M.\nExample:\n  reagent models --json | jq '.models[].id'");
    auto as_json = std::make_shared<bool>(false);
    sub->add_flag("--json", *as_json, "Print one JSON object");
    sub->callback([as_json, &status] { status = list_models(*as_json); });
}

}  // namespace reagent_app

#include "agent_config.hpp"

#include "batch.hpp"
#include "model_chain.hpp"

#include <reagent/base/error.hpp>
#include <reagent/base/nearest.hpp>

#include <algorithm>
#include <array>

namespace reagent_app {
namespace {

using reagent::config_error;
using reagent::json;

constexpr std::array<std::string_view, 15> known_keys{"provider", "model",     "baseUrl",   "systemPrompt", "tools",           "gate",  "ungoverned", "budget",
                                                      "rates",    "maxTokens", "timeoutMs", "deadlineMs",   "toolConcurrency", "retry", "fallback"};
constexpr std::array<std::string_view, 2> budget_keys{"maxCostUsd", "maxTokens"};

/// One object of the file, with a name for messages.
class section {
public:
    section(const json& j, std::string where) : json_(j), where_(std::move(where))
    {
        if (!j.is_object()) throw config_error(where_ + " must be an object, got " + std::string(j.type_name()));
    }

    template <class Keys>
    void only(const Keys& keys) const
    {
        for (const json::member& m : json_.as_object()) {
            if (std::ranges::find(keys, std::string_view(m.first)) != keys.end()) continue;
            const auto near = reagent::nearest_name(m.first, keys);
            std::string message = where_ + ": unknown key \"" + m.first + "\"";
            if (near) message += ", did you mean \"" + *near + "\"?";
            throw config_error(message);
        }
    }
    /// Null counts as absent.
    const json* find(std::string_view key) const
    {
        const json* value = json_.find(key);
        return value && !value->is_null() ? value : nullptr;
    }
    [[noreturn]] void refuse(std::string_view key, std::string_view wanted, const json& got) const
    {
        std::string shown = got.dump();
        if (shown.size() > 60) shown = std::string(got.type_name());
        throw config_error(where_ + ": " + std::string(key) + " must be " + std::string(wanted) + ", got " + shown);
    }
    void text(std::string_view key, std::string& into, bool may_be_empty = false) const
    {
        const json* value = find(key);
        if (!value) return;
        if (!value->is_string() || (!may_be_empty && value->as_string().empty())) refuse(key, may_be_empty ? "a string" : "a string that is not empty", *value);
        into = value->as_string();
    }
    std::optional<std::uint64_t> whole(std::string_view key, std::uint64_t least, std::uint64_t most) const
    {
        const json* value = find(key);
        if (!value) return std::nullopt;
        const auto n = value->get_uint64();
        if (!n || *n < least || *n > most) refuse(key, "a whole number from " + std::to_string(least) + " to " + std::to_string(most), *value);
        return n;
    }
    std::optional<std::chrono::milliseconds> span(std::string_view key) const
    {
        const auto n = whole(key, 0, longest_ms);
        if (!n) return std::nullopt;
        return std::chrono::milliseconds(*n);
    }
    const std::string& where() const noexcept { return where_; }

private:
    const json& json_;
    std::string where_;
};

/// A list of texts under `key`, none of them empty.
std::vector<std::string> texts(const section& file, const std::string& key, std::string_view of_what, std::string_view each)
{
    std::vector<std::string> out;
    const json* list = file.find(key);
    if (!list) return out;
    if (!list->is_array()) file.refuse(key, of_what, *list);
    for (std::size_t i = 0; i < list->size(); ++i) {
        const json& entry = (*list)[i];
        const std::string place = key + "[" + std::to_string(i) + "]";
        if (!entry.is_string() || entry.as_string().empty()) file.refuse(place, each, entry);
        if (std::ranges::find(out, entry.as_string()) != out.end()) throw config_error(file.where() + ": " + place + " repeats \"" + entry.as_string() + "\"");
        out.push_back(entry.as_string());
    }
    return out;
}

reagent::budget_caps read_budget(const section& file)
{
    reagent::budget_caps caps;
    const json* value = file.find("budget");
    if (!value) return caps;
    const section budget(*value, file.where() + ": budget");
    budget.only(budget_keys);
    if (const json* cost = budget.find("maxCostUsd")) {
        const auto dollars = cost->get_double();
        // Nano-dollars in 64 bits end a little above nine milliards.
        if (!dollars || !(*dollars >= 0) || *dollars > 9e9) budget.refuse("maxCostUsd", "an amount of dollars from 0 to 9000000000", *cost);
        const auto exact = reagent::usd::parse(cost->as_number().text());
        caps.cost = exact ? *exact : reagent::usd::from_double(*dollars);
    }
    caps.tokens = budget.whole("maxTokens", 0, most_tokens);
    return caps;
}

template <class T>
std::optional<T> tighter(const std::optional<T>& a, const std::optional<T>& b)
{
    if (!a || !b) return a ? a : b;
    return std::min(*a, *b);
}

}  // namespace

agent_config agent_config::from_file(const std::string& path)
{
    const std::string text = read_text(path);
    std::size_t offset = 0;
    json::parse_options strict;
    strict.unique_keys = true;
    auto parsed = json::parse(text, strict, offset);
    const auto line = 1 + std::count(text.begin(), text.begin() + static_cast<std::ptrdiff_t>(std::min(offset, text.size())), '\n');
    if (!parsed && parsed.error() == reagent::errc::duplicate_key)
        throw config_error(path + ": a key stands twice in the object that ends in line " + std::to_string(line));
    if (!parsed) throw config_error(path + ": not JSON at byte " + std::to_string(offset) + ", line " + std::to_string(line));
    return from_json(*parsed, path);
}

agent_config agent_config::from_json(const json& j, const std::string& where)
{
    const section file(j, where);
    file.only(known_keys);
    agent_config c;
    file.text("provider", c.provider);
    file.text("model", c.model);
    file.text("baseUrl", c.base_url);
    file.text("systemPrompt", c.system_prompt, true);
    c.tools = texts(file, "tools", "a list of tool names", "the name of a tool");
    if (const json* gate = file.find("gate")) {
        try {
            c.gate = reagent::gate_policy::from_json(*gate);
        } catch (const config_error& e) {
            throw config_error(where + ": gate: " + e.message());
        }
        // The policy has read them, so they are a list of text.
        const json* of_tools = gate->find("tools");
        const json* denied = of_tools && of_tools->is_object() ? of_tools->find("denylist") : nullptr;
        for (std::size_t i = 0; denied && denied->is_array() && i < denied->size(); ++i) c.denied_tools.push_back((*denied)[i].as_string());
    }
    if (const json* ungoverned = file.find("ungoverned")) {
        if (!ungoverned->is_bool()) file.refuse("ungoverned", "true or false", *ungoverned);
        c.ungoverned = ungoverned->as_bool();
    }
    c.budget = read_budget(file);
    if (const json* rates = file.find("rates")) {
        try {
            c.rates = reagent::rates::from_json(*rates, "rates");
        } catch (const reagent::error& e) {
            throw config_error(where + ": " + e.message());
        }
    }
    c.max_tokens = file.whole("maxTokens", 1, most_tokens);
    c.timeout = file.span("timeoutMs");
    c.deadline = file.span("deadlineMs");
    if (const auto n = file.whole("toolConcurrency", 1, 1024)) c.tool_concurrency = static_cast<unsigned>(*n);
    if (const auto n = file.whole("retry", 0, most_retries)) c.retry = static_cast<unsigned>(*n);
    c.fallback = texts(file, "fallback", "a list of providers", "a provider such as openai:gpt-4o-mini");
    return c;
}

void agent_config::check(const std::string& where) const
{
    const std::string prefix = where.empty() ? "" : where + ": ";
    check_provider(provider, prefix + "provider");
    for (const std::string& text : fallback) static_cast<void>(model_spec::parse(text, prefix + "fallback"));
    if (gate && ungoverned) throw config_error(prefix + "config has a `gate` block and says that the run is ungoverned; take one of the two away");
    if (!tools.empty() && !gate && !ungoverned)
        throw config_error(prefix + "config has no `gate` block although it names tools; add \"gate\": {…} or say \"ungoverned\": true");
}

reagent::budget_caps agent_config::caps() const
{
    reagent::budget_caps both = budget;
    if (gate) {
        const reagent::budget_caps of_gate = gate->budget();
        both.cost = tighter(both.cost, of_gate.cost);
        both.tokens = tighter(both.tokens, of_gate.tokens);
    }
    return both;
}

}  // namespace reagent_app

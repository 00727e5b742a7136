#include <reagent/providers/anthropic.hpp>
#include <reagent/providers/gemini.hpp>
#include <reagent/providers/ollama.hpp>
#include <reagent/providers/openai.hpp>
#include <reagent/providers/openai_responses.hpp>
#include <reagent/providers/wires.hpp>

#include <array>

namespace reagent::inline v0 {

namespace {

template <class Options, class Codec>
configured_wire configure(const json& j)
{
    const Options options = Options::from_json(j);
    return configured_wire{std::make_unique<const Codec>(options.codec()), options.call()};
}

constexpr std::array wires = {
    wire_entry{"openai", &configure<openai_options, openai_codec>, "baseUrl", {"OPENAI_API_KEY"}, "api.openai.com"},
    wire_entry{"openai-responses", &configure<openai_responses_options, openai_responses_codec>, "baseUrl", {"OPENAI_API_KEY"}, "api.openai.com"},
    wire_entry{"anthropic", &configure<anthropic_options, anthropic_codec>, "baseUrl", {"ANTHROPIC_API_KEY"}, "api.anthropic.com", true},
    wire_entry{"gemini", &configure<gemini_options, gemini_codec>, "baseUrl", {"GEMINI_API_KEY", "GOOGLE_API_KEY"}, "generativelanguage.googleapis.com"},
    wire_entry{"ollama", &configure<ollama_options, ollama_codec>, "url", {"OLLAMA_API_KEY"}},
};

}  // namespace

std::span<const wire_entry> wire_table() noexcept
{
    return wires;
}

const wire_entry* find_wire(std::string_view name) noexcept
{
    for (const wire_entry& w : wires)
        if (w.name == name) return &w;
    return nullptr;
}

std::string wire_names()
{
    std::string out;
    for (const wire_entry& w : wires) out.append(out.empty() ? "" : ", ").append(w.name);
    return out;
}

secret key_from_environment(const wire_entry& wire)
{
    secret key;
    for (const std::string_view name : wire.key_variables)
        if (key.empty() && !name.empty()) key = secret::from_env(std::string(name).c_str());
    return key;
}

}  // namespace reagent::inline v0

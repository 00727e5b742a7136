#include "batch.hpp"
#include "commands.hpp"
#include "terminal.hpp"

#include <reagent/base/error.hpp>
#include <reagent/builtins/builtin_registry.hpp>
#include <reagent/builtins/invoke_case.hpp>

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include <memory>

namespace reagent_app {
namespace {

using reagent::json;

class tools_arguments {
public:
    bool as_json = false, batch = false;
    std::string name, args = "{}", options = "{}";
};

json to_json(const reagent::tool& t)
{
    json described = json::object()
                         .set("name", t.name())
                         .set("description", t.description())
                         .set("parameters", t.parameters())
                         .set("pinned", t.pinned())
                         .set("serial", t.serial());
    if (t.effect() != reagent::effect::unset) described.set("effect", reagent::to_string(t.effect()));
    if (t.trust() != reagent::trust::unset) described.set("trust", reagent::to_string(t.trust()));
    return described;
}

int list_tools(bool as_json)
{
    terminal out;
    const reagent::builtin_registry registry = reagent::builtin_registry::standard();
    json all = json::array();
    for (const std::string& name : registry.names()) {
        const reagent::tool t = registry.make(name);
        if (as_json) all.push_back(to_json(t));
        else out.data(fmt::format("{:<14} {:<12} {}", t.name(), reagent::to_string(t.effect()), t.description()));
    }
    if (as_json) out.data(all.dump());
    return exit_ok;
}

int show_tool(const tools_arguments& a)
{
    terminal out;
    const reagent::tool t = reagent::builtin_registry::standard().make(a.name, read_json_argument(a.options, "--options"));
    if (a.as_json) {
        out.data(to_json(t).dump());
        return exit_ok;
    }
    out.data(t.name());
    out.data("  " + t.description());
    out.data(fmt::format("  effect {}, trust {}{}{}", reagent::to_string(t.effect()), reagent::to_string(t.trust()), t.pinned() ? ", pinned" : "",
                         t.serial() ? ", serial" : ""));
    const json& required = t.parameters()["required"];
    const json& properties = t.parameters()["properties"];
    if (!properties.is_object()) return exit_ok;
    for (const json::member& p : properties.as_object()) {
        bool needed = false;
        for (std::size_t i = 0; i < required.size(); ++i) needed = needed || required[i] == json(p.first);
        const std::string* type = p.second["type"].get_string();
        const std::string* description = p.second["description"].get_string();
        out.data(fmt::format("  {} ({}, {}): {}", p.first, type ? *type : "any", needed ? "required" : "optional", description ? *description : ""));
    }
    return exit_ok;
}

int invoke_tool(const tools_arguments& a)
{
    if (a.batch) {
        const reagent::builtin_registry registry = reagent::builtin_registry::standard();
        return run_batch([&registry](const json& in) { return reagent::invoke_case(in, registry); });
    }
    terminal out;
    if (a.name.empty()) throw reagent::config_error("tools invoke: name a tool, or give lines with --batch; \"reagent tools list\" shows the names");
    const json line =
        json::object().set("tool", a.name).set("options", read_json_argument(a.options, "--options")).set("args", read_json_argument(a.args, "ARGS"));
    const json result = reagent::invoke_case(line);
    if (const json* refused = result.find("error"); refused && refused->is_object()) throw reagent::config_error((*refused)["message"].as_string());
    if (result["code"] == json("unknown_tool")) throw reagent::config_error("tools invoke: " + result["error"].as_string());
    const bool completed = result["status"] == json("completed");
    if (a.as_json) out.data(result.dump());
    else if (completed) out.data(result["output"].as_string());
    if (!completed)
        out.note(fmt::format("reagent tools invoke: {} failed ({}): {}", a.name, result["code"].is_string() ? result["code"].as_string() : "tool_error",
                             result["error"].as_string()));
    return completed ? exit_ok : exit_failed;
}

}  // namespace

void add_tools_command(CLI::App& root, int& status)
{
    CLI::App* sub = root.add_subcommand("tools", "List, show and try the built-in tools");
    sub->require_subcommand(1);
    sub->footer("Examples:\n  reagent tools list\n  reagent tools invoke calculate '{\"expression\":\"2^10/3\"}'");
    auto a = std::make_shared<tools_arguments>();

    CLI::App* list = sub->add_subcommand("list", "Name, effect and description of each tool");
    list->footer("Example:\n  reagent tools list --json");
    list->add_flag("--json", a->as_json, "Print one JSON array");
    list->callback([a, &status] { status = list_tools(a->as_json); });

    CLI::App* show = sub->add_subcommand("show", "What a model is told about one tool");
    show->footer("Example:\n  reagent tools show current_time");
    show->add_option("NAME", a->name, "The tool")->required();
    show->add_option("--options", a->options, "Options of the tool: JSON, @FILE or -");
    show->add_flag("--json", a->as_json, "Print one JSON object");
    show->callback([a, &status] { status = show_tool(*a); });

    CLI::App* invoke = sub->add_subcommand("invoke", "Run one tool, or many as JSON lines");
    invoke->footer("Examples:\n  reagent tools invoke current_time '{\"timezone\":\"Europe/London\"}'\n"
                   "  reagent tools invoke --batch < lines.jsonl      a line: {\"id\", \"tool\", \"args\", \"options\"?, \"now\"?}");
    invoke->add_option("NAME", a->name, "The tool");
    invoke->add_option("ARGS", a->args, "Its arguments: JSON, @FILE or -");
    invoke->add_option("--options", a->options, "Options of the tool: JSON, @FILE or -");
    invoke->add_flag("--json", a->as_json, "Print the whole result as JSON");
    invoke->add_flag("--batch", a->batch, "Read JSON lines, answer a line each");
    invoke->callback([a, &status] { status = invoke_tool(*a); });
}

}  // namespace reagent_app

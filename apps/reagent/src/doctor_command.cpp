#include "commands.hpp"
#include "doctor_checks.hpp"
#include "terminal.hpp"

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include <memory>

namespace reagent_app {
namespace {

int examine(bool as_json)
{
    terminal out;
    const std::vector<health> found = examine_system();
    bool failed = false;
    reagent::json checks = reagent::json::array();
    for (const health& h : found) {
        failed = failed || h.verdict == health_verdict::fail;
        const std::string_view verdict = to_string(h.verdict);
        if (as_json) checks.push_back(reagent::json::object().set("check", h.check).set("verdict", verdict).set("detail", h.detail));
        else out.data(fmt::format("{:<5} {:<12} {}", verdict, h.check, h.detail));
    }
    if (as_json) out.data(reagent::json::object().set("ok", !failed).set("checks", std::move(checks)).dump());
    return failed ? exit_failed : exit_ok;
}

}  // namespace

void add_doctor_command(CLI::App& root, int& status)
{
    CLI::App* sub = root.add_subcommand("doctor", "Check this machine: libraries, limits, time zones, certificates, names, sockets");
    sub->footer("Nothing outside this machine is contacted. Exit status 1 when a check fails.\nExample:\n  reagent doctor --json");
    auto as_json = std::make_shared<bool>(false);
    sub->add_flag("--json", *as_json, "Print one JSON object");
    sub->callback([as_json, &status] { status = examine(*as_json); });
}

}  // namespace reagent_app

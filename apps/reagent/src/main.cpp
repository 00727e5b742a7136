#include "commands.hpp"
#include "mock_command.hpp"
#include "terminal.hpp"

#include <reagent/base/error.hpp>
#include <reagent/base/nearest.hpp>
#include <reagent/base/version.hpp>

#include <CLI/CLI.hpp>

#include <cerrno>
#include <cstdio>
#include <fcntl.h>
#include <string>
#include <unistd.h>

namespace reagent_app {
namespace {

/// One line for a command line that cannot be used.
std::string usage_message(const CLI::App& root, const CLI::ParseError& problem, int argc, char** argv)
{
    // The innermost command that the line picked: `reagent tools invoke`.
    const CLI::App* at = &root;
    std::string path = root.get_name();
    int word = 1;
    while (!at->get_subcommands().empty()) {
        at = at->get_subcommands().front();
        path += " " + at->get_name();
        ++word;
    }
    std::string message = problem.what();
    std::vector<std::string> names;
    for (const CLI::App* sub : at->get_subcommands([](const CLI::App*) { return true; })) names.push_back(sub->get_name());
    if (!names.empty() && word < argc && argv[word][0] != '-') {
        message = "there is no command \"" + std::string(argv[word]) + "\"";
        if (const auto near = reagent::nearest_name(argv[word], names)) message += ", did you mean \"" + *near + "\"?";
    }
    return path + ": " + message + "; see " + path + " --help";
}

/// A standard descriptor that is closed would be given to the next file or socket, which would then receive what we print. One stands in that is
/// opened the wrong way round, so that reading and writing fail as before.
void occupy_standard_descriptors()
{
    for (const int fd : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO}) {
        if (::fcntl(fd, F_GETFD) != -1 || errno != EBADF) continue;
        if (::open("/dev/null", fd == STDIN_FILENO ? O_WRONLY : O_RDONLY) < 0) return;
    }
}

}  // namespace

std::string refuse_empty(const std::string& value)
{
    return value.empty() ? "the value is empty; leave the option out for its default" : "";
}

namespace {

int run(int argc, char** argv)
{
    occupy_standard_descriptors();
    CLI::App root("Governed agents, many at once, over real HTTP", "reagent");
    root.set_version_flag("--version", "reagent " REAGENT_VERSION);
    root.require_subcommand(1);
    root.footer("Exit status: 0 success, 1 the work failed, 2 bad usage or configuration.\n"
                "Examples:\n  reagent run \"What is 17 * 23?\" --tools calculate\n  reagent demo");
    int status = exit_ok;
    add_run_command(root, status);
    add_mock_command(root, status);
    add_demo_command(root, status);
    add_models_command(root, status);
    add_tools_command(root, status);
    add_provider_command(root, status);
    add_doctor_command(root, status);

    terminal out;
    try {
        root.parse(argc, argv);
    } catch (const CLI::Success& help) {
        status = root.exit(help);
    } catch (const CLI::ParseError& e) {
        out.note(usage_message(root, e, argc, argv));
        return exit_usage;
    } catch (const reagent::error& e) {
        out.note("reagent: " + e.message());
        const bool usage = e.code() == reagent::errc::invalid_config || e.code() == reagent::errc::invalid_argument || e.code() == reagent::errc::invalid_url ||
            e.code() == reagent::errc::tool_failed;
        return usage ? exit_usage : exit_failed;
    } catch (const std::exception& e) {
        out.note(std::string("reagent: ") + e.what());
        return exit_failed;
    }
    if (std::fflush(stdout) != 0 || std::ferror(stdout)) {
        out.note("reagent: standard output cannot be written");
        return exit_failed;
    }
    return status;
}

}  // namespace
}  // namespace reagent_app

int main(int argc, char** argv)
{
    return reagent_app::run(argc, argv);
}

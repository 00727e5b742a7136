#pragma once
#include <string>

namespace CLI {
class App;
}

namespace reagent_app {

inline constexpr int exit_ok = 0;
inline constexpr int exit_failed = 1;  ///< the work failed
inline constexpr int exit_usage = 2;   ///< bad usage or configuration; nothing was started

/// Each registers its command below `root`; when the command line picks it, it runs and leaves its exit status in `status`.
/// A thrown `config_error`, `validation_error` or `tool_error` is a bad configuration, any other exception failed work.
void add_run_command(CLI::App& root, int& status);
void add_tools_command(CLI::App& root, int& status);
void add_provider_command(CLI::App& root, int& status);
void add_models_command(CLI::App& root, int& status);
void add_doctor_command(CLI::App& root, int& status);
void add_demo_command(CLI::App& root, int& status);

/// For options whose value names something: an empty one is most likely a shell variable that is not set, and leaving the option out by silence
/// could mean another server, no audit or no gate.
std::string refuse_empty(const std::string& value);

}  // namespace reagent_app

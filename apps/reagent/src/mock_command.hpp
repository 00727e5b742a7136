#pragma once

namespace CLI {
class App;
}

namespace reagent_app {

/// Adds `reagent mock`, a provider server for tests and demos. When it is chosen, `exit_code` is set at its end: 0 stopped by a signal, 2 for bad
/// usage or a bad fixture file (one line on stderr).
CLI::App* add_mock_command(CLI::App& app, int& exit_code);

}  // namespace reagent_app

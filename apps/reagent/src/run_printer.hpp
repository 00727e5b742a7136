#pragma once
#include "terminal.hpp"

#include <reagent/agent/run_result.hpp>
#include <reagent/model/event.hpp>

#include <string>

namespace reagent_app {

/// Shows a run as it goes: text on standard output, tool calls and the final line on standard error.
class run_printer {
public:
    /// `text`: whether the model's text is wanted at all (not with --json). `quiet` leaves tool calls and the figures out.
    run_printer(terminal& out, bool text, bool quiet) : out_(out), text_(text), quiet_(quiet) {}

    void show(const reagent::event& e);
    /// The final answer if it was not streamed, then how the run ended, in one line.
    void finish(const reagent::run_result& result);

private:
    terminal& out_;
    bool text_, quiet_;
    std::string round_text_;  ///< what the running round has printed
    std::uint32_t round_ = 0;
};

/// `2 turns, 1 tool call, 153 tokens in, 20 out, $0.000123`.
std::string run_figures(const reagent::run_result& result);

}  // namespace reagent_app

#include <reagent/builtins/calculate.hpp>

#include "calculator.hpp"

namespace reagent::inline v0 {
namespace {

// A parameter list that fits `tool_function`; the answer is ready at once, so nothing suspends.
awaitable<json> run_calculate(json args, tool_context&)
{
    std::string digits;
    try {
        digits = builtins_detail::calculate_expression(args["expression"].as_string());
    } catch (const builtins_detail::calculator_error& e) {
        throw tool_error(e.code, e.message);
    }
    co_return json(std::move(digits));
}

}  // namespace

tool calculate(builtin_options options)
{
    std::vector<arg_spec> args;
    args.emplace_back("expression", arg_type::string, "Arithmetic such as (2.5 + 1) * 3^2 / 7: + - * / % ^, brackets, sqrt abs round floor ceil ln log");
    return tool::from_args(options.name_or("calculate"),
                           options.description_or("Work out an arithmetic expression exactly. Use it for every sum instead of computing in your head."),
                           std::move(args), &run_calculate)
        .effect(effect::readonly)
        .trust(trust::own)
        .pinned(options.pinned_or(false));
}

}  // namespace reagent::inline v0

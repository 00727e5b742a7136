#include <reagent/builtins/think.hpp>

namespace reagent::inline v0 {
namespace {

awaitable<json> run_think(json, tool_context&)
{
    co_return json("noted");
}

}  // namespace

tool think(builtin_options options)
{
    std::vector<arg_spec> args;
    args.emplace_back("thought", arg_type::string, "What you are thinking");
    return tool::from_args(options.name_or("think"),
                           options.description_or("Think something through in writing before you go on. Nothing happens and nobody is told."), std::move(args),
                           &run_think)
        .effect(effect::readonly)
        .trust(trust::own)
        .pinned(options.pinned_or(false));
}

}  // namespace reagent::inline v0

#include <reagent/base/blank.hpp>
#include <reagent/builtins/finish.hpp>

namespace reagent::inline v0 {
namespace {

awaitable<json> run_finish(json args, tool_context&)
{
    const std::string& answer = args["answer"].as_string();
    if (is_blank(answer)) throw tool_error("blank_answer", "answer is blank: say what the answer is");
    co_return json(answer);
}

}  // namespace

tool finish(builtin_options options)
{
    std::vector<arg_spec> args;
    args.emplace_back("answer", arg_type::string, "The whole final answer, as the user shall read it");
    return tool::from_args(options.name_or("finish"),
                           options.description_or("Hand in the final answer. Call it once, when the task is done; nothing runs after it."), std::move(args),
                           &run_finish)
        .effect(effect::readonly)
        .trust(trust::own)
        .pinned(options.pinned_or(true));
}

bool is_finished(const tool_result& result, std::string_view name)
{
    std::string_view own = result.name;
    if (const auto cut = own.rfind("__"); cut != std::string_view::npos) own.remove_prefix(cut + 2);
    return result.completed && (own == name || result.name == name);
}

std::optional<std::string> answer_of(const tool_result& result, std::string_view name)
{
    const std::string* answer = result.args["answer"].get_string();
    if (!answer || !is_finished(result, name)) return std::nullopt;
    return *answer;
}

}  // namespace reagent::inline v0

#include <reagent/governance/action.hpp>
#include <reagent/governance/human_channel.hpp>

namespace reagent::inline v0 {

action action::llm(std::string_view model)
{
    return action(json::object().set("type", "llm").set("args", json::object().set("model", model)));
}

action action::tool(std::string_view name, json args)
{
    return tool(name, name, std::move(args));
}

action action::tool(std::string_view name, std::string_view type, json args)
{
    return action(json::object().set("type", type).set("tool", name).set("args", std::move(args)));
}

std::string_view action::type() const noexcept
{
    const json* t = value.find("type");
    const std::string* s = t ? t->get_string() : nullptr;
    return s ? std::string_view(*s) : std::string_view();
}

human_answer human_answer::from_json(const json& answer)
{
    human_answer a;
    if (answer.is_null()) return a;
    const json& d = answer["decision"];
    const std::string word = d.is_string() ? d.as_string() : d.dump();
    if (word == "allow") a.verdict = human_verdict::allow;
    else if (word == "deny") a.verdict = human_verdict::deny;
    else if (word == "topup") a.verdict = human_verdict::topup;
    else if (word == "terminate") a.verdict = human_verdict::terminate;
    else {
        a.verdict = human_verdict::other;
        a.word = word;
    }
    a.new_cap = answer["newCap"].get_double();
    if (const std::string* reason = answer["reason"].get_string()) a.reason = *reason;
    return a;
}

}  // namespace reagent::inline v0

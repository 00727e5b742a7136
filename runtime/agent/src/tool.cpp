#include "arg_spec.hpp"
#include "null_args.hpp"
#include "tool_impl.hpp"

#include <reagent/agent/described.hpp>
#include <reagent/base/schema.hpp>
#include <reagent/base/utf8.hpp>

#include <algorithm>
#include <chrono>

namespace reagent::inline v0 {
namespace agent_detail {
namespace {

std::vector<std::string> declared_names(const json& parameters)
{
    std::vector<std::string> names;
    if (const json* properties = parameters.find("properties"); properties != nullptr && properties->is_object())
        for (const auto& [name, schema] : properties->as_object()) names.push_back(name);
    return names;
}

std::string joined(const std::vector<std::string>& items, std::string_view between)
{
    std::string out;
    for (const std::string& item : items) {
        if (!out.empty()) out += between;
        out += item;
    }
    return out;
}

std::vector<tool_source> sources_of(const json& value)
{
    std::vector<tool_source> out;
    const json* results = value.is_object() ? value.find("results") : nullptr;
    if (results == nullptr || !results->is_array()) return out;
    for (const json& element : results->as_array()) {
        const auto text = [&](std::string_view key) {
            const json* member = element.find(key);
            return member != nullptr && member->is_string() ? member->as_string() : std::string();
        };
        tool_source source;
        source.url = text("url");
        if (source.url.find_first_not_of(" \t\r\n") == std::string::npos) continue;
        source.title = text("title");
        source.snippet = text("snippet");
        source.date = text("date");
        out.push_back(std::move(source));
    }
    return out;
}

void cut(tool_result& result, std::size_t limit)
{
    if (limit == 0 || result.output.size() <= limit) return;
    const std::size_t length = utf8_length(result.output);
    if (length <= limit) return;
    result.output.resize(utf8_prefix(result.output, limit).size());
    result.output += "\n[output cut: first " + std::to_string(limit) + " of " + std::to_string(length) + " characters]";
    result.truncated = std::pair(limit, length);
}

void fail(tool_result& result, std::string code, std::string_view message)
{
    result.completed = false;
    result.output.clear();
    result.code = std::move(code);
    // What a tool throws is as foreign as what it answers.
    result.error = repair_utf8(message);
    std::erase(result.error, '\0');
}

/// Turns what a tool threw into a failed result. Halts and cancellations go on.
void absorb(tool_result& result, const std::exception_ptr& failure)
{
    try {
        std::rethrow_exception(failure);
    } catch (const halt_error&) {
        throw;
    } catch (const tool_error& e) {
        result.cost_micros = e.cost_micros;
        fail(result, e.tool_code(), e.message());
    } catch (...) {
        if (is_cancellation(failure)) throw;
        const bool late = code_of(failure) == condition::timeout;
        fail(result, late ? "timeout" : "tool_error", message_of(failure));
    }
}

awaitable<tool_result> invoke(std::shared_ptr<const tool::impl> t, json args, tool_context* context)
{
    const clock_ptr time = context->clock ? context->clock : clock::system();
    const steady_time began = time->now();
    tool_result result;
    result.name = t->name;
    result.whose = t->trust;
    result.args = args;
    if (args.is_null()) args = json::object();
    if (args.is_object()) {
        for (const std::string& name : t->optional_args)
            if (const json* value = args.find(name); value != nullptr && value->is_null()) args.erase(name);
    }
    std::vector<std::string> problems;
    if (!args.is_object()) problems.push_back(problem_type("", "an object", args));
    else if (t->check) {
        try {
            problems = t->check(args);
        } catch (...) {
            absorb(result, std::current_exception());
            co_return result;
        }
    }
    if (!problems.empty()) {
        const std::vector<std::string> names = declared_names(t->parameters);
        problems.push_back(names.empty() ? "no arguments are declared" : "declared: " + joined(names, ", "));
        fail(result, "bad_args", joined(problems, "; "));
        co_return result;
    }
    std::exception_ptr failure;
    try {
        // `args` stays in this frame: the tool may have taken it by reference.
        result.value = co_await t->run(args, *context);
    } catch (...) {
        failure = std::current_exception();
    }
    result.latency_ms = std::chrono::duration_cast<std::chrono::milliseconds>(time->now() - began).count();
    if (failure) {
        absorb(result, failure);
        co_return result;
    }
    result.completed = true;
    result.sources = sources_of(result.value);
    result.output = render_tool_value(result.value);
    cut(result, t->output_limit);
    co_return result;
}

/// A checker over a compiled schema, which only `from_schema` needs.
class schema_check {
public:
    explicit schema_check(json_schema schema) : schema_(std::move(schema)) {}
    std::vector<std::string> operator()(const json& args) const { return schema_.violations(args); }

private:
    json_schema schema_;
};

class spec_check {
public:
    explicit spec_check(std::vector<arg_spec> specs) : specs_(std::move(specs)) {}
    std::vector<std::string> operator()(const json& args) const { return check_values(specs_, args); }

private:
    std::vector<arg_spec> specs_;
};

}  // namespace
}  // namespace agent_detail

tool tool::from_args(std::string name, std::string description, std::vector<arg_spec> args, tool_function run)
{
    agent_detail::check_declaration(name, description);
    agent_detail::check_args_declaration(name, args);
    agent_detail::check_run(name, run);
    tool out;
    out.impl_ = std::make_shared<impl>();
    out.impl_->parameters = agent_detail::schema_of(args);
    for (const arg_spec& arg : args)
        if (!arg.required) out.impl_->optional_args.push_back(arg.name);
    out.impl_->name = std::move(name);
    out.impl_->description = std::move(description);
    out.impl_->check = agent_detail::spec_check(std::move(args));
    out.impl_->run = std::move(run);
    return out;
}

tool tool::from_check(std::string name, std::string description, json parameters, args_check check, tool_function run)
{
    agent_detail::check_declaration(name, description);
    if (!parameters.is_object() && !parameters.is_null())
        throw tool_error("bad_parameters", "tool \"" + name + "\" has invalid parameters: expected an object, got " + std::string(parameters.type_name()));
    agent_detail::check_run(name, run);
    tool out;
    out.impl_ = std::make_shared<impl>();
    out.impl_->name = std::move(name);
    out.impl_->description = std::move(description);
    out.impl_->parameters = std::move(parameters);
    out.impl_->check = std::move(check);
    out.impl_->run = std::move(run);
    return out;
}

tool tool::from_schema(std::string name, std::string description, json parameters, tool_function run)
{
    args_check check;
    std::vector<std::string> optional_args;
    if (parameters.is_object()) {
        optional_args = agent_detail::null_means_absent(parameters);
        result<json_schema> schema = json_schema::compile(parameters);
        if (!schema) throw tool_error("bad_parameters", "tool \"" + name + "\" has invalid parameters: " + schema.error().message());
        check = agent_detail::schema_check(std::move(*schema));
    }
    tool out = from_check(std::move(name), std::move(description), std::move(parameters), std::move(check), std::move(run));
    out.impl_->optional_args = std::move(optional_args);
    return out;
}

tool::impl& tool::edit()
{
    if (!impl_) throw tool_error("run_missing", "a setter was called on an empty tool");
    if (impl_.use_count() > 1) impl_ = std::make_shared<impl>(*impl_);
    return *impl_;
}

tool& tool::doc(std::string_view field, std::string text) &
{
    json* at = &edit().parameters;
    std::string_view rest = field;
    while (!rest.empty()) {
        const std::size_t dot = rest.find('.');
        // An array's element is described through the array: `items.sku` reads properties.items.items.properties.sku.
        if (json* element = at->find("items"); element != nullptr && at->find("properties") == nullptr) at = element;
        json* properties = at->find("properties");
        at = properties == nullptr ? nullptr : properties->find(rest.substr(0, dot));
        if (at == nullptr) throw tool_error("arg_unknown", "tool \"" + name() + "\" has no argument \"" + std::string(field) + "\" to describe");
        rest = dot == std::string_view::npos ? std::string_view() : rest.substr(dot + 1);
    }
    at->set("description", std::move(text));
    return *this;
}

tool& tool::effect(reagent::effect e) &
{
    return edit().effect = e, *this;
}
tool& tool::trust(reagent::trust t) &
{
    return edit().trust = t, *this;
}
tool& tool::pinned(bool p) &
{
    return edit().pinned = p, *this;
}
tool& tool::serial(bool s) &
{
    return edit().serial = s, *this;
}
tool& tool::output_limit(std::size_t n) &
{
    return edit().output_limit = n, *this;
}

namespace {
const tool::impl& of(const std::shared_ptr<tool::impl>& impl)
{
    static const tool::impl nothing{};
    return impl ? *impl : nothing;
}
}  // namespace

const std::string& tool::name() const noexcept
{
    return of(impl_).name;
}
const std::string& tool::description() const noexcept
{
    return of(impl_).description;
}
const json& tool::parameters() const noexcept
{
    return of(impl_).parameters;
}
reagent::effect tool::effect() const noexcept
{
    return of(impl_).effect;
}
reagent::trust tool::trust() const noexcept
{
    return of(impl_).trust;
}
bool tool::pinned() const noexcept
{
    return impl_ && impl_->pinned;
}
bool tool::serial() const noexcept
{
    return impl_ && impl_->serial;
}
tool_schema tool::schema() const
{
    return tool_schema(name(), description(), parameters());
}

awaitable<tool_result> tool::invoke(json args, tool_context& context) const
{
    if (!impl_) throw tool_error("run_missing", "an empty tool was invoked");
    return agent_detail::invoke(impl_, std::move(args), &context);
}

}  // namespace reagent::inline v0

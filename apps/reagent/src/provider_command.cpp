#include "batch.hpp"
#include "commands.hpp"
#include "terminal.hpp"

#include <reagent/base/error.hpp>
#include <reagent/providers/wire_cases.hpp>

#include <CLI/CLI.hpp>

#include <memory>

namespace reagent_app {
namespace {

using reagent::json;

class provider_arguments {
public:
    bool batch = false;
    std::string input = "-";
};

int run_cases(const provider_arguments& a, json (*answer)(const json&))
{
    if (a.batch) return run_batch(answer);
    terminal out;
    const std::string text = read_text(a.input);
    std::size_t offset = 0;
    const auto in = json::parse(text, {}, offset);
    if (!in) throw reagent::config_error(a.input + ": not JSON at byte " + std::to_string(offset));
    const json result = answer(*in);
    out.data(result.dump_pretty());
    const json* failure = result.find("error");
    if (!failure) return exit_ok;
    const std::string* message = (*failure)["message"].get_string();
    out.note("reagent provider: " + (message ? *message : failure->dump()));
    return (*failure)["kind"] == json("usage") ? exit_usage : exit_failed;
}

void add_direction(CLI::App& sub, const std::shared_ptr<provider_arguments>& a, const char* name, const char* what, const char* example,
                   json (*answer)(const json&), int& status)
{
    CLI::App* command = sub.add_subcommand(name, what);
    command->footer(std::string("Example:\n  ") + example);
    command->add_option("FILE", a->input, "A file with one case, - for standard input");
    command->add_flag("--batch", a->batch, "Read JSON lines from standard input, answer a line each");
    command->callback([a, answer, &status] { status = run_cases(*a, answer); });
}

json decode(const json& in)
{
    return reagent::decode_case(in);
}
json encode(const json& in)
{
    return reagent::encode_case(in);
}

}  // namespace

void add_provider_command(CLI::App& root, int& status)
{
    CLI::App* sub = root.add_subcommand("provider", "Try the wire codecs without a network");
    sub->require_subcommand(1);
    sub->footer(
        "The codec objects are those of live calls.\nExample:\n  echo "
        "'{\"provider\":\"openai\",\"options\":{\"model\":\"m\"},\"messages\":[{\"role\":\"user\",\"content\":\"Hi\"}]}' | reagent provider encode --batch");
    auto a = std::make_shared<provider_arguments>();
    add_direction(*sub, a, "decode", "Read a service's answer: bytes in, result out", "reagent provider decode --batch < lines.jsonl", &decode, status);
    add_direction(*sub, a, "encode", "Write a request: messages in, method, URL, headers and body out", "reagent provider encode case.json", &encode, status);
}

}  // namespace reagent_app

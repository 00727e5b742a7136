#include "agent_config.hpp"
#include "batch.hpp"
#include "commands.hpp"
#include "model_chain.hpp"
#include "run_printer.hpp"
#include "terminal.hpp"

#include <reagent/agent/agent.hpp>
#include <reagent/base/nearest.hpp>
#include <reagent/base/secret.hpp>
#include <reagent/builtins/builtin_registry.hpp>
#include <reagent/net/http_client.hpp>
#include <reagent/providers/wires.hpp>

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/signal_set.hpp>

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include <charconv>
#include <cmath>
#include <csignal>
#include <exception>
#include <memory>
#include <unistd.h>

namespace reagent_app {
namespace {

namespace asio = boost::asio;
using reagent::config_error;

class run_arguments {
public:
    std::string question, config_file, key_file, ca_file, audit_file;
    std::string provider, model, base_url, system, max_cost;
    std::vector<std::string> tools;
    std::vector<std::string> rates, fallback;
    std::uint64_t max_tokens = 0, max_total_tokens = 0, timeout_ms = 0, deadline_ms = 0, tool_concurrency = 0;
    unsigned retry = 0;
    bool ungoverned = false, no_stream = false, as_json = false, quiet = false, verbose = false;
    // Whether a flag was given: zero means something for most of them.
    CLI::Option *system_given = nullptr, *max_cost_given = nullptr, *max_total_given = nullptr, *timeout_given = nullptr, *deadline_given = nullptr,
                *tools_given = nullptr, *retry_given = nullptr;
};

/// A price as nano-dollars a token, from dollars per 1,000 tokens (`0.00015` or `0.00015/k`) or per million (`0.15/M`, as `reagent models` prints them).
double read_rate(std::string_view given)
{
    std::string_view text = given;
    double factor = 1e6;
    if (text.ends_with("/M")) factor = 1e3;
    if (text.ends_with("/M") || text.ends_with("/k")) text.remove_suffix(2);
    double dollars = -1;
    const auto [end, ec] = std::from_chars(text.data(), text.data() + text.size(), dollars);
    const double nanos = dollars * factor;
    if (ec != std::errc() || end != text.data() + text.size() || !std::isfinite(nanos) || nanos < 0)
        throw config_error("--rates must be two prices in USD per 1,000 tokens such as 0.00015, or per million tokens such as 0.15/M, got " +
                           one_line(given, 40));
    return nanos;
}

/// The file, with the flags on top.
agent_config configure(const run_arguments& a)
{
    agent_config c = a.config_file.empty() ? agent_config() : agent_config::from_file(a.config_file);
    if (!a.provider.empty()) c.provider = a.provider;
    if (!a.model.empty()) c.model = a.model;
    if (!a.base_url.empty()) c.base_url = a.base_url;
    if (a.system_given->count()) c.system_prompt = a.system;
    if (a.ungoverned) c.ungoverned = true;
    if (a.max_cost_given->count()) {
        const auto cost = reagent::usd::parse(a.max_cost);
        if (!cost || *cost < reagent::usd()) throw config_error("--max-cost-usd must be an amount of dollars such as 0.05, got " + one_line(a.max_cost, 40));
        c.budget.cost = *cost;
    }
    if (a.max_total_given->count()) c.budget.tokens = a.max_total_tokens;
    if (!a.rates.empty()) c.rates = reagent::rates(read_rate(a.rates[0]), read_rate(a.rates[1]));
    if (a.max_tokens) c.max_tokens = a.max_tokens;
    if (a.timeout_given->count()) c.timeout = std::chrono::milliseconds(a.timeout_ms);
    if (a.deadline_given->count()) c.deadline = std::chrono::milliseconds(a.deadline_ms);
    if (a.tool_concurrency) c.tool_concurrency = static_cast<unsigned>(a.tool_concurrency);
    if (a.retry_given->count()) c.retry = a.retry;
    if (!a.fallback.empty()) c.fallback = a.fallback;
    if (a.tools_given->count()) {
        c.tools = a.tools;
        if (!c.gate && !c.ungoverned) {
            // Tools named on the command line are the ones the user allows.
            reagent::json names = reagent::json::array();
            for (const std::string& name : c.tools) names.push_back(name);
            c.gate = reagent::gate_policy::from_json(reagent::json::object().set("tools", reagent::json::object().set("allowlist", std::move(names))));
        }
    }
    if (c.provider == "openai") {
        if (c.model.empty()) c.model = "gpt-4o-mini";
        if (c.base_url.empty()) c.base_url = "https://api.openai.com/v1";
    }
    c.check(a.config_file);
    return c;
}

reagent::secret find_key(const run_arguments& a, const agent_config& c)
{
    const reagent::wire_entry& wire = *reagent::find_wire(c.provider);
    reagent::secret key = a.key_file.empty() ? reagent::key_from_environment(wire) : reagent::secret::from_file(a.key_file);
    const std::string variable(wire.key_variables[0]);
    if (key.empty() && wire.needs_key) throw config_error(variable + " is not set; export it, or name a file with --key-file");
    const bool own_host = c.base_url.empty() || reagent::url::parse_or_throw(c.base_url, "baseUrl").host() == wire.key_host;
    if (key.empty() && own_host && !wire.key_host.empty())
        throw config_error(variable + " is not set; export it, name a file with --key-file, or point --base-url at another server");
    return key;
}

std::string read_question(const run_arguments& a)
{
    std::string question = a.question;
    if (question.empty() || question == "-") {
        if (question.empty() && ::isatty(STDIN_FILENO)) throw config_error("no question: give it as an argument or on standard input");
        question = read_text("-");
        while (!question.empty() && (question.back() == '\n' || question.back() == '\r')) question.pop_back();
    }
    if (question.empty()) throw config_error("the question is empty");
    return question;
}

/// A misspelt name on a deny list denies nothing. No error: one policy may serve programs with other tools.
void warn_of_unknown(const std::vector<std::string>& denied, const reagent::builtin_registry& registry, terminal& out)
{
    const std::vector<std::string> known = registry.names();
    for (const std::string& name : denied) {
        if (registry.contains(name) || name.find('*') != std::string::npos) continue;
        const auto near = reagent::nearest_name(name, known);
        out.note(fmt::format("reagent run: warning: gate.tools.denylist: there is no tool \"{}\"{}; the tools are {}", one_line(name, 80),
                             near ? ", did you mean \"" + *near + "\"" : std::string(), fmt::join(known, ", ")));
    }
}

/// Everything a run needs, wired; lives until the context has run dry.
class run_setup {
public:
    run_setup(const run_arguments& a, terminal& out) : config(configure(a)), question(read_question(a))
    {
        const reagent::log_sink log = out.log(a.verbose ? reagent::log_level::debug : a.quiet ? reagent::log_level::error : reagent::log_level::warn);
        reagent::http_client_options http_options;
        http_options.tls.ca_file = a.ca_file;
        http_options.proxies = reagent::proxy_rules::from_environment();
        provider_means means{reagent::http_client(io.get_executor(), std::move(http_options)), find_key(a, config), log};

        reagent::agent_options options;
        options.system(config.system_prompt).log(log);
        const reagent::builtin_registry registry = reagent::builtin_registry::standard();
        for (const std::string& name : config.tools) options.tool(registry.make(name));
        if (!a.audit_file.empty() || config.gate)
            // Without --audit the agent opens what `gate.audit` names.
            options.gate(config.gate.value_or(reagent::gate_policy()), a.audit_file.empty() ? reagent::audit_log() : reagent::audit_log::file(a.audit_file));
        if (config.rates) options.rates(*config.rates);
        if (config.tool_concurrency) options.tool_concurrency(*config.tool_concurrency);
        reagent::generate_options call;
        call.stream = !a.no_stream;
        // What a pipe has read cannot be taken back.
        call.accept_resets = a.as_json || ::isatty(STDOUT_FILENO) != 0;
        if (config.max_tokens) call.max_tokens = *config.max_tokens;
        if (config.timeout) call.idle = reagent::time_limit(*config.timeout);
        options.generate(call);
        agent =
            reagent::agent(io.get_executor(), make_model(config, means, a.quiet ? reagent::log_sink() : out.log(reagent::log_level::info)), std::move(options));
        if (!a.quiet) warn_of_unknown(config.denied_tools, registry, out);
        if (config.ungoverned && !config.tools.empty() && !a.quiet) out.note("reagent run: warning: UNGOVERNED, no gate judges the tools of this run");
    }

    reagent::run start()
    {
        reagent::run_request request(question);
        const reagent::budget_caps caps = config.caps();
        if (caps.cost || caps.tokens) request.budget(reagent::budget("run", caps));
        if (config.deadline) request.deadline(*config.deadline);
        return agent.start(std::move(request));
    }

    asio::io_context io{1};
    agent_config config;
    std::string question;
    reagent::agent agent;
};

asio::awaitable<void> drive(reagent::run& run, run_printer& printer, asio::signal_set& interrupts)
{
    std::exception_ptr failure;
    try {
        reagent::event_batch events;
        for (;;) {
            const bool more = co_await run.read(events);
            for (const reagent::event& e : events) printer.show(e);
            if (!more) break;
        }
    } catch (...) {
        failure = std::current_exception();
    }
    interrupts.cancel();
    if (failure) std::rethrow_exception(failure);
}

int run_question(const run_arguments& a)
{
    terminal out;
    run_setup setup(a, out);
    reagent::run run = setup.start();
    run_printer printer(out, !a.as_json, a.quiet);

    asio::signal_set interrupts(setup.io, SIGINT, SIGTERM);
    interrupts.async_wait([&](const boost::system::error_code& failed, int) {
        if (failed) return;
        // Gives the signals back their usual effect, so that a second one ends the process at once.
        interrupts.clear();
        run.cancel();
    });
    std::exception_ptr failure;
    asio::co_spawn(setup.io, drive(run, printer, interrupts), [&failure](std::exception_ptr f) { failure = f; });
    setup.io.run();
    if (failure) std::rethrow_exception(failure);

    const reagent::run_result& result = run.result();
    printer.finish(result);
    if (a.as_json) out.data(result.to_json().dump());
    return result.completed() ? exit_ok : exit_failed;
}

}  // namespace

void add_run_command(CLI::App& root, int& status)
{
    CLI::App* sub = root.add_subcommand("run", "Ask one question and let the agent work on it");
    sub->footer("The key comes from the provider's variable (OPENAI_API_KEY, ANTHROPIC_API_KEY, …) or --key-file. The text streams to standard output, tool "
                "calls and cost to standard error.\n"
                "Exit status: 0 completed, 1 any other outcome, 2 nothing was started.\n"
                "Examples:\n  reagent run \"What is 17 * 23?\" --model gpt-4o-mini --tools calculate --max-cost-usd 0.01\n"
                "  reagent run -c agent.json \"Summarise the log\" --json\n"
                "  reagent run \"Hello\" --retry 3 --fallback openai:gpt-4.1-mini\n"
                "  reagent run \"Hello\" --base-url http://127.0.0.1:11434/v1 --model llama3.2");
    auto a = std::make_shared<run_arguments>();
    sub->add_option("QUESTION", a->question, "What to ask; - or nothing reads standard input");
    sub->add_option("-c,--config", a->config_file, "Configuration file (docs/configuration.md); flags win over it")->check(refuse_empty);
    sub->add_option("--provider", a->provider, "Provider: " + reagent::wire_names() + " (openai)")->check(refuse_empty);
    sub->add_option("--model", a->model, "Model id (the provider's own; of openai gpt-4o-mini)")->check(refuse_empty);
    sub->add_option("--base-url", a->base_url,
                    "Base URL of the service, for openai any compatible server (the provider's own; of openai https://api.openai.com/v1)")
        ->check(refuse_empty);
    a->system_given = sub->add_option("--system", a->system, "System prompt");
    a->tools_given = sub->add_option("--tools", a->tools, "Tools to offer, separated by commas; without a gate just these are allowed")
                         ->delimiter(',')
                         ->allow_extra_args(false);
    sub->add_flag("--ungoverned", a->ungoverned, "Run tools without a gate");
    a->max_cost_given = sub->add_option("--max-cost-usd", a->max_cost, "Most the run may cost");
    a->max_total_given = sub->add_option("--max-total-tokens", a->max_total_tokens, "Most tokens the run may use, prompts and answers")
                             ->check(CLI::Range(std::uint64_t{0}, most_tokens));
    sub->add_option("--max-tokens", a->max_tokens, "Most tokens of one answer")->check(CLI::Range(std::uint64_t{1}, most_tokens));
    sub->add_option("--rates", a->rates, "Prices of prompt and answer in USD per 1,000 tokens, or per million with /M: 0.15/M 0.60/M")
        ->expected(2)
        ->type_name("USD");
    a->timeout_given =
        sub->add_option("--timeout-ms", a->timeout_ms, "Longest silence of the server; 0 is no limit")->check(CLI::Range(std::uint64_t{0}, longest_ms));
    a->deadline_given =
        sub->add_option("--deadline-ms", a->deadline_ms, "Longest time of the whole run; 0 is no limit")->check(CLI::Range(std::uint64_t{0}, longest_ms));
    sub->add_option("--tool-concurrency", a->tool_concurrency, "Tool calls at once")->check(CLI::Range(1, 1024));
    a->retry_given =
        sub->add_option("--retry", a->retry, "Send a failed model call again up to so many times, after a wait (0)")->check(CLI::Range(0U, most_retries));
    sub->add_option("--fallback", a->fallback, "PROVIDER[:MODEL] to ask when the model fails, separated by commas and in order")
        ->delimiter(',')
        ->allow_extra_args(false)
        ->check(refuse_empty);
    sub->add_option("--audit", a->audit_file,
                    "Append decisions to this file, which is made with its directories where they are missing; wins over gate.audit.path")
        ->check(refuse_empty);
    sub->add_option("--key-file", a->key_file, "File whose first line is the key")->check(refuse_empty);
    sub->add_option("--ca-file", a->ca_file, "PEM file of certificate authorities to trust besides the system's")->check(refuse_empty);
    sub->add_flag("--no-stream", a->no_stream, "Ask for the answer in one piece");
    sub->add_flag("--json", a->as_json, "Print the result as one JSON object instead of the text");
    sub->add_flag("-q,--quiet", a->quiet, "Only the answer, and how the run ended if it did not complete");
    sub->add_flag("-v,--verbose", a->verbose, "Say more on standard error");
    sub->callback([a, &status] { status = run_question(*a); });
}

}  // namespace reagent_app

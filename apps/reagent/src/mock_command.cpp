#include "mock_command.hpp"
#include "commands.hpp"
#include "terminal.hpp"

#include <reagent/base/error.hpp>
#include <reagent/testing/mock_server.hpp>

#include <CLI/App.hpp>
#include <CLI/Config.hpp>
#include <CLI/Formatter.hpp>

#include <fmt/format.h>

#include <boost/asio/io_context.hpp>
#include <boost/asio/signal_set.hpp>

#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <string>
#include <utility>

#include <sys/resource.h>

namespace reagent_app {

namespace {

using reagent::testing::mock_entry;
using reagent::testing::mock_options;
using reagent::testing::mock_server;

struct mock_arguments {
    std::uint16_t port = 0;
    std::string fixtures, journal, fault_rates, certificate, key, input_rate = "1", output_rate = "1";
    std::uint32_t latency_ms = 0, gap_ms = 0;
    std::uint64_t chunk_size = 24, seed = 1;
};

struct close_file {
    void operator()(std::FILE* f) const { std::fclose(f); }
};
using file_ptr = std::unique_ptr<std::FILE, close_file>;

/// As many connections as the system grants us: every stream is a descriptor.
void raise_descriptor_limit()
{
    rlimit limit{};
    if (::getrlimit(RLIMIT_NOFILE, &limit) != 0) return;
    limit.rlim_cur = limit.rlim_max;
    ::setrlimit(RLIMIT_NOFILE, &limit);
}

reagent::usd rate(const char* option, const std::string& text)
{
    const auto dollars = reagent::usd::parse(text);
    if (!dollars || *dollars < reagent::usd())
        throw reagent::config_error(std::string(option) + " must be an amount of dollars such as 0.15, got " + one_line(text, 40));
    return *dollars;
}

mock_options options_from(const mock_arguments& a)
{
    mock_options o;
    o.port(a.port).latency(std::chrono::milliseconds(a.latency_ms)).gap(std::chrono::milliseconds(a.gap_ms)).chunk_size(a.chunk_size).seed(a.seed);
    o.rates(rate("--input-rate", a.input_rate), rate("--output-rate", a.output_rate));
    if (!a.fixtures.empty()) o.fixtures(reagent::testing::load_mock_fixtures(a.fixtures));
    reagent::testing::parse_fault_rates(a.fault_rates, o);
    if (!a.certificate.empty()) {
        reagent::tls_server_options t;
        t.certificate_file = a.certificate;
        t.key_file = a.key;
        o.tls(std::move(t));
    }
    return o;
}

file_ptr open_journal(const std::string& path)
{
    if (path.empty()) return nullptr;
    file_ptr file(std::fopen(path.c_str(), "ae"));
    if (!file) throw reagent::config_error("cannot write " + path + ": " + std::strerror(errno));
    return file;
}

void serve(const mock_arguments& a)
{
    mock_options options = options_from(a);
    const file_ptr journal = open_journal(a.journal);
    if (journal) {
        options.on_entry([file = journal.get(), path = a.journal, journal_failed = false](const mock_entry& e) mutable {
            const std::string line = e.to_json().dump() + '\n';
            if (std::fwrite(line.data(), 1, line.size(), file) == line.size() && std::fflush(file) == 0) return;
            if (std::exchange(journal_failed, true)) return;
            terminal().note("reagent mock: " + path + ": the journal cannot be written: " + std::strerror(errno));
        });
    }
    raise_descriptor_limit();
    boost::asio::io_context context(1);
    mock_server server(context.get_executor(), std::move(options));
    boost::asio::signal_set stop_signals(context, SIGINT, SIGTERM);
    stop_signals.async_wait([&](boost::system::error_code ec, int) {
        if (ec) return;
        server.stop();
        // A second signal ends the program at once.
        std::signal(SIGINT, SIG_DFL);
        std::signal(SIGTERM, SIG_DFL);
    });
    terminal out;
    out.data("listening on " + server.base_url());
    // Whoever started us waits for this line; main says that it could not be written.
    if (!out.flush()) return;
    context.run();
    const auto stats = server.stats();
    out.note(fmt::format("reagent mock: stopped after {} requests on {} connections", stats.requests, stats.connections));
}

int mock_command(const mock_arguments& a)
{
    try {
        serve(a);
        return exit_ok;
    } catch (const reagent::error& e) {
        terminal().note("reagent mock: " + e.message());
        return exit_usage;
    }
}

}  // namespace

CLI::App* add_mock_command(CLI::App& app, int& exit_code)
{
    const auto a = std::make_shared<mock_arguments>();
    CLI::App* mock = app.add_subcommand("mock", "Serve the wires of all model services on loopback, with scripted answers and faults");
    mock->add_option("--port", a->port, "Port of 127.0.0.1; 0 picks a free one")->capture_default_str();
    mock->add_option("--fixtures", a->fixtures, "Scripted answers: {\"fixtures\":[{\"match\":{…},\"response\":{…}}]}; without it, an echo")
        ->type_name("FILE")
        ->check(refuse_empty);
    mock->add_option("--latency-ms", a->latency_ms, "Wait before each answer")->capture_default_str();
    mock->add_option("--gap-ms", a->gap_ms, "Wait between the events of a stream")->capture_default_str();
    mock->add_option("--chunk-size", a->chunk_size, "Bytes of text in one event")->check(CLI::PositiveNumber)->capture_default_str();
    mock->add_option("--fault-rate", a->fault_rates, "Shares of requests that fail: 429=0.1,500=0.05,reset=0.01 …")->type_name("LIST");
    mock->add_option("--seed", a->seed, "Seed of the fault draws")->capture_default_str();
    mock->add_option("--journal", a->journal, "Append a JSON line for each request; also served at /__journal")->type_name("FILE")->check(refuse_empty);
    mock->add_option("--input-rate", a->input_rate, "Dollars per million input tokens, for the exposure in the journal")
        ->type_name("USD")
        ->capture_default_str();
    mock->add_option("--output-rate", a->output_rate, "The same for output tokens")->type_name("USD")->capture_default_str();
    CLI::Option* certificate = mock->add_option("--tls-cert", a->certificate, "Serve https with this certificate: PEM, its intermediates behind it")
                                   ->type_name("FILE")
                                   ->check(refuse_empty);
    CLI::Option* key = mock->add_option("--tls-key", a->key, "Its key: PEM, not encrypted")->type_name("FILE")->check(refuse_empty);
    certificate->needs(key);
    key->needs(certificate);
    mock->footer("Example:\n"
                 "  reagent mock --port 8080 --fixtures answers.json --gap-ms 20 --fault-rate 429=0.05\n"
                 "  OPENAI_API_KEY=any reagent run \"hello\" --provider openai --model mock --base-url http://127.0.0.1:8080/v1\n"
                 "Also serves GET /v1/models, /health, /__journal and /__stats. Ctrl-C stops it.");
    mock->callback([a, &exit_code] { exit_code = mock_command(*a); });
    return mock;
}

}  // namespace reagent_app

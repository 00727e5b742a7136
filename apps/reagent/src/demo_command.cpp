#include "commands.hpp"
#include "demo_report.hpp"
#include "demo_script.hpp"
#include "terminal.hpp"

#include <reagent/agent/agent.hpp>
#include <reagent/base/error.hpp>
#include <reagent/base/with_deadline.hpp>
#include <reagent/governance/budget.hpp>
#include <reagent/net/child_process.hpp>
#include <reagent/net/http_client.hpp>
#include <reagent/providers/openai.hpp>

#include <boost/asio/bind_cancellation_slot.hpp>
#include <boost/asio/cancellation_signal.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/signal_set.hpp>
#include <boost/asio/steady_timer.hpp>

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include <csignal>
#include <cstdlib>
#include <deque>
#include <fcntl.h>
#include <memory>
#include <optional>
#include <sys/resource.h>
#include <unistd.h>

namespace reagent_app {
namespace {

namespace asio = boost::asio;
using namespace std::chrono_literals;

constexpr auto progress_period = 100ms;
constexpr auto longest_run = 25s;  ///< a run that hangs ends as `deadline` before the demo's 30 s are over
constexpr auto mock_start = 10s;

class demo_arguments {
public:
    std::size_t agents = 500;
    bool as_json = false;
};

/// A file that is there for as long as this is.
class temporary_file {
public:
    explicit temporary_file(std::string_view content)
    {
        const char* directory = std::getenv("TMPDIR");
        path_ = std::string(directory && *directory ? directory : "/tmp") + "/reagent-demo-XXXXXX";
        const int fd = ::mkostemp(path_.data(), O_CLOEXEC);
        const bool written = fd >= 0 && ::write(fd, content.data(), content.size()) == static_cast<ssize_t>(content.size());
        if (fd >= 0) ::close(fd);
        if (!written) {
            if (fd >= 0) ::unlink(path_.c_str());
            throw reagent::error(reagent::errc::not_found, "the demo cannot write its fixtures to " + path_);
        }
    }
    ~temporary_file() { ::unlink(path_.c_str()); }
    temporary_file(const temporary_file&) = delete;
    temporary_file& operator=(const temporary_file&) = delete;
    const std::string& path() const noexcept { return path_; }

private:
    std::string path_;
};

/// Two sockets a call, one at each end, in two processes; the mock inherits the raised limit.
void allow_open_files(std::size_t agents)
{
    rlimit limit{};
    const rlim_t wanted = agents + 256;
    if (getrlimit(RLIMIT_NOFILE, &limit) != 0 || limit.rlim_cur >= wanted) return;
    limit.rlim_cur = std::min<rlim_t>(wanted, limit.rlim_max);
    setrlimit(RLIMIT_NOFILE, &limit);
    if (limit.rlim_cur < wanted)
        throw reagent::config_error(
            fmt::format("{} agents need {} open files, at most {} are allowed here; raise the hard limit or give --agents", agents, wanted, limit.rlim_max));
}

reagent::process_options mock_process(const std::string& fixtures)
{
    reagent::process_options mock({"/proc/self/exe", "mock", "--port", "0", "--fixtures", fixtures});
    mock.input = false;
    mock.inherit_errors = true;
    return mock;
}

reagent::awaitable<void> read_line(reagent::child_process* from, std::string* line)
{
    while (line->find('\n') == std::string::npos) {
        const bool more = co_await from->read(*line);
        if (!more) throw reagent::error(reagent::errc::closed, "the mock server ended before it was ready");
    }
    line->resize(line->find('\n'));
}

/// Where the mock listens. Its context runs for this only: it says nothing else that anyone must hear.
std::string wait_for_mock(asio::io_context& io, reagent::child_process& mock)
{
    constexpr std::string_view greeting = "listening on ";
    std::string line;
    std::exception_ptr failure;
    bool done = false;
    const reagent::clock_ptr clock = reagent::clock::system();
    asio::co_spawn(io, reagent::with_deadline(clock, clock->now() + mock_start, read_line(&mock, &line), "the start of the mock server"),
                   [&](std::exception_ptr e) {
                       failure = e;
                       done = true;
                   });
    while (!done) io.run_one();
    if (failure) std::rethrow_exception(failure);
    if (!line.starts_with(greeting))
        throw reagent::error(reagent::errc::closed, "the mock server said \"" + one_line(line, 100) + "\" instead of where it listens");
    return line.substr(greeting.size());
}

double peak_rss_mb()
{
    rusage usage{};
    getrusage(RUSAGE_SELF, &usage);
    return static_cast<double>(usage.ru_maxrss) / 1024;
}

/// The crowd: one agent, one client, one context, `agents` runs at once on one budget.
class crowd {
public:
    crowd(std::size_t agents, const std::string& base_url, terminal& out)
        : agents_(agents), out_(out), team_("demo", reagent::budget_caps(demo_cap(agents))), report_(agents, demo_cap(agents)), progress_timer_(io_)
    {
        const reagent::http_client http(io_.get_executor());
        reagent::openai_options wire("demo-model");
        wire.base_url(reagent::url::parse_or_throw(base_url, "the mock's address"));
        reagent::agent_options options;
        options.system(demo_system_prompt()).gate(reagent::gate_policy::from_json(demo_gate())).rates(demo_rates());
        for (reagent::tool& t : demo_tools()) options.tool(std::move(t));
        agent_ = reagent::agent(io_.get_executor(), reagent::openai_chat(http, std::move(wire)), std::move(options));
    }

    demo_report run()
    {
        const auto start = std::chrono::steady_clock::now();
        interrupts_.async_wait([this](const boost::system::error_code& failed, int) {
            if (!failed) cancel_all();
        });
        for (std::size_t n = 1; n <= agents_; ++n) {
            const asio::cancellation_slot slot = stops_.emplace_back().slot();
            asio::co_spawn(io_, follow(n), asio::bind_cancellation_slot(slot, [this](std::exception_ptr refused) { ended(refused); }));
        }
        show_progress();
        io_.run();
        out_.clear_progress();
        report_.close(team_.state().spent.cost, std::chrono::steady_clock::now() - start, peak_rss_mb());
        return std::move(report_);
    }

    bool interrupted() const noexcept { return interrupted_; }

private:
    void cancel_all()
    {
        // Gives the signals back their usual effect, so that a second one ends the process at once.
        interrupts_.clear();
        interrupted_ = true;
        for (asio::cancellation_signal& stop : stops_) stop.emit(asio::cancellation_type::terminal);
    }

    /// One agent from its question to its end.
    asio::awaitable<void> follow(std::size_t n)
    {
        const std::string name = "agent-" + std::to_string(n);
        reagent::run_request request(demo_question(n));
        request.id(name).budget(team_.child(name)).max_tokens(demo_max_tokens).deadline(longest_run);
        reagent::run run = agent_.start(std::move(request));
        reagent::event_batch events;
        for (;;) {
            const bool more = co_await run.read(events);
            if (!more) break;
        }
        report_.add(run.result());
    }

    void ended(const std::exception_ptr& refused)
    {
        if (refused) report_.add_refused(reagent::message_of(refused));
        if (report_.ended() < agents_) return;
        progress_timer_.cancel();
        interrupts_.cancel();
    }

    void show_progress()
    {
        if (!out_.err_is_tty() || report_.ended() == agents_) return;
        const reagent::budget_state money = team_.state();
        const double share = money.spent.cost.to_double() / demo_cap(agents_).to_double();
        out_.progress(fmt::format("{} agents: {} completed, {} halted, {} failed, {} at work, {} waiting for money; {:.0f} % of the budget spent", agents_,
                                  report_.completed(), report_.halted(), report_.failed(), agents_ - report_.ended(), money.waiting, 100 * share));
        progress_timer_.expires_after(progress_period);
        progress_timer_.async_wait([this](const boost::system::error_code& cancelled) {
            if (!cancelled) show_progress();
        });
    }

    std::size_t agents_;
    terminal& out_;
    asio::io_context io_{1};
    reagent::budget team_;
    demo_report report_;
    asio::steady_timer progress_timer_;
    asio::signal_set interrupts_{io_, SIGINT, SIGTERM};
    std::deque<asio::cancellation_signal> stops_;
    bool interrupted_ = false;
    reagent::agent agent_;
};

int show_crowd(const demo_arguments& a)
{
    terminal out;
    allow_open_files(a.agents);
    bool interrupted = false;
    demo_report report = [&] {
        asio::io_context nursery;
        std::optional<reagent::child_process> mock;
        std::string base_url;
        {
            const temporary_file fixtures(demo_fixtures().dump());
            mock.emplace(nursery.get_executor(), mock_process(fixtures.path()));
            base_url = wait_for_mock(nursery, *mock);
        }
        out.progress(fmt::format("{} agents start against {}", a.agents, base_url));
        crowd all(a.agents, base_url, out);
        demo_report seen = all.run();
        interrupted = all.interrupted();
        return seen;
    }();
    if (interrupted) {
        out.note(fmt::format("reagent demo: interrupted: {} agents completed, the others were cancelled", report.completed()));
        return exit_failed;
    }
    if (a.as_json) {
        out.data(report.to_json().dump());
    } else {
        for (const std::string& line : report.table()) out.data(line);
    }
    const std::vector<std::string> broken = report.broken_promises();
    for (const std::string& promise : broken) out.note("reagent demo: check failed: " + promise);
    return broken.empty() ? exit_ok : exit_failed;
}

}  // namespace

void add_demo_command(CLI::App& root, int& status)
{
    CLI::App* sub = root.add_subcommand("demo", "Hundreds of governed agents at once against a mock model server, on one budget");
    sub->footer("The mock is a process of its own on 127.0.0.1; nothing else is contacted. The shared budget runs out before all agents are done, and some\n"
                "meet a fault of the server. Exits 0 only when its checks hold: every transcript valid, spend within the cap, each outcome seen.\n"
                "Example:\n  reagent demo --agents 1000 --json");
    auto a = std::make_shared<demo_arguments>();
    sub->add_option("--agents", a->agents, "How many agents (500)")->check(CLI::Range(demo_least_agents, std::size_t{100'000}));
    sub->add_flag("--json", a->as_json, "Print one JSON object instead of the table");
    sub->callback([a, &status] { status = show_crowd(*a); });
}

}  // namespace reagent_app

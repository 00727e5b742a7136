// From cancel to FIN: 1,000 streams are kept in flight, random ones of them are cancelled, and the mock server, a process of its own, stamps when it has
// seen the client's end. Both stamp CLOCK_MONOTONIC; the client before it posts the cancel to its context, so that what is queued there counts.
// The burst beside it, all 1,000 cancelled at once, measures the queue of two processes rather than a cancel and has no limit.
//
//     cancel_fin [cancels]
//
// Exit status 1 when the 99th percentile passes 10 ms; the goal is 5.
#include "bench_common.hpp"

#include <reagent/base/error.hpp>
#include <reagent/net/http_client.hpp>
#include <reagent/testing/mock_server.hpp>

#include <boost/asio/bind_cancellation_slot.hpp>
#include <boost/asio/cancellation_signal.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/steady_timer.hpp>

#include <atomic>
#include <csignal>
#include <memory>
#include <random>
#include <stdexcept>

#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

namespace {

namespace asio = boost::asio;

constexpr std::size_t in_flight = 1000;
constexpr std::size_t most_streams = 1'000'000;  // places for stamps, by number of the stream
constexpr std::chrono::milliseconds gap(100);    // between the events of a stream
constexpr std::chrono::milliseconds between(2);  // cancels
constexpr double limit_ms = 10, goal_ms = 5;

/// In memory that both processes share: when the server saw the end of each stream; 0 for not yet, -1 when it had sent all of it before.
using stamps = std::atomic<std::int64_t>;

void serve(int report, stamps* seen)
{
    const pid_t parent = ::getppid();
    reagent::testing::mock_fixture fixture;
    fixture.response.content = std::string(60 * 24, 'x');  // 60 events
    reagent::testing::mock_options options;
    options.fixtures({fixture}).gap(gap).max_journal(1);
    options.on_entry([seen](const reagent::testing::mock_entry& entry) {
        const std::int64_t now = bench::monotonic_ns();
        for (const auto& [name, value] : entry.headers)
            if (name == "x-number") seen[std::strtoul(value.c_str(), nullptr, 10) % most_streams] = entry.end.starts_with("client") ? now : -1;
    });
    asio::io_context context(1);
    reagent::testing::mock_server server(context.get_executor(), std::move(options));
    const std::uint16_t port = server.port();
    if (::write(report, &port, sizeof port) != sizeof port) return;
    while (::getppid() == parent) context.run_for(std::chrono::seconds(1));
}

class streams {
public:
    streams(std::uint16_t port, const stamps* seen)
        : seen_(seen),
          target_(reagent::url::parse_or_throw("http://127.0.0.1:" + std::to_string(port) + "/v1/chat/completions", "url")),
          client_(context_.get_executor()),
          body_(bench::request_body(true)),
          pace_timer_(context_)
    {
        for (std::size_t i = 0; i < in_flight; ++i) lanes_.push_back(std::make_unique<lane>());
    }

    void cancel_some(std::size_t count)
    {
        for (const auto& l : lanes_) start(*l);
        wanted_ = count;
        next_at_ = asio::steady_timer::clock_type::now() + std::chrono::seconds(1);  // all have begun by then
        wait_for_turn();
        while (taken_.size() < count || open_ < in_flight) context_.run_one();
        settle();
    }

    /// All at once, each counted from the beginning.
    void cancel_all()
    {
        taken_.clear();
        ending_ = true;
        const std::int64_t now = bench::monotonic_ns();
        for (const auto& l : lanes_) {
            if (!l->streaming) continue;
            taken_.push_back({l->number, now});
            asio::post(context_, [&l] { l->stop.emit(asio::cancellation_type::terminal); });
        }
        settle();
    }

    /// Milliseconds, sorted.
    std::vector<double> times() const
    {
        std::vector<double> out;
        for (const taken& t : taken_) {
            const std::int64_t at = seen_[t.number];
            if (at == 0) throw std::runtime_error("the server has not seen the end of stream " + std::to_string(t.number));
            if (at > 0) out.push_back(static_cast<double>(at - t.at) / 1e6);
        }
        std::sort(out.begin(), out.end());
        return out;
    }

private:
    struct lane {
        asio::cancellation_signal stop;
        std::size_t number = 0;
        bool streaming = false, cancelled = false;
    };
    struct taken {
        std::size_t number;
        std::int64_t at;
    };

    void start(lane& l)
    {
        l.number = ++streams_;
        if (streams_ >= most_streams) throw std::runtime_error("too many streams");
        l.cancelled = false;
        asio::co_spawn(context_, read(&l), asio::bind_cancellation_slot(l.stop.slot(), [this, &l](const std::exception_ptr& failure) {
                           if (l.streaming) --open_;
                           l.streaming = false;
                           if (failure && !reagent::is_cancellation(failure)) std::rethrow_exception(failure);
                           if (!ending_) asio::post(context_, [this, &l] { start(l); });
                       }));
    }

    reagent::awaitable<void> read(lane* l)
    {
        const std::string lines = "Content-Type: application/json\r\nX-Number: " + std::to_string(l->number) + "\r\n";
        reagent::http_request request("POST", target_);
        request.header_lines = lines;
        request.body = body_;
        reagent::http_exchange answer = co_await client_.open(std::move(request));
        l->streaming = true;
        ++open_;
        for (;;) {
            const std::span<const char> bytes = co_await answer.read_some();
            if (bytes.empty()) break;
        }
    }

    void wait_for_turn()
    {
        pace_timer_.expires_at(next_at_);
        next_at_ += between;
        pace_timer_.async_wait([this](const boost::system::error_code&) {
            if (taken_.size() >= wanted_) return;
            lane& l = *lanes_[std::uniform_int_distribution<std::size_t>(0, in_flight - 1)(random_)];
            if (l.streaming && !l.cancelled) {
                l.cancelled = true;
                taken_.push_back({l.number, bench::monotonic_ns()});
                asio::post(context_, [this, &l, number = l.number] {
                    // It may have ended by itself a moment ago: then the next in the lane is not meant.
                    if (l.number == number && l.streaming) l.stop.emit(asio::cancellation_type::terminal);
                    else std::erase_if(taken_, [number](const taken& t) { return t.number == number; });
                });
            }
            wait_for_turn();
        });
    }

    /// Until the server has seen all ends, 10 s at most.
    void settle()
    {
        const std::int64_t until = bench::monotonic_ns() + 10'000'000'000;
        const auto missing = [this] { return std::any_of(taken_.begin(), taken_.end(), [this](const taken& t) { return seen_[t.number] == 0; }); };
        while (missing() && bench::monotonic_ns() < until) context_.run_for(std::chrono::milliseconds(5));
    }

    const stamps* seen_;
    std::vector<std::unique_ptr<lane>> lanes_;  // outlive the coroutines
    asio::io_context context_{1};
    reagent::url target_;
    reagent::http_client client_;
    std::string body_;
    asio::steady_timer pace_timer_;  // between cancels
    asio::steady_timer::time_point next_at_;
    std::vector<taken> taken_;
    std::minstd_rand random_{1};
    std::size_t streams_ = 0, open_ = 0, wanted_ = 0;
    bool ending_ = false;
};

double quantile(const std::vector<double>& sorted, double q)
{
    return sorted.empty() ? 0 : sorted[static_cast<std::size_t>(q * static_cast<double>(sorted.size() - 1))];
}

}  // namespace

int main(int argc, char** argv)
{
    const int cancels = argc > 1 ? std::atoi(argv[1]) : 5000;
    if (cancels < 1 || cancels > 100'000) {
        std::fprintf(stderr, "usage: cancel_fin [cancels]      (at most 100000)\n");
        return 2;
    }
    bench::raise_descriptor_limit();
    void* const shared = ::mmap(nullptr, most_streams * sizeof(stamps), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    int ends[2] = {};
    if (shared == MAP_FAILED || ::pipe(ends) != 0) return 1;
    auto* const seen = static_cast<stamps*>(shared);
    const pid_t server = ::fork();
    if (server == 0) {
        serve(ends[1], seen);
        ::_exit(0);
    }
    int result = 1;
    try {
        std::uint16_t port = 0;
        if (::read(ends[0], &port, sizeof port) != sizeof port) throw std::runtime_error("the server did not start");
        streams all(port, seen);
        all.cancel_some(static_cast<std::size_t>(cancels));
        const std::vector<double> one = all.times();
        all.cancel_all();
        const std::vector<double> burst = all.times();
        const double p99 = quantile(one, .99);
        std::printf(
            "{\"bench\":\"cancel_fin\",\"in_flight\":%zu,\"cancels\":%zu,\"p50_ms\":%.2f,\"p99_ms\":%.2f,\"max_ms\":%.2f,\"limit_ms\":%.0f,\"goal_ms\":%.0f,"
            "\"burst\":%zu,\"burst_p50_ms\":%.2f,\"burst_p99_ms\":%.2f,\"burst_max_ms\":%.2f}\n",
            in_flight, one.size(), quantile(one, .5), p99, one.back(), limit_ms, goal_ms, burst.size(), quantile(burst, .5), quantile(burst, .99),
            burst.empty() ? 0 : burst.back());
        result = p99 <= limit_ms ? 0 : 1;
    } catch (const std::exception& e) {
        std::fprintf(stderr, "cancel_fin: %s\n", e.what());
    }
    ::kill(server, SIGKILL);
    ::waitpid(server, nullptr, 0);
    return result;
}

// Does a cancel leave anything behind? A million calls (or the number given), two hundred at a time, each cancelled at a random point: between two
// handlers while it connects or sends, at any time of the wait for the answer, behind any part of a stream, in a wait and outside of one, and after its
// end. Half of them are JSON, half streams; half dial a connection of their own; an eighth goes over TLS when a directory with what `bench/certificates`
// makes is given. The mock server is a process of its own. At the end live
// objects, allocations, descriptors and resident memory must be where they were after the first tenth, or the first 2,000.
//
//     cancel_soak [calls [certificates]]
//
// `bench/cancel_soak` does all of it.
#include "bench_common.hpp"
#include "counted.hpp"

#include <reagent/base/error.hpp>
#include <reagent/model/event.hpp>
#include <reagent/providers/openai.hpp>
#include <reagent/testing/allocation_counter.hpp>
#include <reagent/testing/mock_server.hpp>

#include <boost/asio/bind_cancellation_slot.hpp>
#include <boost/asio/cancellation_signal.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/steady_timer.hpp>

#include <csignal>
#include <filesystem>
#include <memory>
#include <random>
#include <stdexcept>

#include <malloc.h>
#include <sys/wait.h>
#include <unistd.h>

namespace {

namespace asio = boost::asio;
using bench::counted;

constexpr int at_once = 200;
constexpr int addresses = 64;  // from 127.0.0.1 on: one address has ports for 28,000 connections a minute
constexpr long limit_rss_kb = 1024;
constexpr long limit_allocations = 500;  // what a pool or a cache happens to hold
#if defined(__SANITIZE_ADDRESS__)
constexpr bool memory_counts = false;  // freed memory rests in quarantine
#else
constexpr bool memory_counts = true;
#endif

/// The ports of the plain server and of the one over TLS, 0 without.
struct ports {
    std::uint16_t plain = 0, tls = 0;
};

void serve(int report, const std::string& certificates)
{
    const pid_t parent = ::getppid();
    reagent::testing::mock_fixture fixture;
    fixture.response.content = std::string(3 * 24, 'x');  // six events with the first and the last ones
    reagent::testing::mock_options options;
    options.fixtures({fixture}).address("0.0.0.0").latency(std::chrono::milliseconds(1)).gap(std::chrono::milliseconds(1)).max_journal(1);
    asio::io_context context(1);
    const reagent::testing::mock_server plain(context.get_executor(), options);
    std::unique_ptr<reagent::testing::mock_server> tls;
    ports at;
    at.plain = plain.port();
    if (!certificates.empty()) {
        reagent::tls_server_options keys;
        keys.certificate_file = certificates + "/chain.pem";
        keys.key_file = certificates + "/leaf.key";
        tls = std::make_unique<reagent::testing::mock_server>(context.get_executor(), options.tls(std::move(keys)));
        at.tls = tls->port();
    }
    if (::write(report, &at, sizeof at) != sizeof at) return;
    while (::getppid() == parent) context.run_for(std::chrono::seconds(1));
}

struct tally {
    std::uint64_t started = 0, tls = 0, cancelled = 0, ended = 0, wrong = 0;
    std::string first_wrong;
};

/// `localhost`, which the certificate names, has all the addresses in turn.
class in_turn final : public reagent::resolver {
public:
    reagent::awaitable<std::vector<reagent::ip_address>> resolve(std::string) override
    {
        const auto next = reagent::ip_address::v4(0x7f000001u + turn_++ % addresses);
        co_return std::vector<reagent::ip_address>(1, next);
    }

private:
    unsigned turn_ = 0;
};

/// A provider for each address and one over TLS, each on a client that keeps connections and on one that does not.
struct providers {
    providers(asio::io_context& context, ports at, const std::string& certificates)
        : pooled(context.get_executor(), options(64, certificates)), dialling(context.get_executor(), options(0, certificates))
    {
        messages.push_back(reagent::message::user("go on"));
        for (int i = 0; i < addresses; ++i) {
            const std::string base = "http://127.0.0." + std::to_string(1 + i) + ':' + std::to_string(at.plain) + "/v1";
            for (const reagent::http_client& client : {pooled, dialling}) plain.push_back(make(client, base));
        }
        if (at.tls == 0) return;
        for (const reagent::http_client& client : {pooled, dialling}) tls.push_back(make(client, "https://localhost:" + std::to_string(at.tls) + "/v1"));
    }
    static reagent::http_client_options options(std::size_t idle, const std::string& certificates)
    {
        reagent::http_client_options o;
        o.max_idle_per_origin = idle;
        o.resolver = std::make_shared<in_turn>();
        o.tls.system_store = false;
        if (!certificates.empty()) o.tls.ca_file = certificates + "/root.pem";
        return o;
    }
    static reagent::provider_ptr make(const reagent::http_client& client, const std::string& base)
    {
        return reagent::openai_chat(client, reagent::openai_options(std::string(bench::model_name)).base_url(base).key(reagent::secret("sk-test")));
    }
    reagent::http_client pooled, dialling;
    reagent::transcript messages;
    std::vector<reagent::provider_ptr> plain, tls;
};

/// One place of the two hundred: starts its next call when the last one has ended.
class lane {
public:
    lane(asio::io_context& context, providers& from, int& left, tally& counts, unsigned seed)
        : context_(context), from_(from), left_(left), counts_(counts), cancel_timer_(context), random_(seed)
    {}

    void start_next()
    {
        if (left_ == 0) return;
        --left_;
        ++counts_.started;
        stream_ = pick(2) == 0;
        point_ = static_cast<point>(pick(stream_ ? 5 : 3));
        batch_ = 1 + pick(5);
        signalled_ = false;
        ++turn_;
        const bool over_tls = !from_.tls.empty() && pick(8) == 0;
        const std::vector<reagent::provider_ptr>& providers_of = over_tls ? from_.tls : from_.plain;
        if (over_tls) ++counts_.tls;
        asio::co_spawn(context_, call(providers_of[pick(static_cast<unsigned>(providers_of.size()))]),
                       asio::bind_cancellation_slot(stop_.slot(), [this, token = counted()](const std::exception_ptr& failure) { on_end(failure); }));
        if (point_ == point::handlers) hop(pick(12), turn_);
        if (point_ == point::time) {
            cancel_timer_.expires_after(std::chrono::microseconds(pick(6000)));
            cancel_timer_.async_wait([this](const boost::system::error_code& ec) {
                if (!ec) cancel();
            });
        }
    }

private:
    enum class point : unsigned { handlers, time, after, batch, outside };

    unsigned pick(unsigned below) { return std::uniform_int_distribution<unsigned>(0, below - 1)(random_); }

    /// Cancels after so many turns of the context.
    void hop(unsigned more, std::uint64_t turn)
    {
        asio::post(context_, [this, more, turn, token = counted()] {
            if (turn != turn_ || signalled_) return;
            if (more == 0) cancel();
            else hop(more - 1, turn);
        });
    }

    void cancel()
    {
        signalled_ = true;
        stop_.emit(asio::cancellation_type::terminal);
    }

    reagent::awaitable<void> call(reagent::provider_ptr provider)
    {
        const counted token;
        reagent::generate_request request(from_.messages);
        request.options.stream = stream_;
        if (!stream_) {
            reagent::awaitable<reagent::generate_result> answer = provider->generate(std::move(request));
            const reagent::generate_result result = co_await std::move(answer);
            if (result.text.empty()) throw std::runtime_error("an answer without text");
            co_return;
        }
        const reagent::model_call_ptr open = provider->start(std::move(request));
        reagent::event_batch batch;
        for (unsigned n = 1;; ++n) {
            batch.clear();
            const bool more = co_await open->read(batch);
            if (!more) co_return;
            if (n != batch_) continue;
            if (point_ == point::batch) hop(0, turn_);
            if (point_ == point::outside) {
                cancel();
                if (pick(2) == 0) co_return;  // the call is dropped half read; else its next wait finds the signal
            }
        }
    }

    void on_end(const std::exception_ptr& failure)
    {
        cancel_timer_.cancel();
        const bool cancelled = failure && reagent::is_cancellation(failure);
        ++(cancelled ? counts_.cancelled : counts_.ended);
        if (failure && !cancelled && counts_.wrong++ == 0) counts_.first_wrong = reagent::message_of(failure);
        asio::post(context_, [this] {
            if (!signalled_) cancel();
            start_next();
        });
    }

    asio::io_context& context_;
    providers& from_;
    int& left_;
    tally& counts_;
    asio::cancellation_signal stop_;
    asio::steady_timer cancel_timer_;
    std::minstd_rand random_;
    point point_ = point::handlers;
    std::uint64_t turn_ = 0;
    unsigned batch_ = 0;
    bool stream_ = false, signalled_ = false;
};

/// What must be the same before and after.
struct figures {
    explicit figures(const reagent::testing::allocation_counter& memory)
        : alive(counted::alive), allocations(static_cast<long>(memory.allocations() - memory.frees()))
    {
        for ([[maybe_unused]] const auto& entry : std::filesystem::directory_iterator("/proc/self/fd")) ++descriptors;
        ::malloc_trim(0);
        rss_kb = bench::status_kb("VmRSS:");
    }
    long alive, allocations, descriptors = 0, rss_kb = 0;
};

int soak(ports at, const std::string& certificates, int calls)
{
    asio::io_context context(1);
    providers from(context, at, certificates);
    tally counts;
    const reagent::testing::allocation_counter memory;
    const auto play = [&](int count) {
        int left = count;
        {
            std::vector<std::unique_ptr<lane>> lanes;
            for (int i = 0; i < at_once; ++i) {
                lanes.push_back(std::make_unique<lane>(context, from, left, counts, static_cast<unsigned>(count + i)));
                lanes.back()->start_next();
            }
            context.restart();
            context.run();
        }
        from.pooled.close_idle();
        from.dialling.close_idle();
        context.restart();
        context.poll();
        return figures(memory);
    };
    const std::int64_t began = bench::monotonic_ns();
    const int first = std::max(calls / 10, 2000);  // pools and caches reach their size
    const figures before = play(first);
    const figures after = play(calls - first);
    const double seconds = static_cast<double>(bench::monotonic_ns() - began) / 1e9;
    const bool held = counts.wrong == 0 && after.alive == 0 && after.descriptors == before.descriptors &&
        std::abs(after.allocations - before.allocations) <= limit_allocations && (!memory_counts || after.rss_kb - before.rss_kb <= limit_rss_kb);
    std::printf("{\"bench\":\"cancel_soak\",\"calls\":%llu,\"tls\":%llu,\"cancelled\":%llu,\"ended\":%llu,\"wrong\":%llu,\"seconds\":%.0f,\"alive\":%ld,"
                "\"allocations\":[%ld,%ld],"
                "\"descriptors\":[%ld,%ld],\"rss_kb\":[%ld,%ld],\"limit_rss_kb\":%ld}\n",
                static_cast<unsigned long long>(counts.started), static_cast<unsigned long long>(counts.tls), static_cast<unsigned long long>(counts.cancelled),
                static_cast<unsigned long long>(counts.ended), static_cast<unsigned long long>(counts.wrong), seconds, after.alive, before.allocations,
                after.allocations, before.descriptors, after.descriptors, before.rss_kb, after.rss_kb, limit_rss_kb);
    if (counts.wrong > 0) std::fprintf(stderr, "cancel_soak: the first that failed otherwise: %s\n", counts.first_wrong.c_str());
    return held ? 0 : 1;
}

}  // namespace

int main(int argc, char** argv)
{
    const int calls = argc > 1 ? std::atoi(argv[1]) : 1'000'000;
    const std::string certificates = argc > 2 ? argv[2] : "";
    if (calls < 4000) {
        std::fprintf(stderr, "usage: cancel_soak [calls [certificates]]      (at least 4000)\n");
        return 2;
    }
    bench::raise_descriptor_limit();
    int ends[2] = {};
    if (::pipe(ends) != 0) return 1;
    const pid_t server = ::fork();
    if (server == 0) {
        serve(ends[1], certificates);
        ::_exit(0);
    }
    int result = 1;
    try {
        ports at;
        if (::read(ends[0], &at, sizeof at) != sizeof at) throw std::runtime_error("the server did not start");
        result = soak(at, certificates, calls);
    } catch (const std::exception& e) {
        std::fprintf(stderr, "cancel_soak: %s\n", e.what());
    }
    ::kill(server, SIGKILL);
    ::waitpid(server, nullptr, 0);
    return result;
}

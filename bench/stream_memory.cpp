// What an open stream weighs: 10,000 of them on one thread, five events read from each.
// (resident memory at 10,000 - at 100) / 9,900, in kB; limit 20, goal 12; over TLS 60 and 45. Needs a mock that sends for long enough:
//
//     mock --port P --chunks 100000 --gap 500 &        stream_memory --port P [--tls [--resumed]]
//
// Over TLS it is for the server to say whether sessions are resumed; with --resumed streams open one after the other, so that each finds the ticket of one
// before. `bench/stream_memory` does it all.
#include "bench_common.hpp"

#include <reagent/base/error.hpp>
#include <reagent/model/event.hpp>
#include <reagent/providers/openai.hpp>

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/io_context.hpp>

#include <chrono>
#include <exception>

namespace {

namespace asio = boost::asio;

constexpr int few = 100;
constexpr int many = 10'000;
constexpr std::uint64_t events_each = 5, dials_at_once = 256;
constexpr double limit_kb = 20, goal_kb = 12, tls_limit_kb = 60, tls_goal_kb = 45;

class open_streams {
public:
    open_streams(const bench::client_flags& flags, bool one_by_one) : context_(1), http_(context_.get_executor(), options(flags)), one_by_one_(one_by_one)
    {
        messages_.push_back(reagent::message::system(std::string(bench::system_text)));
        messages_.push_back(reagent::message::user(bench::user_text()));
        const std::string base = std::string(flags.tls ? "https" : "http") + "://127.0.0.1:" + std::to_string(flags.port) + "/v1";
        provider_ = reagent::openai_chat(http_, reagent::openai_options(std::string(bench::model_name)).base_url(base).key(reagent::secret("sk-test")));
    }
    std::uint64_t resumed() const { return http_.stats().resumed; }

    /// Opens streams until there are `count`, waits for five events of each, answers the resident memory in kB.
    long grow_to(int count)
    {
        while (opened_ < count) {
            asio::co_spawn(context_, read_for_ever(), &rethrow);
            ++opened_;
            // Few enough that the last handshake of them begins long before its limit.
            while (http_.stats().dialed + (one_by_one_ ? 1 : dials_at_once) <= static_cast<std::uint64_t>(opened_)) context_.run_one();
            // The tickets come behind the handshake.
            if (one_by_one_) context_.run_for(std::chrono::microseconds(200));
        }
        while (ripe_ < count) context_.run_one();
        return bench::status_kb("VmRSS:");
    }

private:
    static reagent::http_client_options options(const bench::client_flags& flags)
    {
        reagent::http_client_options o;
        if (const char* bundle = std::getenv("SSL_CERT_FILE"); flags.tls && bundle) o.tls.ca_file = bundle;
        o.tls.system_store = false;
        return o;
    }
    static void rethrow(std::exception_ptr failure)
    {
        if (failure) std::rethrow_exception(failure);
    }

    reagent::awaitable<void> read_for_ever()
    {
        reagent::generate_request request(messages_);
        request.options.stream = true;
        const reagent::model_call_ptr call = provider_->start(std::move(request));
        reagent::event_batch batch;
        std::uint64_t deltas = 0;
        for (;;) {
            batch.clear();
            const bool more = co_await call->read(batch);
            const std::uint64_t before = deltas;
            for (const reagent::event& e : batch) deltas += e.text().empty() ? 0 : 1;
            if (before < events_each && deltas >= events_each) ++ripe_;
            if (!more) throw reagent::error(reagent::errc::stream_truncated, "a stream ended before the measurement; give the mock more chunks");
        }
    }

    asio::io_context context_;
    reagent::http_client http_;
    bool one_by_one_;
    reagent::transcript messages_;
    reagent::provider_ptr provider_;
    int opened_ = 0, ripe_ = 0;
};

}  // namespace

int main(int argc, char** argv)
{
    const bool resumed = argc > 1 && std::string_view(argv[argc - 1]) == "--resumed";
    const bench::client_flags flags(argc - (resumed ? 1 : 0), argv);
    try {
        open_streams streams(flags, resumed);
        const long at_few = streams.grow_to(few);
        const long at_many = streams.grow_to(many);
        const double each = static_cast<double>(at_many - at_few) / (many - few);
        const double limit = flags.tls ? tls_limit_kb : limit_kb;
        std::printf(
            "{\"bench\":\"stream_memory\",\"tls\":%d,\"resumed\":%llu,\"rss_kb_at_100\":%ld,\"rss_kb_at_10000\":%ld,\"kb_per_stream\":%.2f,\"limit_kb\":%.0f,"
            "\"goal_kb\":%.0f}\n",
            flags.tls ? 1 : 0, static_cast<unsigned long long>(streams.resumed()), at_few, at_many, each, limit, flags.tls ? tls_goal_kb : goal_kb);
        std::fflush(stdout);
        std::quick_exit(each <= limit ? 0 : 1);
    } catch (const std::exception& e) {
        std::fprintf(stderr, "stream_memory: %s\n", e.what());
        return 1;
    }
}

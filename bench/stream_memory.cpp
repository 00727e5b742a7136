// What an open plain stream weighs: 10,000 of them on one thread, five events read from each.
// (resident memory at 10,000 - at 100) / 9,900, in kB; limit 20, goal 12. Needs a mock that sends for long enough:
//
//     mock --port P --chunks 100000 --gap 500 &        stream_memory --port P
//
// `bench/stream_memory` does both.
#include "bench_common.hpp"

#include <reagent/base/error.hpp>
#include <reagent/model/event.hpp>
#include <reagent/providers/openai.hpp>

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/io_context.hpp>

#include <exception>

namespace {

namespace asio = boost::asio;

constexpr int few = 100;
constexpr int many = 10'000;
constexpr std::uint64_t events_each = 5;
constexpr double limit_kb = 20, goal_kb = 12;

class open_streams {
public:
    explicit open_streams(int port) : context_(1)
    {
        messages_.push_back(reagent::message::system(std::string(bench::system_text)));
        messages_.push_back(reagent::message::user(bench::user_text()));
        provider_ = reagent::openai_chat(
            reagent::http_client(context_.get_executor()),
            reagent::openai_options(std::string(bench::model_name)).base_url("http://127.0.0.1:" + std::to_string(port) + "/v1").key(reagent::secret("sk-test")));
    }

    /// Opens streams until there are `count`, waits for five events of each, answers the resident memory in kB.
    long grow_to(int count)
    {
        for (; opened_ < count; ++opened_) asio::co_spawn(context_, read_for_ever(), &rethrow);
        while (ripe_ < count) context_.run_one();
        return bench::status_kb("VmRSS:");
    }

private:
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
    reagent::transcript messages_;
    reagent::provider_ptr provider_;
    int opened_ = 0, ripe_ = 0;
};

}  // namespace

int main(int argc, char** argv)
{
    const bench::client_flags flags(argc, argv);
    try {
        open_streams streams(flags.port);
        const long at_few = streams.grow_to(few);
        const long at_many = streams.grow_to(many);
        const double each = static_cast<double>(at_many - at_few) / (many - few);
        std::printf("{\"bench\":\"stream_memory\",\"rss_kb_at_100\":%ld,\"rss_kb_at_10000\":%ld,\"kb_per_stream\":%.2f,\"limit_kb\":%.0f,\"goal_kb\":%.0f}\n", at_few,
                    at_many, each, limit_kb, goal_kb);
        std::fflush(stdout);
        std::quick_exit(each <= limit_kb ? 0 : 1);
    } catch (const std::exception& e) {
        std::fprintf(stderr, "stream_memory: %s\n", e.what());
        return 1;
    }
}

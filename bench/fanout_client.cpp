// A whole model call of ours, many at once on one thread: encode, admit on a budget, send, parse, usage, settle. JSON calls go through `generate`;
// streams are read batch by batch, as a run does. Latency is that of the call (streams: of the call's first event), since a provider does not hand
// the server's `created` out.
#include "bench_common.hpp"
#include "budget_gate.hpp"

#include <reagent/base/error.hpp>
#include <reagent/model/event.hpp>
#include <reagent/providers/openai.hpp>

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/io_context.hpp>

#include <exception>

namespace {

namespace asio = boost::asio;

class fanout {
public:
    explicit fanout(const bench::client_flags& flags) : flags_(flags), context_(1), gate_(bench::budget_gate::ample()), measured_(flags, "fanout_client")
    {
        messages_.push_back(reagent::message::system(std::string(bench::system_text)));
        messages_.push_back(reagent::message::user(bench::user_text()));
        reagent::http_client_options transport;
        transport.max_idle_per_origin = static_cast<std::size_t>(flags.in_flight);
        if (const char* bundle = std::getenv("SSL_CERT_FILE"); flags.tls && bundle) transport.tls.ca_file = bundle;
        const std::string base = std::string(flags.tls ? "https" : "http") + "://127.0.0.1:" + std::to_string(flags.port) + "/v1";
        provider_ = reagent::openai_chat(reagent::http_client(context_.get_executor(), transport),
                                         reagent::openai_options(std::string(bench::model_name)).base_url(base).key(reagent::secret("sk-test")));
    }

    int run()
    {
        for (int i = 0; i < flags_.in_flight; ++i) asio::co_spawn(context_, call_after_call(), ended_);
        context_.run();
        if (!failure_.empty()) {
            std::fprintf(stderr, "fanout_client: %s\n", failure_.c_str());
            return 1;
        }
        measured_.print();
        std::quick_exit(0);  // a thousand idle connections need no farewell
    }

private:
    reagent::awaitable<void> call_after_call()
    {
        reagent::event_batch batch;
        while (!measured_.finished()) {
            bool failed = false;
            try {
                if (flags_.sse) co_await read_stream(batch);
                else co_await whole_call();
            } catch (const reagent::error& e) {
                failed = true;
                if (failure_.empty()) failure_ = e.what();
            }
            if (failed) {
                measured_.call_failed();
                context_.stop();
                co_return;
            }
            measured_.call_done();
        }
        context_.stop();
    }

    reagent::generate_request make_request()
    {
        reagent::generate_request request(messages_);
        request.options.temperature = 0.7;
        request.options.stream = flags_.sse;
        request.gate = &gate_;
        return request;
    }

    reagent::awaitable<void> whole_call()
    {
        const std::int64_t began = bench::monotonic_ns();
        reagent::awaitable<reagent::generate_result> answer = provider_->generate(make_request());
        const reagent::generate_result result = co_await std::move(answer);
        measured_.sample(static_cast<float>(bench::monotonic_ns() - began) / 1000.f);
        if (result.text.empty() || !result.usage) throw reagent::error(reagent::errc::malformed_response, "the answer has no text or no usage");
    }

    reagent::awaitable<void> read_stream(reagent::event_batch& batch)
    {
        const std::int64_t began = bench::monotonic_ns();
        const reagent::model_call_ptr call = provider_->start(make_request());
        std::uint64_t deltas = 0;
        for (;;) {
            batch.clear();
            const bool more = co_await call->read(batch);
            const std::uint64_t before = deltas;
            for (const reagent::event& e : batch) deltas += e.text().empty() ? 0 : 1;
            if (before == 0 && deltas > 0) measured_.sample(static_cast<float>(bench::monotonic_ns() - began) / 1000.f);
            if (!more) break;
        }
        measured_.count_events(deltas);
        const reagent::generate_result result = call->take_result();
        if (result.text.empty() || deltas == 0) throw reagent::error(reagent::errc::malformed_response, "the stream brought no text");
    }

    const bench::client_flags& flags_;
    asio::io_context context_;
    bench::budget_gate gate_;
    bench::measurement measured_;
    reagent::transcript messages_;
    reagent::provider_ptr provider_;
    std::string failure_;
    // A loop catches what a call throws; anything else is a bug worth an abort.
    static constexpr auto ended_ = [](std::exception_ptr failure) {
        if (failure) std::rethrow_exception(failure);
    };
};

}  // namespace

int main(int argc, char** argv)
{
    const bench::client_flags flags(argc, argv);
    return fanout(flags).run();
}

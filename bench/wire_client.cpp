// What the HTTP client alone costs a JSON call, many at once on one thread: the request written and sent, the head parsed, the body read to its
// end, the connection back in its pool. `fanout_client` is this with a provider and a budget around it.
#include "bench_common.hpp"

#include <reagent/base/error.hpp>
#include <reagent/net/http_client.hpp>

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/io_context.hpp>

#include <exception>

namespace {

namespace asio = boost::asio;

class wire {
public:
    explicit wire(const bench::client_flags& flags)
        : flags_(flags),
          context_(1),
          measured_(flags, "wire_client"),
          body_(bench::request_body(false)),
          target_(reagent::url::parse_or_throw(
              std::string(flags.tls ? "https" : "http") + "://127.0.0.1:" + std::to_string(flags.port) + "/v1/chat/completions", "bench")),
          client_(context_.get_executor(), options(flags))
    {}

    int run()
    {
        for (int i = 0; i < flags_.in_flight; ++i) asio::co_spawn(context_, call_after_call(), ended_);
        context_.run();
        if (!failure_.empty()) {
            std::fprintf(stderr, "wire_client: %s\n", failure_.c_str());
            return 1;
        }
        measured_.print();
        std::quick_exit(0);  // a thousand idle connections need no farewell
    }

private:
    static reagent::http_client_options options(const bench::client_flags& flags)
    {
        reagent::http_client_options o;
        o.max_idle_per_origin = static_cast<std::size_t>(flags.in_flight);
        if (const char* bundle = std::getenv("SSL_CERT_FILE"); flags.tls && bundle) o.tls.ca_file = bundle;
        return o;
    }

    reagent::awaitable<void> call_after_call()
    {
        while (!measured_.finished()) {
            bool failed = false;
            try {
                co_await call();
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

    reagent::awaitable<void> call()
    {
        const std::int64_t began = bench::monotonic_ns();
        reagent::http_request request("POST", target_);
        request.header_lines = "Content-Type: application/json\r\nAuthorization: Bearer sk-test\r\n";
        request.body = body_;
        reagent::awaitable<reagent::http_exchange> opening = client_.open(std::move(request));
        reagent::http_exchange answer = co_await std::move(opening);
        std::size_t size = 0;
        for (;;) {
            std::span<const char> bytes;
            const bool there = answer.try_read_some(bytes);
            if (!there) bytes = co_await answer.read_some();
            if (bytes.empty()) break;
            size += bytes.size();
        }
        if (answer.head().status != 200 || size == 0) throw reagent::error(reagent::errc::malformed_response, "the answer is none");
        measured_.sample(static_cast<float>(bench::monotonic_ns() - began) / 1000.f);
    }

    const bench::client_flags& flags_;
    asio::io_context context_;
    bench::measurement measured_;
    const std::string body_;
    const reagent::url target_;
    reagent::http_client client_;
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
    if (flags.sse) {
        std::fprintf(stderr, "wire_client: JSON calls only\n");
        return 2;
    }
    return wire(flags).run();
}

// What the HTTP client alone costs a JSON call, many at once on one thread: the request written and sent, the head parsed, the body read to its
// end, the connection back in its pool. `fanout_client` is this with a provider and a budget around it.
#include "call_loop.hpp"

namespace {

class wire final : public bench::call_loop {
public:
    explicit wire(const bench::client_flags& flags)
        : call_loop(flags, "wire_client"),
          body_(bench::request_body(false)),
          target_(reagent::url::parse_or_throw(origin() + "/v1/chat/completions", "bench")),
          client_(context().get_executor(), transport())
    {}

private:
    reagent::awaitable<void> call() override
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
        sample_since(began);
    }

    const std::string body_;
    const reagent::url target_;
    reagent::http_client client_;
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

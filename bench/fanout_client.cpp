// A whole model call of ours, many at once on one thread: encode, admit on a budget, send, parse, usage, settle. JSON calls go through `generate`;
// streams are read batch by batch, as a run does. Latency is that of the call (streams: of the call's first event), since a provider does not hand
// the server's `created` out.
#include "budget_gate.hpp"
#include "call_loop.hpp"

#include <reagent/model/event.hpp>
#include <reagent/providers/openai.hpp>

namespace {

class fanout final : public bench::call_loop {
public:
    explicit fanout(const bench::client_flags& flags) : call_loop(flags, "fanout_client"), streams_(flags.sse), gate_(bench::budget_gate::ample())
    {
        messages_.push_back(reagent::message::system(std::string(bench::system_text)));
        messages_.push_back(reagent::message::user(bench::user_text()));
        provider_ = reagent::openai_chat(reagent::http_client(context().get_executor(), transport()),
                                         reagent::openai_options(std::string(bench::model_name)).base_url(origin() + "/v1").key(reagent::secret("sk-test")));
    }

private:
    reagent::awaitable<void> call() override { return streams_ ? read_stream() : whole_call(); }

    reagent::generate_request make_request()
    {
        reagent::generate_request request(messages_);
        request.options.temperature = 0.7;
        request.options.stream = streams_;
        request.gate = &gate_;
        return request;
    }

    reagent::awaitable<void> whole_call()
    {
        const std::int64_t began = bench::monotonic_ns();
        reagent::awaitable<reagent::generate_result> answer = provider_->generate(make_request());
        const reagent::generate_result result = co_await std::move(answer);
        sample_since(began);
        if (result.text.empty() || !result.usage) throw reagent::error(reagent::errc::malformed_response, "the answer has no text or no usage");
    }

    reagent::awaitable<void> read_stream()
    {
        const std::int64_t began = bench::monotonic_ns();
        const reagent::model_call_ptr call = provider_->start(make_request());
        reagent::event_batch batch;
        std::uint64_t deltas = 0;
        for (;;) {
            batch.clear();
            const bool more = co_await call->read(batch);
            const std::uint64_t before = deltas;
            for (const reagent::event& e : batch) deltas += e.text().empty() ? 0 : 1;
            if (before == 0 && deltas > 0) sample_since(began);
            if (!more) break;
        }
        measured().count_events(deltas);
        const reagent::generate_result result = call->take_result();
        if (result.text.empty() || deltas == 0) throw reagent::error(reagent::errc::malformed_response, "the stream brought no text");
    }

    const bool streams_;
    bench::budget_gate gate_;
    reagent::transcript messages_;
    reagent::provider_ptr provider_;
};

}  // namespace

int main(int argc, char** argv)
{
    const bench::client_flags flags(argc, argv);
    return fanout(flags).run();
}

#include "wrap_world.hpp"

#include <reagent/providers/retry.hpp>

namespace {
namespace attempt_log_test {

using namespace wrap_world_detail;
using ::testing::ElementsAre;

TEST(AttemptLog, CountsWhatLeftAndMeasuresWaits)
{
    const auto clock = std::make_shared<rt::manual_clock>();
    attempt_log log(clock);
    clock->advance(5ms);
    const std::size_t first = log.open("a", "m");
    clock->advance(10ms);
    log.settle(first, 500);
    log.close(first, attempt_end::failed, make_error_code(errc::provider_failed));
    log.close(first, attempt_end::answered);  // the first word holds
    clock->advance(7ms);
    log.note("b", "", attempt_end::refused, make_error_code(errc::circuit_open));
    EXPECT_EQ(log.attempts(), 1U);
    EXPECT_THAT(waits_of(log.records()), ElementsAre(5, 7));
    EXPECT_THAT(ends_of(log.records()), ElementsAre("failed:a", "refused:b"));
    EXPECT_EQ(
        log.records()[0].to_json().dump(),
        R"({"provider":"a","model":"m","outcome":"failed","status":500,"error":"the model service answered with an error","waitedMs":5,"durationMs":10})");
    EXPECT_EQ(log.records()[1].to_json().dump(),
              R"({"provider":"b","outcome":"refused","error":"the circuit is open after too many failures","waitedMs":7,"durationMs":0})");
}

// A provider with its own attempts: what it resends is an attempt of the call, too.
TEST(AttemptLog, SeesTheResendsOfAProvider)
{
    reagent::live_world_detail::live_world w({rt::byte_script()
                                                  .request()
                                                  .send(rt::http_response(400, reagent::live_world_detail::error_body("temperature is not supported")))
                                                  .request()
                                                  .send(rt::http_response(200, rt::openai_answer("ok")))});
    generate_request request = asking("hi");
    request.options.temperature = 0.5;
    recording_gate gate;
    request.gate = &gate;
    const generate_result r = w.generate(with_retry(w.provider(), retry_options().clock(w.clock)), request);
    EXPECT_EQ(r.attempts, 2U);
    EXPECT_THAT(ends_of(r.records), ElementsAre("resent:openai", "answered:openai"));
    EXPECT_EQ(r.records[0].status, 400);
    EXPECT_EQ(r.records[1].status, 200);
    EXPECT_EQ(gate.outcomes.size(), 2U);
}

// The usage of a provider that leaves admission to others cuts the running answer, as an agent would.
TEST(AttemptLog, AdmitsAndCutsForAProviderThatDoesNot)
{
    world w;
    class chatty final : public provider {
    public:
        class call final : public model_call {
        public:
            awaitable<bool> read(event_batch& batch) override
            {
                batch.clear();
                usage u;
                u.output = ++said_;
                const json* data = batch.keep(u.to_json());
                batch.push(event_kind::usage).data = data;
                batch.push(event_kind::text, "abc");
                co_return true;
            }
            generate_result take_result() override { return {}; }

        private:
            std::uint64_t said_ = 0;
        };
        model_call_ptr start(generate_request) override { return std::make_unique<call>(); }
    };
    recording_gate gate;
    gate.most_output = 3;
    generate_request request = asking("hi");
    request.options.max_tokens = 50;
    request.gate = &gate;
    EXPECT_EQ(provider_error_to_json(w.failure(with_retry(std::make_shared<chatty>(), retry_options().clock(w.clock)), request))["rule"].as_string(),
              "budget.maxTokens");
    ASSERT_EQ(gate.attempts.size(), 1U);
    EXPECT_EQ(gate.attempts[0].output_bound, 50U);
    EXPECT_GT(gate.attempts[0].input_bound, 2U);
    ASSERT_EQ(gate.outcomes.size(), 1U);
    EXPECT_EQ(gate.outcomes[0].received_bytes, 12U);
    EXPECT_TRUE(gate.outcomes[0].request_left);
    EXPECT_EQ(gate.outcomes[0].usage->output, 4U);
}

}  // namespace attempt_log_test
}  // namespace

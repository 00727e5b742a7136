// Does a round cost what it adds? A run's transcript grows to 1 MB over 50 rounds; the encode step of round 50 may cost at most 1.5 times that of
// round 5, thanks to the prefix kept from round to round. Exit status 1 when it costs more, or when the bytes differ from encoding from scratch.
#include "bench_common.hpp"

#include <reagent/model/encoded_prefix.hpp>
#include <reagent/model/openai_codec.hpp>

#include <array>

namespace {

constexpr int rounds = 50;
constexpr std::size_t bytes_per_round = 1024 * 1024 / rounds;
constexpr int repeats = 41;
constexpr double limit = 1.5;

std::string long_answer()
{
    std::string answer;
    while (answer.size() < bytes_per_round - 300) answer += "A line of text with a \"quote\", and an umlaut: ä.\n";
    return answer;
}

/// One round of a run: the model asks for a tool, the tool answers at length.
void append_round(reagent::transcript& messages, int number)
{
    const std::string id = "call_" + std::to_string(number);
    std::vector<reagent::tool_call> calls;
    calls.emplace_back(id, "look_up", reagent::json::object().set("question", "part " + std::to_string(number)));
    messages.push_back(reagent::message::assistant("Looking that up.", std::move(calls)));
    messages.push_back(reagent::message::tool_result(id, long_answer()));
}

double median(std::vector<double> values)
{
    std::nth_element(values.begin(), values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2), values.end());
    return values[values.size() / 2];
}

}  // namespace

int main()
{
    reagent::openai_codec_options options;
    options.base_url = reagent::url::parse("http://127.0.0.1:1/v1").value();
    const reagent::openai_codec codec(std::move(options));

    std::array<std::vector<double>, rounds + 1> cost_us;
    std::size_t body_bytes = 0;
    bool equal = true;
    for (int repeat = 0; repeat < repeats; ++repeat) {
        reagent::encoded_prefix prefix;
        reagent::transcript messages{reagent::message::system("You are a research assistant."), reagent::message::user("Tell me everything.")};
        for (int round = 1; round <= rounds; ++round) {
            append_round(messages, round);
            reagent::generate_request request(messages);
            request.prefix = &prefix;
            std::string unused;
            const std::int64_t began = bench::monotonic_ns();
            const reagent::call_plan plan = codec.plan(request);
            const reagent::wire_request wire = codec.encode(request, plan, true, {}, unused);
            cost_us[static_cast<std::size_t>(round)].push_back(static_cast<double>(bench::monotonic_ns() - began) / 1000);
            body_bytes = wire.body.size();
            if (repeat == 0 && round % 10 == 0) {
                const std::string incremental(wire.body);
                request.prefix = nullptr;
                std::string storage;
                equal = equal && incremental == codec.encode(request, plan, true, {}, storage).body;
            }
        }
    }
    const double early = median(cost_us[5]), late = median(cost_us[rounds]);
    std::printf("{\"bench\":\"encode_growth\",\"body_bytes\":%zu,\"round_5_us\":%.1f,\"round_50_us\":%.1f,\"ratio\":%.2f,\"limit\":%.1f,\"bytes_equal\":%s}\n",
                body_bytes, early, late, late / early, limit, equal ? "true" : "false");
    return equal && late / early <= limit ? 0 : 1;
}

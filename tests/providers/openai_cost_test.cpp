// The price of a call in allocations, with connection and caches warm.
#include "live_world.hpp"

#include <reagent/testing/allocation_counter.hpp>

#include <gtest/gtest.h>

namespace {
namespace openai_cost_test {

using namespace reagent;
namespace testing = reagent::testing;
using namespace reagent::live_world_detail;

/// Allocations of this thread between start and end of one call; the server runs on a thread of its own.
awaitable<std::uint64_t> price_of_generate(provider_ptr p, transcript messages)
{
    const testing::allocation_counter counted;
    {
        generate_request request;
        request.messages = std::move(messages);
        const generate_result r = co_await p->generate(std::move(request));
        EXPECT_EQ(r.text.size(), 1500U);
    }
    co_return counted.allocations();
}

awaitable<std::uint64_t> price_of_stream(provider_ptr p, transcript messages, event_batch& batch)
{
    const testing::allocation_counter counted;
    {
        generate_request request;
        request.messages = std::move(messages);
        const model_call_ptr call = p->start(std::move(request));
        for (;;) {
            const bool more = co_await call->read(batch);
            if (!more) break;
        }
        EXPECT_EQ(call->take_result().text.size(), 4U * 200U);
    }
    co_return counted.allocations();
}

TEST(OpenaiCost, AJsonCallTakesAtMostTwentyAllocations)
{
    testing::byte_server server(byte_script::answering(testing::http_response(200, testing::openai_answer(std::string(1500, 'x')))));
    asio::io_context io(1);
    http_client http(io.get_executor());
    openai_options o("gpt-4o-mini");
    o.base_url(url::parse_or_throw(server.origin() + "/v1", "test")).key(secret("k"));
    const provider_ptr p = openai_chat(http, o);
    const transcript messages = {message::system("be terse"), message::user("hi")};
    std::uint64_t price = 0;
    for (int i = 0; i < 5; ++i) {
        io.restart();
        price = testing::complete(io, price_of_generate(p, messages));
    }
    RecordProperty("allocations", static_cast<int>(price));
    std::printf("allocations of a JSON call: %llu\n", static_cast<unsigned long long>(price));
    EXPECT_LE(price, 20U);
}

TEST(OpenaiCost, EventsOfAStreamAreNotAllocatedOneByOne)
{
    std::vector<std::string> deltas(200, "word");
    testing::byte_server server(byte_script::answering(testing::sse_response(testing::openai_events(deltas))));
    asio::io_context io(1);
    http_client http(io.get_executor());
    openai_options o("gpt-4o-mini");
    o.base_url(url::parse_or_throw(server.origin() + "/v1", "test"));
    const provider_ptr p = openai_chat(http, o);
    const transcript messages = {message::user("hi")};
    event_batch batch;
    std::uint64_t price = 0;
    for (int i = 0; i < 5; ++i) {
        io.restart();
        price = testing::complete(io, price_of_stream(p, messages, batch));
    }
    std::printf("allocations of a stream of 200 deltas: %llu\n", static_cast<unsigned long long>(price));
    EXPECT_LE(price, 60U);
}

}  // namespace openai_cost_test
}  // namespace

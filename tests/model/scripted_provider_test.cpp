#include <reagent/model/provider_error.hpp>
#include <reagent/model/scripted_provider.hpp>
#include <reagent/testing/run.hpp>

#include <gtest/gtest.h>

namespace {
namespace scripted_provider_test {

using namespace reagent;
namespace testing = reagent::testing;

class read_all {
public:
    read_all() = default;
    std::string text, failure;
    std::vector<event_kind> kinds;
    std::size_t batches = 0;
    generate_result result;
};

awaitable<read_all> drain(provider_ptr p, generate_request request)
{
    read_all out;
    const model_call_ptr call = p->start(std::move(request));
    event_batch batch;
    try {
        for (;;) {
            const bool more = co_await call->read(batch);
            ++out.batches;
            for (const event& e : batch) {
                out.text += e.text();
                out.kinds.push_back(e.kind);
            }
            if (!more) break;
        }
        out.result = call->take_result();
    } catch (const error& e) {
        out.failure = e.what();
        out.text = call->partial_text();
    }
    co_return out;
}

generate_request asking(std::string text)
{
    return generate_request({message::user(std::move(text))});
}

class only_generate final : public provider {
public:
    awaitable<generate_result> generate(generate_request) override
    {
        generate_result r;
        r.text = "whole";
        r.stop_reason = "end_turn";
        co_return r;
    }
};
class nothing_at_all final : public provider {};

TEST(ScriptedProvider, AnswersRoundsInOrderAndRecords)
{
    asio::io_context io;
    std::vector<scripted_round> rounds;
    rounds.push_back(std::move(scripted_round().call("a", "find", json::object().set("q", 1)).usage(3, 4)));
    rounds.push_back(std::move(scripted_round("Hé🌍llo").deltas(3).usage(5, 6)));
    const auto p = scripted_provider::make(std::move(rounds));
    const generate_result first = testing::complete(io, p->generate(asking("one")));
    ASSERT_EQ(first.tool_calls.size(), 1U);
    EXPECT_EQ(first.stop_reason, "tool_use");
    EXPECT_EQ(first.model, "scripted-model");
    io.restart();
    const read_all second = testing::complete(io, drain(p, asking("two")));
    EXPECT_EQ(second.text, "Hé🌍llo");
    EXPECT_EQ(second.result.text, "Hé🌍llo");
    EXPECT_EQ(second.batches, 3U);
    EXPECT_EQ(second.kinds,
              (std::vector<event_kind>{event_kind::start, event_kind::text, event_kind::text, event_kind::text, event_kind::usage, event_kind::stop}));
    ASSERT_EQ(p->requests().size(), 2U);
    EXPECT_EQ(p->requests()[1].messages[0]->text(), "two");
    EXPECT_EQ(p->open_calls(), 0U);
    EXPECT_FALSE(p->admits_attempts());
    EXPECT_THROW(static_cast<void>(p->start(asking("three"))), provider_error);
}

TEST(ScriptedProvider, FailuresComeAfterTheirDeltas)
{
    asio::io_context io;
    std::vector<scripted_round> rounds;
    rounds.push_back(std::move(scripted_round("abc").error(provider_error(errc::provider_failed, "[S] broke", true))));
    const auto p = scripted_provider::make(std::move(rounds));
    const read_all out = testing::complete(io, drain(p, asking("x")));
    EXPECT_EQ(out.failure, "[S] broke");
    EXPECT_EQ(out.text, "abc");
    EXPECT_EQ(out.batches, 1U);
}

TEST(ScriptedProvider, RoundsMayMatchAndRepeat)
{
    asio::io_context io;
    std::vector<scripted_round> rounds;
    rounds.push_back(std::move(scripted_round("special").times(0).when([](const generate_request& r) { return r.messages.back()->text() == "s"; })));
    rounds.push_back(std::move(scripted_round("plain").times(2)));
    const auto p = scripted_provider::make(std::move(rounds));
    std::string got;
    for (const char* ask : {"s", "x", "s", "y"}) {
        got += testing::complete(io, p->generate(asking(ask))).text + " ";
        io.restart();
    }
    EXPECT_EQ(got, "special plain special plain ");
}

TEST(Provider, EachHalfIsMadeFromTheOther)
{
    asio::io_context io;
    const auto p = std::make_shared<only_generate>();
    const read_all out = testing::complete(io, drain(p, asking("x")));
    EXPECT_EQ(out.text, "whole");
    EXPECT_EQ(out.kinds, (std::vector<event_kind>{event_kind::start, event_kind::text, event_kind::stop}));
    io.restart();
    const auto none = std::make_shared<nothing_at_all>();
    EXPECT_THROW(static_cast<void>(testing::complete(io, none->generate(asking("x")))), validation_error);
}

TEST(Provider, AsyncGenerateTakesAnyToken)
{
    asio::io_context io;
    const auto p = std::make_shared<only_generate>();
    std::string text;
    error_code ec = make_error_code(errc::closed);
    p->async_generate(io.get_executor(), asking("x"), [&](error_code e, generate_result r) {
        ec = e;
        text = r.text;
    });
    EXPECT_TRUE(text.empty());
    io.run();
    EXPECT_FALSE(ec);
    EXPECT_EQ(text, "whole");
}

}  // namespace scripted_provider_test
}  // namespace

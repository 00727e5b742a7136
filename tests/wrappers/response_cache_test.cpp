#include "answer_store.hpp"
#include "wrap_world.hpp"

#include <reagent/providers/response_cache.hpp>
#include <reagent/providers/retry.hpp>

#include <boost/asio/bind_cancellation_slot.hpp>
#include <boost/asio/cancellation_signal.hpp>
#include <boost/asio/co_spawn.hpp>

namespace {
namespace response_cache_test {

using namespace wrap_world_detail;
using providers_detail::answer_store;
using ::testing::ElementsAre;
using ::testing::UnorderedElementsAre;

generate_request question(std::string text = "hi", bool stream = false)
{
    generate_request r = asking(std::move(text), stream);
    r.options.temperature = 0;
    return r;
}

TEST(RequestKey, EqualRequestsAndDifferentOnes)
{
    const auto key = [](const generate_request& r) { return request_key("s", "p", "m", r); };
    const auto with_tool = [](std::string_view schema) {
        generate_request r = question();
        r.tools = std::make_shared<const std::vector<tool_schema>>(std::vector<tool_schema>{tool_schema("t", "d", json::parse_or_throw(schema, "test"))});
        return r;
    };
    // The order of members and the spelling of numbers do not count, nor does the way of the answer.
    EXPECT_EQ(key(with_tool(R"({"type":"object","maxProperties":1})")), key(with_tool(R"({"maxProperties":1.0,"type":"object"})")));
    generate_request slow = question("hi", true);
    slow.options.total = 5s;
    slow.options.accept_resets = true;
    EXPECT_EQ(key(question()), key(slow));
    std::vector<std::string> keys = {key(question()),
                                     key(question("ho")),
                                     key(with_tool("{}")),
                                     request_key("s2", "p", "m", question()),
                                     request_key("s", "p2", "m", question()),
                                     request_key("s", "p", "m2", question())};
    const auto changed = [&](const std::function<void(generate_options&)>& change) {
        generate_request r = question();
        change(r.options);
        keys.push_back(key(r));
    };
    changed([](generate_options& o) { o.temperature.reset(); });
    changed([](generate_options& o) { o.temperature = 1; });
    changed([](generate_options& o) { o.max_tokens = 5; });
    changed([](generate_options& o) { o.tool_choice = json("auto"); });
    changed([](generate_options& o) { o.thinking = json(); });
    changed([](generate_options& o) { o.mode.emplace(std::nullopt); });
    changed([](generate_options& o) { o.mode.emplace(thinking_mode::off); });
    changed([](generate_options& o) { o.system = json("be brief"); });
    generate_request assistant({message::user("hi"), message::assistant("hi")});
    assistant.options.temperature = 0;
    keys.push_back(key(assistant));
    std::ranges::sort(keys);
    EXPECT_EQ(std::ranges::adjacent_find(keys), keys.end());
}

TEST(AnswerStore, BoundsOfNumberBytesAndAge)
{
    const auto answer = std::make_shared<const generate_result>();
    const steady_time now(1h);
    answer_store few(2, 1000, 10s);
    few.put("a", answer, 10, now);
    few.put("b", answer, 10, now);
    EXPECT_TRUE(few.find("a", now));
    few.put("c", answer, 10, now);  // b was unused longest
    EXPECT_TRUE(few.find("a", now));
    EXPECT_FALSE(few.find("b", now));
    EXPECT_EQ(few.bytes(), 22U);
    EXPECT_TRUE(few.find("a", now + 10s - 1ns));
    EXPECT_FALSE(few.find("a", now + 10s));
    EXPECT_EQ(few.entries(), 1U);
    answer_store small(100, 30, 10s);
    small.put("a", answer, 14, now);
    small.put("b", answer, 14, now);
    EXPECT_EQ(small.entries(), 2U);
    small.put("c", answer, 1, now);
    EXPECT_FALSE(small.find("a", now));
    EXPECT_EQ(small.bytes(), 17U);
    small.put("d", answer, 30, now);  // larger than all of it
    EXPECT_EQ(small.entries(), 2U);
    small.put("c", answer, 5, now);
    EXPECT_EQ(small.bytes(), 21U);
    small.clear();
    EXPECT_EQ(small.bytes(), 0U);
    answer_store none(0, 1000, 10s);
    none.put("a", answer, 1, now);
    EXPECT_EQ(none.entries(), 0U);
}

class ResponseCache : public ::testing::Test {
protected:
    cache_options options() { return cache_options().clock(w.clock); }
    std::shared_ptr<scripted_provider> model(milliseconds slow = 0ms)
    {
        scripted_round r("ok");
        r.usage(10, 5).times(0);
        if (slow.count() != 0) r.delay(w.slow(slow));
        return scripted_provider::make({std::move(r)});
    }
    /// Starts a call that notes how it ended.
    void start(const provider_ptr& p, const std::string& name, generate_request request = question())
    {
        asio::co_spawn(w.io, p->generate(std::move(request)),
                       asio::bind_cancellation_slot(stops[name].slot(), [this, name](const std::exception_ptr& failure, const generate_result& r) {
                           ended.push_back(name + (failure ? "!" + code_of(failure).message() : ":" + std::string(to_string(r.records.back().end))));
                       }));
    }
    void run(std::size_t until)
    {
        ASSERT_TRUE(rt::run_until(w.io, *w.clock, [&] { return ended.size() == until; }));
    }
    world w;
    std::map<std::string, asio::cancellation_signal> stops;
    std::vector<std::string> ended;
};

TEST_F(ResponseCache, AHitCostsNothing)
{
    const auto p = model();
    const response_cache cache(options());
    const provider_ptr cached = with_response_cache(p, cache);
    const generate_result first = w.generate(cached, question()), second = w.generate(cached, question());
    EXPECT_EQ(first.usage->total(), 15U);
    EXPECT_EQ(second.text, "ok");
    EXPECT_EQ(second.usage->total(), 0U);
    EXPECT_EQ(second.cost, usd());
    EXPECT_EQ(second.attempts, 0U);
    EXPECT_EQ(second.to_json()["attempts"].get_int64(), 0);
    EXPECT_THAT(ends_of(second.records), ElementsAre("cached:scripted"));
    EXPECT_EQ(p->requests().size(), 1U);
    EXPECT_EQ(cache.stats().hits, 1U);
    EXPECT_EQ(cache.stats().misses, 1U);
    w.clock->advance(1h);
    EXPECT_EQ(w.generate(cached, question()).attempts, 1U);
}

TEST_F(ResponseCache, AStreamIsFilledAndAnsweredToo)
{
    scripted_round r("abc");
    r.deltas(3);
    const auto p = scripted_provider::make({r});
    const provider_ptr cached = with_response_cache(p, response_cache(options()));
    EXPECT_EQ(w.call(cached, question("hi", true)).batches, 3U);
    const observed_call second = w.call(cached, question("hi", true));
    EXPECT_EQ(second.text, "abc");
    EXPECT_THAT(second.kinds, ElementsAre(event_kind::start, event_kind::text, event_kind::usage, event_kind::stop));
}

TEST_F(ResponseCache, OnlyWhatMayBeSharedIs)
{
    const auto p = model();
    const provider_ptr cached = with_response_cache(p, response_cache(options()));
    generate_request warm = question(), with_tools = question();
    warm.options.temperature = 0.7;
    with_tools.tools = std::make_shared<const std::vector<tool_schema>>(std::vector<tool_schema>{tool_schema("t", "d", json())});
    for (const generate_request& r : {asking("hi", false), warm, with_tools})
        for (int i = 0; i < 2; ++i) EXPECT_EQ(w.generate(cached, r).attempts, 1U);
    const provider_ptr all = with_response_cache(p, response_cache(options().when([](const generate_request&) { return true; })));
    static_cast<void>(w.generate(all, warm));
    EXPECT_EQ(w.generate(all, warm).attempts, 0U);
}

TEST_F(ResponseCache, CutAnswersAndFailuresAreNotKept)
{
    const auto p =
        scripted_provider::make({scripted_round("cu").stop("max_tokens"), failing(refusal(503)), scripted_round("no").stop("refusal"), scripted_round("ok")});
    const provider_ptr cached = with_response_cache(p, response_cache(options()));
    EXPECT_EQ(w.generate(cached, question()).text, "cu");
    EXPECT_TRUE(w.failure(cached, question()));
    EXPECT_EQ(w.generate(cached, question()).text, "no");
    EXPECT_EQ(w.generate(cached, question()).text, "ok");
    EXPECT_EQ(w.generate(cached, question()).attempts, 0U);
}

TEST_F(ResponseCache, ProvidersShareOnlyUnderOneScope)
{
    const response_cache cache(options());
    const auto p = model(), q = model();
    static_cast<void>(w.generate(with_response_cache(p, cache), question()));
    EXPECT_EQ(w.generate(with_response_cache(q, cache), question()).attempts, 1U);
    static_cast<void>(w.generate(with_response_cache(p, cache, "team"), question()));
    EXPECT_EQ(w.generate(with_response_cache(q, cache, "team"), question()).attempts, 0U);
}

TEST_F(ResponseCache, CallsThatMeetShareOneRequest)
{
    const auto p = model(1s);
    const response_cache cache(options());
    const provider_ptr cached = with_response_cache(p, cache);
    for (const char* name : {"a", "b", "c"}) start(cached, name);
    start(cached, "other", question("ho"));
    run(4);
    EXPECT_THAT(ended, UnorderedElementsAre("a:answered", "b:shared", "c:shared", "other:answered"));
    EXPECT_EQ(p->requests().size(), 2U);
    EXPECT_EQ(cache.stats().shared, 2U);
    EXPECT_EQ(cache.stats().in_flight, 0U);
}

TEST_F(ResponseCache, StreamsAndThoseWhoDoNotWantToDoNotShare)
{
    const auto p = model(1s);
    const provider_ptr cached = with_response_cache(p, response_cache(options().max_entries(0))),
                       alone = with_response_cache(p, response_cache(options().single_flight(false)));
    const provider_ptr streamed = with_response_cache(p, response_cache(options()));
    rt::started<observed_call> a(w.io, observe(streamed, question("hi", true))), b(w.io, observe(streamed, question("hi", true)));
    start(alone, "c");
    start(alone, "d");
    start(cached, "e");
    start(cached, "f");
    run(4);
    EXPECT_EQ(a.get().result->attempts + b.get().result->attempts, 2U);
    EXPECT_THAT(ended, UnorderedElementsAre("c:answered", "d:answered", "e:answered", "f:shared"));
    start(cached, "g");
    run(5);
    EXPECT_EQ(ended.back(), "g:answered");
}

TEST_F(ResponseCache, ACancelledLeaderDoesNotFailTheOthers)
{
    const auto p = model(1s);
    const provider_ptr cached = with_response_cache(p, response_cache(options()));
    for (const char* name : {"a", "b", "c"}) start(cached, name);
    rt::run_until_idle(w.io);
    w.clock->advance(500ms);
    stops["a"].emit(asio::cancellation_type::terminal);
    run(3);
    EXPECT_THAT(ended, ElementsAre("a!Operation canceled", "b:answered", "c:shared"));
    EXPECT_EQ(p->requests().size(), 2U);
    EXPECT_EQ(w.elapsed(), 1500ms);
}

TEST_F(ResponseCache, ALeaderOutOfTimeOrHaltedDoesNotEither)
{
    const auto p = scripted_provider::make({scripted_round().error(timeout_error(errc::deadline, "late")).delay(w.slow(1s)),
                                            scripted_round().error(halt_error("r")).delay(w.slow(1s)), scripted_round("ok").times(0)});
    const provider_ptr cached = with_response_cache(p, response_cache(options()));
    for (const char* name : {"a", "b", "c"}) start(cached, name);
    run(3);
    EXPECT_THAT(ended, ElementsAre("a!the total time of the operation is used up", "b!halted by the gate", "c:answered"));
}

TEST_F(ResponseCache, AnErrorOfTheServiceReachesAll)
{
    const auto p = scripted_provider::make({failing(refusal(429, true, 2s)).delay(w.slow(1s)), scripted_round("ok").times(0)});
    const provider_ptr cached = with_response_cache(p, response_cache(options()));
    for (const char* name : {"a", "b"}) start(cached, name);
    run(2);
    EXPECT_THAT(ended, UnorderedElementsAre("a!the model service asks to slow down", "b!the model service asks to slow down"));
    EXPECT_EQ(p->requests().size(), 1U);
}

TEST_F(ResponseCache, WhoWaitsForAnotherHasItsOwnDeadline)
{
    const auto p = model(10s);
    const provider_ptr cached = with_response_cache(p, response_cache(options()));
    start(cached, "a");
    generate_request hurried = question();
    hurried.options.total = 1s;
    start(cached, "b", hurried);
    stops["c"];
    start(cached, "c");
    rt::run_until_idle(w.io);
    stops["c"].emit(asio::cancellation_type::terminal);
    run(3);
    EXPECT_THAT(ended, ElementsAre("c!Operation canceled", "b!the total time of the operation is used up", "a:answered"));
}

TEST_F(ResponseCache, Defaults)
{
    EXPECT_EQ(cache_options().max_entries(), 1000U);
    EXPECT_EQ(cache_options().max_bytes(), std::size_t{64} << 20U);
    EXPECT_EQ(cache_options().ttl(), 1h);
    const response_cache cache(options());
    static_cast<void>(w.generate(with_response_cache(model(), cache), question()));
    EXPECT_EQ(cache.stats().entries, 1U);
    cache_stats before = cache.stats();
    EXPECT_GT(before.bytes, 100U);
    response_cache(cache).clear();
    EXPECT_EQ(cache.stats().entries, 0U);
}

}  // namespace response_cache_test
}  // namespace

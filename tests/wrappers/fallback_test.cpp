#include "wrap_world.hpp"

#include <reagent/providers/fallback.hpp>
#include <reagent/providers/retry.hpp>

namespace {
namespace fallback_test {

using namespace wrap_world_detail;
using ::testing::ElementsAre;
using ::testing::StartsWith;

class Fallback : public ::testing::Test {
protected:
    fallback_options options() { return fallback_options().clock(w.clock); }
    std::shared_ptr<scripted_provider> failing_one(int status, bool retryable = true)
    {
        return scripted_provider::make({failing(refusal(status, retryable), 0)}, "first");
    }
    std::shared_ptr<scripted_provider> good = scripted_provider::make({scripted_round("ok").times(0)}, "second");
    world w;
};

TEST_F(Fallback, L13_TheNextOneAnswers)
{
    std::vector<std::size_t> told;
    fallback_options o = options().on_fallback([&](const std::exception_ptr& e, std::size_t from, std::size_t to) {
        EXPECT_EQ(message_of(e), "[Test] HTTP 400");
        told = {from, to};
    });
    const generate_result r = w.generate(with_fallback({failing_one(400, false), good}, o), asking("hi"));
    EXPECT_EQ(r.text, "ok");
    EXPECT_EQ(r.attempts, 2U);
    EXPECT_THAT(told, ElementsAre(0U, 1U));
    EXPECT_EQ(r.records[0].model, "first");
    EXPECT_EQ(r.records[1].model, "second");
}

TEST_F(Fallback, L14_APolicySaysNo)
{
    const fallback_options no = options().when([](const std::exception_ptr&, std::size_t) { return false; });
    EXPECT_EQ(message_of(w.failure(with_fallback({failing_one(503), good}, no))), "[Test] HTTP 503");
    EXPECT_TRUE(w.failure(with_fallback({failing_one(400, false), good}, options().only_retryable())));
    EXPECT_TRUE(good->requests().empty());
    EXPECT_FALSE(w.failure(with_fallback({failing_one(503), good}, options().only_retryable())));
}

TEST_F(Fallback, L15_AllFail)
{
    const std::exception_ptr failure = w.failure(with_fallback({failing_one(503), failing_one(400, false)}, options()));
    EXPECT_THAT(message_of(failure), StartsWith("[FallbackProvider] all providers failed"));
    try {
        std::rethrow_exception(failure);
    } catch (const all_failed_error& e) {
        ASSERT_EQ(e.errors().size(), 2U);
        EXPECT_EQ(message_of(e.errors()[0]), "[Test] HTTP 503");
        EXPECT_EQ(message_of(e.errors()[1]), "[Test] HTTP 400");
        EXPECT_TRUE(e.retryable());
    }
    const std::exception_ptr hopeless = w.failure(with_fallback({failing_one(401, false), failing_one(400, false)}, options()));
    EXPECT_FALSE(provider_error_to_json(hopeless)["retryable"].as_bool());
}

TEST_F(Fallback, L16_AHaltPassesThroughAndSoDoesWhatTheCallerDid)
{
    const std::vector<std::exception_ptr> failures = {std::make_exception_ptr(halt_error("r")), std::make_exception_ptr(validation_error("v")),
                                                      std::make_exception_ptr(config_error("c")),
                                                      std::make_exception_ptr(boost::system::system_error(asio::error::operation_aborted))};
    for (const std::exception_ptr& f : failures) {
        const auto first = scripted_provider::make({scripted_round().error(f)});
        EXPECT_EQ(message_of(w.failure(with_fallback({first, good}, options()))), message_of(f));
    }
    EXPECT_TRUE(good->requests().empty());
}

TEST_F(Fallback, Case_C8_NotAfterTheFirstDelta)
{
    const auto first = scripted_provider::make({failing_after(3, refusal(503))});
    const observed_call seen = w.call(with_fallback({first, good}, options()), asking("hi"));
    EXPECT_EQ(seen.error()["status"].get_int64(), 503);
    EXPECT_EQ(seen.text, "xxx");
    EXPECT_TRUE(good->requests().empty());
}

TEST_F(Fallback, Case_C8_AResetStandsBetweenTwoAnswers)
{
    const auto first = scripted_provider::make({failing_after(3, refusal(503))});
    generate_request request = asking("hi");
    request.options.accept_resets = true;
    const observed_call seen = w.call(with_fallback({first, good}, options()), request);
    ASSERT_TRUE(seen.result);
    EXPECT_EQ(seen.result->text, "ok");
    EXPECT_EQ(std::ranges::count(seen.kinds, event_kind::reset), 1);
}

TEST_F(Fallback, NobodyIsAskedAfterTheDeadline)
{
    const auto first = scripted_provider::make({failing(refusal(503)).delay(w.slow(2s))});
    generate_request request = asking("hi");
    request.options.total = 2s;
    EXPECT_EQ(message_of(w.failure(with_fallback({first, good}, options()), request)), "[Test] HTTP 503");
    EXPECT_TRUE(good->requests().empty());
}

TEST_F(Fallback, ARetryAroundItAsksAllOfThemAgain)
{
    const auto first = failing_one(503);
    const auto second = scripted_provider::make({failing(refusal(429, true, 3s)), scripted_round("ok")});
    const provider_ptr p = with_retry(with_fallback({with_retry(first), second}, options()), retry_options().clock(w.clock).random(always(0.5)));
    const generate_result r = w.generate(p, asking("hi"));
    EXPECT_EQ(r.attempts, 4U);
    EXPECT_EQ(first->requests().size(), 2U);
    // The first may be asked at once, so nobody waits for the second's three seconds.
    EXPECT_THAT(waits_of(r.records), ElementsAre(0, 0, 500, 0));
}

TEST_F(Fallback, OneMemberFailsWithItsOwnError)
{
    EXPECT_EQ(message_of(w.failure(with_fallback({failing_one(503)}, options()))), "[Test] HTTP 503");
    EXPECT_THROW(static_cast<void>(with_fallback({})), validation_error);
    EXPECT_EQ(with_fallback({failing_one(503), good})->model(), "first");
    EXPECT_EQ(with_fallback({failing_one(503), good})->name(), "fallback");
}

}  // namespace fallback_test
}  // namespace
